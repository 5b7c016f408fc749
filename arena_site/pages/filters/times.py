"""Instants as the arena writes them, all in UTC."""

from datetime import UTC, datetime

from markupsafe import Markup

from arena_site.pages import charts
from arena_site.pages.filters.numbers import DASH, dollars, number, percent

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def timestamp(value: datetime | None) -> str | Markup:
    """An instant to the minute, as a <time> element."""
    return _time_element(value, with_time=True) if value else DASH


def day(value: datetime | None) -> str | Markup:
    """The day of an instant, as a <time> element."""
    return _time_element(value, with_time=False) if value else DASH


def _time_element(value: datetime, *, with_time: bool) -> Markup:
    utc = value.astimezone(UTC)
    iso = f"{utc.isoformat(timespec='seconds').removesuffix('+00:00')}Z"
    # Without strftime, which is slow too.
    text = f"{utc.day} {MONTHS[utc.month - 1]} {utc.year}"
    if with_time:
        text += f", {utc.hour:02}:{utc.minute:02} UTC"
    return Markup(f'<time datetime="{iso}">{text}</time>')  # noqa: S704 - digits and months


def tick_label(value: float | datetime, chart: charts.LineChart) -> str:
    """The label of a chart's tick: an instant, or a value in the chart's unit."""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC)
        return f"{utc.day} {utc:%b}" if (utc.hour, utc.minute) == (0, 0) else f"{utc:%H:%M}"
    if chart.unit == "fraction":
        return percent(value * 100, max(0, chart.decimals - 2))
    if chart.unit == "percent":
        return percent(value, chart.decimals)
    return dollars(value, chart.decimals) if chart.unit == "money" else number(value, chart.decimals)
