"""Template tags of the operator dashboard: relative times and grouped digits."""

from datetime import datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
SPANS = ((timedelta(days=2), timedelta(days=1), "d"), (timedelta(hours=2), timedelta(hours=1), "h"))


@register.simple_tag
def ago(then: datetime | None, now: datetime) -> SafeString | str:
    """A relative time, with the instant as title and machine-readable attribute."""
    if then is None:
        return "never"
    exact = f"{then:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', then.isoformat(), exact, relative(now - then))


def relative(span: timedelta) -> str:
    if span < timedelta(0):
        return f"in {length(-span)}"
    return "just now" if span < timedelta(minutes=1) else f"{length(span)} ago"


def length(span: timedelta) -> str:
    for least, unit, name in SPANS:
        if span >= least:
            return f"{span // unit} {name}"
    return f"{span // timedelta(minutes=1)} min"


@register.filter
def thousands(number: int) -> str:
    return f"{number:,}"
