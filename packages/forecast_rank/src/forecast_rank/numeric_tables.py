"""Scores and probability integral transforms of checked numeric forecasts, a row for each forecast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.numeric_scores import crps_cdf, interval_score, quantile_score
from forecast_rank.metrics.pit import pit_cdf
from forecast_rank.numeric_rows import CDF, MEAN, MEDIAN, QUANTILE, SAMPLE, NumericForecasts, central_intervals
from forecast_rank.ranking.names import listed
from forecast_rank.score_rows import KEY

CRPS, ABSOLUTE_ERROR, SQUARED_ERROR = "crps", "absolute_error", "squared_error"
INTERVAL_SCORE, HELD = "interval_score_", "held_"
PARTS = ("dispersion", "overprediction", "underprediction")
"""Of the CRPS of quantiles, which is their sum where the levels are those of central intervals and the median."""
LABELS = ("event", "weight", "closed_at")


class _CdfBlock(NamedTuple):
    """The keys, outcomes (n,), thresholds and probabilities (n, K) of n forecasts with K thresholds each."""

    keys: pl.DataFrame
    outcome: Floats
    threshold: Floats
    probability: Floats

    def with_columns(self, **columns: Floats) -> pl.DataFrame:
        return self.keys.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def forecast_scores(forecasts: NumericForecasts) -> tuple[pl.DataFrame, list[str]]:
    """The scores of each forecast, and notes on what they compare. `numeric_scores` describes the columns."""
    frame, kind = forecasts.rows.frame, forecasts.kind
    labels = [pl.col(name).first() for name in LABELS if name in frame.columns]
    grouped = frame.group_by(KEY, maintain_order=True)
    error = pl.col("value") - pl.col("outcome") if "value" in frame.columns else pl.lit(None)
    if kind == SAMPLE:
        return grouped.agg(*labels, _crps_of_samples()), []
    if kind == MEDIAN:
        return grouped.agg(*labels, error.abs().first().alias(ABSOLUTE_ERROR)), []
    if kind == MEAN:
        return grouped.agg(*labels, error.pow(2).first().alias(SQUARED_ERROR)), []
    if kind == CDF:
        scores, notes = _crps_of_thresholds(frame)
        return grouped.agg(*labels).join(scores, on=KEY, how="left", maintain_order="left"), notes
    return _scores_of_quantiles(frame, labels)


def pit_ends(forecasts: NumericForecasts) -> pl.DataFrame:
    """The ends `low` and `high` of each forecast's probability integral transform; none of points.

    Of K samples the outcome has one of K + 1 ranks, each as likely (Hamill 2001).
    """
    frame, kind = forecasts.rows.frame, forecasts.kind
    value, outcome = pl.col("value"), pl.col("outcome")
    if kind == QUANTILE:
        level, equal = pl.col("quantile"), (value == outcome).any()
        below = level.filter(value < outcome).max().fill_null(0.0)
        above = level.filter(value > outcome).min().fill_null(1.0)
        low = pl.when(equal).then(level.filter(value == outcome).min()).otherwise(below)
        high = pl.when(equal).then(level.filter(value == outcome).max()).otherwise(above)
    elif kind == SAMPLE:
        ranks = pl.len() + 1
        low, high = (value < outcome).sum() / ranks, ((value <= outcome).sum() + 1) / ranks
    elif kind == CDF:
        ends = [pl.DataFrame(schema=dict.fromkeys(KEY, pl.String) | dict.fromkeys(("low", "high"), pl.Float64))]
        for block in _cdf_blocks(frame):
            low_ends, high_ends = pit_cdf(block.outcome, block.threshold, block.probability)
            ends.append(block.with_columns(low=low_ends, high=high_ends))
        return pl.concat(ends)
    else:
        return pl.DataFrame()
    return frame.group_by(KEY, maintain_order=True).agg(low=low, high=high)


def _scores_of_quantiles(frame: pl.DataFrame, labels: list[pl.Expr]) -> tuple[pl.DataFrame, list[str]]:
    loss = quantile_score(*(frame[name].to_numpy() for name in ("outcome", "value", "quantile")))
    levels, notes = _compared_levels(frame)
    in_levels = pl.col("quantile").is_in(levels)
    mean = pl.when(in_levels.sum() == len(levels)).then(2 * pl.col("loss").filter(in_levels).mean())
    grouped = frame.with_columns(pl.Series("loss", loss)).group_by(KEY, maintain_order=True)
    scores = grouped.agg(*labels, mean.alias(CRPS))
    if levels and np.allclose(np.add(levels, levels[::-1]), 1):
        compared = frame.filter(in_levels).filter(pl.len().over(KEY) == len(levels))
        scores = scores.join(_parts(compared, len(levels)), on=KEY, how="left", maintain_order="left")
    for level, intervals in central_intervals(frame):
        y, low, high = (intervals[name].to_numpy() for name in ("outcome", "value", "value_high"))
        columns = {
            f"{INTERVAL_SCORE}{level:g}": interval_score(y, low, high, level),
            f"{HELD}{level:g}": ((low <= y) & (y <= high)).astype(np.float64),
        }
        scores = scores.join(intervals.select(KEY).with_columns(**columns), on=KEY, how="left", maintain_order="left")
    medians = frame.filter(pl.col("quantile") == 0.5)
    if len(medians):
        error = (pl.col("value") - pl.col("outcome")).abs().alias(ABSOLUTE_ERROR)
        scores = scores.join(medians.select(*KEY, error), on=KEY, how="left", maintain_order="left")
    return scores, notes


def _parts(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    """The parts of the CRPS of forecasts with `count` levels: widths, and distances above and below the outcome.

    Of the median the loss is half its distance.
    """
    level, value, outcome = pl.col("quantile"), pl.col("value"), pl.col("outcome")
    half = pl.when(level == 0.5).then(0.5).otherwise(1.0)
    above = pl.when(level <= 0.5).then((value - outcome).clip(lower_bound=0) * half).otherwise(0.0)
    below = pl.when(level >= 0.5).then((outcome - value).clip(lower_bound=0) * half).otherwise(0.0)
    width = pl.when(level < 0.5).then(-level * value).when(level > 0.5).then((1 - level) * value).otherwise(0.0)
    sums = {name: 2 / count * part.sum() for name, part in zip(PARTS, (width, above, below), strict=True)}
    return frame.group_by(KEY, maintain_order=True).agg(**sums)


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
        note += f"; {_without_crps(without)}"
    return levels, [note]


def _without_crps(forecasts: pl.DataFrame) -> str:
    names = listed(forecasts["forecaster"].unique().sort().to_list())
    return f"{len(forecasts):,} forecasts without all of these have no crps, by {names}"


def _crps_of_samples() -> pl.Expr:
    """`crps_samples` of the rows of a group."""
    value, count = pl.col("value"), pl.len()
    spread = (value.sort() * (2 * pl.int_range(1, count + 1) - count - 1)).sum() / count**2
    return ((value - pl.col("outcome")).abs().mean() - spread).alias(CRPS)


def _crps_of_thresholds(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """`crps_cdf` of each forecast on the thresholds that most forecasts of its question state, and a note on others."""
    sets = frame.group_by(KEY).agg(pl.col("threshold").sort().alias("thresholds"))
    counts = sets.group_by("question", "thresholds").len().with_columns(size=pl.col("thresholds").list.len())
    usual = counts.sort("question", "len", "size", "thresholds", descending=[False, True, True, False])
    usual = usual.unique("question", keep="first", maintain_order=True).select("question", "thresholds")
    compared_thresholds = usual.explode("thresholds").rename({"thresholds": "threshold"})
    sizes = usual.select("question", size=pl.col("thresholds").list.len())
    compared = frame.join(compared_thresholds, on=["question", "threshold"], how="semi", maintain_order="left")
    compared = compared.join(sizes, on="question", how="left", maintain_order="left")
    compared = compared.filter(pl.len().over(KEY) == pl.col("size"))
    scores = [pl.DataFrame(schema=dict.fromkeys(KEY, pl.String) | {CRPS: pl.Float64})]
    for block in _cdf_blocks(compared):
        scores.append(block.with_columns(crps=crps_cdf(block.outcome, block.threshold, block.probability)))
    notes = []
    if len(counts) > len(usual):
        note = "forecasts of one question state different thresholds: crps compares them on those that most state"
        without = sets.join(compared, on=KEY, how="anti")
        notes.append(f"{note}; {_without_crps(without)}" if len(without) else note)
    return pl.concat(scores), notes


def _cdf_blocks(frame: pl.DataFrame) -> Iterator[_CdfBlock]:
    """The forecasts by their number of thresholds."""
    sized = frame.with_columns(size=pl.len().over(KEY)).sort("size", *KEY, "threshold")
    for (size,), block in sized.group_by("size", maintain_order=True):
        table = block.select("threshold", "probability", "outcome").to_numpy().reshape(-1, int(size), 3)
        probabilities = np.maximum.accumulate(table[:, :, 1], axis=1)  # but for rounding they do not fall
        yield _CdfBlock(block[:: int(size)].select(KEY), table[:, 0, 2], table[:, :, 0], probabilities)
