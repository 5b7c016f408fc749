"""Numbers as the arena writes them: one function for each kind, a dash for a missing value."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache, partial

from markupsafe import Markup

DASH = "–"
MINUS = "−"
THIN_SPACE = "\u202f"
MINIMUM_PRICE_DECIMALS = 3
SHOWN_AS_ZERO = Decimal("0.005")
"""Half a cent, or half a hundredth of a percent: amounts up to it are rounded to zero."""

Number = Decimal | float | int | str | None


def _decimal(value: Number) -> Decimal | None:
    """The number as a decimal; None for None, and for the empty string of Django's missing values."""
    if value is None or value == "":
        return None
    return value if type(value) is Decimal else Decimal(str(value))


def _formatted(value: Number, decimals: int, *, prefix: str = "", suffix: str = "", signed: bool = False) -> str:
    number = _decimal(value)
    if number is None:
        return DASH
    digits = f"{number:,.{decimals}f}"  # rounds half to even
    negative = digits[0] == "-"
    if negative:
        digits = digits[1:]
    if not digits.strip("0.,"):  # a number that is shown as zero has no sign
        return f"{prefix}{digits}{suffix}"
    return f"{MINUS if negative else '+' if signed else ''}{prefix}{digits}{suffix}"


money = partial(_formatted, decimals=2, prefix="$")
"""Dollars to the cent."""
signed_money = partial(money, signed=True)
"""A profit or a loss in dollars to the cent."""
score = partial(_formatted, decimals=3)
"""A score, such as a Brier score."""
signed_score = partial(score, signed=True)
"""A score with a sign, such as alpha or a difference of two scores."""
score_part = partial(_formatted, decimals=4)
"""A part of Murphy's decomposition of a score."""
count = partial(_formatted, decimals=0)
"""A whole number."""
shares = partial(_formatted, decimals=2)
"""A number of shares."""


def dollars(value: Number, decimals: int = 0) -> str:
    """Whole dollars, for volumes and the axes of charts."""
    return _formatted(value, decimals, prefix="$")


def cost(value: Number) -> str:
    """The cost of model calls: to the cent, or to a hundredth of a cent below a dollar."""
    number = _decimal(value)
    return _formatted(number, 2 if number is not None and abs(round(number, 4)) >= 1 else 4, prefix="$")


def percent(value: Number, decimals: int = 2) -> str:
    """A percentage, given as such: 47 is 47 %."""
    return _formatted(value, decimals, suffix=f"{THIN_SPACE}%")


def signed_percent(value: Number, decimals: int = 2) -> str:
    """A return in percent."""
    return _formatted(value, decimals, suffix=f"{THIN_SPACE}%", signed=True)


def fraction(value: Number, decimals: int = 1) -> str:
    """A percentage, given as a fraction: 0.47 is 47 %."""
    number = _decimal(value)
    return percent(None if number is None else number * 100, decimals)


def p_value(value: Number) -> str:
    """The p of a test with its relation sign: "= 0.042" or "< 0.001"."""
    number = _decimal(value)
    if number is None:
        return DASH
    return f"= {number:.3f}" if round(number, 3) else "< 0.001"


def number(value: Number, decimals: int = 2) -> str:
    """A number without a unit."""
    return _formatted(value, decimals)


def signed_number(value: Number, decimals: int = 2) -> str:
    """A number without a unit, with its sign."""
    return _formatted(value, decimals, signed=True)


def minus(value: float, other: float) -> float:
    """The difference of two numbers."""
    return value - other


def price(value: Number) -> str:
    """A price with all its digits, and at least three decimals."""
    number = _decimal(value)
    return DASH if number is None else _price(number)


@lru_cache(maxsize=5_000)  # a page writes the same few prices hundreds of times
def _price(number: Decimal) -> str:
    return _formatted(number, max(MINIMUM_PRICE_DECIMALS, -int(number.normalize().as_tuple().exponent)))


def seconds(milliseconds: Number) -> str:
    """A duration in seconds, given in milliseconds."""
    number = _decimal(milliseconds)
    return _formatted(None if number is None else number / 1000, 1, suffix=f"{THIN_SPACE}s")


def pnl_class(value: Number) -> str:
    """The CSS class of a profit (`gain`) or a loss (`loss`); empty for amounts that are shown as zero."""
    number = _decimal(value)
    if number is None or abs(number) <= SHOWN_AS_ZERO:
        return ""
    return "gain" if number > 0 else "loss"


def half_width(interval: list[float] | None) -> float | None:
    """Half the width of a symmetric interval."""
    return None if interval is None else (interval[1] - interval[0]) / 2


KINDS: dict[str, Callable[[Number], str]] = {
    "cost": cost, "count": count, "fraction": fraction, "money": money, "percent": signed_percent, "price": price,
    "score": score, "signed_score": signed_score,
}  # fmt: skip


def format_as(value: Number, kind: str) -> str:
    """A number of the kind of this name, for charts and tables whose rows differ in kind."""
    return KINDS[kind](value)


def number_cells(values: Iterable[Number], kind: str) -> Markup:
    """Table cells of numbers of a kind: a loop of the template takes 2 ms for a chart's hundreds of them."""
    write = KINDS[kind]
    return Markup("".join([f'<td class="number">{write(value)}</td>' for value in values]))  # noqa: S704 - only numbers
