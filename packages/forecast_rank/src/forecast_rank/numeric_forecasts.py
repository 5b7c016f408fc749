"""Numeric forecasts in long form, as quantiles or samples, scored and ranked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.named_columns import read_named_columns
from forecast_rank.metrics.numeric_scores import interval_score, quantile_score
from forecast_rank.ranking.scoreboard import listed
from forecast_rank.ranking.settings import Settings
from forecast_rank.reports import Report
from forecast_rank.score_ranking import score_report
from forecast_rank.score_rows import KEY, NUMBER_FIX, PLACE, CheckedRows, is_empty

REQUIRED, OPTIONAL = (*KEY, "value", "outcome"), ("quantile", "event", "weight", "made_at", "closed_at")
_LEVEL_DIGITS = 9


def numeric_scores(source: Any) -> pl.DataFrame:
    """Scores of each numeric forecast.

    Parameters
    ----------
    source : path, polars.DataFrame, pandas.DataFrame or Arrow table
        Long form: `forecaster, question, value, outcome`, where the outcome is what the number came to be. With a
        column `quantile` each row states the value at that level; without it the rows of a forecast are equally likely
        samples. Optionally `event`, `weight`, and `made_at` and `closed_at`: the latest version made before the
        question closed counts. `%` is a hundredth. A path is CSV, Parquet or JSON Lines. Headings match whatever their
        case.

    Returns
    -------
    polars.DataFrame
        A row for each forecast: `forecaster`, `question`, `event` and `weight` if given, and `crps`. With quantiles,
        for each central interval that is stated (such as 0.8, of the levels 0.1 and 0.9) `interval_score_0.8` and
        `held_0.8`, 1 where the interval held the outcome, else 0. Where forecasts state different levels, `crps` is of
        the levels that all forecasters usually state; if there are none, of the set that most forecasts state. It is
        null for forecasts that lack one of them: means over different levels cannot be compared.

    Raises
    ------
    UnreadableFile
        If a column is missing, a cell is empty or no number, a level is outside (0, 1) or stated twice, a value falls
        where the level rises, or the outcomes of a question differ; the message names the first such forecast.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "forecaster": ["ann"] * 3, "question": ["q"] * 3, "quantile": [0.1, 0.5, 0.9], "value": [8, 10, 15],
    ...     "outcome": [12] * 3,
    ... })
    >>> [round(score, 6) for score in numeric_scores(frame).rows()[0][2:]]
    [1.133333, 7.0, 1.0]
    """
    rows, _ = _checked(source)
    rows.check_none_rejected()
    scores, _ = _scores(rows.frame)
    return scores if "weight" in rows.written.columns else scores.drop("weight")


def rank_numeric(source: Any, *, strict: bool = False, allow_rejected: bool = False, **options: Any) -> Report:
    """Ranks forecasters of numbers by the continuous ranked probability score and by interval scores.

    Parameters
    ----------
    source : as in `numeric_scores`
    strict, allow_rejected : bool
        As in `rank`.
    **options
        `bootstrap`, `seed`, `interval`, `level`, `min_questions` and `pairs`, as in `rank`.

    Returns
    -------
    Report
        With the rankings `crps` and, of quantiles, `interval_score_LEVEL`, each adjusted for the questions' difficulty
        too, as in `rank_scores`; the figures `held_LEVEL` are the shares of outcomes that the intervals held. Scores
        are in units of the values: questions on another scale need a `weight`.

        Forecasts with a fault that `numeric_scores` names are rejected, a whole (forecaster, question) at a time, as
        are those with another outcome than most forecasters have on the question; on a tie all of them.

    Raises
    ------
    UnreadableFile
        If a column is missing.
    InvalidRow
        With `strict`, for the first row that is rejected.
    TooFewForecasts
        If no row can be ranked or, without `allow_rejected`, more than half of the rows are rejected.
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
    settings = Settings(metrics=("brier",), **options)
    rows, ignored = _checked(source)
    if strict:
        rows.check_none_rejected()
    scores, notes = _scores(rows.frame)
    names = [name for name in scores.columns if name == "crps" or name.startswith("interval_score_")]
    return score_report(
        rows,
        scores,
        dict.fromkeys(names, "lower"),
        settings,
        limits=(0.0, np.inf),
        shares=[name for name in scores.columns if name.startswith("held_")],
        notes=notes,
        ignored=ignored,
        allow_rejected=allow_rejected,
    )


def _checked(source: Any) -> tuple[CheckedRows, list[str]]:
    """The rows with numbers as numbers, and the columns that are ignored. Raises UnreadableFile."""
    table = read_named_columns(source, REQUIRED, OPTIONAL)
    if "quantile" in table.frame.columns and is_empty(table.frame["quantile"]):
        table = replace(table, frame=table.frame.drop("quantile"))
    present = [name for name in ("value", "outcome", "quantile", "weight") if name in table.frame.columns]
    rows = CheckedRows(table, tuple(present))
    for name in present:
        if name != "weight":
            finite = pl.col(name).is_finite()
            rows.reject(~finite, f"{name} is empty or no number", name, NUMBER_FIX)
    rows.check_weight()
    if "quantile" in present:
        rows.reject(~pl.col("quantile").is_between(0, 1, closed="none"), "quantile is outside (0, 1)", "quantile")
        rows.frame = rows.frame.with_columns(pl.col("quantile").round(_LEVEL_DIGITS))
        rows.take_out_repeats([*KEY, *present])
        rows.reject(pl.struct(*KEY, "quantile").is_duplicated(), "the quantile is stated twice", "quantile")
    for name in ("outcome", "weight"):
        problem = "the outcomes of the question differ" if name == "outcome" else f"{name} differs within the forecast"
        rows.reject(pl.col(name).n_unique().over(KEY) > 1, problem, name)
    _reject_minorities(rows)
    if "quantile" in present:
        _reject_falling_values(rows)
    columns = {*REQUIRED, *OPTIONAL}
    return rows, [name for name in table.frame.columns if name not in columns]


