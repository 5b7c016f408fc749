"""Cost estimates: what a run of decisions would ask and cost, and a week and a season of the coming line-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models.functions import Length

from agents.conditions import conditions_on, conditions_to_ask, evidence_cost
from agents.models import Agent, Decision, Elicitation, Release
from agents.services.costs import CHARACTERS_PER_TOKEN, dearest_cost
from agents.services.decisions import agents_to_ask, cohorts_with_open_window, market_columns
from agents.services.expected_answers import (
    EXPECTED_COMPLETION_TOKENS,
    EXPECTED_THINKING_TOKENS,
    answer_cost,
    answers_on_record,
    expected_answer,
    text_tokens,
)
from agents.services.forecast_estimate import DAYS_IN_WEEK, assumed_day, sample_cost, week_of_batches
from agents.services.lineups import effective_from, lineup_releases
from agents.services.model_calls import spent_in_week
from agents.services.release_check import set_catalogue_terms
from agents.services.run_settings import paused_families
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.models import Universe
from markets.services.prices import recorded_prices
from markets.services.universes import NoMarkets, draft_universe

if TYPE_CHECKING:
    from agents.gateway.catalogue import ModelCatalogue

PROMPT_CHARACTERS = 70_000
"""Characters of a trading prompt with 500 captured markets; assumed where no market is stored yet."""


@dataclass(frozen=True, slots=True)
class CostPlan:
    """The expected cost of a line-up, in US dollars."""

    cohort_usd: Decimal
    """One decision of each release."""
    weeks: int
    """The decision weeks of a cohort: so many cohorts overlap, and so long is a season."""
    forecasts_usd: Decimal
    """A week's forecasts."""
    unrecorded: int
    """The releases that have not answered every protocol yet, whose answers' length is assumed."""

    @property
    def decisions_usd(self) -> Decimal:
        """A week's decisions, once as many cohorts decide as ever overlap."""
        return self.weeks * self.cohort_usd

    @property
    def week_usd(self) -> Decimal:
        return self.decisions_usd + self.forecasts_usd

    @property
    def season_usd(self) -> Decimal:
        return self.weeks * self.week_usd

    def summary(self) -> dict[str, str]:
        """The figures as the dry runs print them."""
        return {"week_usd": f"{self.week_usd:.2f}", "season_usd": f"{self.season_usd:.2f}", "costs": str(self)}

    def __str__(self) -> str:
        overlap = f"${self.decisions_usd:.2f} once {self.weeks} overlap"
        models = "1 model" if self.unrecorded == 1 else f"{self.unrecorded} models"
        assumed = (
            f" ({models} without an answer on record: {EXPECTED_THINKING_TOKENS:,} tokens assumed of one that thinks, "
            f"{EXPECTED_COMPLETION_TOKENS:,} of another)"
        )
        return (
            f"about ${self.cohort_usd:.2f} for the decisions of a cohort, {overlap}; ${self.forecasts_usd:.2f} for a "
            f"week's forecasts; a week ${self.week_usd:.2f}, a season of {self.weeks} weeks ${self.season_usd:.2f}"
            f"{assumed if self.unrecorded else ''}"
        )


