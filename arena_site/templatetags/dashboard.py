"""Template tags of the operator dashboard: relative times."""

from datetime import datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SPANS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (timedelta(0), MINUTE, "min"))
"""From how long a span each unit is used, the unit and its sign."""


@register.simple_tag
def ago(then: datetime | None, now: datetime) -> SafeString | str:
    """A relative time, with the instant as title and machine-readable attribute."""
    if then is None:
        return "never"
    exact = f"{then:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', then.isoformat(), exact, relative(now - then))


def relative(span: timedelta) -> str:
    if timedelta(0) <= span < MINUTE:
        return "just now"
    unit, name = next((unit, name) for least, unit, name in SPANS if abs(span) >= least)
    length = f"{abs(span) // unit} {name}"
    return f"{length} ago" if span > timedelta(0) else f"in {length}"
