"""Cost estimates: what a run would ask and cost, and a week and a season of the coming line-up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count

from agents.models import Agent, Decision, Elicitation, Release
from agents.services.conditions import conditions_on, conditions_to_ask, evidence_cost
from agents.services.decisions import agents_to_ask, cohorts_with_open_window
from agents.services.expected_costs import (
    PLAIN_TOKENS,
    THINKING_TOKENS,
    ExpectedCost,
    MeanCosts,
    expected_cost,
    mean_costs,
)
from agents.services.forecasts import releases_to_ask
from agents.services.lineups import effective_from, lineup_releases
from agents.services.release_check import set_catalogue_terms
from agents.services.run_settings import paused_families
from agents.services.spending import week_spending
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from foundation.bulk import rows_by
from markets.models import QuestionBatch, QuestionEntry
from markets.models.question import day_of
from markets.services.questions import FreezeParameters, count_drafted_questions
from markets.services.universes import require_markets

if TYPE_CHECKING:
    from agents.gateway.catalogue import ModelCatalogue
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import Condition

DAYS_IN_WEEK = 7
FROZEN = "the day's questions"
LATEST = "the latest day's questions"
CATALOGUE = "the questions that the stored markets would make"
ASSUMED = "a full day's questions, as no market is stored yet"


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
    """The releases without an answer on record in a protocol or condition, whose cost is assumed."""

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
            f" ({models} without an answer on record: {THINKING_TOKENS:,} tokens assumed of one that thinks, "
            f"{PLAIN_TOKENS:,} of another)"
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

    A database without tables is not `stored`: its `releases` and `methodology` are those that ship.
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
    means = mean_costs(Decision, releases)
    decisions = [expected_cost(release, trading, means) for release in releases]
    unrecorded = {release.model_id for release, cost in zip(releases, decisions, strict=True) if not cost.calls}
    forecasts_usd = Decimal(0)
    if forecasting is not None:
        day = estimate_day(forecasting, releases, at=at, stored=stored)
        forecasts_usd = DAYS_IN_WEEK * day.cost_usd
        unrecorded |= {requests.release.model_id for requests in day.releases if requests.is_assumed}
    cohort_usd = sum((cost.usd for cost in decisions), Decimal(0))
    return CostPlan(cohort_usd, trading.decision_weeks, forecasts_usd, len(unrecorded))


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ExpectedDecision:
    """An agent to ask, and the expected cost of its answer."""

    agent: Agent
    cost: ExpectedCost

    def __str__(self) -> str:
        return f"{self.agent.display_name} ({self.agent.model_id}), cohort {self.agent.cohort.number}: {self.cost}"


@dataclass(frozen=True, slots=True)
class DecisionEstimate:
    """The agents to ask, the number of those with a final decision, and the week's cost so far."""

    decisions: tuple[ExpectedDecision, ...]
    skipped: int
    spent_usd: Decimal

    @property
    def cost_usd(self) -> Decimal:
        return sum((decision.cost.usd for decision in self.decisions), Decimal(0))


def estimate_run(
    *, at: datetime, cohort: Cohort | None = None, family: str | None = None, catalogue: ModelCatalogue | None = None
) -> DecisionEstimate:
    """The estimate of `run_decisions` at `at`. Reads only; raises NoMarkets where a freeze would find none."""
    cohorts = cohorts_with_open_window(at)
    if cohort is not None:
        cohorts = [cohort] if cohort in cohorts else []
    agents = agents_to_ask(cohorts, family)
    final = set(Decision.objects.final().filter(agent__in=agents).values_list("agent_id", "week"))
    paused = paused_families(Decision.PROTOCOL)
    agents = [agent for agent in agents if agent.family_id not in paused]
    open_agents = [agent for agent in agents if (agent.pk, agent.cohort.decision_week(at)) not in final]
    if open_agents:
        require_markets(week_start(at), at=at)
    means = mean_costs(Decision, [agent.release for agent in open_agents])
    decisions = []
    for agent in open_agents:
        set_catalogue_terms(agent.release, catalogue)
        decisions.append(ExpectedDecision(agent, expected_cost(agent.release, agent.cohort.methodology, means)))
    return DecisionEstimate(
        tuple(decisions), len(agents) - len(open_agents), week_spending(Decision.PROTOCOL, week_start(at)).spent
    )


# ── forecasts ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class ExpectedRequests:
    """The requests to a release: batches, requests (one for each sample), and the most searches that they may make.

    is_assumed : it has no call on record under one of the conditions
    """

    release: Release
    batches: int = 0
    requests: int = 0
    searches: int = 0
    cost_usd: Decimal = Decimal(0)
    is_assumed: bool = False

    def add(self, batches: int, samples: int, condition: Condition, cost: ExpectedCost) -> None:
        """Adds so many batches of a condition with so many samples in all."""
        self.batches += batches
        self.requests += samples
        self.searches += samples * condition.tools.max_uses if condition.tools else 0
        self.cost_usd += samples * cost.usd
        self.is_assumed |= not cost.calls

    def __str__(self) -> str:
        batches = f"{self.release}: {self.batches} batch{'es' if self.batches != 1 else ''}"
        samples = f" in {self.requests} samples" if self.requests != self.batches else ""
        return batches + samples + (f", at most {self.searches} searches" if self.searches else "")


