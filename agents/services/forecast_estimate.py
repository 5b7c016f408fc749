"""The estimate of a forecast run: what it would ask under each condition, and what that costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import cycle
from typing import TYPE_CHECKING

from django.db.models import Count, QuerySet
from django.db.models.functions import Length

from agents.conditions import conditions_to_ask, evidence_cost
from agents.models import Elicitation, Release
from agents.services.costs import RESULT_CHARACTERS, search_price, searched_tokens
from agents.services.expected_answers import (
    PROSE_CHARACTERS_PER_TOKEN,
    Answers,
    answer_cost,
    answers_on_record,
    text_tokens,
)
from agents.services.forecasts import releases_to_ask
from agents.services.release_check import set_catalogue_terms
from agents.services.run_settings import paused_families
from cohorts.models import Methodology
from foundation.bulk import rows_by
from markets.models import QuestionBatch, QuestionEntry
from markets.models.question import day_of
from markets.services.questions import FreezeParameters, draft_question_blocks

if TYPE_CHECKING:
    from agents.gateway.catalogue import ModelCatalogue
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import Condition

QUESTION_CHARACTERS = 1_000
"""Characters of a question with its rules where no market is stored yet: 753 on average in 527 captured markets."""
SNIPPET_CHARACTERS = 250
"""Characters of a snippet's line in EVIDENCE besides its text: title, source, address and day."""
DAYS_IN_WEEK = 7


@dataclass(frozen=True, slots=True)
class ExpectedBatch:
    """A batch to put to a release: the tokens of its prompt, its condition, and how many samples are not final yet."""

    tokens: int
    condition: Condition
    samples: int


@dataclass(frozen=True, slots=True)
class ExpectedDay:
    """A day's questions: their number, the batches, and what tells them."""

    questions: int
    batches: tuple[ExpectedBatch, ...]
    basis: str


@dataclass(frozen=True, slots=True)
class ExpectedRequests:
    """The requests to a release: batches, requests (one for each sample), and the most searches that they may make."""

    release: Release
    batches: int
    requests: int
    searches: int

    def __str__(self) -> str:
        batches = f"{self.release}: {self.batches} batch{'es' if self.batches != 1 else ''}"
        samples = f" in {self.requests} samples" if self.requests != self.batches else ""
        return batches + samples + (f", at most {self.searches} searches" if self.searches else "")


@dataclass(frozen=True, slots=True)
class ForecastEstimate:
    """The requests to each release, and the expected cost, of which `evidence_usd` is for the queries of evidence."""

    releases: tuple[ExpectedRequests, ...]
    cost_usd: Decimal
    frozen: bool
    """True if the day's questions are frozen and can be answered."""
    questions: int = 0
    basis: str = ""
    """The days or markets from which the size of the batches is estimated."""
    evidence_usd: Decimal = Decimal(0)


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
    answers = answers_on_record(Elicitation, releases)
    todays = list(_batches(methodology).filter(question_set__day=day_of(at)).select_related("question_set"))
    is_open = [b for b in todays if b.question_set.frozen_at <= at < b.question_set.frozen_at + rules.retry_window]
    expected = None if todays else _expected_day(methodology, rules, at, questions=questions)
    final_samples = _final_samples(is_open)
    conditions = rows_by("name", conditions_to_ask(rules))
    requests: list[ExpectedRequests] = []
    cost = Decimal(0)
    for release in releases:
        set_catalogue_terms(release, catalogue)
        batches = (
            _open_batches(is_open, release, final_samples, conditions, rules) if expected is None else expected.batches
        )
        if batches:
            requests.append(_requests(release, batches))
        for batch in batches:
            cost += batch.samples * sample_cost(batch, release, answers, methodology)
    if expected is not None:
        evidence = evidence_cost(expected.questions, conditions.values())
        return ForecastEstimate(
            tuple(requests), cost + evidence, False, expected.questions, expected.basis, evidence_usd=evidence
        )
    number = QuestionEntry.objects.filter(question_set__batches__in=todays).values("question").distinct().count()
    return ForecastEstimate(tuple(requests), cost, bool(is_open), number, FROZEN)


def _final_samples(batches: Iterable[QuestionBatch]) -> dict[tuple[int, int], int]:
    """The number of final samples of these batches, by batch and release."""
    final = Elicitation.objects.final().filter(batch__in=[batch.pk for batch in batches]).order_by()
    rows = final.values_list("batch", "release").annotate(number=Count("pk"))
    return {(batch, release): number for batch, release, number in rows}


def _open_batches(
    batches: Iterable[QuestionBatch],
    release: Release,
    final_samples: Mapping[tuple[int, int], int],
    conditions: Mapping[str, Condition],
    rules: ForecastRules,
) -> tuple[ExpectedBatch, ...]:
    """The frozen batches that a release has not answered, under the conditions that are asked now."""
    expected = []
    for batch in batches:
        condition = conditions.get(batch.arm)
        samples = condition.samples - final_samples.get((batch.pk, release.pk), 0) if condition else 0
        if condition and samples > 0:
            tokens = _batch_tokens(len(batch.block) + len(batch.evidence_block), condition, rules)
            expected.append(ExpectedBatch(tokens, condition, samples))
    return tuple(expected)


def _requests(release: Release, batches: Sequence[ExpectedBatch]) -> ExpectedRequests:
    searches = 0
    for batch in batches:
        searches += batch.samples * batch.condition.tools.max_uses if batch.condition.tools else 0
    return ExpectedRequests(release, len(batches), sum(batch.samples for batch in batches), searches)


