"""How the arena writes numbers and times: one filter for each kind, a dash for what there is none of."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache, lru_cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.template import defaultfilters as django_filters
from django.urls import get_script_prefix, reverse
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

from agents.models import Decision, Family
from scoring import charts
from scoring.charts.marks import shape

register = template.Library()

DASH = "–"
MINUS = "−"
THIN_SPACE = "\u202f"
SMALLEST_PRICE_PLACES = 3
SHOWN_AS_ZERO = Decimal("0.005")
"""Half a cent, or half a hundredth of a percent, is rounded to none."""
PLAIN_PART = re.compile(r"[A-Za-z0-9._-]+")
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")
"""Control characters, and what turns the direction of the text that follows."""

Number = Decimal | float | int | str | None


def _rounded(value: Number, places: int) -> Decimal | None:
    """The number to `places`, as it will be shown, so that its sign is that of what the reader sees."""
    if value is None or value == "":
        return None
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def _written(value: Number, places: int, *, before: str = "", after: str = "", signed: bool = False) -> str:
    if value is None or value == "":
        return DASH
    number = value if type(value) is Decimal else Decimal(str(value))
    digits = f"{number:,.{places}f}"  # rounded half to even
    negative = digits[0] == "-"
    if negative:
        digits = digits[1:]
    if not digits.strip("0.,"):  # its sign is that of what the reader sees
        return f"{before}{digits}{after}"
    return f"{MINUS if negative else '+' if signed else ''}{before}{digits}{after}"


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
    return percent(None if value is None or value == "" else Decimal(str(value)) * 100, places)


@register.filter
def score(value: Number) -> str:
    """A score, such as a Brier score."""
    return _written(value, 3)


@register.filter
def signed_score(value: Number) -> str:
    return _written(value, 3, signed=True)


@register.filter
def probability(value: Number) -> str:
    """The p of a test, with its sign of equality or order; what is smaller than shown is not zero."""
    number = _rounded(value, 3)
    if number is None:
        return DASH
    return f"= {number}" if number else "< 0.001"


@register.filter
def fine_score(value: Number) -> str:
    """A part of a score, to four places."""
    return _written(value, 4)


@register.filter
def number(value: Number, places: int = 2) -> str:
    return _written(value, places)


@register.filter
def signed_number(value: Number, places: int = 2) -> str:
    return _written(value, places, signed=True)


@register.filter
def less(value: float, other: float) -> float:
    return value - other


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
    return _price(value if type(value) is Decimal else Decimal(str(value)))


@lru_cache(maxsize=5_000)
def _price(number: Decimal) -> str:
    """Kept, since a page writes the same few prices hundreds of times."""
    places = max(SMALLEST_PRICE_PLACES, -int(number.normalize().as_tuple().exponent))
    return _written(number, places)


@register.filter
def seconds(milliseconds: Number) -> str:
    """Milliseconds, written as seconds."""
    return _written(None if milliseconds is None else Decimal(milliseconds) / 1000, 1, after=f"{THIN_SPACE}s")


@register.filter
def when(value: datetime | None) -> str:
    """A moment in UTC, to the minute, as a <time> element."""
    return _time(value, to_the_minute=True) if value else DASH  # a template gives "" for what is not there


@register.filter
def day(value: datetime | None) -> str:
    """A day in UTC, as a <time> element."""
    return _time(value, to_the_minute=False) if value else DASH


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _time(value: datetime, *, to_the_minute: bool) -> SafeString:
    """Numbers and names of months alone, so nothing to escape; strftime takes longer than all the rest."""
    utc = value.astimezone(UTC)
    stamp = f"{utc.isoformat(timespec='seconds').removesuffix('+00:00')}Z"
    written = f"{utc.day} {MONTHS[utc.month - 1]} {utc.year}"
    if to_the_minute:
        written += f", {utc.hour:02}:{utc.minute:02} UTC"
    return mark_safe(f'<time datetime="{stamp}">{written}</time>')  # noqa: S308 - see above


@register.filter
def text(value: Any) -> Any:
    """Text, or a dash for none."""
    return DASH if value is None or value == "" else value


@register.filter
def outside(value: Any) -> str | SafeString:
    """Text from outside in a frame of its own: whatever directions it holds, the text after it keeps its own."""
    if value is None or value == "":
        return DASH
    return mark_safe(f"<bdi>{escape(str(value).replace(chr(0), chr(0xFFFD)))}</bdi>")  # noqa: S308 - escaped


@register.filter
def plain(value: Any) -> str:
    """Text from outside on one line, without what is not seen: for titles, attributes and feeds."""
    written = "" if value is None else str(value)
    # What is printable holds nothing unseen; to know that takes less time than to look for each.
    return " ".join((written if written.isprintable() else UNSEEN.sub(" ", written)).split())


@register.filter
def truncatechars(value: Any, most: int) -> str:
    """At most as many characters, the last one of them an ellipsis where there are more."""
    written = "" if value is None else str(value)
    if len(written) <= most:
        return written
    # Django counts character by character, for those that combine; most texts have none where they are cut.
    return f"{written[: most - 1]}…" if written[: most + 1].isascii() else django_filters.truncatechars(written, most)


@register.filter
@lru_cache(maxsize=500)
def slugify(value: str) -> str:
    """The word as the name of a class or an anchor."""
    return django_filters.slugify(value)


@register.filter
def tone(value: Number) -> str:
    """The class of a profit or a loss: `gain`, `loss`, or nothing for what is shown as zero."""
    if value is None or value == "":
        return ""
    number = value if type(value) is Decimal else Decimal(str(value))
    if abs(number) <= SHOWN_AS_ZERO:
        return ""
    return "gain" if number > 0 else "loss"


@register.filter
def half_width(interval: list[float] | None) -> float | None:
    """The reach of a symmetric interval to either side."""
    return None if interval is None else (interval[1] - interval[0]) / 2


@register.filter
def get(mapping: dict[Any, Any] | None, key: Any) -> Any:
    """What a mapping, if there is one, holds under a key that the template computed."""
    return mapping.get(key) if mapping else None


# --- charts ---------------------------------------------------------------------------------------------


@register.filter
def axis(value: float | datetime, chart: charts.LineChart) -> str:
    """What stands at a tick of the chart: an instant, a count, or a value in the chart's unit."""
    if isinstance(value, datetime):
        utc = value.astimezone(UTC)
        midnight = (utc.hour, utc.minute) == (0, 0)
        return f"{utc.day} {utc:%b}" if midnight else f"{utc:%H:%M}"
    before = "$" if chart.unit == "money" else ""
    if chart.unit == "share":
        return _written(value * 100, max(0, chart.places - 2), after=f"{THIN_SPACE}%")
    return _written(value, chart.places, before=before, after=f"{THIN_SPACE}%" if chart.unit == "percent" else "")


