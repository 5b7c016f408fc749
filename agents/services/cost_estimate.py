"""Cost estimates of runs: the agents or releases that would be asked, and the expected cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Avg, Count

from agents.models import Agent, Decision, Elicitation, ModelCall, Release
from agents.services.costs import count_tokens, dearest_cost
from agents.services.decisions import agents_to_ask, cohorts_with_open_window
from agents.services.forecasts import releases_to_ask
from agents.services.model_calls import spent_in_week
from agents.services.run_settings import paused_families
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.models import QuestionBatch, Universe
from markets.models.question import day_of
from markets.services.prices import recorded_prices
from markets.services.universes import draft_universe

PROSE_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English."""
EXPECTED_COMPLETION_TOKENS = 2000
"""For a model without an answer on record."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """An agent to ask, the tokens of its prompt, and those of its answer: the mean of so many answers on record."""

    agent: Agent
    tokens_input: int
    tokens_output: int
    answers: int

    @property
    def cost_usd(self) -> Decimal:
        return dearest_cost(self.tokens_input, self.tokens_output, self.agent.token_prices)

    def __str__(self) -> str:
        basis = f"the mean of {self.answers} on record" if self.answers else "assumed"
        return (
            f"{self.agent.display_name} ({self.agent.model_id}), cohort {self.agent.cohort.number}: a prompt of "
            f"{self.tokens_input:,} tokens, an answer of {self.tokens_output:,} ({basis})"
        )


@dataclass(frozen=True, slots=True)
class DecisionEstimate:
    """The calls to make, the number of agents with a final decision, and the week's cost so far."""

    calls: tuple[ExpectedCall, ...]
    skipped: int
    spent_usd: Decimal

    @property
    def cost_usd(self) -> Decimal:
        return sum((call.cost_usd for call in self.calls), Decimal(0))


def estimate_run(*, at: datetime, cohort: Cohort | None = None, family: str | None = None) -> DecisionEstimate:
    """The estimate of `run_decisions` at `at`. Reads only; raises NoMarkets as a freeze would."""
    agents = agents_to_ask([each for each in cohorts_with_open_window(at) if cohort in (None, each)], family)
    final = set(Decision.objects.final().filter(agent__in=agents).values_list("agent_id", "week"))
    paused = paused_families(Decision.PROTOCOL)
    agents = [agent for agent in agents if agent.family_id not in paused]
    due = [agent for agent in agents if (agent.pk, agent.cohort.decision_week(at)) not in final]
    sizes = {m.pk: prompt_tokens(m, at) for m in {a.cohort.methodology_id: a.cohort.methodology for a in due}.values()}
    answers = _answers_on_record(agent.model_id for agent in due)
    calls = tuple(ExpectedCall(agent, sizes[agent.cohort.methodology_id], *answers[agent.model_id]) for agent in due)
    return DecisionEstimate(calls, len(agents) - len(due), spent_in_week(Decision.PROTOCOL, week_start(at)))


def prompt_tokens(methodology: Methodology, at: datetime) -> int:
    """The tokens of the week's prompt at `at`. Raises NoMarkets as a freeze would."""
    universe = Universe.objects.filter(week_start=week_start(at), methodology=methodology.version).first()
    if universe is not None:
        block = universe.market_block
    else:
        block = draft_universe(
            size=methodology.universe_size,
            held=(),
            at=at,
            replay=False,
            price=lambda markets: recorded_prices(markets, at),
        ).market_block
    return _tokens(block, methodology.system_prompt, methodology.user_prompt)


def _tokens(block: str, *prose: str) -> int:
    return count_tokens(block) + sum(map(len, prose)) // PROSE_CHARACTERS_PER_TOKEN


def _answers_on_record(models: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The expected tokens of an answer by model: the mean of its answers on record, with their number."""
    names = set(models)
    calls = ModelCall.objects.filter(model__in=names, tokens_output__isnull=False).order_by()
    means = calls.values_list("model").annotate(Avg("tokens_output"), Count("pk"))
    return dict.fromkeys(names, (EXPECTED_COMPLETION_TOKENS, 0)) | {
        model: (int(mean), answers) for model, mean, answers in means
    }


@dataclass(frozen=True, slots=True)
class ForecastEstimate:
    """The releases to ask, each with its number of batches, and the expected cost."""

    asked: tuple[tuple[Release, int], ...]
    cost_usd: Decimal
    frozen: bool
    """True if the day's questions are frozen; otherwise the cost is that of the latest day's."""


def estimate_forecasts(*, at: datetime) -> ForecastEstimate:
    """The estimate of `run_forecasts` at `at`. Reads only."""
    methodology = Methodology.objects.forecasting()
    if methodology is None or methodology.forecast_rules is None:
        return ForecastEstimate((), Decimal(0), frozen=False)
    rules = methodology.forecast_rules
    batches = QuestionBatch.objects.filter(question_set__methodology=methodology.version).order_by("pk")
    todays = list(batches.filter(question_set__day=day_of(at)).select_related("question_set"))
    window = rules.retry_window
    priced = [batch for batch in todays if batch.question_set.frozen_at <= at < batch.question_set.frozen_at + window]
    if not todays:
        newest = batches.order_by("-question_set__day").values("question_set__day")[:1]
        priced = list(batches.filter(question_set__day=newest))
    answered = set(Elicitation.objects.final().filter(batch__in=todays).values_list("batch", "release"))
    asked: list[tuple[Release, int]] = []
    cost = Decimal(0)
    paused = paused_families(Elicitation.PROTOCOL)
    releases = [release for release in releases_to_ask(methodology, at) if release.family_id not in paused]
    answers = _answers_on_record(release.model_id for release in releases)
    for release in releases:
        due = [batch for batch in priced if (batch.pk, release.pk) not in answered]
        if not due and todays:
            continue
        asked.append((release, len(due)))
        for batch in due:
            tokens_input = _tokens(batch.block, rules.system_prompt, rules.user_prompt)
            cost += dearest_cost(tokens_input, answers[release.model_id][0], release.token_prices)
    return ForecastEstimate(tuple(asked), cost, frozen=bool(todays and priced))
