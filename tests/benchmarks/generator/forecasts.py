"""Questions of many days and what every family said of them, in both arms."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from agents.models import Elicitation, Family, Forecast, ModelCall, Release
from agents.models.forecast import prompt_question
from agents.models.task import PromptParts
from arena_verifier.forecasts import check_forecasts, parse_forecasts
from cohorts.models import Methodology
from foundation.json_lines import json_number
from markets.models import Market, Question, QuestionBatch, QuestionEntry, QuestionOption, QuestionSet
from markets.models.question import day_of
from markets.services.questions import fingerprint, question_block
from tests.benchmarks.generator.listings import BATCH, Listing
from tests.benchmarks.generator.plan import DAY, Plan

DAYS = 30
ASKED_AT = timedelta(hours=6)
RATIONALE = "The base rate for such a thing within the time that is left, and little that speaks against it."
TICK = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class _Day:
    """One day's questions: where they stand and when they were asked."""

    number: int
    at: datetime
    listings: Sequence[Listing]


def forecasts_store(plan: Plan, methodology: Methodology, listings: Sequence[Listing]) -> Iterator[int]:
    """Stores the questions and forecasts of the plan day by day; yields how many forecasts each day added."""
    families = list(Family.objects.active())
    releases = [release for family in families if (release := family.releases.first()) is not None]
    rules = methodology.forecast_rules
    if not (plan.size.forecasts and releases and rules):
        return
    days = _days(plan, listings, -(-plan.size.forecasts // (len(releases) * len(rules.conditions))))
    questions = _questions(days)
    for day in days:
        entries, batches = _batches(plan, methodology, day, questions)
        yield sum(_answered(plan, methodology, day, release, batches, entries) for release in releases)


def _days(plan: Plan, listings: Sequence[Listing], entries: int) -> list[_Day]:
    """Which listings are asked about on which day: as many of those that end as there are, then others."""
    last = day_of(plan.end) - DAY
    days = []
    for number in range(DAYS):
        at = last - (DAYS - 1 - number) * DAY + ASKED_AT
        count = entries // DAYS + (number < entries % DAYS)
        dice = plan.dice("day", number)
        open_listings = [one for one in listings if one.is_open(at + DAY)]
        ending = [one for one in open_listings if one.ends_at is not None]
        later_listings = [one for one in open_listings if one.ends_at is None]
        selection = dice.sample(ending, min(len(ending), (count + 1) // 2))
        selection += dice.sample(later_listings, min(len(later_listings), count - len(selection)))
        days.append(_Day(number, at, selection))
    return [day for day in days if day.listings]


def _questions(days: Sequence[_Day]) -> dict[int, Question]:
    """The question of each listing that is asked about, stored with its options, by market id."""
    first_asked: dict[int, tuple[Listing, datetime]] = {}
    for day in days:
        for one in day.listings:
            first_asked.setdefault(one.market.pk, (one, day.at))
    questions = Question.objects.bulk_create([_question(one, at) for one, at in first_asked.values()], batch_size=BATCH)
    options = []
    for question, (one, _) in zip(questions, first_asked.values(), strict=True):
        for index, outcome in enumerate(one.outcomes):
            happened = index == one.winner if one.winner is not None else None
            options.append(
                QuestionOption(question=question, index=index, name=outcome.side, outcome=outcome, happened=happened)
            )
    QuestionOption.objects.bulk_create(options, batch_size=BATCH)
    Market.objects.filter(pk__in=first_asked).update(has_questions=True)
    stored = Question.objects.filter(pk__in=[question.pk for question in questions]).prefetch_related("options")
    return {question.market_id or 0: question for question in stored}


def _question(one: Listing, at: datetime) -> Question:
    market = one.market
    key = f"{market.source}:market:{market.external_id}"
    sides = [[outcome.side, outcome.side] for outcome in one.outcomes]
    identity = [str(market.source), key, True, sides, [market.external_id for _ in sides]]
    status = {
        Market.Status.ACTIVE: Question.Status.OPEN,
        Market.Status.CLOSED: Question.Status.CLOSED,
        Market.Status.RESOLVED: Question.Status.RESOLVED,
        Market.Status.CANCELLED: Question.Status.CANCELLED,
    }[Market.Status(market.status)]
    return Question(
        source=market.source,
        event_key=market.event_key,
        market=market,
        options_sha256=hashlib.sha256(json.dumps(identity).encode()).hexdigest(),
        text=market.question,
        rules=market.description,
        category=market.category,
        exclusive=True,
        status=status,
        closes_at=market.closes_at,
        first_asked_at=at,
        closed_at=market.closed_at,
        resolved_at=market.resolved_at,
    )


def _batches(
    plan: Plan, methodology: Methodology, day: _Day, questions: dict[int, Question]
) -> tuple[list[QuestionEntry], list[QuestionBatch]]:
    """The day's set with its entries and its batches in every arm, stored."""
    rules = methodology.forecast_rules
    assert rules is not None
    entries = [
        QuestionEntry(
            question=questions[one.market.pk],
            position=position + 1,
            batch=position // rules.questions_per_call + 1,
            reason=QuestionEntry.Reason.SELECTED,
            prices=_quotes(one, plan.week(day.at)),
            closes_on=one.market.closes_at.date() if one.market.closes_at else None,
        )
        for position, one in enumerate(day.listings)
    ]
    question_set = QuestionSet.objects.create(
        day=day_of(day.at), methodology=methodology.version, frozen_at=day.at, sha256=fingerprint(entries)
    )
    for entry in entries:
        entry.question_set = question_set
    QuestionEntry.objects.bulk_create(entries, batch_size=BATCH)
    batches = [
        QuestionBatch(
            question_set=question_set,
            arm=condition.name,
            number=number,
            block=question_block([e for e in entries if e.batch == number], condition, rules),
        )
        for number in sorted({entry.batch for entry in entries})
        for condition in rules.conditions
    ]
    return entries, QuestionBatch.objects.bulk_create(batches, batch_size=BATCH)


def _quotes(one: Listing, week: int) -> dict[str, Any]:
    return {
        outcome.side: {
            "price": json_number(price),
            "ask": json_number(min(price + TICK, Decimal("0.99"))),
            "no_ask": json_number(min(1 - price + TICK, Decimal("0.99"))) if len(one.outcomes) == 2 else None,
            "stale": False,
        }
        for outcome, price in zip(one.outcomes, one.prices[week], strict=True)
    }


def _answered(
    plan: Plan,
    methodology: Methodology,
    day: _Day,
    release: Release,
    batches: Sequence[QuestionBatch],
    entries: Sequence[QuestionEntry],
) -> int:
    """A release's answers to the batches of a day, stored; how many forecasts they hold."""
    tasks = Elicitation.objects.bulk_create(
        [
            Elicitation(
                batch=batch, methodology=methodology, release=release, family_id=release.family_id,
                status=Elicitation.Status.COMPLETED, made_at=day.at,
            )
            for batch in batches
        ],
        batch_size=BATCH,
    )  # fmt: skip
    of_batch = {number: [e for e in entries if e.batch == number] for number in {e.batch for e in entries}}
    calls = [_call(plan, day, task, of_batch[task.batch.number]) for task in tasks]
    ModelCall.objects.bulk_create(calls, batch_size=BATCH)
    forecasts = [
        forecast
        for task, call in zip(tasks, calls, strict=True)
        for forecast in _forecasts(task, call, of_batch[task.batch.number])
    ]
    Forecast.objects.bulk_create(forecasts, batch_size=BATCH)
    return len(forecasts)


def _call(plan: Plan, day: _Day, task: Elicitation, entries: Sequence[QuestionEntry]) -> ModelCall:
    dice = plan.dice("forecast", day.number, task.family_id, task.batch.arm, task.batch.number)
    rows = [
        {
            "question_id": str(entry.question_id),
            "probabilities": _stated(
                [entry.price(option.name) or 0.0 for option in entry.question.options.all()], entry, dice
            ),
            "rationale": RATIONALE,
        }
        for entry in entries
    ]
    content = json.dumps({"forecasts": rows})
    user_prompt = task.user_prompt(PromptParts())
    sha256 = ModelCall.fingerprint(task.system_prompt, user_prompt)
    return ModelCall(
        elicitation=task, sequence=1, attempt=1, idempotency_key=ModelCall.fingerprint(task.stable_key, sha256),
        model=task.model_id, returned_model=task.model_id, provider="Made", prompt_sha256=sha256,
        result=ModelCall.Result.ANSWERED, content=content, finish_reason="stop", http_status=200,
        raw_response=json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}),
        parsed=[stated_forecast.as_json() for stated_forecast in parse_forecasts(content)],
        tokens_input=len(user_prompt) // 4, tokens_output=len(content) // 4, latency_ms=dice.randint(2_000, 60_000),
        cost_usd=(len(user_prompt) // 4) * task.release.price_prompt, sent_at=day.at,
    )  # fmt: skip


def _stated(prices: Sequence[float], entry: QuestionEntry, dice: Any) -> dict[str, float]:
    """Probabilities in whole per mille around the prices, summing to 1."""
    most = 1000 - len(prices)
    first = min(max(round(prices[0] * 1000) + dice.randint(-150, 150), 1), most)
    remainder = 1000 - first
    parts = [first, remainder] if len(prices) == 2 else [first, remainder // 2, remainder - remainder // 2]
    names = [option.name for option in entry.question.options.all()]
    return {name: part / 1000 for name, part in zip(names, parts, strict=True)}


def _forecasts(task: Elicitation, call: ModelCall, entries: Sequence[QuestionEntry]) -> Iterator[Forecast]:
    assert task.made_at is not None
    verdicts = check_forecasts(parse_forecasts(call.content), [prompt_question(entry) for entry in entries])
    for entry, verdict in zip(entries, verdicts, strict=True):
        yield Forecast(
            elicitation=task, call=call, entry=entry, question=entry.question, family_id=task.family_id,
            release_id=task.release_id, methodology=task.methodology.version, arm=task.batch.arm,
            probabilities=verdict.probabilities, stated=verdict.stated, normalised=verdict.normalised,
            rationale=verdict.rationale, made_at=task.made_at,
        )  # fmt: skip