MEASURED = {
    "money": money, "percent": signed_percent, "share": share, "price": price, "score": score, "count": count,
}  # fmt: skip


def chart_rows(rows: Iterable[tuple[datetime | int, Iterable[Number]]], unit: str) -> SafeString:
    """The rows of a chart's table: an instant or a number, and a value of each curve.

    Put together by hand: a template's loop over as many cells would be most of a page's time. Nothing is text from
    outside: instants and numbers, as they are written everywhere.
    """
    write = MEASURED[unit]
    parts = []
    for at, values in rows:
        if isinstance(at, datetime):
            head = f'<th scope="row">{when(at)}</th>'
        else:
            head = f'<th scope="row" class="n">{at:,}</th>'
        cells = "".join([f'<td class="n">{write(value)}</td>' for value in values])
        parts.append(f"<tr>{head}{cells}</tr>")
    return mark_safe("\n".join(parts))  # noqa: S308 - see above


def bin_rows(rows: Iterable[Any]) -> SafeString:
    """The rows of a table of bins, put together by hand as those of charts are; the names are escaped."""
    parts = []
    for row in rows:
        name = conditional_escape(row.name)
        for each in row.bins:
            span = f"{score(each['from'])}–{score(each['to'])}"
            interval = f"{score(each['low'])}–{score(each['high'])}"
            means = score(each["forecast"]), score(each["outcome"])
            figures = (*means, interval, f"{each['pairs']:,}", share(each["weight"]))
            cells = "".join([f'<td class="n">{figure}</td>' for figure in figures])
            parts.append(f'<tr><th scope="row">{name}</th><td class="nowrap">{span}</td>{cells}</tr>')
    return mark_safe("\n".join(parts))  # noqa: S308 - see above