def plan_costs(
    *,
    at: datetime,
    releases: Sequence[Release] | None = None,
    methodology: Methodology | None = None,
    catalogue: ModelCatalogue | None = None,
    stored: bool = True,
) -> CostPlan:
    """The costs of the coming line-up, or of `releases`, at the terms of the catalogue if one is given. Reads only.

    A database without tables is not `stored`: its `releases` and `methodology` are those that ship. Where nothing was
    frozen yet, the prompts are those that the stored markets would make; without markets their size is assumed.
    """
    trading = forecasting = methodology
    if stored:
        releases = lineup_releases(effective_from(at=at)) if releases is None else releases
        trading = Methodology.objects.current()
        forecasting = Methodology.objects.forecasting()
    assert trading is not None
    releases = releases or ()
    for release in releases:
        set_catalogue_terms(release, catalogue)
    measured = _newest_prompt(trading, at) if stored else None
    prompt = int(PROMPT_CHARACTERS / CHARACTERS_PER_TOKEN) if measured is None else measured
    answers = answers_on_record(Decision, releases) if stored else {}
    cohort = sum((answer_cost(release, prompt, answers, trading) for release in releases), Decimal(0))
    unrecorded = {release.model_id for release in releases} - answers.keys()
    forecasts = Decimal(0)
    if forecasting is not None and (rules := forecasting.forecast_rules) is not None:
        batches, days, questions = week_of_batches(forecasting, rules, at) if stored else ((), 1, 0)
        conditions = conditions_to_ask(rules) if stored else conditions_on(rules)
        if not batches:
            day = assumed_day(rules, conditions)
            batches, questions = day.batches, day.questions
        forecasts += evidence_cost(questions, conditions)
        answers = answers_on_record(Elicitation, releases) if stored else {}
        unrecorded |= {release.model_id for release in releases} - answers.keys()
        for release in releases:
            for batch in batches:
                forecasts += batch.samples * sample_cost(batch, release, answers, forecasting)
        forecasts *= Decimal(DAYS_IN_WEEK) / days
    return CostPlan(cohort, trading.decision_weeks, forecasts, len(unrecorded))


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


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


def estimate_run(
    *, at: datetime, cohort: Cohort | None = None, family: str | None = None, catalogue: ModelCatalogue | None = None
) -> DecisionEstimate:
    """The estimate of `run_decisions` at `at`. Reads only; raises NoMarkets as a freeze would."""
    cohorts = cohorts_with_open_window(at)
    if cohort is not None:
        cohorts = [cohort] if cohort in cohorts else []
    agents = agents_to_ask(cohorts, family)
    final = set(Decision.objects.final().filter(agent__in=agents).values_list("agent_id", "week"))
    paused = paused_families(Decision.PROTOCOL)
    agents = [agent for agent in agents if agent.family_id not in paused]
    open_agents = [agent for agent in agents if (agent.pk, agent.cohort.decision_week(at)) not in final]
    sizes: dict[int, int] = {}
    for agent in open_agents:
        methodology = agent.cohort.methodology
        if methodology.pk not in sizes:
            sizes[methodology.pk] = prompt_tokens(methodology, at)
    answers = answers_on_record(Decision, [agent.release for agent in open_agents])
    calls = []
    for agent in open_agents:
        set_catalogue_terms(agent.release, catalogue)
        methodology = agent.cohort.methodology
        expected = expected_answer(agent.release, answers, methodology)
        calls.append(ExpectedCall(agent, sizes[methodology.pk], *expected))
    return DecisionEstimate(
        tuple(calls), len(agents) - len(open_agents), spent_in_week(Decision.PROTOCOL, week_start(at))
    )


def prompt_tokens(methodology: Methodology, at: datetime) -> int:
    """The tokens of the week's prompt at `at`. Raises NoMarkets as a freeze would."""
    universe = Universe.objects.filter(week_start=week_start(at), methodology=methodology.version).first()
    if universe is not None:
        block = universe.market_block
    else:
        block = draft_universe(
            size=methodology.universe_size,
            held_ids=(),
            at=at,
            replay=False,
            price=lambda markets: recorded_prices(markets, at),
            columns=market_columns(methodology),
        ).market_block
    return text_tokens(len(block), methodology.system_prompt, methodology.user_prompt)


def _newest_prompt(methodology: Methodology, at: datetime) -> int | None:
    """The tokens of the newest frozen prompt, else of the one that a freeze would make; None without a market."""
    frozen = Universe.objects.filter(methodology=methodology.version).order_by("-week_start")
    size = frozen.values_list(Length("market_block"), flat=True).first()
    if size is not None:
        return text_tokens(size, methodology.system_prompt, methodology.user_prompt)
    try:
        return prompt_tokens(methodology, at)
    except NoMarkets:
        return None
