"""Numbers and times as the pages must show them, written without the template filters that the pages use."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any


def _format(value: Any, places: int, pattern: str = "{}", *, signed: bool = False) -> str:
    """A rounded number in `pattern`, its sign in front; a dash for None."""
    if value is None or value == "":
        return "–"
    rounded = round(Decimal(str(value)), places)
    sign = "−" if rounded < 0 else "+" if signed and rounded else ""
    return sign + pattern.format(f"{abs(rounded):,.{places}f}")


count = partial(_format, places=0)
money = partial(_format, places=2, pattern="${}")
signed_money = partial(_format, places=2, pattern="${}", signed=True)
dollars = partial(_format, places=0, pattern="${}")
signed_percent = partial(_format, places=2, pattern="{} %", signed=True)
number = partial(_format, places=2)
signed_number = partial(_format, places=2, signed=True)
score = partial(_format, places=3)
signed_score = partial(_format, places=3, signed=True)
fine_score = partial(_format, places=4)


def cost(value: Any) -> str:
    """Cents from one dollar on, hundredths of a cent below."""
    return _format(value, 2 if value is not None and round(abs(Decimal(value)), 4) >= 1 else 4, "${}")


def percent(value: Any, places: int = 2) -> str:
    return _format(value, places, "{} %")


def share(value: Any, places: int = 1) -> str:
    """A fraction as a percentage."""
    return percent(None if value is None else 100 * Decimal(str(value)), places)


def net_return(gross: Any) -> str:
    """The return in percent of a stake of which a dollar came to this."""
    return signed_percent(None if gross is None else 100 * (Decimal(str(gross)) - 1))


def price(value: Any) -> str:
    """A price in percent with every digit, one place at least."""
    if value is None:
        return "–"
    percent = Decimal(str(value)) * 100
    return f"{_format(percent, max(1, len(f'{percent.normalize():f}'.partition('.')[2])))} %"


def p_value(value: Any) -> str:
    if value is None:
        return "–"
    return f"= {value:.3f}" if round(value, 3) else "< 0.001"


def seconds(milliseconds: Any) -> str:
    return _format(None if milliseconds is None else Decimal(milliseconds) / 1000, 1, "{} s")


def day(value: datetime | str | None) -> str:
    """A day such as "8 Mar 2026", of an instant or of the API's text for one."""
    if value is None:
        return "–"
    utc = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    return f"{utc.day} {utc:%b %Y}"


def minute(value: datetime | str | None) -> str:
    """A minute such as "8 Mar 2026, 00:05 UTC", of an instant or of the API's text for one."""
    if value is None:
        return "–"
    utc = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    return f"{day(utc)}, {utc:%H:%M} UTC"


def skill(value: Any) -> str:
    return _format(value, 1, "{}")


def half_width(bounds: Any) -> str:
    """The reach of an interval of percentages to either side; both ends of one that a total loss cuts short."""
    if not bounds:
        return ""
    low, high = bounds
    return f"± {percent((high - low) / 2)}" if low > -100 else f"{signed_percent(low)} to {signed_percent(high)}"


def plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {score(1.96 * error)}"
