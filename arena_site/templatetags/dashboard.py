"""Template tags of the operator dashboard: relative times, durations, and the colours of states."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from foundation.models import Run

register = template.Library()
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SPANS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (timedelta(0), MINUTE, "min"))
"""From how long a span each unit is used, the unit and its sign."""
STATE_CLASSES = {Run.Status.SUCCEEDED: "good", Run.Status.RUNNING: "now"}


@register.simple_tag
def ago(instant: datetime | None, now: datetime) -> SafeString | str:
    """A relative time, with the instant as title and machine-readable attribute."""
    return "never" if instant is None else _time(instant, relative(now - instant))


@register.simple_tag
def countdown(instant: datetime, now: datetime) -> SafeString:
    """The time until an instant, which dashboard.js counts down."""
    return _time(instant, remaining(instant - now), SafeString(" data-countdown"))


@register.simple_tag
def took(run: Run, now: datetime) -> str:
    """The duration of a run, so far or in all."""
    return duration(((run.finished_at or now) - run.started_at).total_seconds())


@register.filter
def state_class(status: str) -> str:
    """The class of a run's state, after its end: anything unknown is bad."""
    return STATE_CLASSES.get(status, "bad")  # type: ignore[call-overload]


@register.filter
def usd(amount: Decimal) -> str:
    """An amount in dollars, to the cent of a cent."""
    return f"${amount:,.4f}"


@register.filter
def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


@register.filter
def seconds(milliseconds: Any) -> str:
    """A latency in seconds."""
    return "–" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


@register.filter
def duration(length: float) -> str:
    """Seconds as text, in the unit that suits them."""
    if length < 1:
        return f"{length:.1f} s"
    if length < 120:
        return f"{length:.0f} s"
    return f"{length / 60:.0f} min" if length < 7200 else f"{length / 3600:.1f} h"


def relative(span: timedelta) -> str:
    if timedelta(0) <= span < MINUTE:
        return "just now"
    unit, name = next((unit, name) for least, unit, name in SPANS if abs(span) >= least)
    length = f"{abs(span) // unit} {name}"
    return f"{length} ago" if span > timedelta(0) else f"in {length}"


def remaining(span: timedelta) -> str:
    """Time left, as dashboard.js shows it too: seconds below an hour, minutes below a day."""
    if span <= timedelta(0):
        return "due now"
    if span < HOUR:
        return f"in {span // MINUTE}:{span % MINUTE // SECOND:02}"
    if span < DAY:
        return f"in {span // HOUR} h {span % HOUR // MINUTE} min"
    return f"in {span // DAY} d {span % DAY // HOUR} h"


def _time(instant: datetime, text: str, attributes: SafeString | str = "") -> SafeString:
    exact = f"{instant:%Y-%m-%d %H:%M:%S} UTC"
    return format_html('<time datetime="{}" title="{}"{}>{}</time>', instant.isoformat(), exact, attributes, text)
