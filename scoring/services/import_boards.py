"""Boards of imported forecasts: a collection ranked by the metrics of `rank`, never mixed with the arena's own."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from scoring.imports.rows import SCHEMA, table_of
from scoring.models import ImportBoard, ImportCollection, ImportedForecast
from scoring.ranking.files import Table
from scoring.ranking.reading import read_rows
from scoring.ranking.report import rank
from scoring.ranking.settings import Settings

Progress = Callable[[int, int, str], None]
_ROWS_AT_ONCE = 50_000
_LEFT_OUT = ("questions",)
"""Parts of a report that grow with the questions and that nobody reads off a board."""


def import_board_compute(
    *, collection: ImportCollection, at: datetime, progress: Progress = lambda done, of, caption: None
) -> ImportBoard:
    """The collection's board over what is resolved in completed imports; empty while nothing is.

    Files that contradict each other are settled as rows of one file are: `rejected` counts what lost.
    """
    held = ImportedForecast.objects.filter(collection=collection, imported__completed=True)
    resolved = held.filter(outcome__isnull=False)
    report = None
    if resolved.exists():
        settings = Settings()
        reading = read_rows(_table(resolved), fractional_outcomes=True)
        report = {"settings": asdict(settings), **rank(reading.panel, settings, progress)}
        report["data"] |= {
            "rows": reading.rows,
            "rejected": len(reading.rejected),
            "superseded": reading.superseded,
        }
        for part in _LEFT_OUT:
            report.pop(part, None)
    asked = held.values("question").distinct()
    values = {
        "computed_at": at,
        "report": report,
        "forecasters": held.values("forecaster").distinct().count(),
        "questions": asked.count() + collection.questions.exclude(question__in=asked).count(),
        "open_questions": asked.filter(outcome__isnull=True).count(),
        "probabilities": held.count(),
    }
    return ImportBoard.objects.update_or_create(collection=collection, defaults=values)[0]


def _table(forecasts: Any) -> Table:
    """The rows as columns, read in slices; a row's line is its primary key."""
    rows = forecasts.order_by("pk").values_list("pk", *SCHEMA).iterator(chunk_size=_ROWS_AT_ONCE)
    frames: list[pl.DataFrame] = []
    keys: list[np.ndarray] = []
    while chunk := list(islice(rows, _ROWS_AT_ONCE)):
        key, *columns = zip(*chunk, strict=True)
        frames.append(
            pl.DataFrame(
                {name: [_cell(value) for value in column] for name, column in zip(SCHEMA, columns, strict=True)},
                schema=SCHEMA,
            )
        )
        keys.append(np.array(key, dtype=np.int64))
    return table_of(frames, np.concatenate(keys))


def _cell(value: Any) -> Any:
    """A value of a column as the long form has it: no empty names, times in seconds, flags as 0 and 1."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, bool):
        return float(value)
    return value if value != "" else None
