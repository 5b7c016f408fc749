"""Cost estimates of runs: the agents or releases that would be asked, and the expected cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Avg

from agents.models import Agent, Decision, Elicitation, ModelCall, Release
from agents.services.forecasts import releases_to_ask
from agents.services.model_calls import spent_in_week
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.models import QuestionBatch, Universe
from markets.models.question import day_of
from markets.services.prices import recorded_prices
from markets.services.universes import draft_universe

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English and JSON."""
EXPECTED_COMPLETION_TOKENS = 2000
"""For a model without an answer on record."""


@dataclass(frozen=True, slots=True)
class DecisionEstimate:
    """The agents to ask, the number of agents with a final decision, the expected cost, the week's cost so far."""

    agents: tuple[Agent, ...]
    skipped: int
    cost_usd: Decimal
    spent_usd: Decimal


def estimate_run(*, at: datetime, cohort: Cohort | None = None, family: str | None = None) -> DecisionEstimate:
    """The estimate of `run_decisions` at `at`. Reads only; raises NoMarkets as a freeze would."""
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology")
    deciding = [c for c in (cohorts.filter(pk=cohort.pk) if cohort else cohorts) if c.is_deciding(at)]
    agents = Agent.objects.playing().filter(cohort__in=deciding, family__external=False)
    agents = agents.select_related("cohort__methodology", "family", "release")
    if family:
        agents = agents.filter(family__slug=family)
    final = set(Decision.objects.final().filter(agent__in=agents).values_list("agent_id", "week"))
    due = tuple(agent for agent in agents if (agent.pk, agent.cohort.decision_week(at)) not in final)
    sizes = {m.pk: _prompt_tokens(m, at) for m in {a.cohort.methodology_id: a.cohort.methodology for a in due}.values()}
    completions = _completion_tokens(agent.model_id for agent in due)
    cost = sum(
        (
            sizes[agent.cohort.methodology_id] * agent.price_prompt
            + completions[agent.model_id] * agent.price_completion
            for agent in due
        ),
        Decimal(0),
    )
    return DecisionEstimate(due, len(agents) - len(due), cost, spent_in_week(Decision.PROTOCOL, week_start(at)))


def _prompt_tokens(methodology: Methodology, at: datetime) -> int:
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
    characters = len(methodology.system_prompt) + len(methodology.user_prompt) + len(block)
    return characters // CHARACTERS_PER_TOKEN


def _completion_tokens(models: Iterable[str]) -> dict[str, int]:
    """The expected tokens of an answer by model: the mean of its answers on record."""
    names = set(models)
    calls = ModelCall.objects.filter(model__in=names, tokens_output__isnull=False).order_by()
    means = dict(calls.values_list("model").annotate(Avg("tokens_output")))
    return {model: int(means.get(model, EXPECTED_COMPLETION_TOKENS)) for model in names}


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
    if todays:
        window = rules.retry_window
        todays = [s for s in todays if s.question_set.frozen_at <= at < s.question_set.frozen_at + window]
        priced = todays
    else:
        newest = batches.order_by("-question_set__day").values("question_set__day")[:1]
        priced = list(batches.filter(question_set__day=newest))
    answered = set(Elicitation.objects.final().filter(batch__in=todays).values_list("batch", "release"))
    asked: list[tuple[Release, int]] = []
    cost = Decimal(0)
    releases = releases_to_ask(methodology, at)
    completions = _completion_tokens(release.model_id for release in releases)
    for release in releases:
        due = [batch for batch in priced if (batch.pk, release.pk) not in answered]
        if not due and todays:
            continue
        asked.append((release, len(due)))
        completion = completions[release.model_id] * release.price_completion
        cost += sum((_batch_tokens(rules, batch) * release.price_prompt + completion for batch in due), Decimal(0))
    over = not todays and batches.filter(question_set__day=day_of(at)).exists()
    return ForecastEstimate(() if over else tuple(asked), cost, frozen=bool(todays))


def _batch_tokens(rules: ForecastRules, batch: QuestionBatch) -> int:
    return (len(rules.system_prompt) + len(rules.user_prompt) + len(batch.block)) // CHARACTERS_PER_TOKEN
