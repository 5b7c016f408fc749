"""Rows of numeric forecasts in long form, checked one by one: quantiles, samples, cumulative probabilities, points."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from forecast_rank.files.frames import check_columns
from forecast_rank.files.headings import NOT_NAMED, NamedHeadings
from forecast_rank.files.named_columns import NamedColumns, read_named_columns
from forecast_rank.ranking.rejections import group_rejections
from forecast_rank.score_rows import KEY, NUMBER_FIX, PLACE, CheckedRows, is_empty

QUANTILE, SAMPLE, CDF, MEDIAN, MEAN = KINDS = ("quantile", "sample", "cdf", "median", "mean")
"""What the rows of a forecast state."""
LABELS = ("event", "weight", "made_at", "closed_at")
OPTIONAL = ("value", "quantile", "threshold", "probability", "sample", *LABELS)
LEVEL_DIGITS = 9
CLOSE = 1e-9
"""Probabilities that fall by no more have been rounded."""
WORDS = {
    QUANTILE: "quantiles",
    SAMPLE: "equally likely samples",
    CDF: "cumulative probabilities at thresholds",
    MEDIAN: "medians",
    MEAN: "means",
}


@dataclass(slots=True)
class NumericForecasts:
    """Forecasts of numbers.

    Attributes
    ----------
    rows : CheckedRows
    kind : str
        One of KINDS.
    ignored, notes : list of str
        Unknown columns, and facts about the file that a reader should know.
    source : str or None
        The file or files.
    """

    rows: CheckedRows
    kind: str
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    source: str | None = None

    def explanation(self) -> str:
        """How the file was understood, what counts and what does not, in a few lines."""
        rejected, frame = self.rows.rejected(), self.rows.frame
        forecasters, questions = frame["forecaster"].n_unique(), frame["question"].n_unique()
        lines = [
            f"forecasts of numbers, as {WORDS[self.kind]}",
            f"columns: {', '.join(self.rows.written.columns)}",
            f"rows: {len(self.rows.lines):,}, of which {len(rejected):,} are rejected, {self.rows.superseded:,} "
            f"superseded and {self.rows.repeated:,} repeated",
            f"forecasts: {frame.select(KEY).n_unique():,} by {forecasters:,} forecasters on {questions:,} questions",
        ]
        return "\n".join([*lines, *self.notes, *map(str, group_rejections(rejected))])


def read_numbers(source: Any, column_headings: NamedHeadings = NOT_NAMED) -> NumericForecasts:
    """The forecasts of numbers of a file or frame in long form. `numeric_scores` describes the columns.

    Raises UnreadableFile.
    """
    table = read_named_columns(source, (*KEY, "outcome"), OPTIONAL, column_headings)
    columns = table.frame.columns
    kind = CDF if "threshold" in columns and "value" not in columns else QUANTILE
    check_columns(table.frame, ["probability"] if kind == CDF else ["value"], table.label)
    if kind == QUANTILE and ("quantile" not in columns or is_empty(table.frame["quantile"])):
        kind = SAMPLE
    read_columns = {*KEY, "outcome", *LABELS, *_stated_columns(kind), *(["sample"] if kind == SAMPLE else [])}
    ignored = [name for name in columns if name not in (*read_columns, "quantile")]
    table = replace(
        table, frame=table.frame.drop([name for name in columns if name in OPTIONAL and name not in read_columns])
    )
    is_file = isinstance(source, str | Path)
    return NumericForecasts(checked_rows(table, kind), kind, ignored, source=table.label if is_file else None)


def _stated_columns(kind: str) -> tuple[str, ...]:
    """The columns that hold a forecast, the place on its scale first."""
    if kind == CDF:
        return "threshold", "probability"
    return ("quantile", "value") if kind == QUANTILE else ("value",)


def checked_rows(table: NamedColumns, kind: str) -> CheckedRows:
    """The rows with numbers as numbers, without the forecasts at fault. Raises UnreadableFile."""
    contents = _stated_columns(kind)
    numbers = [*reversed(contents), "outcome"]
    weight = ["weight"] if "weight" in table.frame.columns else []
    rows = CheckedRows(table, (*numbers, *weight))
    for name in numbers:
        rows.reject(~pl.col(name).is_finite(), f"{name} is empty or no number", name, NUMBER_FIX)
    rows.check_weight()
    place = contents[0]
    if kind == QUANTILE:
        rows.reject(~pl.col("quantile").is_between(0, 1, closed="none"), "quantile is outside (0, 1)", "quantile")
        rows.frame = rows.frame.with_columns(pl.col("quantile").round(LEVEL_DIGITS))
    elif kind == CDF:
        rows.reject(~pl.col("probability").is_between(0, 1), "probability is outside [0, 1]", "probability")
    if kind in (QUANTILE, CDF):
        rows.take_out_repeats([*KEY, *numbers, *weight])
        rows.reject(pl.struct(*KEY, place).is_duplicated(), f"the {place} is stated twice", place)
    elif kind == SAMPLE and "sample" in rows.frame.columns:
        rows.take_out_repeats([*KEY, "sample", *numbers, *weight])
        rows.reject(pl.struct(*KEY, "sample").is_duplicated(), "the sample is stated twice", "sample")
    elif kind in (MEDIAN, MEAN):
        rows.take_out_repeats([*KEY, *numbers, *weight])
        rows.reject(pl.struct(KEY).is_duplicated(), f"the {kind} is stated twice", "value", "keep one of the rows")
    if kind == CDF:
        few = pl.len().over(KEY) < 2
        rows.reject(few, "the forecast has a single threshold", "threshold", "state two thresholds at least")
    for name in ("outcome", "weight"):
        problem = "the outcomes of the question differ" if name == "outcome" else f"{name} differs within the forecast"
        rows.reject(pl.col(name).n_unique().over(KEY) > 1, problem, name)
    _reject_minorities(rows)
    if kind == QUANTILE:
        _reject_falling_values(rows)
    elif kind == CDF:
        _reject_falling_probabilities(rows)
    return rows


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
    falling = _before(rows, "quantile", "value").filter(pl.col("value") < pl.col("value_before"))
    crossed: dict[tuple[str, str], float] = {}
    for level, intervals in central_intervals(rows.frame):
        crossed |= dict.fromkeys(intervals.filter(pl.col("value_high") < pl.col("value")).select(KEY).rows(), level)
    for row in falling.iter_rows(named=True):
        interval = crossed.get((row["forecaster"], row["question"]))
        if interval is None:
            why = f"the value falls from the quantile {row['quantile_before']:g} to {row['quantile']:g}"
        else:
            why = f"the value falls between the ends of the {interval:g} interval"
        rows.reject_places([row[PLACE]], why, "value", "write values that rise with the quantile")


def _reject_falling_probabilities(rows: CheckedRows) -> None:
    """Rejects forecasts whose cumulative probability falls where the threshold rises."""
    ordered = _before(rows, "threshold", "probability")
    falling = ordered.filter(pl.col("probability") < pl.col("probability_before") - CLOSE)
    for row in falling.iter_rows(named=True):
        why = f"the probability falls from the threshold {row['threshold_before']:g} to {row['threshold']:g}"
        fix = "write the probability of an outcome up to each threshold"
        rows.reject_places([row[PLACE]], why, "probability", fix)


def _before(rows: CheckedRows, place: str, content: str) -> pl.DataFrame:
    """The rows in the order of a column, with that column and another as they are in the row before."""
    before = [pl.col(name).shift(1).over(KEY).alias(f"{name}_before") for name in (content, place)]
    return rows.frame.sort(*KEY, place).with_columns(before)


def central_intervals(frame: pl.DataFrame) -> list[tuple[float, pl.DataFrame]]:
    """The central intervals by level: the rows with the lower quantile, and `value_high` at the upper one."""
    lower = frame.filter(pl.col("quantile") < 0.5)
    upper = frame.filter(pl.col("quantile") > 0.5).select(
        *KEY, pl.col("value").alias("value_high"), (1 - pl.col("quantile")).round(LEVEL_DIGITS).alias("quantile")
    )
    pairs = lower.join(upper, on=[*KEY, "quantile"], how="inner", maintain_order="left")
    intervals = []
    for quantile in pairs["quantile"].unique().sort().to_list():
        intervals.append((round(1 - 2 * quantile, LEVEL_DIGITS), pairs.filter(pl.col("quantile") == quantile)))
    return intervals
