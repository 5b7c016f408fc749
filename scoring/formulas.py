"""The formulas of the scores in MathML, which browsers set by themselves, with a methodology's own constants."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from cohorts.models import Methodology

Part = SafeString | str


def _one(part: Part) -> SafeString:
    """A part as an element: numbers upright, single letters italic, words as words, the rest as an operator."""
    if isinstance(part, SafeString):
        return part
    if part.replace(".", "", 1).replace(",", "").isdigit():
        return format_html("<mn>{}</mn>", part)
    if len(part) == 1 and part.isalpha():
        return format_html("<mi>{}</mi>", part)
    if part.replace(" ", "").replace("-", "").isalpha():
        return format_html("<mtext>{}</mtext>", part)
    return format_html("<mo>{}</mo>", part)


def row(*parts: Part) -> SafeString:
    return format_html("<mrow>{}</mrow>", format_html_join("", "{}", ((_one(part),) for part in parts)))


def _two(element: str, first: Part, second: Part) -> SafeString:
    return format_html("<{0}>{1}{2}</{0}>", element, _one(first), _one(second))


def over(above: Part, below: Part) -> SafeString:
    return _two("mfrac", above, below)


def power(base: Part, exponent: Part) -> SafeString:
    return _two("msup", base, exponent)


def sub(base: Part, index: Part) -> SafeString:
    return _two("msub", base, index)


def root(inside: Part) -> SafeString:
    return format_html("<msqrt>{}</msqrt>", _one(inside))


def total(index: Part) -> SafeString:
    return _two("munder", "∑", index)


def bracketed(*parts: Part) -> SafeString:
    return row("(", *parts, ")")


def _name(name: str) -> SafeString:
    return format_html("<mi>{}</mi>", name)


def function(name: str, *parts: Part) -> SafeString:
    return row(_name(name), bracketed(*parts))


GAP, THIN = (format_html('<mspace width="{}"/>', width) for width in ("1em", "0.2em"))


P, Q, O = sub("p", "k"), sub("q", "k"), sub("o", "k")  # noqa: E741 - the field's letter for what happened
WON = sub("w", "i")
CONFIDENCE = sub("c", "i")


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _confidence(rules: Methodology) -> SafeString:
    most = row(_number(rules.maximum_bet_fraction), "×", "cash before the bet")
    return row(CONFIDENCE, "=", function("min", over("amount", most), ",", "1"))


def _brier(rules: Methodology) -> SafeString:
    return row("B", "=", over("1", "n"), total("i"), power(bracketed(CONFIDENCE, "−", WON), "2"))


def _return(rules: Methodology) -> SafeString:
    start = _number(rules.starting_balance)
    mean = row(sub("r", "c"), "=", "100", "×", over(row("value", "−", start), start))
    interval = row(format_html("<mover>{}<mo>¯</mo></mover>", _one("r")), "±", sub("t", "0.975"), over("s", root("n")))
    return row(mean, ",", GAP, interval)


def _win_rate(rules: Methodology) -> SafeString:
    return row("win rate", "=", over("1", "n"), total("i"), WON)


def _bss_random(rules: Methodology) -> SafeString:
    return row(sub("BSS", "random"), "=", "1", "−", over("B", "0.25"))


def _bss_market(rules: Methodology) -> SafeString:
    market = row(over("1", "n"), total("i"), power(bracketed(sub("q", "i"), "−", WON), "2"))
    return row(sub("BSS", "market"), "=", "1", "−", over("B", market))


def _forecast_brier(rules: Methodology) -> SafeString:
    return row("B", "=", over("1", "n"), total("k"), power(bracketed(P, "−", O), "2"))


def _forecast_log(rules: Methodology) -> SafeString:
    clip = power("10", row("−", "6"))
    return row("L", "=", _name("ln"), THIN, function("max", sub("p", "j"), ",", clip))


def _average_return(rules: Methodology) -> SafeString:
    stake = row(
        sub("a", "k"), "∝", power(P, over("1", "γ")), power(Q, row("1", "−", over("1", "γ"))), ",",
        GAP,
    )  # fmt: skip
    return row(stake, "R", "=", over(sub("a", "j"), sub("q", "j")))


def _alpha(rules: Methodology) -> SafeString:
    return row("α", "=", sub("B", "market"), "−", "B")


FROZEN: Mapping[str, Callable[[Methodology], SafeString]] = {
    "implied_confidence": _confidence,
    "brier": _brier,
    "return_percent": _return,
    "win_rate": _win_rate,
    "bss_random": _bss_random,
    "bss_market": _bss_market,
    "forecast_brier": _forecast_brier,
    "forecast_log": _forecast_log,
    "average_return": _average_return,
    "alpha": _alpha,
}
"""By the name under which a methodology's row holds the formula in words."""

