"""Leaderboards of imported collections, by the metrics of `rank`; the arena's own leaderboards stay apart."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from forecast_rank import Settings, rank_panel, read_rows
from forecast_rank.files.input_table import InputTable
from forecast_rank.readers.records import SCHEMA, input_table
from scoring.leaderboard_keys import cached_by_inputs, skill_percent, to_json
from scoring.models import ImportCollection, ImportedForecast, ImportLeaderboard
from scoring.selectors.people_gap import people_gap

Progress = Callable[[int, int, str], None]
_CHUNK_SIZE = 50_000


def compute_import_leaderboard(
    *, collection: ImportCollection, at: datetime, progress: Progress = lambda count, total, caption: None
) -> ImportLeaderboard:
    """Stores the collection's leaderboard in place of the one before."""
    values = import_leaderboard(collection=collection, at=at, progress=progress)
    return ImportLeaderboard.objects.update_or_create(collection=collection, defaults=values)[0]


def past_import_leaderboard(*, collection: ImportCollection, at: datetime) -> ImportLeaderboard | None:
    """The leaderboard of the imports that were there at an instant; None if there was none.

    That of all imports is stored; one of fewer is computed, and cached by its newest import, since imports only add.
    """
    imports = collection.imports.filter(completed=True)
    newest = imports.filter(imported_at__lte=at).order_by("-imported_at", "-pk").first()
    if newest is None:
        return None
    if not imports.filter(imported_at__gt=at).exists():
        return collection.leaderboard

    def compute() -> dict[str, Any]:
        return import_leaderboard(collection=collection, at=newest.imported_at, until=newest.imported_at)

    return ImportLeaderboard(collection=collection, **cached_by_inputs("import-leaderboard", newest.pk, compute))


def import_leaderboard(
    *,
    collection: ImportCollection,
    at: datetime,
    progress: Progress = lambda count, total, caption: None,
    until: datetime | None = None,
) -> dict[str, Any]:
    """The columns of a collection's leaderboard over resolved questions of completed imports; no report without any.

    `until` leaves later imports out. Contradictions between files are treated like those between rows of one file, and
    counted in `rejected`.
    """
    forecasts = ImportedForecast.objects.filter(collection=collection, forecast_import__completed=True)
    if until is not None:
        forecasts = forecasts.filter(forecast_import__imported_at__lte=until)
    resolved = forecasts.filter(outcome__isnull=False)
    report = None
    if resolved.exists():
        settings = Settings()
        reading = read_rows(_table(resolved), fractional_outcomes=True)
        report = {"settings": asdict(settings), **rank_panel(reading.panel, settings, progress)}
        gap = people_gap(report, collection.people)
        skill = {}
        for name, figures in (report["forecasters"] | report["references"]).items():
            skill[name] = skill_percent(figures["bss_uniform"])
        report |= {"people": collection.people, "people_gap": gap and asdict(gap), "skill_percent": skill}
        report["data"] |= {"rows": reading.rows, "rejected": len(reading.rejected), "superseded": reading.superseded}
        del report["questions"]  # which grow with their number, and are not shown
    questions = forecasts.values("question").distinct()
    return {
        "computed_at": at,
        "report": to_json(report),
        "forecasters": forecasts.values("forecaster").distinct().count(),
        "questions": questions.count() + collection.questions.exclude(question__in=questions).count(),
        "open_questions": questions.filter(outcome__isnull=True).count(),
        "probabilities": forecasts.count(),
    }


def _table(forecasts: Any) -> InputTable:
    """The forecasts as an input table, whose line numbers are primary keys."""
    rows = forecasts.order_by("pk").values_list("pk", *SCHEMA).iterator(chunk_size=_CHUNK_SIZE)
    frames: list[pl.DataFrame] = []
    keys: list[np.ndarray] = []
    while chunk := list(islice(rows, _CHUNK_SIZE)):
        key, *columns = zip(*chunk, strict=True)
        cells = {name: list(map(_cell, column)) for name, column in zip(SCHEMA, columns, strict=True)}
        frames.append(pl.DataFrame(cells, schema=SCHEMA))
        keys.append(np.array(key, dtype=np.int64))
    return input_table(frames, np.concatenate(keys))


def _cell(value: Any) -> Any:
    """A value as `forecast_rank` takes it: null for empty names, seconds for times, 0 and 1 for booleans."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, bool):
        return float(value)
    return value if value != "" else None
