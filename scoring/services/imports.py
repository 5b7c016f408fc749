"""Imports of others' forecasts: each file once, each row checked by `forecast_rank`, in short transactions."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from django.db import transaction
from django.utils.text import slugify

from forecast_rank import usable_rows
from forecast_rank.files.checksums import file_sha256
from forecast_rank.files.faults import Fault, UnreadableFile
from forecast_rank.files.input_table import InputTable
from forecast_rank.metrics.flat_arrays import Codes
from forecast_rank.readers.formats import empty_column_warnings
from forecast_rank.readers.records import ImportSource, ParsedFile
from foundation.bulk import chunks
from scoring.models import ForecastImport, ImportCollection, ImportedForecast, ImportedQuestion, RejectedRow

Progress = Callable[[int, int], None]

BATCH = 2_000
"""About as many rows are written in one transaction, which on SQLite blocks all other writers."""
_YEAR_1, _YEAR_9999 = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1, 9999))
_LENGTHS: dict[str, int] = {}
for _name in ("forecaster", "question", "option", "event", "category"):
    _LENGTHS[_name] = ImportedForecast._meta.get_field(_name).max_length  # type: ignore[union-attr,assignment]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """An import, whether its contents were in the collection before, and warnings about its file."""

    forecast_import: ForecastImport
    unchanged: bool
    warnings: tuple[str, ...] = ()


def get_or_create_collection(*, name: str, at: datetime) -> ImportCollection:
    """The collection of this name. Raises ValueError for a name without a letter or digit."""
    slug = slugify(name)[:100].strip("-")
    if not slug:
        raise ValueError(f"{name!r} has no letter or digit that a URL could use")
    values = {"name": name[:200], "created_at": at, "changed_at": at}
    return ImportCollection.objects.get_or_create(slug=slug, defaults=values)[0]


def mark_people(
    *, collection: ImportCollection, imports: Iterable[ForecastImport], names: Collection[str] = ()
) -> bool:
    """Marks forecasters of a collection as people: those of these names, or all of the imports; True if any is new.

    Raises ValueError for a name that the collection has no forecast of.
    """
    forecasts = collection.forecasts.order_by()
    if names:
        marks = set(forecasts.filter(forecaster__in=names).values_list("forecaster", flat=True))
        if unknown := sorted(set(names) - marks):
            raise ValueError(f"{', '.join(unknown)}: no forecaster of {collection} has this name")
    else:
        marks = set(forecasts.filter(forecast_import__in=imports).values_list("forecaster", flat=True))
    names = sorted({*collection.people, *marks})
    is_new = names != collection.people
    collection.people = names
    collection.save(update_fields=["people"])
    return is_new


def delete_if_empty(*, collection: ImportCollection) -> None:
    """Deletes a collection without imports."""
    ImportCollection.objects.filter(pk=collection.pk, imports__isnull=True).delete()


def import_source(
    *,
    collection: ImportCollection,
    format: str,
    source: ImportSource,
    at: datetime,
    fractional_outcomes: bool = False,
    progress: Progress = lambda count, total: None,
) -> ImportResult:
    """Stores the forecasts of a source, unless the collection has them already; completes an interrupted import.

    Raises UnreadableFile for a file that can not be used at all.
    """
    files = list(map(_file_record, source.files))
    digests = [file["sha256"] for file in files]
    sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    contents = {"collection": collection, "format": format, "sha256": sha256}
    if (completed := ForecastImport.objects.filter(**contents, completed=True).first()) is not None:
        return ImportResult(completed, unchanged=True)
    reading = source.read()
    warnings = empty_column_warnings(format, reading)
    _reject_unstorable(reading.table)
    fractional = fractional_outcomes or source.fractional_outcomes
    good, rejected = usable_rows(reading.table, fractional_outcomes=fractional)
    forecast_import, _ = ForecastImport.objects.get_or_create(**contents, defaults={"files": files, "imported_at": at})
    _reject(forecast_import, [(item.line, item.why) for item in reading.unread])
    _reject(forecast_import, [(item.row, item.why) for item in rejected])
    _store_questions(collection, reading)
    _store_forecasts(forecast_import, reading.table, np.flatnonzero(good), at, progress)
    forecast_import.rows = reading.records
    forecast_import.rejected = forecast_import.rejections.count()
    forecast_import.forecasts = forecast_import.probabilities.count()
    forecast_import.completed = True
    forecast_import.save(update_fields=["rows", "rejected", "forecasts", "completed"])
    return ImportResult(forecast_import, unchanged=False, warnings=tuple(warnings))


def _file_record(file: Path) -> dict[str, Any]:
    try:
        return {"name": file.name, "sha256": file_sha256(file), "bytes": file.stat().st_size}
    except OSError as error:
        raise UnreadableFile(f"{file}: {error.strerror or error}") from error


def _reject_unstorable(table: InputTable) -> None:
    """Marks rows as faulty whose names or times do not fit the database columns."""
    for column, times in table.times.items():
        for place in np.flatnonzero((times < _YEAR_1) | (times > _YEAR_9999)).tolist():
            table.faults.setdefault(place, Fault(f"{column} lies outside the years 1 to 9999"))
    for column, most in _LENGTHS.items():
        names = table.names[column]
        for name in names.unique().drop_nulls().to_list():
            if len(name) > most or "\0" in name:
                why = f"{column} is longer than {most} characters" if len(name) > most else f"{column} holds a NUL"
                for place in (names == name).arg_true().to_list():
                    table.faults.setdefault(place, Fault(why))


def _reject(forecast_import: ForecastImport, reasons: Iterable[tuple[int, str]]) -> None:
    """Stores the first reason for each row."""
    for batch in chunks(reasons, BATCH):
        rows = []
        for row, reason in batch:
            rows.append(RejectedRow(forecast_import=forecast_import, row=row, reason=reason.replace("\0", "\ufffd")))
        RejectedRow.objects.bulk_create(rows, ignore_conflicts=True)


def _imported_question(collection: ImportCollection, item: Any) -> ImportedQuestion:
    return ImportedQuestion(
        collection=collection,
        question=item.question,
        title=item.title.replace("\0", "\ufffd"),
        options=list(item.options),
        happened=None if item.happened is None else list(item.happened),
        category=item.category[:200],
        closed_at=_instant(item.closed_at),
    )


def _store_questions(collection: ImportCollection, reading: ParsedFile) -> None:
    """Stores descriptions of questions; outcomes may come with a later file."""
    for batch in chunks(reading.questions, BATCH):
        chunk = []
        for item in batch:
            if len(item.question) <= _LENGTHS["question"] and "\0" not in item.question:
                chunk.append(_imported_question(collection, item))
        with transaction.atomic():
            ImportedQuestion.objects.bulk_create(chunk, ignore_conflicts=True)
            outcomes = {item.question: item.happened for item in chunk if item.happened is not None}
            still_open = collection.questions.filter(question__in=outcomes, happened__isnull=True)
            for question in still_open:
                question.happened = outcomes[question.question]
            ImportedQuestion.objects.bulk_update(still_open, ["happened"])


def _store_forecasts(
    forecast_import: ForecastImport, table: InputTable, places: Codes, at: datetime, progress: Progress
) -> None:
    """Stores whole forecasts; one that the collection has from another file is rejected with that file's name."""
    lines = table.lines()
    rows_done = 0
    progress(0, len(places))
    for batch in _batches(table, places):
        forecasts = _forecasts(forecast_import, table, batch, lines)
        with transaction.atomic():
            # Locks the collection on both databases, so that no other import adds a forecast after the lookup.
            ImportCollection.objects.filter(pk=forecast_import.collection_id).update(changed_at=at)
            sources = _sources_of(forecast_import, forecasts)
            new, duplicates = [], []
            for forecast in forecasts:
                source = sources.get((forecast.question, forecast.forecaster, forecast.made_at))
                if source is None:
                    new.append(forecast)
                elif source != forecast_import.pk:
                    duplicates.append((forecast.row, source))
            ImportedForecast.objects.bulk_create(new)
            imports = ForecastImport.objects.in_bulk(set(map(itemgetter(1), duplicates)))
            reasons = [(row, f"{imports[source].name} has this forecast already") for row, source in duplicates]
            _reject(forecast_import, reasons)
        rows_done += len(batch)
        progress(rows_done, len(places))


