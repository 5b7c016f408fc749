"""Filters and functions of the pages' templates: numbers, instants, text and addresses as the arena writes them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from markupsafe import Markup, escape

from agents.models import Decision, Family
from arena_site.pages.charts.markers import marker_of, marker_path, readable_color
from foundation import search_words
from scoring.constants import DAYS_AHEAD, TOTAL_LOSS, days_label
from scoring.leaderboard_keys import skill_percent
from scoring.selectors.competition import last_competition_index

DASH = "–"
MINUS = "−"
THIN_SPACE = "\u202f"
SHOWN_AS_ZERO = Decimal("0.005")
"""Half a cent, or half a hundredth of a percent: amounts up to it are rounded to zero."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]+"
)
"""Control characters, what XML forbids, and characters that change the direction of the text after them."""
IDENTIFIER = re.compile(
    r"(?<![a-z0-9])[a-z0-9]+(?:_[a-z0-9]+)+|(?<![a-z-])[a-z-]+/[a-z]+-[a-z]?[0-9][a-z0-9]*(?:[.-][a-z0-9]+)*"
)
"""Names of fields and parameters, and ids of models such as `openai/gpt-5.2`."""

Number = Decimal | float | int | str | None


# --- numbers: a dash for a missing one ------------------------------------------------------------------


def _decimal(value: Number) -> Decimal | None:
    """The number as a decimal; None for None, and for the empty string of Django's missing values."""
    if value is None or value == "":
        return None
    return value if type(value) is Decimal else Decimal(str(value))


def number(value: Number, decimals: int = 2, *, prefix: str = "", suffix: str = "", signed: bool = False) -> str:
    """A number, which has no sign if it is shown as zero."""
    decimal = _decimal(value)
    if decimal is None:
        return DASH
    digits = f"{decimal:,.{decimals}f}"  # rounds half to even
    negative = digits[0] == "-"
    if negative:
        digits = digits[1:]
    if not digits.strip("0.,"):
        return f"{prefix}{digits}{suffix}"
    return f"{MINUS if negative else '+' if signed else ''}{prefix}{digits}{suffix}"


signed_number = partial(number, signed=True)
"""A number with its sign."""
money = partial(number, prefix="$")
"""Dollars to the cent."""
signed_money = partial(money, signed=True)
"""A profit or a loss in dollars to the cent."""
dollars = partial(money, decimals=0)
"""Whole dollars, for volumes."""
percent = partial(number, suffix=f"{THIN_SPACE}%")
"""A percentage, given as such: 47 is 47 %."""
signed_percent = partial(percent, signed=True)
"""A return in percent."""
score = partial(number, decimals=3)
"""A score, such as a Brier score."""
signed_score = partial(score, signed=True)
"""A score with a sign, such as alpha or a difference of two scores."""
count = partial(number, decimals=0)
"""A whole number."""


def cost(value: Number) -> str:
    """The cost of model calls: to the cent, or to a hundredth of a cent below a dollar."""
    decimal = _decimal(value)
    return money(decimal, 2 if decimal is not None and abs(round(decimal, 4)) >= 1 else 4)


def fraction(value: Number, decimals: int = 1) -> str:
    """A percentage, given as a fraction: 0.47 is 47 %."""
    decimal = _decimal(value)
    return percent(None if decimal is None else decimal * 100, decimals)


def whole_percent(value: Number) -> str:
    """A percentage without decimals, given as a fraction: 0.47 is 47 %."""
    return fraction(value, 0)


def skill(bss_uniform: Number) -> str:
    """The skill over equal probabilities: 0 is uniform, 100 is perfect."""
    decimal = _decimal(bss_uniform)
    return number(skill_percent(None if decimal is None else float(decimal)), 1)


def net_return(gross: Number) -> str:
    """A return in percent of the stake, given as what $1 became."""
    decimal = _decimal(gross)
    return signed_percent(None if decimal is None else 100 * (decimal - 1))


def p_value(value: Number) -> str:
    """The p of a test with its relation sign: "= 0.042" or "< 0.001"."""
    decimal = _decimal(value)
    if decimal is None:
        return DASH
    return f"= {decimal:.3f}" if round(decimal, 3) else "< 0.001"


def price(value: Number) -> str:
    """A price of a share with all its digits, as the probability that it implies: 0.413 is 41.3 %."""
    decimal = _decimal(value)
    return DASH if decimal is None else _price(decimal)


