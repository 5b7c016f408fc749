"""The formulas of the scores: written in LaTeX, shown as MathML, with a methodology's own constants."""

from functools import lru_cache
from string import Template

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from cohorts.models import Methodology

FROZEN = {
    "implied_confidence": r"c_i = \min\left(\frac{\text{amount}}"
    r"{$maximum_bet_fraction \times \text{cash before the bet}}, 1\right)",
    "brier": r"B = \frac{1}{n} \sum\limits_i (c_i - w_i)^2",
    "return_percent": r"r_c = 100 \times \frac{\text{value} - $starting_balance}{$starting_balance}, \quad "
    r"\bar{r} \pm t_{0.975} \text{SE}",
    "win_rate": r"\text{win rate} = \frac{1}{n} \sum\limits_i w_i",
    "bss_random": r"\text{BSS}_{\text{random}} = 1 - \frac{B}{0.25}",
    "bss_market": r"\text{BSS}_{\text{market}} = 1 - \frac{B}{\frac{1}{n} \sum\limits_i (q_i - w_i)^2}",
    "forecast_brier": r"B = \frac{1}{n} \sum\limits_k (p_k - o_k)^2",
    "forecast_log": r"L = \ln\, \max(p_j, 10^{-6})",
    "average_return": r"a_k \propto p_k^{\frac{1}{\gamma}} q_k^{1 - \frac{1}{\gamma}}, \quad R = \frac{a_j}{q_j}",
    "alpha": r"\alpha = B_{\text{market}} - B",
}
"""By the name under which a methodology's row describes the score; `$` marks a constant of the methodology.

A root is a plain sign: without a font for mathematics browsers can not stretch one over what it is of.
"""


@lru_cache(maxsize=100)
def inline_formula(latex: str) -> SafeString:
    """The formula, which must be ours and not text from outside, as MathML in a line of text."""
    from latex2mathml.converter import convert  # reads a table of symbols, which only this page needs

    return mark_safe(convert(str(latex)))  # noqa: S308


def block_formula(latex: str) -> SafeString:
    """The formula as a line of its own, which scrolls where it is too long."""
    formula = mark_safe(inline_formula(latex).replace('display="inline"', 'displaystyle="true"', 1))  # noqa: S308
    return format_html('<p class="formula" tabindex="0" role="group" aria-label="Formula">{}</p>', formula)


def scoring_formulas(rules: Methodology) -> list[tuple[str, SafeString | None, str]]:
    """Each score of a methodology's row: its name, its formula where it has one, and its frozen description."""
    constants = {name: f"{getattr(rules, name).normalize():f}" for name in ("maximum_bet_fraction", "starting_balance")}
    return [
        (name, block_formula(Template(FROZEN[name]).substitute(constants)) if name in FROZEN else None, description)
        for name, description in rules.scoring.items()
    ]