def _sources_of(forecast_import: ForecastImport, forecasts: list[ImportedForecast]) -> dict[tuple, int]:
    """The import of each of these forecasts that is in the collection."""
    questions = {forecast.question for forecast in forecasts}
    existing = ImportedForecast.objects.filter(collection_id=forecast_import.collection_id, question__in=questions)
    keys = existing.values_list("question", "forecaster", "made_at", "forecast_import").distinct()
    return {tuple(key): source for *key, source in keys}


def _batches(table: InputTable, places: Codes) -> Iterator[Codes]:
    """Row numbers in batches of whole forecasts, whose options keep the order of the file."""
    rows = pl.DataFrame({name: table.names[name].gather(places) for name in ("question", "forecaster")}).with_columns(
        made_at=table.times["made_at"][places], place=places
    )
    forecasts = rows.group_by("question", "forecaster", "made_at", maintain_order=True).agg("place")
    # By question, so that the stored forecasts of a question are looked up in few batches.
    forecasts = forecasts.sort("question", maintain_order=True)
    batches = forecasts.with_columns(batch=(pl.col("place").list.len().cum_sum() - 1) // BATCH)
    for _, batch in batches.group_by("batch", maintain_order=True):
        yield batch["place"].explode().to_numpy()


def _forecasts(
    forecast_import: ForecastImport, table: InputTable, batch: Codes, lines: Codes
) -> list[ImportedForecast]:
    columns = {name: column.gather(batch) for name, column in table.names.items()}
    columns |= {name: pl.Series(column[batch]) for name, column in (table.numbers | table.times).items()}
    forecasts = []
    for place, row in zip(batch.tolist(), pl.DataFrame(columns).fill_nan(None).to_dicts(), strict=True):
        row |= {
            "collection_id": forecast_import.collection_id,
            "forecast_import": forecast_import,
            "row": int(lines[place]),
            "event": row["event"] or "",
            "category": row["category"] or "",
            "made_at": _instant(row["made_at"]),
            "closed_at": _instant(row["closed_at"]),
            "weight": 1.0 if row["weight"] is None else row["weight"],
            "exclusive": row["exclusive"] != 0,
        }
        forecasts.append(ImportedForecast(**row))
    return forecasts


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None or np.isnan(seconds) else datetime.fromtimestamp(seconds, UTC)
