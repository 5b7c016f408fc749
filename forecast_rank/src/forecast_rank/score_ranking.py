"""Rankings by scores that are already computed, with the intervals, rank ranges and tests of every other ranking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import FRAME, check_columns, polars_frame
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import EventSums
from forecast_rank.ranking.report import agreement_table, assemble_report
from forecast_rank.ranking.scoreboard import FigureTable
from forecast_rank.ranking.settings import Settings
from forecast_rank.reports import Report

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rank_scores(
    source: Any, *, lower: Iterable[str] | str = (), higher: Iterable[str] | str = (), **options: Any
) -> Report:
    """Ranks forecasters by scores of their forecasts, whatever the rule: numeric, time-weighted, one's own.

    Parameters
    ----------
    source : polars.DataFrame, pandas.DataFrame or Arrow table
        A row for each forecast with the columns `forecaster`, `question` and the scores; optionally `event` (questions
        of one event are resampled together) and `weight`.
    lower, higher : list of str, or str separated by commas
        The columns in which a lower, or a higher, score is better.
    **options
        `bootstrap`, `seed`, `interval`, `level` and `min_questions`, as in `rank`.

    Returns
    -------
    Report
        Without references and pairs.

    Raises
    ------
    UnreadableFile
        If a column is missing, or no score is named.
    InvalidSetting
        For a setting out of range.

    Examples
    --------
    >>> frame = pl.DataFrame({"forecaster": ["ann", "bob"] * 2, "question": [1, 1, 2, 2], "points": [3, 1, 2, 1]})
    >>> rank_scores(frame, higher="points", bootstrap=0).ranked("points")
    {'ann': (1, 2.5), 'bob': (2, 1.0)}
    """
    frame, settings = polars_frame(source), Settings(metrics=("brier",), **options)
    better = dict.fromkeys(_names(lower), "lower") | dict.fromkeys(_names(higher), "higher")
    check_columns(frame, ("forecaster", "question", *better))
    if not better:
        raise UnreadableFile(f"{FRAME}: name at least one score, of {', '.join(frame.columns)}")
    frame = frame.with_columns(pl.col("forecaster", "question").cast(pl.String))
    names = frame["forecaster"].unique().sort().to_list()
    row, column, events = _codes(frame, names)
    weight = frame["weight"].cast(pl.Float64).to_numpy() if "weight" in frame.columns else np.ones(len(frame))
    answered = np.bincount(row, minlength=len(names))
    questions = frame["question"].n_unique()
    table = FigureTable(names, len(names), answered, events, settings)
    table.set_figure("n", answered)
    table.set_figure("coverage", answered / max(questions, 1))
    for name, direction in better.items():
        values = frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        sums = _sums(row, column, (len(names), events), values, weight)
        ruined = np.bincount(row, np.isinf(values), len(names)) > 0
        table.add_mean(name, sums, ruined, lower=direction == "lower", key=name)
    data: dict[str, Any] = {
        "rows": len(frame), "forecasts": len(frame), "forecasters": len(names), "questions": questions,
        "events": events, "priced": 0, "overround": None, "rejected": 0, "superseded": 0, "repeated": 0,
        "normalised": 0, "ignored_columns": [],
    }  # fmt: skip
    parts: dict[str, Any] = {"curves": {}, "pairs": [], "notes": [], "models": {}, "questions": {}}
    content = assemble_report(table, data, parts | {"agreement": agreement_table(table)})
    stated = {**asdict(settings), "metrics": list(better), "gammas": [], "scores": better, "like": None}
    return Report({"settings": stated, **content, "rejected": [], "rejection_groups": []})


def _names(names: Iterable[str] | str) -> list[str]:
    return [name.strip() for name in (names.split(",") if isinstance(names, str) else names) if name.strip()]


def _codes(frame: pl.DataFrame, names: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Codes of the forecaster and of the event of each row, and the number of events."""
    row = np.searchsorted(np.array(names, dtype=object), frame["forecaster"].to_numpy()).astype(np.int64)
    event = pl.col("question")
    if "event" in frame.columns:
        event = pl.coalesce(pl.col("event").cast(pl.String), event)
    column = frame.select(event.rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    return row, column, int(column.max(initial=-1)) + 1


def _sums(
    row: NDArray[np.int64], column: NDArray[np.int64], shape: tuple[int, int], values: Floats, weight: Floats
) -> EventSums:
    """Event sums of a score of each row, NaN left out."""
    place, known = row * shape[1] + column, ~np.isnan(values)

    def table(summand: Floats) -> Floats:
        return np.bincount(place[known], summand[known], shape[0] * shape[1]).astype(np.float64).reshape(shape)

    finite = np.where(np.isinf(values), np.nan, values)
    return EventSums(table(weight * finite), table(weight))
