"""Cost estimates: what a run would ask and cost, and what a week and a season of the coming line-up cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Avg, Count, QuerySet
from django.db.models.functions import Length

from agents.conditions import conditions_to_ask
from agents.models import Agent, Decision, Elicitation, ModelCall, Release
from agents.services.costs import CHARACTERS_PER_TOKEN, dearest_cost
from agents.services.decisions import agents_to_ask, cohorts_with_open_window, market_columns
from agents.services.forecasts import releases_to_ask
from agents.services.lineups import effective_from, lineup_releases
from agents.services.model_calls import spent_in_week
from agents.services.release_check import set_catalogue_terms
from agents.services.run_settings import paused_families
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.models import QuestionBatch, QuestionEntry, Universe
from markets.models.question import day_of
from markets.services.prices import recorded_prices
from markets.services.questions import FreezeParameters, draft_question_blocks
from markets.services.universes import NoMarkets, draft_universe

if TYPE_CHECKING:
    from agents.gateway.catalogue import ModelCatalogue
    from cohorts.forecast_rules import ForecastRules

PROSE_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English."""
EXPECTED_COMPLETION_TOKENS = 2_000
"""For a model without an answer on record that does not think, or of a gateway that does not say."""
EXPECTED_THINKING_TOKENS = 8_000
"""For one that thinks: at medium effort the gateway allows for it half of max_tokens, which is 16,000."""
PROMPT_CHARACTERS = 70_000
"""Characters of a trading prompt with 500 captured markets; assumed where no market is stored yet."""
QUESTION_CHARACTERS = 1_000
"""Characters of a question with its rules where no market is stored yet: 753 on average in 527 captured markets."""
DAYS_IN_WEEK = 7

Answers = Mapping[str, tuple[int, int]]
"""The mean tokens of a model's answers on record, and their number, by its id."""


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
    answers = _answers_on_record(Decision, releases) if stored else {}
    cohort = sum((_answer_cost(release, prompt, answers, trading) for release in releases), Decimal(0))
    unrecorded = {release.model_id for release in releases} - answers.keys()
    forecasts = Decimal(0)
    if forecasting is not None and (rules := forecasting.forecast_rules) is not None:
        batches, days = _week_of_batches(forecasting, rules, at) if stored else ((), 1)
        batches = batches or _assumed_day(rules).batches
        answers = _answers_on_record(Elicitation, releases) if stored else {}
        unrecorded |= {release.model_id for release in releases} - answers.keys()
        for release in releases:
            for tokens in batches:
                forecasts += _answer_cost(release, tokens, answers, forecasting)
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
    answers = _answers_on_record(Decision, [agent.release for agent in open_agents])
    calls = []
    for agent in open_agents:
        set_catalogue_terms(agent.release, catalogue)
        methodology = agent.cohort.methodology
        expected = _expected_answer(agent.release, answers, methodology)
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
    return _tokens(len(block), methodology.system_prompt, methodology.user_prompt)


def _newest_prompt(methodology: Methodology, at: datetime) -> int | None:
    """The tokens of the newest frozen prompt, else of the one that a freeze would make; None without a market."""
    frozen = Universe.objects.filter(methodology=methodology.version).order_by("-week_start")
    size = frozen.values_list(Length("market_block"), flat=True).first()
    if size is not None:
        return _tokens(size, methodology.system_prompt, methodology.user_prompt)
    try:
        return prompt_tokens(methodology, at)
    except NoMarkets:
        return None


def _tokens(characters: int, *prose: str) -> int:
    """The tokens of a prompt with so many characters of JSON Lines."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN) + sum(map(len, prose)) // PROSE_CHARACTERS_PER_TOKEN


# ── answers ───────────────────────────────────────────────────────────────────────────────────────


def _answers_on_record(task: type[Decision | Elicitation], releases: Iterable[Release]) -> Answers:
    """The mean tokens of each model's answers to tasks of this kind, and their number."""
    models = {release.model_id for release in releases}
    calls = ModelCall.objects.filter(model__in=models, tokens_output__isnull=False).order_by()
    of_task = calls.filter(decision__isnull=task is not Decision)
    means = of_task.values_list("model").annotate(Avg("tokens_output"), Count("pk"))
    return {model: (int(mean), number) for model, mean, number in means}


def _expected_answer(release: Release, answers: Answers, methodology: Methodology) -> tuple[int, int]:
    """The expected tokens of an answer, and the number of answers that they are the mean of; 0 if assumed."""
    if release.model_id in answers:
        return answers[release.model_id]
    expected = EXPECTED_THINKING_TOKENS if _thinks(release, methodology) else EXPECTED_COMPLETION_TOKENS
    return min(expected, release.max_completion_tokens or expected), 0


def _thinks(release: Release, methodology: Methodology) -> bool:
    """Will the model think? One of which a catalogue has not been read yet counts as one that does."""
    if not methodology.reasoning:
        return False
    if release.supported_parameters is None:
        return settings.ARENA_LINEUP != "unchecked"
    return "reasoning" in release.supported_parameters


def _answer_cost(release: Release, tokens_input: int, answers: Answers, methodology: Methodology) -> Decimal:
    tokens_output, _ = _expected_answer(release, answers, methodology)
    return dearest_cost(tokens_input, tokens_output, release.token_prices)


# ── forecasts ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ExpectedDay:
    """A day's questions: their number, the tokens of each batch, and what tells them."""

    questions: int
    batches: tuple[int, ...]
    basis: str


