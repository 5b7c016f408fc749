"""Numeric forecasts in long form, as quantiles or samples, scored and ranked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import check_columns, polars_frame
from forecast_rank.metrics.numeric_scores import interval_score, quantile_score
from forecast_rank.reports import Report
from forecast_rank.score_ranking import rank_scores

KEY = ("forecaster", "question")
_LEVEL_DIGITS = 9
_READERS: dict[str, Callable[..., pl.DataFrame]] = {
    ".parquet": pl.read_parquet, ".pq": pl.read_parquet, ".jsonl": pl.read_ndjson, ".ndjson": pl.read_ndjson,
}  # fmt: skip


def numeric_scores(source: Any) -> pl.DataFrame:
    """Scores of each numeric forecast.

    Parameters
    ----------
    source : path, polars.DataFrame, pandas.DataFrame or Arrow table
        Long form: `forecaster, question, value, outcome`, where the outcome is what the number came to be. With a
        column `quantile` each row states the value at that level; without it the rows of a forecast are equally likely
        samples. Optionally `event` and `weight`. A path is CSV, Parquet or JSON Lines, by its suffix.

    Returns
    -------
    polars.DataFrame
        A row for each forecast: `forecaster`, `question`, `event` and `weight` if given, and `crps`. With quantiles,
        for each central interval that is stated (such as 0.8, of the levels 0.1 and 0.9) `interval_score_0.8` and
        `held_0.8`, 1 where the interval held the outcome, else 0.

    Raises
    ------
    UnreadableFile
        If a column is missing, a cell is empty or no number, a level is outside (0, 1) or stated twice, or the outcomes
        of a question differ; the message names the first such forecast.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "forecaster": ["ann"] * 3, "question": ["q"] * 3, "quantile": [0.1, 0.5, 0.9], "value": [8, 10, 15],
    ...     "outcome": [12] * 3,
    ... })
    >>> [round(score, 6) for score in numeric_scores(frame).rows()[0][2:]]
    [1.133333, 7.0, 1.0]
    """
    frame = _checked(source)
    labels = [pl.col(name).first() for name in ("event", "weight") if name in frame.columns]
    if "quantile" not in frame.columns:
        return frame.group_by(KEY, maintain_order=True).agg(*labels, _crps_of_samples())
    loss = quantile_score(*(frame[name].to_numpy() for name in ("outcome", "value", "quantile")))
    scores = (
        frame.with_columns(pl.Series("loss", loss))
        .group_by(KEY, maintain_order=True)
        .agg(*labels, (2 * pl.col("loss").mean()).alias("crps"))
    )
    for level, intervals in _central_intervals(frame):
        y, low, high = (intervals[name].to_numpy() for name in ("outcome", "value", "value_high"))
        if (high < low).any():
            first = intervals.row(int((high < low).argmax()), named=True)
            raise UnreadableFile(f"{_name(first)}: the value falls between the ends of the {level:g} interval")
        columns = {
            f"interval_score_{level:g}": interval_score(y, low, high, level),
            f"held_{level:g}": ((low <= y) & (y <= high)).astype(np.float64),
        }
        scores = scores.join(intervals.select(KEY).with_columns(**columns), on=KEY, how="left", maintain_order="left")
    return scores


def rank_numeric(source: Any, **options: Any) -> Report:
    """Ranks forecasters of numbers by the continuous ranked probability score and by interval scores.

    Parameters
    ----------
    source : as in `numeric_scores`
    **options
        `bootstrap`, `seed`, `interval`, `level` and `min_questions`, as in `rank`.

    Returns
    -------
    Report
        With the rankings `crps` and, of quantiles, `interval_score_LEVEL`; the figures `held_LEVEL` are the shares of
        outcomes that the intervals held. Scores are in units of the values: questions on another scale need a `weight`.

    Raises
    ------
    UnreadableFile
        As in `numeric_scores`.
    InvalidSetting
        For a setting out of range.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "forecaster": ["ann", "bob"] * 2, "question": ["q1", "q1", "q2", "q2"], "value": [4, 1, 7, 8],
    ...     "outcome": [5, 5, 9, 9],
    ... })
    >>> rank_numeric(frame, bootstrap=0).ranked("crps")
    {'ann': (1, 1.5), 'bob': (2, 2.5)}
    """
    scores = numeric_scores(source)
    lower = [name for name in scores.columns if name == "crps" or name.startswith("interval_score_")]
    held = [name for name in scores.columns if name.startswith("held_")]
    return rank_scores(scores, lower=lower, higher=held, **options)


def _checked(source: Any) -> pl.DataFrame:
    """The rows with numbers as numbers. Raises UnreadableFile."""
    if isinstance(source, Path | str):
        try:
            frame = _READERS.get(Path(source).suffix.lower(), pl.read_csv)(source)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise UnreadableFile(f"{source}: {str(error).splitlines()[0]}") from error
    else:
        frame = polars_frame(source)
    check_columns(frame, (*KEY, "value", "outcome"))
    numbers = [name for name in ("value", "outcome", "quantile", "weight") if name in frame.columns]
    frame = frame.with_columns(
        pl.col(KEY).cast(pl.String), pl.col(numbers).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    )
    for name in numbers:
        _refuse(frame, ~pl.col(name).is_finite().fill_null(value=False), f"{name} is empty or no number")
    if "quantile" in numbers:
        _refuse(frame, ~pl.col("quantile").is_between(0, 1, closed="none"), "quantile is outside (0, 1)")
        frame = frame.with_columns(pl.col("quantile").round(_LEVEL_DIGITS))
        _refuse(frame, pl.struct(*KEY, "quantile").is_duplicated(), "the quantile is stated twice")
    _refuse(frame, pl.col("outcome").n_unique().over("question") > 1, "the outcomes of the question differ")
    return frame


def _refuse(frame: pl.DataFrame, bad: pl.Expr, why: str) -> None:
    """Raises UnreadableFile with the first row where `bad`."""
    found = frame.with_row_index("row", offset=1).filter(bad)
    if len(found):
        first = found.row(0, named=True)
        raise UnreadableFile(f"row {first['row']}, {_name(first)}: {why}")


def _name(row: dict[str, Any]) -> str:
    return f"{row['forecaster']} on {row['question']}"


def _crps_of_samples() -> pl.Expr:
    """`crps_samples` of the rows of a group."""
    value, count = pl.col("value"), pl.len()
    spread = (value.sort() * (2 * pl.int_range(1, count + 1) - count - 1)).sum() / count**2
    return ((value - pl.col("outcome")).abs().mean() - spread).alias("crps")


def _central_intervals(frame: pl.DataFrame) -> list[tuple[float, pl.DataFrame]]:
    """The central intervals by level: the rows with the lower quantile, and `value_high` at the upper one."""
    lower = frame.filter(pl.col("quantile") < 0.5)
    upper = frame.filter(pl.col("quantile") > 0.5).select(
        *KEY, pl.col("value").alias("value_high"), (1 - pl.col("quantile")).round(_LEVEL_DIGITS).alias("quantile")
    )
    both = lower.join(upper, on=[*KEY, "quantile"], how="inner", maintain_order="left")
    return [
        (round(1 - 2 * quantile, _LEVEL_DIGITS), both.filter(pl.col("quantile") == quantile))
        for quantile in both["quantile"].unique().sort().to_list()
    ]
