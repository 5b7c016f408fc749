"""Storing other people's forecasts: each file once, each row checked by the scoring suite, in short transactions."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.text import slugify

from scoring.imports.rows import Part, Reading
from scoring.metrics.panel import Codes
from scoring.models import (
    ForecastImport,
    ImportCollection,
    ImportedForecast,
    ImportedQuestion,
    RejectedRow,
)
from scoring.models.imports import FORECASTER_LENGTH, OPTION_LENGTH, QUESTION_LENGTH
from scoring.ranking.files import Table, UnreadableFile
from scoring.ranking.reading import usable

Progress = Callable[[int, int], None]

BATCH = 2_000
"""Rows written in one transaction: on SQLite nobody else writes meanwhile."""
_YEAR_1, _YEAR_9999 = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1, 9999))
_LENGTHS = {
    "forecaster": FORECASTER_LENGTH,
    "question": QUESTION_LENGTH,
    "option": OPTION_LENGTH,
    "event": QUESTION_LENGTH,
    "category": 200,
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to; `unchanged` if its contents were there before."""

    imported: ForecastImport
    unchanged: bool


def collection_of(*, name: str, at: datetime) -> ImportCollection:
    """The collection of this name, founded if there is none. Raises ValueError for a name without a letter or digit."""
    slug = slugify(name)[:100].strip("-")
    if not slug:
        raise ValueError(f"{name!r} holds no letter or digit that could stand in an address")
    values = {"name": name[:200], "created_at": at, "changed_at": at}
    return ImportCollection.objects.get_or_create(slug=slug, defaults=values)[0]


def collection_drop_empty(*, collection: ImportCollection) -> None:
    """Takes back a collection that nothing was ever imported into."""
    ImportCollection.objects.filter(pk=collection.pk, imports__isnull=True).delete()


def part_import(
    *,
    collection: ImportCollection,
    format: str,
    part: Part,
    at: datetime,
    fractional_outcomes: bool = False,
    progress: Progress = lambda done, of: None,
) -> Imported:
    """Stores what a part holds, unless the same contents are in the collection. One that broke off is completed.

    Raises UnreadableFile where a file as a whole can not be used.
    """
    files = [_described(file) for file in part.files]
    digests = [file["sha256"] for file in files]
    sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    contents = {"collection": collection, "format": format, "sha256": sha256}
    known = ForecastImport.objects.filter(**contents).first()
    if known is not None and known.completed:
        return Imported(known, unchanged=True)
    reading = part.read()
    _refuse_unstorable(reading.table)
    fractional = fractional_outcomes or part.fractional_outcomes
    good, rejected = usable(reading.table, fractional_outcomes=fractional)
    imported, _ = ForecastImport.objects.get_or_create(**contents, defaults={"files": files, "imported_at": at})
    _reject(imported, [(item.line, item.why) for item in reading.unread])
    _reject(imported, [(item.row, item.why) for item in rejected])
    _describe(collection, reading)
    _store(imported, reading.table, np.flatnonzero(good), at, progress)
    imported.rows = reading.records
    imported.rejected = imported.rejections.count()
    imported.forecasts = imported.probabilities.count()
    imported.completed = True
    imported.save(update_fields=["rows", "rejected", "forecasts", "completed"])
    return Imported(imported, unchanged=False)


