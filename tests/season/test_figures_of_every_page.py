"""No kind of page is left uncompared: whatever the links of the season's site lead to is spoken for."""

import re
from collections import Counter, deque

import pytest
from django.urls import Resolver404, resolve
from selectolax.lexbor import LexborHTMLParser

from tests.markup import elements, links, visible_text
from tests.scoring import test_agents_boards as agents_boards
from tests.season import test_figures_of_agents as agents
from tests.season import test_figures_of_comparisons as comparisons
from tests.season import test_figures_of_leaderboards as leaderboards
from tests.season import test_figures_of_methodologies as methodologies
from tests.season import test_figures_of_records as records
from tests.season import test_figures_of_reports as reports
from tests.season.season_api import SeasonApi

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

COMPARED = {
    "leaderboard": leaderboards.test_the_front_page,
    "leaderboard-csv": leaderboards.test_the_front_page,
    "trading": leaderboards.test_the_trading_board,
    "findings": leaderboards.test_the_findings,
    "forecasts": leaderboards.test_the_forecast_board,
    "cohorts": agents.test_the_cohorts,
    "cohort": agents.test_a_cohort,
    "agent": agents.test_every_agent,
    "trades": agents.test_every_agent,
    "families": comparisons.test_the_families,
    "family": agents.test_a_family,
    "markets": records.test_the_markets,
    "market": records.test_every_market,
    "decisions": records.test_the_decisions,
    "questions": records.test_the_questions,
    "decision": records.test_every_decision,
    "question": records.test_every_question,
    "forecast": comparisons.test_every_batch_of_forecasts,
    "universe": comparisons.test_every_universe,
    "calibration": comparisons.test_calibration,
    "comparisons": comparisons.test_all_pairs,
    "comparison": comparisons.test_every_comparison,
    "conditions": comparisons.test_the_conditions,
    "disagreements": comparisons.test_the_disagreements,
    "time": reports.test_scores_by_time,
    "costs": reports.test_scores_by_cost,
    "risk": leaderboards.test_luck_and_risk,
    "methodologies": methodologies.test_a_methodology,
    "methodology": methodologies.test_a_methodology,
    "about": methodologies.test_about,
    "agents-board": agents_boards.test_the_page_shows_the_board_and_each_agents_versions,
    "external-agent": agents_boards.test_the_page_shows_the_board_and_each_agents_versions,
}
"""By the name of a kind of page: what compares its figures with the API's."""
NO_FIGURE_ALONE = {
    "universe-entry",
    "corrections",
    "share-image",
    "data",
    "datasets",
    "kit",
    "kit-wheel",
    "new-agent",
    "glossary",
    "chain-heads",
    "llms",
}
"""Pages without a figure of their own: one that leads on to a universe's page, pictures, archives, a form, definitions,
and the signed heads of the chains."""
CHART_FILE = "-chart"
"""The end of the names of charts' files, which have the figures of their pages; one of each kind is fetched."""
OF_EACH = 3
"""Pages of a kind that are read for their links."""
PAGES = ("/api/", "/admin/", "/static/", "/feeds/")
TEXT_FROM_OUTSIDE = "code, pre, bdi, blockquote, script, [dir=auto]"
"""Identifiers, and text by venues and models."""
LABELS = ("aria-label", "title", "alt")
WRONG_FORMS = {
    "an identifier": re.compile(r"\b[A-Za-z]+_\w+|\b[a-z_]+:\d"),
    "a negative zero": re.compile(r"[-−]\$?0(\.0+)?(?![\d.])"),
    "a p-value of zero": re.compile(r"\bp [=<] 0\.0+\b"),
    "no number": re.compile(r"\b(None|nan|NaN|inf)\b(?! of these)"),
    "a multiple": re.compile(r"\d[×x](?!\w)"),
    "a percentage without its space": re.compile(r"\d%"),
}


def test_every_kind_of_page_that_a_link_leads_to_is_compared(season: SeasonApi) -> None:
    queue, captions, read, faults = deque(["/"]), {"/"}, Counter[str](), list[str]()
    while queue:
        address = queue.popleft()
        try:
            kind = str(resolve(address.partition("?")[0]).url_name)
        except Resolver404:
            raise AssertionError(f"a link leads nowhere: {address}") from None
        if read[kind] == (1 if kind.endswith(CHART_FILE) else OF_EACH):
            continue
        read[kind] += 1
        answer = season.client.get(address, follow_redirects=True)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        if "html" not in answer.headers["Content-Type"]:
            continue
        page = LexborHTMLParser(answer.content)
        faults += [f"{address}: {fault}" for fault in (*undefined_terms(page), *faults_of_wording(page))]
        targets = (target.partition("#")[0] for target in links(page, "[href]"))
        for link in (target for target in targets if target.startswith(("/", "?"))):
            full = f"{address.partition('?')[0]}{link}" if link.startswith("?") else link
            if full not in captions and not full.startswith(PAGES):
                captions.add(full)
                queue.append(full)
    assert not faults, "\n".join(faults)
    pages = {kind for kind in read if not kind.endswith(CHART_FILE)}
    assert pages - NO_FIGURE_ALONE == COMPARED.keys()


def undefined_terms(page: LexborHTMLParser) -> list[str]:
    """The terms of a page whose definition it lacks, and definitions in titles."""
    defined = {definition.attributes["id"] for definition in elements(page, "[popover]")}
    targets = [button.attributes["popovertarget"] for button in elements(page, ".term")]
    return [f"no definition of {target}" for target in targets if target not in defined] + [
        f"a definition in a title: {node.html}" for node in elements(page, "abbr")
    ]


def faults_of_wording(page: LexborHTMLParser) -> list[str]:
    """Identifiers outside code and numbers in a wrong form, in a page's own text and labels."""
    for node in elements(page, TEXT_FROM_OUTSIDE):
        node.decompose()
    labels = [value for name in LABELS for node in elements(page, f"[{name}]") if (value := node.attributes[name])]
    texts = [visible_text(page), *labels]
    return [
        f"{why}: {text[max(0, match.start() - 30) : match.end() + 30]}"
        for why, pattern in WRONG_FORMS.items()
        for text in texts
        for match in pattern.finditer(text)
    ]
