"""Verification of forecasts: each follows from the frozen questions and the stored answers."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from agents.answers.forecasts import CheckedForecast, PromptQuestion
from agents.gateway.searches import read_searches
from agents.models import Elicitation, Forecast, ModelCall
from agents.models.forecast import first_valid
from markets.models import QuestionEntry, QuestionOption

StoredForecasts = dict[int, Any]
"""The row of a forecast by its entry."""
CHUNK = 500


def verify_answers() -> Iterator[str]:
    """A line for each violation that names its row."""
    forecasts: dict[int, StoredForecasts] = defaultdict(dict)
    sampled: dict[tuple[int, int], StoredForecasts] = defaultdict(dict)
    columns = ("elicitation", "entry", "pk", "probabilities", "stated", "samples", "elicitation__batch", "release")
    for row in Forecast._base_manager.values_list(*columns, named=True).iterator():
        if row.samples is None:
            forecasts[row.elicitation][row.entry] = row
        else:
            sampled[row.elicitation__batch, row.release][row.entry] = row
    samples: dict[tuple[int, int], dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    batches, answers = _batches(), _answers()
    tasks = Elicitation._base_manager.order_by("pk").select_related("batch__question_set", "family")
    answered = next(answers, None)
    for task in tasks.defer("batch__block", "batch__evidence_block").iterator(chunk_size=CHUNK):
        calls: Sequence[Any] = ()
        if answered is not None and answered[0] == task.pk:
            calls, answered = answered[1], next(answers, None)
        entries = batches.get((task.batch.question_set_id, task.batch.number), [])
        if task.samples > 1:
            of_release = samples[task.batch_id, task.release_id]
            for entry, probabilities in _sample(task, calls, entries):
                of_release[entry][str(task.sample)] = probabilities
            continue
        for violation in _elicitation(task, forecasts.pop(task.pk, {}), calls, entries):
            yield f"{task.family.slug}, {task.batch} (elicitation {task.pk}): {violation}"
    for pair, rows in sampled.items():
        for entry, row in rows.items():
            if row.samples != samples[pair].get(entry):
                yield f"forecast {row.pk}: its samples are not those of the answers"
    yield from _searches()


def _sample(
    task: Elicitation, calls: Sequence[Any], entries: list[tuple[int, PromptQuestion]]
) -> Iterator[tuple[int, dict[str, float]]]:
    """The valid forecasts of one sample's answers, by entry."""
    if task.status != Elicitation.Status.COMPLETED or not calls:
        return
    checked = first_valid([contents for _, contents in calls], [question for _, question in entries])
    for (entry, _), (_, forecast) in zip(entries, checked, strict=True):
        if forecast.probabilities is not None:
            yield entry, forecast.probabilities


def _searches() -> Iterator[str]:
    """Violations of calls with a search tool: what is stored of their searches follows from their answers."""
    calls = ModelCall._base_manager.filter(parameters__has_key="tools").order_by("pk")
    stored = ("searches", "results", "search_cost_usd", "excluded")
    read = calls.only("sequence", "elicitation", "decision", "parameters", "raw_response", *stored)
    for call in read.iterator(chunk_size=20):
        for name, expected in asdict(read_searches(call.parameters, call.raw_response)).items():
            if getattr(call, name) != expected:
                yield f"{call} has other {name} than its answer states"


def _batches() -> dict[tuple[int, int], list[tuple[int, PromptQuestion]]]:
    """The entries of each batch of questions, by set and number, with their questions as answers are checked."""
    names: dict[int, list[str]] = defaultdict(list)
    for question, name in QuestionOption.objects.order_by("question", "index").values_list("question", "name"):
        names[question].append(name)
    entries: dict[tuple[int, int], list[tuple[int, PromptQuestion]]] = defaultdict(list)
    columns = ("question_set", "batch", "pk", "question", "question__exclusive")
    rows = QuestionEntry.objects.order_by("question_set", "position").values_list(*columns, named=True)
    for row in rows.iterator():
        prompt_question = PromptQuestion(str(row.question), tuple(names[row.question]), row.question__exclusive)
        entries[row.question_set, row.batch].append((row.pk, prompt_question))
    return entries


def _answers() -> Iterator[tuple[int, list[Any]]]:
    """The result and the contents of the answers that were read, by elicitation."""
    calls = ModelCall._base_manager.filter(
        elicitation__isnull=False, result__in=ModelCall.READ, late=False, parsed__isnull=False
    )
    rows = calls.order_by("elicitation", "sequence").values_list("elicitation", "result", "parsed")
    for task, answers in groupby(rows.iterator(chunk_size=CHUNK), key=lambda row: row[0]):
        yield task, [answer[1:] for answer in answers]


def _elicitation(
    task: Elicitation, forecasts: StoredForecasts, calls: Sequence[Any], entries: list[tuple[int, PromptQuestion]]
) -> Iterator[str]:
    if task.status != Elicitation.Status.COMPLETED or task.declined:
        if forecasts:
            yield f"is {'declined' if task.declined else task.status} but has {len(forecasts)} forecasts"
        return
    answered = sum(result == ModelCall.Result.ANSWERED for result, _ in calls)
    if not calls or answered > 1:
        yield f"rests on {answered} answers that were read, not one"
        return
    checked = first_valid([contents for _, contents in calls], [question for _, question in entries])
    for (entry, question), (_, expected) in zip(entries, checked, strict=True):
        forecast = forecasts.pop(entry, None)
        if (forecast is None) != (expected.probabilities is None):
            has = "no" if forecast is None else "a"
            yield f"question {question.question_id} has {has} forecast, its answer otherwise"
        elif forecast is not None:
            yield from _forecast(question, forecast, expected)
    if forecasts:
        yield f"has forecasts of questions that it was not asked: {sorted(forecasts)}"


def _forecast(question: PromptQuestion, forecast: Any, expected: CheckedForecast) -> Iterator[str]:
    if forecast.probabilities != expected.probabilities or forecast.stated != expected.stated:
        stored = dict(sorted(forecast.probabilities.items()))
        computed = dict(sorted((expected.probabilities or {}).items()))
        yield f"forecast {forecast.pk} on question {question.question_id} says {stored}, its answer {computed}"