@register.filter
def measured(value: Number, unit: str) -> str:
    """A value of a chart, written as its unit is."""
    return MEASURED[unit](value)


WRITTEN: dict[str, Callable[[Number], str]] = {
    "signed_percent": signed_percent, "money": money, "score": score, "signed_score": signed_score, "share": share,
    "count": count, "cost": cost,
}  # fmt: skip


@register.filter
def written_as(value: Number, kind: str) -> str:
    """A number in the way that its name says, for tables whose rows differ in kind."""
    return WRITTEN[kind](value)


@register.filter
def family_shape(family: Family) -> str:
    """The path of the shape that stands for a family, in a box of 12."""
    return shape(charts.mark_of(family), 6, 6, 4.5)


@register.filter
def named(family: Family) -> SafeString:
    """A family's shape and name; not a template, since a page may name a family hundreds of times."""
    return _named(family.display_name, family.color, charts.mark_of(family), family.external)


@lru_cache(maxsize=500)
def _named(name: str, color: str, mark: int, external: bool) -> SafeString:
    drawing = format_html(
        '<svg class="dot" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d="{}" fill="{}"/></svg>',
        shape(mark, 6, 6, 4.5),
        charts.readable(color),
    )
    return format_html(
        "{}{}{}", drawing, name, format_html(' <span class="badge">{}</span>', "external") if external else ""
    )


@register.filter
def badge(decision: Decision) -> SafeString:
    """What a decision came to, in one word."""
    if decision.status == Decision.Status.COMPLETED:
        said = _badge(str(decision.action).lower(), str(decision.action))
        return format_html("{} {}", said, _badge("fallback", "fallback")) if decision.fallback else said
    if decision.status == Decision.Status.CLAIMED:
        return _badge("waiting", "deciding")
    return _badge(decision.status, decision.status)


@lru_cache(maxsize=100)
def _badge(kind: str, word: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', kind, word)


@register.filter
def readable(color: str) -> str:
    """The colour as it is drawn: told from the paper of both themes."""
    return charts.readable(color)


# --- pages ----------------------------------------------------------------------------------------------


def path(name: str, *parts: int | str) -> str:
    """A page's address, as `{% url %}` gives it, which takes too long for a page that links to hundreds of others."""
    for part in parts:
        if not isinstance(part, int) and not (isinstance(part, str) and PLAIN_PART.fullmatch(part)):
            return reverse(name, args=parts)
    return mark_safe(_address(name, len(parts), get_script_prefix()) % parts)  # noqa: S308 - nothing to escape in it


@cache
def _address(name: str, parts: int, prefix: str) -> str:
    """A page's address with `%s` for each part: numbers that no address holds are put there and found again."""
    marks = [str(7_351_946_000 + part) for part in range(parts)]
    address = reverse(name, args=marks).replace("%", "%%")
    for mark in marks:
        address = address.replace(mark, "%s")
    return address


@register.filter
def origin(request: HttpRequest) -> str:
    """Scheme and host, for what must be an absolute address."""
    return f"{request.scheme}://{request.get_host()}"