@lru_cache(maxsize=5_000)  # a page writes the same few prices hundreds of times
def _price(value: Decimal) -> str:
    digits = -int(value.normalize().as_tuple().exponent)
    return fraction(value, max(1, digits - 2))


def seconds(milliseconds: Number) -> str:
    """A duration in seconds, given in milliseconds."""
    decimal = _decimal(milliseconds)
    return number(None if decimal is None else decimal / 1000, 1, suffix=f"{THIN_SPACE}s")


def pnl_class(value: Number) -> str:
    """The CSS class of a profit (`gain`) or a loss (`loss`); empty for amounts that are shown as zero."""
    decimal = _decimal(value)
    if decimal is None or abs(decimal) <= SHOWN_AS_ZERO:
        return ""
    return "gain" if decimal > 0 else "loss"


NORMAL_95 = 1.96
"""The 97.5 % quantile of the normal distribution."""


def return_margin(interval: list[float]) -> str:
    """Half the width of a return's interval; both ends of one that a total loss cuts short."""
    low, high = interval
    if low > TOTAL_LOSS:
        return f"± {percent((high - low) / 2)}"
    return f"{signed_percent(low)} to {signed_percent(high)}"


KINDS: dict[str, Callable[..., str]] = {
    "cost": cost, "count": count, "fraction": fraction, "money": money, "net_return": net_return, "number": number,
    "percent": signed_percent, "price": price, "score": score, "signed_score": signed_score, "skill": skill,
    "whole_percent": whole_percent,
}  # fmt: skip


def format_as(value: Number, kind: str, *args: int) -> str:
    """A number of the kind of this name, for charts and tables whose rows differ in kind."""
    return KINDS[kind](value, *args)


# --- instants, all in UTC -------------------------------------------------------------------------------


def timestamp(value: datetime | None) -> str | Markup:
    """An instant to the minute, as a <time> element."""
    return _time_element(value, with_time=True) if value else DASH


def day(value: datetime | None) -> str | Markup:
    """The day of an instant, as a <time> element."""
    return _time_element(value, with_time=False) if value else DASH


def day_text(value: datetime) -> str:
    """The day of an instant, as plain text."""
    utc = value.astimezone(UTC)
    return f"{utc.day} {MONTHS[utc.month - 1]} {utc.year}"


def iso(value: datetime) -> str:
    """An instant as addresses and machines read it, to the second."""
    return f"{value.astimezone(UTC).isoformat(timespec='seconds').removesuffix('+00:00')}Z"


def exact_iso(value: datetime) -> str:
    """An instant as an address names it that must show the same for ever."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _time_element(value: datetime, *, with_time: bool) -> Markup:
    utc = value.astimezone(UTC)
    text = day_text(utc)  # without strftime, which is slow too
    if with_time:
        text += f", {utc.hour:02}:{utc.minute:02} UTC"
    return Markup(f'<time datetime="{iso(utc)}">{text}</time>')  # noqa: S704 - digits and months


def tick_label(value: float, unit: str, decimals: int) -> str:
    """The label of a tick at the vertical axis of a chart, in the chart's unit."""
    if unit in ("fraction", "price"):
        return fraction(value, max(0, decimals - 2))
    write: Callable[..., str] = {"money": money, "percent": signed_percent}.get(unit, number)
    return write(value, decimals)


def position_label(value: float | datetime, axis: str) -> str:
    """The label of a position on the horizontal axis of a chart: an instant, weeks, questions, days or dollars."""
    if isinstance(value, datetime) and axis != "time":
        return f"{MONTHS[value.month - 1]} {value.year}"
    if isinstance(value, datetime):
        utc = value.astimezone(UTC)
        return f"{utc.day} {MONTHS[utc.month - 1]}" if (utc.hour, utc.minute) == (0, 0) else f"{utc:%H:%M}"
    if axis == "days":
        return days_label(*DAYS_AHEAD[int(value)])
    if axis == "cost":
        return f"${value:.2g}" if value < 1 else dollars(value)
    written = f"{round(value, 2):g}" if axis == "weeks" else count(value)
    return f"{written} week{'' if value == 1 else 's'}" if axis == "weeks" and value else written


# --- text by markets, models and importers --------------------------------------------------------------