@dataclass(frozen=True, slots=True)
class ForecastEstimate:
    """The requests to each release, and the expected cost, of which `evidence_usd` is for the queries of evidence."""

    releases: tuple[ExpectedRequests, ...]
    frozen: bool
    """True if the day's questions are frozen and can be answered."""
    questions: int = 0
    basis: str = ""
    """The days or markets from which the number of questions is estimated."""
    evidence_usd: Decimal = Decimal(0)

    @property
    def cost_usd(self) -> Decimal:
        return sum((requests.cost_usd for requests in self.releases), self.evidence_usd)


def estimate_forecasts(
    *,
    at: datetime,
    questions: int | None = None,
    family: str | None = None,
    catalogue: ModelCatalogue | None = None,
) -> ForecastEstimate:
    """The estimate of `run_forecasts` with these arguments at `at`. Reads only."""
    methodology = Methodology.objects.forecasting()
    if methodology is None or methodology.forecast_rules is None:
        return ForecastEstimate((), frozen=False)
    rules = methodology.forecast_rules
    paused = paused_families(Elicitation.PROTOCOL)
    releases = []
    for release in releases_to_ask(methodology, at):
        if family in (None, release.family.slug) and release.family_id not in paused:
            set_catalogue_terms(release, catalogue)
            releases.append(release)
    batches = QuestionBatch.objects.filter(question_set__methodology=methodology.version, question_set__day=day_of(at))
    todays = list(batches.order_by("pk").select_related("question_set"))
    if not todays:
        return estimate_day(methodology, releases, at=at, questions=questions)
    is_open = [b for b in todays if b.question_set.frozen_at <= at < b.question_set.frozen_at + rules.retry_window]
    conditions, final_samples = rows_by("name", conditions_to_ask(rules)), _final_samples(is_open)
    asked = [(batch, conditions[batch.arm]) for batch in is_open if batch.arm in conditions]
    means, requests = mean_costs(Elicitation, releases), []
    for release in releases:
        of_release = _open_requests(release, asked, final_samples, methodology, means)
        if of_release.requests:
            requests.append(of_release)
    number = QuestionEntry.objects.filter(question_set__batches__in=todays).values("question").distinct().count()
    return ForecastEstimate(tuple(requests), bool(is_open), number, FROZEN)


def estimate_day(
    methodology: Methodology,
    releases: Sequence[Release],
    *,
    at: datetime,
    questions: int | None = None,
    stored: bool = True,
) -> ForecastEstimate:
    """The estimate of a day whose questions are not frozen yet, of at most so many questions. Reads only."""
    rules = methodology.forecast_rules
    if rules is None:
        return ForecastEstimate((), frozen=False)
    conditions = conditions_to_ask(rules) if stored else conditions_on(rules)
    number, basis = rules.questions_per_day, ASSUMED
    if stored:
        number, basis = _expected_questions(methodology, rules, at, questions)
    batches = math.ceil(number / rules.questions_per_call)
    means, requests = mean_costs(Elicitation, releases), []
    for release in releases if conditions else ():
        of_release = ExpectedRequests(release)
        for condition in conditions:
            cost = expected_cost(release, methodology, means, condition)
            of_release.add(batches, batches * condition.samples, condition, cost)
        requests.append(of_release)
    evidence = evidence_cost(number, conditions)
    return ForecastEstimate(tuple(requests), False, number, basis, evidence_usd=evidence)


def _final_samples(batches: Sequence[QuestionBatch]) -> Mapping[tuple[int, int], int]:
    """The number of final samples of these batches, by batch and release."""
    final = Elicitation.objects.final().filter(batch__in=[batch.pk for batch in batches]).order_by()
    rows = final.values_list("batch", "release").annotate(number=Count("pk"))
    return {(batch, release): number for batch, release, number in rows}


def _open_requests(
    release: Release,
    batches: Sequence[tuple[QuestionBatch, Condition]],
    final_samples: Mapping[tuple[int, int], int],
    methodology: Methodology,
    means: MeanCosts,
) -> ExpectedRequests:
    """The requests that a release has not answered yet, of frozen batches, each with its condition."""
    requests = ExpectedRequests(release)
    for batch, condition in batches:
        samples = condition.samples - final_samples.get((batch.pk, release.pk), 0)
        if samples > 0:
            requests.add(1, samples, condition, expected_cost(release, methodology, means, condition))
    return requests


def _expected_questions(
    methodology: Methodology, rules: ForecastRules, at: datetime, questions: int | None
) -> tuple[int, str]:
    """The number of a day's questions, at most so many, and its source: the latest day, the markets, or the rules."""
    entries = QuestionEntry.objects.filter(question_set__methodology=methodology.version).order_by()
    days = entries.values_list("question_set__day").annotate(number=Count("pk")).order_by("-question_set__day")
    if (latest := days.first()) is not None:
        return min(latest[1], questions or latest[1]), LATEST
    if questions is not None:
        rules = rules.with_at_most(questions)
    freeze = FreezeParameters(
        day=day_of(at), methodology=methodology.version, rule=rules, conditions=(), price_rule=methodology.price_rule,
        universe=None, at=at, clob=None, on_priced=lambda pricing: None,
    )  # fmt: skip
    drafted = count_drafted_questions(freeze)
    return (drafted, CATALOGUE) if drafted else (rules.questions_per_day, ASSUMED)
