"""A season whose rows differ in every field by which a list of the API can be filtered or ordered."""

from datetime import timedelta
from decimal import Decimal

from agents.models import Agent, Decision
from agents.services.envelopes import open_envelopes
from cohorts.models import Cohort
from markets.models import Question
from scoring.constants import FORECAST
from scoring.models import Leaderboard
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from scoring.services.scores import score_trades
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    PriceObservationFactory,
    QuestionFactory,
    ReleaseFactory,
    RunFactory,
    SnapshotFactory,
    ask,
    bet,
    end_question,
    play_week,
    resolve,
    seal_hold,
    submit_hold,
)

DAY = timedelta(days=1)
END = WEEK + 31 * DAY


def play() -> None:
    """Two weeks and what they lack: a loss, failures, late answers, envelopes, boards of two days."""
    cohort = play_week()
    _trade(Agent.objects.earliest("pk"))
    _forecast(Question.objects.earliest("pk"))
    RunFactory(kind="take_snapshots", status="failed", at=WEEK - DAY)
    CohortFactory(status=Cohort.Status.COMPLETED, completed_at=WEEK + 60 * DAY)
    play_week()
    for day in (1, 2):
        seal_hold(AgentFactory(cohort=cohort), until=WEEK + day * DAY)
    open_envelopes(at=WEEK + 2 * DAY)
    score_trades(at=WEEK + 60 * DAY)
    refresh_forecast_leaderboards(at=END)
    Leaderboard.objects.create(protocol=FORECAST, arm="blind", category="Sports", computed_at=WEEK, entries=[])


def _trade(agent: Agent) -> None:
    """An agent that trades five times more, loses and fails, and a decision of three calls."""
    for _ in range(5):
        bet(agent, MarketFactory(), amount="50.00")
    decision = Decision.objects.earliest("pk")
    for day in (1, 0):
        InstructionFactory(call=ModelCallFactory(decision=decision))
        submit_hold(decision, at=WEEK + day * DAY)
    bet(agent, lost := MarketFactory(liquidity=Decimal(9), closes_at=WEEK + 20 * DAY), amount="70.00")
    resolve(lost, "NO", at=WEEK + 20 * DAY)
    DecisionFactory(agent=agent, week=3, failed=True)
    DecisionFactory(agent=agent, week=4, fallback=True)
    race = MarketFactory(prices={"A": "0.5", "B": "0.5"}, category="Sports", liquidity=Decimal(7), over_since=WEEK)
    PriceObservationFactory(outcome=race.outcomes.get(side="A"), stale=True, source="gamma", observed_at=WEEK - DAY)
    SnapshotFactory(agent=agent, taken_at=WEEK)
    ReleaseFactory(family=agent.family, effective_from=WEEK - 3000 * DAY)
    MarketFactory(closes_at=WEEK + 30 * DAY)


def _forecast(question: Question) -> None:
    """A question of two days, one of both arms that ends, and two of other days, of which one is on sports."""
    forecasts = {slug: [0.6, 0.4] for slug in ("gpt-5.1", "grok-4", "kimi-k2")}
    ask(question, forecasts, day=WEEK + DAY)
    rain = QuestionFactory()
    for arm in ("priced", "blind"):
        ask(rain, forecasts, arm=arm)
    end_question(rain, "YES")
    ask(QuestionFactory(category="Sports", closes_at=END, first_asked_at=WEEK + DAY), forecasts, methodology="v3")
    QuestionFactory(closes_at=END + DAY, first_asked_at=WEEK + 2 * DAY)
