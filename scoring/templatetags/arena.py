"""How the arena writes numbers and times: one filter for each kind, a dash for what there is none of."""

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from django import template
from django.utils.html import format_html

register = template.Library()

DASH = "–"
MINUS = "−"
THIN_SPACE = "\u202f"
SMALLEST_PRICE_PLACES = 3

Number = Decimal | float | int | str | None


def _rounded(value: Number, places: int) -> Decimal | None:
    """The number to `places`, as it will be shown, so that its sign is that of what the reader sees."""
    if value is None or value == "":
        return None
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def _sign(number: Decimal, *, signed: bool) -> str:
    if number < 0:
        return MINUS
    return "+" if signed and number > 0 else ""


def _written(value: Number, places: int, *, before: str = "", after: str = "", signed: bool = False) -> str:
    number = _rounded(value, places)
    if number is None:
        return DASH
    return f"{_sign(number, signed=signed)}{before}{abs(number):,.{places}f}{after}"


@register.filter
def money(value: Number) -> str:
    """Dollars to the cent."""
    return _written(value, 2, before="$")


@register.filter
def signed_money(value: Number) -> str:
    """Dollars to the cent with a plus or a minus: a profit or a loss."""
    return _written(value, 2, before="$", signed=True)


@register.filter
def dollars(value: Number) -> str:
    """Whole dollars, for the axis of a chart and volumes."""
    return _written(value, 0, before="$")


@register.filter
def cost(value: Number) -> str:
    """What model calls cost: to the cent, or to a hundredth of one below a dollar."""
    number = _rounded(value, 4)
    return _written(value, 2 if number is not None and abs(number) >= 1 else 4, before="$")


@register.filter
def percent(value: Number, places: int = 2) -> str:
    """A number that is a percentage already."""
    return _written(value, places, after=f"{THIN_SPACE}%")


@register.filter
def signed_percent(value: Number, places: int = 2) -> str:
    return _written(value, places, after=f"{THIN_SPACE}%", signed=True)


@register.filter
def share(value: Number, places: int = 1) -> str:
    """A fraction, written as a percentage."""
    return percent(None if value is None else Decimal(str(value)) * 100, places)


@register.filter
def score(value: Number) -> str:
    """A score, such as a Brier score."""
    return _written(value, 3)


@register.filter
def signed_score(value: Number) -> str:
    return _written(value, 3, signed=True)


@register.filter
def count(value: Number) -> str:
    return _written(value, 0)


@register.filter
def shares(value: Number) -> str:
    return _written(value, 2)


@register.filter
def price(value: Number) -> str:
    """A price with every digit it has, and at least three places."""
    if value is None or value == "":
        return DASH
    number = Decimal(str(value))
    places = max(SMALLEST_PRICE_PLACES, -int(number.normalize().as_tuple().exponent))
    return _written(number, places)


@register.filter
def seconds(milliseconds: Number) -> str:
    """Milliseconds, written as seconds."""
    return _written(None if milliseconds is None else Decimal(milliseconds) / 1000, 1, after=f"{THIN_SPACE}s")


@register.filter
def when(value: datetime | None) -> str:
    """A moment in UTC, to the minute, as a <time> element."""
    return _time(value, "{0.day} {0:%b %Y}, {0:%H:%M} UTC")


@register.filter
def day(value: datetime | None) -> str:
    """A day in UTC, as a <time> element."""
    return _time(value, "{0.day} {0:%b %Y}")


def _time(value: datetime | None, pattern: str) -> str:
    if not value:  # a template gives "" for what is not there
        return DASH
    utc = value.astimezone(UTC)
    stamp = utc.isoformat(timespec="seconds").replace("+00:00", "Z")
    return format_html('<time datetime="{}">{}</time>', stamp, pattern.format(utc))


@register.filter
def text(value: Any) -> Any:
    """Text, or a dash for none."""
    return DASH if value is None or value == "" else value


@register.filter
def tone(value: Number) -> str:
    """The class of a profit or a loss: `gain`, `loss`, or nothing for what is shown as zero."""
    number = _rounded(value, 2)
    if not number:
        return ""
    return "gain" if number > 0 else "loss"


@register.filter
def half_width(interval: list[float] | None) -> float | None:
    """The reach of a symmetric interval to either side."""
    return None if interval is None else (interval[1] - interval[0]) / 2


@register.filter
def get(mapping: dict[Any, Any], key: Any) -> Any:
    """What a mapping holds under a key that the template computed."""
    return mapping.get(key)