def or_dash(value: Any) -> Any:
    """The value, or a dash for none."""
    return DASH if value is None or value == "" else value


def untrusted(value: Any) -> str | Markup:
    """Text from outside, escaped, in an element that keeps its writing direction to itself."""
    if value is None or value == "":
        return DASH
    text = str(value).replace("\0", "\ufffd")
    return Markup(f"<bdi>{escape(text)}</bdi>")  # noqa: S704 - escaped


def code_identifiers(value: Any) -> Markup:
    """Text, escaped, with its identifiers such as `max_tokens` or `openai/gpt-5.2` set as code."""
    return Markup(IDENTIFIER.sub(r"<code>\g<0></code>", str(escape(value))))  # noqa: S704 - escaped


def single_line(value: Any) -> str:
    """Text from outside on one line without unprintable characters, for titles, attributes and feeds."""
    text = "" if value is None else str(value)
    return " ".join((text if text.isprintable() else UNPRINTABLE.sub(" ", text)).split())


# --- HTML that pages repeat hundreds of times: Python instead of template includes ----------------------


def marker(index: int) -> str:
    """The path of a marker around the origin."""
    return marker_path(index, 0, 0)


def family_label(family: Family, marked: bool = True) -> SafeString:
    """A family's marker and name; an external agent is marked as one, but where all are."""
    external = marked and family.external
    return _family_label(family.display_name, family.color, marker_of(family), external=external)


@lru_cache(maxsize=500)
def _family_label(name: str, color: str, marker: int, *, external: bool) -> SafeString:
    return format_html(
        '<svg class="marker" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">'
        '<path d="{}" fill="{}"/></svg>{}{}',
        marker_path(marker, 6, 6),
        readable_color(color),
        name,
        format_html(' <span class="badge">{}</span>', "external") if external else "",
    )


def has_ignored_words(text: str | None) -> bool:
    """True if a search has more words than it uses."""
    return search_words.has_ignored_words(text or "")


def release_of(family: Family) -> SafeString | str:
    """The exact model behind a family, as small print below its name; nothing for an external agent."""
    release = last_competition_index().releases.get(family.pk)
    return format_html("<small><code>{}</code></small>", release) if release else ""


def condition_label(name: str, prices: str = "prices") -> str:
    """What a prompt condition shows, in words; `prices` are what one without them lacks."""
    conditions = last_competition_index().conditions
    condition = conditions.by_name.get(name)
    return conditions.label(name) if condition is None or prices == "prices" else condition.in_words(prices=prices)


def sampling(forecast: Any) -> str:
    """How many samples of a forecast could be read, their spread, and its searches; empty where it has neither."""
    parts = []
    if forecast.samples_asked > 1:
        parts.append(f"{forecast.samples_read} of {forecast.samples_asked} samples")
    if forecast.spread is not None:
        parts.append(f"spread {number(forecast.spread)}")
    if forecast.searches is not None:
        parts.append(f"{count(forecast.searches)} search{'' if forecast.searches == 1 else 'es'}")
    return ", ".join(parts)


def is_board_condition(name: str) -> bool:
    """Whether a prompt condition is the one of the boards."""
    return name == last_competition_index().conditions.board()


def decision_badge(decision: Decision) -> SafeString:
    """A decision's action, or its status while it has none."""
    if decision.status == Decision.Status.COMPLETED:
        action = _badge(str(decision.action).lower(), str(decision.action))
        return format_html("{} {}", action, _badge("fallback", "fallback")) if decision.fallback else action
    if decision.status == Decision.Status.CLAIMED:
        return _badge("waiting", "deciding")
    if decision.status == Decision.Status.ANSWERED:
        return _badge("waiting", "answered")
    return _badge(decision.status, decision.status)


@lru_cache(maxsize=100)
def _badge(css_class: str, text: str) -> SafeString:
    return format_html('<span class="badge {}">{}</span>', css_class, text)


# --- addresses ------------------------------------------------------------------------------------------


FAMILY_PAGES = frozenset({"family", "agent", "external-agent", "trades", "comparison"})
"""The pages whose addresses name families."""


def page_url(name: str, *args: int | str) -> str:
    """The path of a page; families are named by their slugs."""
    if name in FAMILY_PAGES:
        addresses = last_competition_index().addresses
        args = tuple(addresses.get(arg, arg) if isinstance(arg, str) else arg for arg in args)
    return reverse(name, args=args)
