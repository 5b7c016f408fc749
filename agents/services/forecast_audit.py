"""Verification of forecasts: each follows from the frozen questions and the stored answers."""

from collections import defaultdict
from collections.abc import Iterator

from agents.forecast_answers import CheckedForecast
from agents.models import Elicitation, Forecast, ModelCall
from agents.models.forecast import read_forecasts
from markets.models import Question, QuestionEntry, QuestionSet
from markets.prompt_conditions import BLIND
from markets.services.question_resolution import happened_options
from markets.services.questions import fingerprint, question_block


def verify_forecasts() -> tuple[int, list[str]]:
    """How many forecasts were checked, and a line for each violation that names its row."""
    violations = [*_sets(), *_outcomes()]
    checked = 0
    for task in Elicitation.objects.select_related("batch__question_set", "family", "methodology").order_by("pk"):
        made = {forecast.entry_id: forecast for forecast in task.forecasts.all()}
        checked += len(made)
        name = f"{task.family.slug}, {task.batch} (elicitation {task.pk})"
        violations += [f"{name}: {violation}" for violation in _elicitation(task, made)]
    return checked, violations


def _sets() -> Iterator[str]:
    """Violations of question sets: each set and its batches follow from its entries."""
    for questions in QuestionSet.objects.prefetch_related("batches").order_by("pk"):
        entries = list(questions.entries.prefetch_related("question__options").order_by("position"))
        if questions.sha256 != fingerprint(entries):
            yield f"questions of {questions} (set {questions.pk}): the fingerprint is not that of its entries"
        of_batch: dict[int, list[QuestionEntry]] = defaultdict(list)
        for entry in entries:
            of_batch[entry.batch].append(entry)
        for batch in questions.batches.all():
            if batch.block != question_block(of_batch[batch.number], priced=batch.arm != BLIND):
                yield f"{batch} (batch {batch.pk}): its block is not what its entries make"


def _outcomes() -> Iterator[str]:
    """Violations of outcomes: each resolved question has that of its markets."""
    resolved = Question.objects.filter(status=Question.Status.RESOLVED).prefetch_related("options__outcome__market")
    for question in resolved.order_by("pk"):
        options = list(question.options.all())
        happened = happened_options(question, options)
        if happened != {option.pk: option.happened for option in options}:
            yield f"question {question.pk}: its options' ends are not those of its markets"


def _elicitation(task: Elicitation, made: dict[int, Forecast]) -> Iterator[str]:
    if task.status != Elicitation.Status.COMPLETED or task.declined:
        if made:
            yield f"is {'declined' if task.declined else task.status} but has {len(made)} forecasts"
        return
    read = [c for c in task.calls.all() if c.result in ModelCall.READ and not c.late and c.parsed is not None]
    answered = [c for c in read if c.result == ModelCall.Result.ANSWERED]
    if not read or len(answered) > 1:
        yield f"rests on {len(answered)} answers that were read, not one"
        return
    entries = list(task.batch.entries.prefetch_related("question__options"))
    for entry, _, checked in read_forecasts(read, entries):
        forecast = made.pop(entry.pk, None)
        if (forecast is None) != (checked.probabilities is None):
            yield f"question {entry.question_id} has {'no' if forecast is None else 'a'} forecast, its answer otherwise"
        elif forecast is not None:
            yield from _forecast(task, forecast, checked)
    if made:
        yield f"has forecasts of questions that it was not asked: {sorted(made)}"


def _forecast(task: Elicitation, forecast: Forecast, checked: CheckedForecast) -> Iterator[str]:
    row = f"forecast {forecast.pk} on question {forecast.question_id}"
    if forecast.probabilities != checked.probabilities or forecast.stated != checked.stated:
        vectors = (forecast.probabilities, checked.probabilities or {})
        stored, expected = (dict(sorted(vector.items())) for vector in vectors)
        yield f"{row} says {stored}, its answer {expected}"
    frozen = (task.family_id, task.release_id, task.batch.arm, task.methodology.version, task.made_at)
    if (forecast.family_id, forecast.release_id, forecast.arm, forecast.methodology, forecast.made_at) != frozen:
        yield f"{row} names another family, release, arm, methodology or time than what it belongs to"