def _described(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return {"name": file.name, "sha256": digest, "bytes": file.stat().st_size}
    except OSError as error:
        raise UnreadableFile(f"{file}: {error.strerror or error}") from error


def _refuse_unstorable(table: Table) -> None:
    """Finds fault with the rows whose names or times no column can keep."""
    for column, times in table.times.items():
        for place in np.flatnonzero((times < _YEAR_1) | (times > _YEAR_9999)).tolist():
            table.faults.setdefault(place, f"{column} lies outside the years 1 to 9999")
    for column, most in _LENGTHS.items():
        names = table.names[column]
        for name in names.unique().drop_nulls().to_list():
            if len(name) > most or "\0" in name:
                why = f"{column} is longer than {most} characters" if len(name) > most else f"{column} holds a NUL"
                for place in (names == name).arg_true().to_list():
                    table.faults.setdefault(place, why)


def _reject(imported: ForecastImport, reasons: Iterable[tuple[int, str]]) -> None:
    """Keeps the first reason of each row."""
    rows = (RejectedRow(imported=imported, row=row, why=why.replace("\0", "\ufffd")) for row, why in reasons)
    while chunk := list(islice(rows, BATCH)):
        RejectedRow.objects.bulk_create(chunk, ignore_conflicts=True)


def _describe(collection: ImportCollection, reading: Reading) -> None:
    """Keeps what is said of questions; what an earlier file left open a later one may answer."""
    said = iter(
        [
            ImportedQuestion(
                collection=collection,
                question=item.question,
                title=item.title.replace("\0", "\ufffd"),
                options=list(item.options),
                happened=None if item.happened is None else list(item.happened),
                category=item.category[:200],
                closed_at=_instant(item.closed_at),
            )
            for item in reading.questions
            if len(item.question) <= QUESTION_LENGTH and "\0" not in item.question
        ]
    )
    while chunk := list(islice(said, BATCH)):
        with transaction.atomic():
            ImportedQuestion.objects.bulk_create(chunk, ignore_conflicts=True)
            answered = {item.question: item.happened for item in chunk if item.happened is not None}
            still_open = collection.questions.filter(question__in=answered, happened__isnull=True)
            for question in still_open:
                question.happened = answered[question.question]
            ImportedQuestion.objects.bulk_update(still_open, ["happened"])


def _store(imported: ForecastImport, table: Table, places: Codes, at: datetime, progress: Progress) -> None:
    """Writes the rows, whole forecasts at a time: one that the collection has already is refused with its source."""
    lines = table.lines()
    done = 0
    progress(0, len(places))
    for batch in _batches(table, places):
        forecasts = _forecasts(imported, table, batch, lines)
        with transaction.atomic():
            # The write locks the collection on both databases, so that what is looked up stays true.
            ImportCollection.objects.filter(pk=imported.collection_id).update(changed_at=at)
            stored = _stored(imported, forecasts)
            new, refused = [], []
            for forecast in forecasts:
                source = stored.get((forecast.question, forecast.forecaster, forecast.made_at))
                if source is None:
                    new.append(forecast)
                elif source != imported.pk:
                    refused.append((forecast.row, source))
            ImportedForecast.objects.bulk_create(new)
            names = ForecastImport.objects.in_bulk({source for _, source in refused})
            _reject(imported, [(row, f"{names[source].name} has stated it") for row, source in refused])
        done += len(batch)
        progress(done, len(places))


def _stored(imported: ForecastImport, forecasts: list[ImportedForecast]) -> dict[tuple, int]:
    """Which of these forecasts the collection holds, and the import that brought each."""
    questions = {forecast.question for forecast in forecasts}
    held = ImportedForecast.objects.filter(collection_id=imported.collection_id, question__in=questions)
    keys = held.values_list("question", "forecaster", "made_at", "imported").distinct()
    return {(question, forecaster, made_at): source for question, forecaster, made_at, source in keys}


def _batches(table: Table, places: Codes) -> Iterator[Codes]:
    """The places in batches that part no forecast; the options of one keep the order of the file."""
    question, forecaster = (
        table.names[name].to_physical().fill_null(0).to_numpy()[places] for name in ("question", "forecaster")
    )
    made_at = np.nan_to_num(table.times["made_at"][places], nan=-np.inf)
    order = np.lexsort((made_at, forecaster, question))
    keys = [column[order] for column in (question, forecaster, made_at)]
    begins = np.flatnonzero(np.any([column[1:] != column[:-1] for column in keys], axis=0)) + 1
    start = 0
    while start < len(order):
        end = len(order)
        if end - start > BATCH:
            later = begins[begins > start]
            within = later[later <= start + BATCH]
            end = int(within[-1] if len(within) else later[0] if len(later) else end)
        yield places[order[start:end]]
        start = end


def _forecasts(imported: ForecastImport, table: Table, batch: Codes, lines: Codes) -> list[ImportedForecast]:
    names = {name: column.gather(batch).to_list() for name, column in table.names.items()}
    numbers = {name: column[batch].tolist() for name, column in table.numbers.items()}
    times = {name: column[batch].tolist() for name, column in table.times.items()}
    return [
        ImportedForecast(
            collection_id=imported.collection_id,
            imported=imported,
            row=int(lines[place]),
            forecaster=names["forecaster"][k],
            question=names["question"][k],
            option=names["option"][k],
            probability=numbers["probability"][k],
            outcome=_number(numbers["outcome"][k]),
            odds=_number(numbers["odds"][k]),
            no_odds=_number(numbers["no_odds"][k]),
            event=names["event"][k] or "",
            category=names["category"][k] or "",
            made_at=_instant(times["made_at"][k]),
            closed_at=_instant(times["closed_at"][k]),
            weight=1.0 if np.isnan(numbers["weight"][k]) else numbers["weight"][k],
            exclusive=numbers["exclusive"][k] != 0,
        )
        for k, place in enumerate(batch.tolist())
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None or np.isnan(seconds) else datetime.fromtimestamp(seconds, UTC)