def sample_cost(batch: ExpectedBatch, release: Release, answers: Answers, methodology: Methodology) -> Decimal:
    """The expected cost of one sample; a release that searches is expected to search as often as it may."""
    tool = batch.condition.tools
    if tool is None:
        return answer_cost(release, batch.tokens, answers, methodology)
    tokens_of_results = tool.max_results * RESULT_CHARACTERS // PROSE_CHARACTERS_PER_TOKEN
    tokens = searched_tokens(batch.tokens, tool.max_uses, tokens_of_results)
    return answer_cost(release, tokens, answers, methodology) + tool.max_uses * search_price(tool, dearest=False)


def _batches(methodology: Methodology) -> QuerySet[QuestionBatch]:
    return QuestionBatch.objects.filter(question_set__methodology=methodology.version).order_by("pk")


def _expected_day(
    methodology: Methodology, rules: ForecastRules, at: datetime, *, questions: int | None
) -> ExpectedDay:
    """A day whose questions are not frozen yet, at most so many of them: like the latest, else of the catalogue."""
    newest = _batches(methodology).order_by("-question_set__day").values_list("question_set__day", flat=True).first()
    if newest is not None and questions is None:
        batches = _like_batches(_batches(methodology).filter(question_set__day=newest), rules)
        number = QuestionEntry.objects.filter(
            question_set__day=newest, question_set__methodology=methodology.version
        ).count()
        return ExpectedDay(number, batches, LATEST)
    if questions is not None:
        rules = rules.with_at_most(questions)
    return _drafted_day(methodology, rules, at) or assumed_day(rules, conditions_to_ask(rules))


def _like_batches(batches: QuerySet[QuestionBatch], rules: ForecastRules) -> tuple[ExpectedBatch, ...]:
    """Batches as large as these, under each condition that is asked now.

    A condition that was not asked then has batches of the length of another's, with the most evidence.
    """
    lengths = {"characters": Length("block"), "of_evidence": Length("evidence_block")}
    rows = batches.annotate(**lengths).values_list("question_set", "number", "arm", *lengths, named=True)
    sizes: dict[tuple[int, int], dict[str, tuple[int, int]]] = defaultdict(dict)
    for row in rows:
        sizes[row.question_set, row.number][row.arm] = row.characters, row.of_evidence
    expected = []
    for by_arm in sizes.values():
        longest = max(characters for characters, _ in by_arm.values())
        for condition in conditions_to_ask(rules):
            unasked = longest, _evidence_characters(rules.questions_per_call, condition, rules)
            expected.append(_expected_batch(sum(by_arm.get(condition.name, unasked)), condition, rules))
    return tuple(expected)


def week_of_batches(
    methodology: Methodology, rules: ForecastRules, at: datetime
) -> tuple[Sequence[ExpectedBatch], int, int]:
    """The batches of the last week with questions, its number of days and of questions; else those of one day."""
    newest = _batches(methodology).order_by("-question_set__day").values_list("question_set__day", flat=True).first()
    if newest is None:
        drafted = _drafted_day(methodology, rules, at)
        return (drafted.batches, 1, drafted.questions) if drafted else ((), 1, 0)
    week = _batches(methodology).filter(question_set__day__gt=newest - timedelta(days=DAYS_IN_WEEK))
    days = week.order_by().values("question_set__day").distinct().count()
    questions = QuestionEntry.objects.filter(question_set__in=week.order_by().values("question_set")).count()
    return _like_batches(week, rules), days, questions


def _drafted_day(methodology: Methodology, rules: ForecastRules, at: datetime) -> ExpectedDay | None:
    """The day that the stored markets would make; None without a market that qualifies."""
    conditions = conditions_to_ask(rules)
    freeze = FreezeParameters(
        day=day_of(at), methodology=methodology.version, rule=rules, conditions=conditions,
        price_rule=methodology.price_rule,
        universe=None, at=at, clob=None, on_priced=lambda pricing: None,
    )  # fmt: skip
    blocks = draft_question_blocks(freeze)
    questions, batches = 0, []
    for condition, block in zip(cycle(conditions), blocks, strict=False):
        number = block.count("\n")
        questions += number if condition is conditions[0] else 0
        characters = len(block) + _evidence_characters(number, condition, rules)
        batches.append(_expected_batch(characters, condition, rules))
    return ExpectedDay(questions, tuple(batches), CATALOGUE) if blocks else None


def assumed_day(rules: ForecastRules, conditions: Sequence[Condition]) -> ExpectedDay:
    """A day of questions of the assumed length, under these conditions."""
    batches = []
    for start in range(0, rules.questions_per_day, rules.questions_per_call):
        number = min(rules.questions_per_call, rules.questions_per_day - start)
        for condition in conditions:
            characters = number * QUESTION_CHARACTERS + _evidence_characters(number, condition, rules)
            batches.append(_expected_batch(characters, condition, rules))
    return ExpectedDay(rules.questions_per_day, tuple(batches), ASSUMED)


def _evidence_characters(questions: int, condition: Condition, rules: ForecastRules) -> int:
    """The most characters of evidence that a condition shows with so many questions."""
    if not condition.has_evidence:
        return 0
    return questions * rules.evidence.most * (rules.evidence.characters + SNIPPET_CHARACTERS)


def _expected_batch(characters: int, condition: Condition, rules: ForecastRules) -> ExpectedBatch:
    return ExpectedBatch(_batch_tokens(characters, condition, rules), condition, condition.samples)


def _batch_tokens(characters: int, condition: Condition, rules: ForecastRules) -> int:
    prose = [rules.system_prompt, rules.user_prompt]
    prose += [rules.evidence_prompt] if condition.has_evidence else []
    prose += [rules.search_prompt] if condition.tools else []
    return text_tokens(characters, *prose)
