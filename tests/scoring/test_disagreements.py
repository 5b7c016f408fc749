"""What is kept of two families' bets and words: the same as what is found anew, and found anew once one moves on."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from markets.models import Market
from markets.prompt_conditions import PRICED
from scoring.models import StoredDisagreement
from scoring.services import disagreements as contrasts
from scoring.services.boards import refresh_boards
from scoring.services.disagreements import (
    Disagreement,
    PositionDisagreement,
    disagreements,
    position_disagreements,
    store_forecast_disagreements,
    store_position_disagreements,
)
from scoring.services.forecast_boards import refresh_forecast_boards
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    FamilyFactory,
    MarketFactory,
    QuestionFactory,
    asked,
    bet,
    resolve,
)  # fmt: skip

pytestmark = pytest.mark.django_db
GPT, GROK, CLAUDE = "gpt-5.1", "grok-4", "claude-opus-4.5"
THREE = (GPT, GROK, CLAUDE)


def family(slug: str) -> Family:
    return Family.objects.get(slug=slug)


@pytest.fixture
def agents() -> dict[str, Agent]:
    """Three families in one cohort, who bought sides of two markets and stated odds on two questions."""
    cohort = CohortFactory()
    agents = {slug: AgentFactory(cohort=cohort, family=family(slug)) for slug in THREE}
    one, other = MarketFactory.create_batch(2)
    for slug, side, amount in ((GPT, "YES", "900.00"), (GROK, "NO", "300.00"), (CLAUDE, "NO", "700.00")):
        bet(agents[slug], one, side, amount)
    bet(agents[GPT], other, "NO", "50.00")
    bet(agents[GROK], other, "YES", "950.00")
    for market, odds in ((one, (0.9, 0.4, 0.45)), (other, (0.2, 0.3, 0.9))):
        said = dict(zip(THREE, ([share, 1 - share] for share in odds), strict=True))
        asked(QuestionFactory(markets=[market]), said)
    return agents


def pairs() -> Iterator[tuple[Family, Family]]:
    yield from permutations(map(family, THREE), 2)


def told() -> list[tuple[list[PositionDisagreement], int, list[Disagreement]]]:
    return [(*position_disagreements(*pair), disagreements(*pair, PRICED)) for pair in pairs()]


def found_anew() -> list[tuple[list[PositionDisagreement], int, list[Disagreement]]]:
    StoredDisagreement.objects.all().delete()
    return told()


def test_what_is_kept_says_what_would_be_found(agents: dict[str, Agent]) -> None:
    anew = found_anew()
    assert any(number for _, number, _ in anew)
    assert store_position_disagreements() == store_forecast_disagreements(PRICED) > 3
    assert told() == anew


def test_to_read_it_does_not_go_through_trades_and_forecasts(agents: dict[str, Agent]) -> None:
    store_position_disagreements()
    store_forecast_disagreements(PRICED)
    with CaptureQueriesContext(connection) as asked_of_it:
        told()
    assert not [each for each in asked_of_it if "agents_trade" in each["sql"] or "agents_forecast" in each["sql"]]


def test_the_most_at_stake_and_the_widest_gap_come_first(agents: dict[str, Agent]) -> None:
    store_position_disagreements()
    store_forecast_disagreements(PRICED)
    against, number = position_disagreements(family(GROK), family(GPT))
    assert number == 2
    assert [each[1:5] for each in against] == [
        ("NO", Decimal("300.00"), "YES", Decimal("900.00")),
        ("YES", Decimal("950.00"), "NO", Decimal("50.00")),
    ]
    apart = disagreements(family(GROK), family(GPT), PRICED)
    assert [(each.first, each.second) for each in apart] == [(0.4, 0.9), (0.3, 0.2)]


def test_a_bet_shows_at_once(agents: dict[str, Agent]) -> None:
    store_position_disagreements()
    market = MarketFactory()
    bet(agents[GPT], market, "YES", "10.00")
    bet(agents[GROK], market, "NO", "20.00")
    against, number = position_disagreements(family(GPT), family(GROK))
    assert number == 3
    assert against[-1].market.pk == market.pk
    assert told() == found_anew()


def test_a_forecast_shows_at_once(agents: dict[str, Agent]) -> None:
    store_forecast_disagreements(PRICED)
    question = QuestionFactory()
    asked(question, {GPT: [1.0, 0.0], GROK: [0.0, 1.0]})
    assert disagreements(family(GPT), family(GROK), PRICED)[0].question.pk == question.pk
    assert told() == found_anew()


def test_an_end_shows_at_once(agents: dict[str, Agent]) -> None:
    store_position_disagreements()
    against, _ = position_disagreements(family(GPT), family(GROK))
    assert against[0].winner is None
    resolve(Market.objects.get(pk=against[0].market.pk), "NO")
    assert position_disagreements(family(GPT), family(GROK))[0][0].winner == "NO"


def test_only_who_moved_on_is_kept_again(agents: dict[str, Agent]) -> None:
    store_position_disagreements()
    store_forecast_disagreements(PRICED)
    assert store_position_disagreements() == store_forecast_disagreements(PRICED) == 0
    bet(agents[GPT], MarketFactory())
    line_up = Family.objects.filter(external=False).count()
    assert store_position_disagreements() == line_up - 1
    assert store_forecast_disagreements(PRICED) == 0
    asked(QuestionFactory(), {CLAUDE: [0.5, 0.5]})
    assert store_forecast_disagreements(PRICED) == line_up - 1


def test_boards_keep_it(agents: dict[str, Agent]) -> None:
    refresh_boards(at=WEEK)
    assert set(StoredDisagreement.objects.values_list("kind", flat=True)) == {StoredDisagreement.TRADES}
    refresh_forecast_boards(at=WEEK)
    assert set(StoredDisagreement.objects.values_list("kind", flat=True)) == {StoredDisagreement.TRADES, PRICED}


def test_external_agents_are_compared_too_but_not_kept(agents: dict[str, Agent]) -> None:
    guest = FamilyFactory(external=True, active=False)
    market = agents[GPT].trades.earliest("pk").market
    bet(AgentFactory(cohort=agents[GPT].cohort, family=guest), market, "NO", "5.00")
    store_position_disagreements()
    assert not StoredDisagreement.objects.filter(second=guest).exists()
    assert position_disagreements(guest, family(GPT))[1] == 1


def test_what_an_older_version_kept_is_found_anew(agents: dict[str, Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    anew = found_anew()
    store_position_disagreements()
    store_forecast_disagreements(PRICED)
    StoredDisagreement.objects.update(content={"number": 0, "rows": []})
    assert told() != anew
    monkeypatch.setattr(contrasts, "FORMAT", contrasts.FORMAT + 1)
    assert told() == anew
    assert store_position_disagreements() == store_forecast_disagreements(PRICED) > 3
