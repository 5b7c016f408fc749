"""No kind of page is left uncompared: whatever the links of the season's site lead to is spoken for."""

from collections import Counter, deque

from django.urls import Resolver404, resolve
from selectolax.lexbor import LexborHTMLParser

from tests.markup import links
from tests.season import test_figures_of_agents as agents
from tests.season import test_figures_of_comparisons as comparisons
from tests.season import test_figures_of_leaderboards as leaderboards
from tests.season import test_figures_of_methodologies as methodologies
from tests.season import test_figures_of_records as records
from tests.season.season_api import SeasonApi

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
    "decision": records.test_every_decision,
    "question": records.test_every_question,
    "forecast": comparisons.test_every_batch_of_forecasts,
    "universe": comparisons.test_every_universe,
    "calibration": comparisons.test_calibration,
    "comparisons": comparisons.test_all_pairs,
    "comparison": comparisons.test_every_comparison,
    "imports": comparisons.test_the_imports,
    "import": comparisons.test_an_import,
    "methodologies": methodologies.test_a_methodology,
    "methodology": methodologies.test_a_methodology,
    "about": methodologies.test_about,
}
"""By the name of a kind of page: what compares its figures with the API's."""
NO_FIGURE_ALONE = {"universe-entry", "share-image", "data", "glossary"}
"""Pages without a figure of the season: one that leads on to a universe's page, pictures, archives, definitions."""
OF_EACH = 4
"""Pages of a kind that are read for their links."""
PAGES = ("/api/", "/admin/", "/static/", "/feeds/")


def test_every_kind_of_page_that_a_link_leads_to_is_compared(season: SeasonApi) -> None:
    left, seen, read = deque(["/"]), {"/"}, Counter[str]()
    while left:
        address = left.popleft()
        try:
            kind = str(resolve(address.partition("?")[0]).url_name)
        except Resolver404:
            raise AssertionError(f"a link leads nowhere: {address}") from None
        if read[kind] == OF_EACH:
            continue
        read[kind] += 1
        answer = season.client.get(address, follow_redirects=True)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        targets = (target.partition("#")[0] for target in links(LexborHTMLParser(answer.content), "[href]"))
        for found in (target for target in targets if target.startswith(("/", "?"))):
            full = f"{address.partition('?')[0]}{found}" if found.startswith("?") else found
            if full not in seen and not full.startswith(PAGES):
                seen.add(full)
                left.append(full)
    assert read.keys() - NO_FIGURE_ALONE == COMPARED.keys()
