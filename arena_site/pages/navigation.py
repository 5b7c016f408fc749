"""The site's sections, their parts, and the pages that belong to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Section:
    """A link of the main navigation; `parts` are pages by title, `pages` the others that belong to it, by URL name."""

    title: str
    page: str
    parts: Mapping[str, str] = field(default_factory=dict)
    pages: frozenset[str] = frozenset()

    def holds(self, page: str) -> bool:
        return page == self.page or page in self.pages or page in self.parts.values()


FORECAST_PARTS = {
    "Leaderboard": "forecasts",
    "Comparisons": "comparisons",
    "Conditions": "conditions",
    "Calibration": "calibration",
    "Against the market": "disagreements",
    "Time": "time",
    "Costs": "costs",
    "Releases": "releases",
    "Consistency": "consistency",
    "People and other sources": "imports",
}
TRADING_PARTS = {"Leaderboard": "trading", "Luck and risk": "risk", "Comparisons": "comparisons"}
METHODOLOGY_PARTS = {"Versions": "methodologies", "Pitfalls": "pitfalls", "Glossary": "glossary"}
SECTIONS = (
    Section("Leaderboard", "leaderboard"),
    Section("Findings", "findings"),
    Section("Forecasts", "forecasts", FORECAST_PARTS, frozenset({"comparison", "forecast", "import"})),
    Section("Trading", "trading", TRADING_PARTS),
    Section("Models", "families", pages=frozenset({"family"})),
    Section("Agents", "agents-board", pages=frozenset({"external-agent"})),
    Section("Cohorts", "cohorts", pages=frozenset({"cohort", "agent"})),
    Section("Markets", "markets", pages=frozenset({"market", "universe"})),
    Section("Questions", "questions", pages=frozenset({"question"})),
    Section("Decisions", "decisions", pages=frozenset({"decision"})),
    Section("Data", "data", pages=frozenset({"datasets"})),
    Section("Methodology", "methodologies", METHODOLOGY_PARTS, frozenset({"methodology"})),
    Section("About", "about"),
)


def section_of(page: str | None) -> Section | None:
    """The section that a page belongs to, by its URL name."""
    return next((section for section in SECTIONS if page and section.holds(page)), None)


def linked_pages() -> list[str]:
    """The pages of the navigation, by URL name."""
    pages: dict[str, None] = {}
    for section in SECTIONS:
        pages |= dict.fromkeys([section.page, *section.parts.values()])
    return list(pages)