SYMBOLS = (
    (row(CONFIDENCE, ",", WON), "the confidence that purchase i implies; 1 if its side won, else 0"),
    (sub("q", "i"), "the price of the side bought, at the trade"),
    (row(P, ",", O), "the probability stated for option k; 1 if it happened, else 0. j is the option that happened"),
    (Q, "the price of option k, its ask where a stake is placed"),
    (row("γ"), "aversion to risk: at 0 all is staked on the largest p/q, at 1 the stakes are the probabilities"),
    (
        row(sub("t", "0.975"), ",", "s"),
        "Student’s t with n − 1 degrees of freedom; the deviation over cohorts",
    ),
)

BESIDE = (
    (
        "Spherical score",
        row("S", "=", over(sub("p", "j"), root(row(total("k"), power(P, "2"))))),
        "Proper, from 0 to 1, higher is better.",
    ),
    (
        "Calibration error",
        row("ECE", "=", total("b"), sub("s", "b"), row("|", sub("f", "b"), "−", sub("o", "b"), "|")),
        "Over ten bins that are closed below and open above: their share of the weight, the mean forecast, the share "
        "that happened.",
    ),
    (
        "Murphy’s parts",
        row(
            "B", "=", total("b"), sub("s", "b"), power(bracketed(sub("f", "b"), "−", sub("o", "b")), "2"), "−",
            total("b"), sub("s", "b"), power(bracketed(sub("o", "b"), "−", "o"), "2"), "+", function("var", "o"), "+",
            sub("V", "within"), "−", "2", sub("C", "within"),
        ),
        "Reliability, resolution, uncertainty, and the variance and covariance within bins, with which it adds up "
        "exactly.",
    ),
    (
        "Item response theory",
        row(
            function("P", "s"), "∝",
            function("exp", sub("a", "q"), bracketed("s", bracketed(sub("θ", "f"), "−", sub("b", "q")), "−",
                                                     sub("g", "s"))),
        ),
        "Two parameters for each question, its discrimination a and difficulty b, and an ability θ for each "
        "forecaster; responses are 1 less the Brier score, scaled to end at 0 and 1.",
    ),
    (
        "Bradley–Terry",
        row(function("P", "f", "beats", "g"), "=",
            over("1", row("1", "+", function("exp", sub("θ", "g"), "−", sub("θ", "f"))))),
        "On common questions, the lower Brier score wins. It counts who was better, not by how much.",
    ),
    (
        "Adjusted Brier score",
        row(sub("B", row("f", "q")), "=", sub("α", "f"), "+", sub("β", "q"), "+", sub("ε", row("f", "q"))),
        "A forecaster’s effect and a question’s, by least squares; reported as the forecaster’s effect and the mean "
        "effect of the questions.",
    ),
)  # fmt: skip
"""Figures that stand beside a ranking: name, formula, what it says. No rank depends on them."""


def display(formula: SafeString) -> SafeString:
    """The formula as a line of its own, which scrolls where it is too long."""
    line = '<p class="formula" tabindex="0" role="group" aria-label="Formula"><math displaystyle="true">{}</math></p>'
    return format_html(line, formula)


def inline(formula: SafeString) -> SafeString:
    return format_html("<math>{}</math>", formula)


def formulas(rules: Methodology) -> list[tuple[str, SafeString | None, str]]:
    """Each score of a methodology's row: its name, its formula where it has one, and its words as they are frozen."""
    return [
        (name, display(FROZEN[name](rules)) if name in FROZEN else None, words) for name, words in rules.scoring.items()
    ]