def _reject_minorities(rows: CheckedRows) -> None:
    """Rejects forecasts with another outcome than most forecasters have on the question; on a tie all of them."""
    support = rows.frame.group_by("question", "outcome").agg(pl.col("forecaster").n_unique().alias("support"))
    most = pl.col("support").max().over("question")
    leads = (pl.col("support") == most) & ((pl.col("support") == most).sum().over("question") == 1)
    agreed = support.filter(leads).select("question", pl.col("outcome").alias("agreed"))
    beside = rows.frame.join(agreed, on="question", how="left")
    places = beside.filter(~pl.col("outcome").eq_missing(pl.col("agreed")))[PLACE].to_list()
    fix = "write the same outcome for all forecasters of a question"
    rows.reject_places(places, "the outcomes of the question differ", "outcome", fix)


def _reject_falling_values(rows: CheckedRows) -> None:
    """Rejects forecasts whose value falls where the level rises: a median outside its interval, ends that cross."""
    before = [pl.col(name).shift(1).over(KEY).alias(f"{name}_before") for name in ("value", "quantile")]
    falling = rows.frame.sort(*KEY, "quantile").with_columns(before).filter(pl.col("value") < pl.col("value_before"))
    crossed: dict[tuple[str, str], float] = {}
    for level, intervals in _central_intervals(rows.frame):
        crossed |= dict.fromkeys(intervals.filter(pl.col("value_high") < pl.col("value")).select(KEY).rows(), level)
    for row in falling.iter_rows(named=True):
        interval = crossed.get((row["forecaster"], row["question"]))
        if interval is None:
            why = f"the value falls from the quantile {row['quantile_before']:g} to {row['quantile']:g}"
        else:
            why = f"the value falls between the ends of the {interval:g} interval"
        rows.reject_places([row[PLACE]], why, "value", "write values that rise with the quantile")


def _scores(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The scores of each forecast, and notes on what they compare."""
    labels = [pl.col(name).first() for name in ("event", "weight") if name in frame.columns]
    grouped = frame.group_by(KEY, maintain_order=True)
    if "quantile" not in frame.columns:
        return grouped.agg(*labels, _crps_of_samples()), []
    loss = quantile_score(*(frame[name].to_numpy() for name in ("outcome", "value", "quantile")))
    levels, notes = _compared_levels(frame)
    in_levels = pl.col("quantile").is_in(levels)
    mean = pl.when(in_levels.sum() == len(levels)).then(2 * pl.col("loss").filter(in_levels).mean())
    scores = (
        frame.with_columns(pl.Series("loss", loss)).group_by(KEY, maintain_order=True).agg(*labels, mean.alias("crps"))
    )
    for level, intervals in _central_intervals(frame):
        y, low, high = (intervals[name].to_numpy() for name in ("outcome", "value", "value_high"))
        columns = {
            f"interval_score_{level:g}": interval_score(y, low, high, level),
            f"held_{level:g}": ((low <= y) & (y <= high)).astype(np.float64),
        }
        scores = scores.join(intervals.select(KEY).with_columns(**columns), on=KEY, how="left", maintain_order="left")
    return scores, notes


def _compared_levels(frame: pl.DataFrame) -> tuple[list[float], list[str]]:
    """The levels that the scores of all forecasts are means of, and a note where forecasts state others.

    Each forecaster has a usual set of levels. The levels are those that all usual sets hold, else the most common set.
    """
    sets = frame.group_by(KEY).agg(pl.col("quantile").unique().sort().alias("levels"))
    order = ["len", "levels"]
    usual = (
        sets.group_by("forecaster", "levels").len().sort(order, descending=[True, False])
        .unique("forecaster", keep="first", maintain_order=True)["levels"].to_list()
    )  # fmt: skip
    most = sets.group_by("levels").len().sort(order, descending=[True, False])["levels"].to_list()
    if len(most) < 2:
        return (most or [[]])[0], []
    shared = sorted(set(usual[0]).intersection(*usual))
    levels = shared or most[0]
    without = sets.filter(pl.col("levels").list.set_intersection(levels).list.len() < len(levels))
    note = f"forecasts state {len(most)} different sets of quantiles: crps compares them on "
    note += (
        f"{'the levels that all forecasters state, ' if shared else ''}{', '.join(f'{level:g}' for level in levels)}"
    )
    if len(without):
        names = listed(without["forecaster"].unique().sort().to_list())
        note += f"; {len(without):,} forecasts without all of these have no crps, by {names}"
    return levels, [note]


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
    pairs = lower.join(upper, on=[*KEY, "quantile"], how="inner", maintain_order="left")
    return [
        (round(1 - 2 * quantile, _LEVEL_DIGITS), pairs.filter(pl.col("quantile") == quantile))
        for quantile in pairs["quantile"].unique().sort().to_list()
    ]