@dataclass(frozen=True, slots=True)
class ForecastEstimate:
    """The releases to ask, each with its number of batches, and the expected cost."""

    releases: tuple[tuple[Release, int], ...]
    cost_usd: Decimal
    frozen: bool
    """True if the day's questions are frozen and can be answered."""
    questions: int = 0
    basis: str = ""
    """The days or markets from which the size of the batches is estimated."""


FROZEN = "the day's questions"
LATEST = "the latest day's questions"
CATALOGUE = "the questions that the stored markets would make"
ASSUMED = f"questions of {QUESTION_CHARACTERS:,} characters each, as no market is stored yet"


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
        return ForecastEstimate((), Decimal(0), frozen=False)
    rules = methodology.forecast_rules
    paused = paused_families(Elicitation.PROTOCOL)
    releases = []
    for release in releases_to_ask(methodology, at):
        if family in (None, release.family.slug) and release.family_id not in paused:
            releases.append(release)
    answers = _answers_on_record(Elicitation, releases)
    todays = list(_batches(methodology).filter(question_set__day=day_of(at)).select_related("question_set"))
    is_open = [b for b in todays if b.question_set.frozen_at <= at < b.question_set.frozen_at + rules.retry_window]
    answered = set(Elicitation.objects.final().filter(batch__in=todays).values_list("batch", "release"))
    expected = None if todays else _expected_day(methodology, rules, at, questions=questions)
    batches_by_release: list[tuple[Release, int]] = []
    cost = Decimal(0)
    for release in releases:
        set_catalogue_terms(release, catalogue)
        if expected is not None:
            batches = list(expected.batches)
        else:
            batches = []
            for batch in is_open:
                if (batch.pk, release.pk) not in answered:
                    batches.append(_batch_tokens(len(batch.block), rules))
        if batches:
            batches_by_release.append((release, len(batches)))
        for tokens in batches:
            cost += _answer_cost(release, tokens, answers, methodology)
    if expected is not None:
        return ForecastEstimate(tuple(batches_by_release), cost, False, expected.questions, expected.basis)
    number = QuestionEntry.objects.filter(question_set__batches__in=todays).values("question").distinct().count()
    return ForecastEstimate(tuple(batches_by_release), cost, bool(is_open), number, FROZEN)


def _batches(methodology: Methodology) -> QuerySet[QuestionBatch]:
    return QuestionBatch.objects.filter(question_set__methodology=methodology.version).order_by("pk")


def _expected_day(
    methodology: Methodology, rules: ForecastRules, at: datetime, *, questions: int | None
) -> ExpectedDay:
    """A day whose questions are not frozen yet, at most so many of them: like the latest, else of the catalogue."""
    newest = _batches(methodology).order_by("-question_set__day").values_list("question_set__day", flat=True).first()
    if newest is not None and questions is None:
        sizes = _batches(methodology).filter(question_set__day=newest).values_list(Length("block"), flat=True)
        number = QuestionEntry.objects.filter(
            question_set__day=newest, question_set__methodology=methodology.version
        ).count()
        return ExpectedDay(number, tuple(_batch_tokens(size, rules) for size in sizes), LATEST)
    if questions is not None:
        rules = rules.with_at_most(questions)
    return _drafted_day(methodology, rules, at) or _assumed_day(rules)


def _week_of_batches(methodology: Methodology, rules: ForecastRules, at: datetime) -> tuple[Sequence[int], int]:
    """The tokens of each batch in the last week with questions, and its number of days; else those of one day."""
    newest = _batches(methodology).order_by("-question_set__day").values_list("question_set__day", flat=True).first()
    if newest is None:
        drafted = _drafted_day(methodology, rules, at)
        return (drafted.batches if drafted else ()), 1
    week = _batches(methodology).filter(question_set__day__gt=newest - timedelta(days=DAYS_IN_WEEK))
    rows = list(week.values_list("question_set__day", Length("block")))
    return [_batch_tokens(size, rules) for _, size in rows], len({day for day, _ in rows})


def _drafted_day(methodology: Methodology, rules: ForecastRules, at: datetime) -> ExpectedDay | None:
    """The day that the stored markets would make; None without a market that qualifies."""
    freeze = FreezeParameters(
        day=day_of(at), methodology=methodology.version, rule=rules, conditions=conditions_to_ask(rules),
        price_rule=methodology.price_rule,
        universe=None, at=at, clob=None, on_priced=lambda pricing: None,
    )  # fmt: skip
    blocks = draft_question_blocks(freeze)
    questions = sum(block.count("\n") for block in blocks) // len(freeze.conditions)
    batches = tuple(_batch_tokens(len(block), rules) for block in blocks)
    return ExpectedDay(questions, batches, CATALOGUE) if blocks else None


def _assumed_day(rules: ForecastRules) -> ExpectedDay:
    """A day of questions of the assumed length."""
    tokens: list[int] = []
    conditions = conditions_to_ask(rules)
    for start in range(0, rules.questions_per_day, rules.questions_per_call):
        questions = min(rules.questions_per_call, rules.questions_per_day - start)
        tokens += [_batch_tokens(questions * QUESTION_CHARACTERS, rules)] * len(conditions)
    return ExpectedDay(rules.questions_per_day, tuple(tokens), ASSUMED)


def _batch_tokens(characters: int, rules: ForecastRules) -> int:
    return _tokens(characters, rules.system_prompt, rules.user_prompt)
