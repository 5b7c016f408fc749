"""Figures of findings: the estimate of one comparison with its interval, and the line from which it is told."""

from collections.abc import Mapping
from typing import NamedTuple

from agents.models import Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.findings import Statement
from scoring.selectors.findings import Finding


class Scale(NamedTuple):
    """The axis of an estimate: its title, the kind of its numbers, what 0 means, and who it is of if not of one."""

    title: str
    unit: str
    zero: str
    subject: str = ""


BRIER = "Lead in Brier score"
SCALES: Mapping[str, Scale] = {
    "market": Scale(BRIER, "signed_score", "The market’s prices"),
    "worst": Scale(BRIER, "signed_score", "No difference"),
    "runner-up": Scale(BRIER, "signed_score", "No difference"),
    "prices": Scale(BRIER, "signed_score", "Without prices", "With prices"),
    "ensemble": Scale(BRIER, "signed_score", "The market’s prices", "Mean of models"),
    "stakes": Scale("Stake less Kelly’s (share of cash)", "fraction", "Kelly’s rule"),
    "profit": Scale("Mean return (%)", "percent", "Break-even"),
}
"""By topic."""


def finding_figure(finding: Finding, statement: Statement, families: Mapping[str, Family]) -> Figure:
    """The chart of a finding, whose title is its sentence; an empty one where the data bears no claim.

    Families are by their displayed names.
    """
    scale = SCALES[finding.topic]
    entry = {
        "display_name": finding.first or scale.subject,
        "family": finding.first,
        "estimate": finding.estimate,
        "interval": (finding.low, finding.high),
    }
    rows = [] if finding.p is None else [entry]
    chart = interval_chart(
        rows, "estimate", families, interval="interval", x_title=scale.title, unit=scale.unit,
        baselines={scale.zero: 0.0},
    )  # fmt: skip
    return Figure(
        finding.topic, statement.sentence, chart, statement.method, at=finding.at,
        page_query=f"?finding={finding.topic}",
    )  # fmt: skip
