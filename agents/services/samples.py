"""Recording the forecast of several samples, once each of them has ended."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef

from agents.models import Elicitation, Forecast, ModelCall
from agents.models.forecast import ReadForecast, read_forecasts
from arena_verifier.answers import forecast_of_samples
from foundation.locks import lock_name
from markets.models import QuestionEntry


def record_sampled_forecasts(*, at: datetime) -> int:
    """Records the forecasts of all batches whose samples have ended by `at`; returns how many forecasts were new.

    Samples end by their completion, or with the window in which they could be asked.
    """
    sampled = Elicitation.objects.filter(samples__gt=1, status=Elicitation.Status.COMPLETED, declined=False)
    recorded = Forecast.objects.filter(elicitation__batch=OuterRef("batch"), release=OuterRef("release"))
    groups = sampled.exclude(Exists(recorded)).order_by().values("batch", "release", "samples")
    # With fewer answers than half there is nothing to record, now or later.
    enough = groups.annotate(number=Count("pk") * 2).filter(number__gte=F("samples"))
    pairs = enough.values_list("batch", "release")
    count = 0
    for batch, release in sorted(pairs):
        tasks = Elicitation.objects.filter(batch=batch, release=release).order_by("sample")
        with transaction.atomic():
            lock_name(f"samples of batch {batch}, release {release}")
            if Forecast.objects.filter(elicitation__batch=batch, release=release).exists():
                continue  # another worker recorded them
            count += _record(list(tasks.select_related("batch__question_set", "methodology", "family")), at)
    return count


def _record(tasks: list[Elicitation], at: datetime) -> int:
    """The number of forecasts recorded of one release's samples of a batch; 0 while one of them may still be asked."""
    first = tasks[0]
    final = [task for task in tasks if task.status in (Elicitation.Status.COMPLETED, Elicitation.Status.MISSED)]
    if len(final) < first.samples and at < first.window_ends_at:
        return 0
    entries = list(first.batch.entries.prefetch_related("question__options"))
    read_by_entry: dict[int, list[tuple[Elicitation, ReadForecast]]] = {entry.pk: [] for entry in entries}
    for task in final:
        for row in read_sample(task, entries):
            if row.forecast.probabilities is not None:
                read_by_entry[row.entry.pk].append((task, row))
    forecasts = []
    for entry in entries:
        rows = read_by_entry[entry.pk]
        if len(rows) >= first.condition.samples_needed:
            forecasts.append(_forecast(entry, rows))
    return len(Forecast.objects.bulk_create(forecasts))


def read_sample(task: Elicitation, entries: list[QuestionEntry]) -> list[ReadForecast]:
    """The forecast for each entry from the answers of one task; empty if none was read."""
    calls = task.calls.filter(late=False, result__in=ModelCall.READ, parsed__isnull=False).order_by("sequence")
    return read_forecasts(calls, entries)


def new_forecast(task: Elicitation, row: ReadForecast, **fields: Any) -> Forecast:
    """The forecast that an answer states, unsaved; `fields` come before what the answer says."""
    values: dict[str, Any] = {
        "probabilities": row.forecast.probabilities,
        "stated": row.forecast.stated,
        "normalised": row.forecast.normalised,
        "rationale": row.forecast.rationale,
        "searches": row.call.searches,
        "excluded": row.call.excluded,
    }
    return Forecast(
        elicitation=task,
        call=row.call,
        entry=row.entry,
        question=row.entry.question,
        family_id=task.family_id,
        release_id=task.release_id,
        methodology=task.methodology.version,
        arm=task.batch.arm,
        **values | fields,
    )


def _forecast(entry: QuestionEntry, rows: list[tuple[Elicitation, ReadForecast]]) -> Forecast:
    """The forecast of record: it names the sample that ended last, and holds all that were read."""
    last, last_row = max(rows, key=lambda row: (row[0].made_at, row[0].sample))
    samples = {str(task.sample): row.forecast.probabilities or {} for task, row in rows}
    rationales = []
    for task, row in rows:
        rationales.append(f"Sample {task.sample}: {row.forecast.rationale}")
    made_at, searches = last.made_at, None
    assert made_at is not None, "a completed elicitation has a time"
    if last.condition.tools is not None:
        searches = sum(row.call.searches or 0 for _, row in rows)
    return new_forecast(
        last,
        last_row,
        **forecast_of_samples(list(samples.values()), exclusive=entry.question.exclusive),
        rationale="\n\n".join(rationales),
        made_at=made_at,
        samples=samples,
        samples_asked=last.samples,
        samples_read=len(rows),
        searches=searches,
        excluded=next(filter(None, (row.call.excluded for _, row in rows)), ""),
    )
