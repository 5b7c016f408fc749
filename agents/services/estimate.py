"""Pricing a run before it is made: who would be asked, and what that is expected to cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Avg

from agents.models import Agent, Decision, Elicitation, ModelCall, Release
from agents.services.asking import spent_in_week
from agents.services.forecasts import releases_asked
from cohorts.forecasting import ForecastRules
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.models import QuestionSheet, Universe
from markets.models.question import day_of
from markets.services.marks import stored_marks
from markets.services.universes import universe_draft

CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb for English and JSON."""
EXPECTED_COMPLETION_TOKENS = 2000
"""Assumed of a model that has never answered here."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Who would be asked, at what expected cost, after what was already spent in the week."""

    agents: tuple[Agent, ...]
    skipped: int
    cost_usd: Decimal
    spent_usd: Decimal


def estimate_run(*, at: datetime, cohort: Cohort | None = None, family: str | None = None) -> Estimate:
    """The run that `run_decisions` would make at `at`, priced. Reads only; raises NoMarkets as a freeze would."""
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology")
    due = [c for c in (cohorts.filter(pk=cohort.pk) if cohort else cohorts) if c.is_deciding(at)]
    agents = Agent.objects.playing().filter(cohort__in=due, family__external=False)
    agents = agents.select_related("cohort__methodology", "family", "release")
    if family:
        agents = agents.filter(family__slug=family)
    final = set(Decision.objects.final().filter(agent__in=agents).values_list("agent_id", "week"))
    asked = tuple(agent for agent in agents if (agent.pk, agent.cohort.decision_week(at)) not in final)
    sizes = {
        m.pk: _prompt_tokens(m, at) for m in {a.cohort.methodology_id: a.cohort.methodology for a in asked}.values()
    }
    completions = _completion_tokens(agent.model_id for agent in asked)
    cost = sum(
        (
            sizes[agent.cohort.methodology_id] * agent.price_prompt
            + completions[agent.model_id] * agent.price_completion
            for agent in asked
        ),
        Decimal(0),
    )
    return Estimate(asked, len(agents) - len(asked), cost, spent_in_week(Decision.PROTOCOL, week_start(at)))


def _prompt_tokens(methodology: Methodology, at: datetime) -> int:
    universe = Universe.objects.filter(week_start=week_start(at), methodology=methodology.version).first()
    if universe is not None:
        block = universe.market_block
    else:
        block = universe_draft(
            size=methodology.universe_size,
            held=(),
            at=at,
            replay=False,
            priced=lambda markets: stored_marks(markets, at),
        ).market_block
    characters = len(methodology.system_prompt) + len(methodology.user_prompt) + len(block)
    return characters // CHARACTERS_PER_TOKEN


def _completion_tokens(models: Iterable[str]) -> dict[str, int]:
    """How many tokens an answer of each model is expected to take: the mean of those it gave."""
    asked = set(models)
    seen = ModelCall.objects.filter(model__in=asked, tokens_output__isnull=False).order_by()
    means = dict(seen.values_list("model").annotate(Avg("tokens_output")))
    return {model: int(means.get(model, EXPECTED_COMPLETION_TOKENS)) for model in asked}


@dataclass(frozen=True, slots=True)
class ForecastEstimate:
    """Which releases would be asked how many sheets, at what expected cost."""

    asked: tuple[tuple[Release, int], ...]
    cost_usd: Decimal
    frozen: bool
    """The day's questions are there; else the cost is that of the newest day's."""


def estimate_forecasts(*, at: datetime) -> ForecastEstimate:
    """The run that `run_forecasts` would make at `at`, priced. Reads only."""
    methodology = Methodology.objects.forecasting()
    if methodology is None or methodology.forecast_rules is None:
        return ForecastEstimate((), Decimal(0), frozen=False)
    rules = methodology.forecast_rules
    sheets = QuestionSheet.objects.filter(question_set__methodology=methodology.version).order_by("pk")
    todays = list(sheets.filter(question_set__day=day_of(at)).select_related("question_set"))
    if todays:
        window = rules.retry_window
        todays = [s for s in todays if s.question_set.frozen_at <= at < s.question_set.frozen_at + window]
        priced = todays
    else:
        newest = sheets.order_by("-question_set__day").values("question_set__day")[:1]
        priced = list(sheets.filter(question_set__day=newest))
    answered = set(Elicitation.objects.final().filter(sheet__in=todays).values_list("sheet", "release"))
    asked: list[tuple[Release, int]] = []
    cost = Decimal(0)
    releases = releases_asked(methodology, at)
    completions = _completion_tokens(release.model_id for release in releases)
    for release in releases:
        due = [sheet for sheet in priced if (sheet.pk, release.pk) not in answered]
        if not due and todays:
            continue
        asked.append((release, len(due)))
        completion = completions[release.model_id] * release.price_completion
        cost += sum((_sheet_tokens(rules, sheet) * release.price_prompt + completion for sheet in due), Decimal(0))
    over = not todays and sheets.filter(question_set__day=day_of(at)).exists()
    return ForecastEstimate(() if over else tuple(asked), cost, frozen=bool(todays))


def _sheet_tokens(rules: ForecastRules, sheet: QuestionSheet) -> int:
    return (len(rules.system_prompt) + len(rules.user_prompt) + len(sheet.block)) // CHARACTERS_PER_TOKEN
