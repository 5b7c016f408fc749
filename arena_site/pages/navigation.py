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


LEADERBOARD_PARTS = {"Forecasts and trading": "leaderboard", "Findings": "findings"}
TRADING_PARTS = {"Leaderboard": "trading", "Luck and risk": "risk", "Cohorts": "cohorts"}
FORECAST_PARTS = {
    "Leaderboard": "forecasts",
    "Conditions": "conditions",
    "Calibration": "calibration",
    "Against the market": "disagreements",
    "Time": "time",
    "Costs": "costs",
}
MODEL_PARTS = {"Models": "families", "Comparisons": "comparisons", "External agents": "agents-board"}
EVIDENCE_PARTS = {"Markets": "markets", "Questions": "questions", "Decisions": "decisions"}
DATA_PARTS = {
    "Archives": "data",
    "Datasets": "datasets",
    "Methodology": "methodologies",
    "Glossary": "glossary",
    "About": "about",
}
OF_MODELS = frozenset({"family", "comparison", "external-agent", "new-agent"})
OF_EVIDENCE = frozenset({"market", "universe", "universe-entry", "question", "forecast", "decision"})
SECTIONS = (
    Section("Leaderboard", "leaderboard", LEADERBOARD_PARTS),
    Section("Trading", "trading", TRADING_PARTS, frozenset({"cohort", "agent", "trades"})),
    Section("Forecasts", "forecasts", FORECAST_PARTS),
    Section("Models", "families", MODEL_PARTS, OF_MODELS),
    Section("Evidence", "markets", EVIDENCE_PARTS, OF_EVIDENCE),
    Section("Data and method", "data", DATA_PARTS, frozenset({"methodology", "kit", "corrections"})),
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
