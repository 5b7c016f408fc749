"""Numeric forecasts in long form, scored and ranked: quantiles, samples, cumulative probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.metrics.pit import pit_histogram
from forecast_rank.numeric_rows import NumericForecasts, read_numbers
from forecast_rank.numeric_tables import CRPS, HELD, INTERVAL_SCORE, LABELS, PARTS, forecast_scores, pit_ends
from forecast_rank.ranking.json_values import to_json_list
from forecast_rank.ranking.settings import NUMBER_METRICS, InvalidSetting, Settings
from forecast_rank.reports import Report
from forecast_rank.score_ranking import score_report
from forecast_rank.score_rows import KEY


def numeric_scores(source: Any) -> pl.DataFrame:
    """Scores of each numeric forecast.

    Parameters
    ----------
    source : path, polars.DataFrame, pandas.DataFrame or Arrow table
        Long form: `forecaster, question, value, outcome`, where the outcome is what the number came to be. With a
        column `quantile` each row states the value at that level; without it the rows of a forecast are equally likely
        samples. With `threshold, probability` in place of `value` each row states the probability of an outcome up to
        the threshold. Optionally `event`, `weight`, and `made_at` and `closed_at`: the latest version made before the
        question closed counts. `%` is a hundredth. A path is CSV, Parquet or JSON Lines. Headings match whatever their
        case.

    Returns
    -------
    polars.DataFrame
        A row for each forecast: `forecaster`, `question`, `event` and `weight` if given, and `crps`. With quantiles,
        for each central interval that is stated (such as 0.8, of the levels 0.1 and 0.9) `interval_score_0.8` and
        `held_0.8`, 1 where the interval held the outcome, else 0, `absolute_error` of the median if it is stated, and
        where the levels are symmetric the parts of `crps`: `dispersion`, `overprediction` and `underprediction`.
        Where forecasts state different levels, `crps` is of the levels that all forecasters usually state; if there are
        none, of the set that most forecasts state. It is null for forecasts that lack one of them: means over different
        levels cannot be compared. Likewise with thresholds, which are compared question by question on those that most
        forecasts state.

    Raises
    ------
    UnreadableFile
        If a column is missing, a cell is empty or no number, a level is outside (0, 1) or stated twice, a value falls
        where the level rises (a probability where the threshold rises), a forecast has a single threshold, or the
        outcomes of a question differ; the message names the first such forecast.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "forecaster": ["ann"] * 3, "question": ["q"] * 3, "quantile": [0.1, 0.5, 0.9], "value": [8, 10, 15],
    ...     "outcome": [12] * 3,
    ... })
    >>> scores = numeric_scores(frame).select("crps", "dispersion", "underprediction", "interval_score_0.8", "held_0.8")
    >>> [round(score, 4) for score in scores.rows()[0]]
    [1.1333, 0.4667, 0.6667, 7.0, 1.0]
    """
    forecasts = read_numbers(source)
    forecasts.rows.check_none_rejected()
    scores, _ = forecast_scores(forecasts)
    if "weight" not in forecasts.rows.written.columns:
        scores = scores.drop("weight")
    return scores.drop("closed_at", strict=False)


def rank_numeric(
    source: Any,
    *,
    metrics: Iterable[str] = NUMBER_METRICS,
    strict: bool = False,
    allow_rejected: bool = False,
    **options: Any,
) -> Report:
    """Ranks forecasters of numbers by the continuous ranked probability score and by interval scores.

    Parameters
    ----------
    source : as in `numeric_scores`
    metrics : iterable of str
        Any of `crps`, `interval_score`, `absolute_error`, `squared_error`, `relative_skill` and `pit`; those that the
        forecasts have.
    strict, allow_rejected : bool
        As in `rank`.
    **options
        `bootstrap`, `seed`, `bins` (of the PIT histograms), `interval`, `level`, `min_questions`, `pairs`, `horizon`
        and `baseline`, as in `rank`.

    Returns
    -------
    Report
        With the rankings `crps` and, of quantiles, `interval_score_LEVEL` and `absolute_error`, each adjusted for the
        questions' difficulty too, as in `rank_scores`; the figures `held_LEVEL` are the shares of outcomes that the
        intervals held, and `dispersion`, `overprediction` and `underprediction` the parts of the mean `crps`.
        `relative_skill` is by the first score, and `scaled_relative_skill` the same divided by that of
        the baseline. `curves["pit"]` are the histograms of the probability integral transforms. Scores are in units of
        the values: questions on another scale need a `weight`, or the relative skill.

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
    metric_names = tuple(metrics)
    if unknown := [name for name in metric_names if name not in NUMBER_METRICS]:
        choices = ", ".join(NUMBER_METRICS)
        raise InvalidSetting(f"metrics: {', '.join(unknown)} is none of forecasts of numbers; known are {choices}")
    forecasts = source if isinstance(source, NumericForecasts) else read_numbers(source)
    rows = forecasts.rows
    if strict:
        rows.check_none_rejected()
    scores, notes = forecast_scores(forecasts)
    present = [name for name in scores.columns if name not in (*KEY, *LABELS, *PARTS) and not name.startswith(HELD)]
    names = [name for name in present if _metric(name) in metric_names]
    if not names:
        raise InvalidSetting(f"metrics: name a score that the forecasts have: {', '.join(present)}")
    has_intervals = any(name.startswith(INTERVAL_SCORE) for name in names)
    report = score_report(
        rows,
        scores,
        dict.fromkeys(names, "lower"),
        settings,
        limits=(0.0, np.inf),
        shares=[name for name in scores.columns if name.startswith(HELD) and has_intervals],
        parts=[name for name in PARTS if name in scores.columns and CRPS in names],
        notes=[*forecasts.notes, *notes],
        ignored=forecasts.ignored,
        allow_rejected=allow_rejected,
        relative="relative_skill" in metric_names,
    )
    content = report.to_dict()
    content["settings"] |= {"form": forecasts.kind, "file": forecasts.source}
    if "pit" in metric_names:
        content["curves"] |= _pit_curves(pit_ends(forecasts), settings.bins)
    return report


def _metric(score: str) -> str:
    """The metric that a score belongs to."""
    return INTERVAL_SCORE.rstrip("_") if score.startswith(INTERVAL_SCORE) else score


def _pit_curves(ends: pl.DataFrame, bins: int) -> dict[str, Any]:
    """The PIT histogram of each forecaster; nothing of points."""
    if not len(ends):
        return {}
    shares = {}
    edges: list[float | None] = []
    for (name,), part in ends.sort("forecaster").group_by("forecaster", maintain_order=True):
        histogram = pit_histogram(part["low"].to_numpy(), part["high"].to_numpy(), bins=bins)
        shares[str(name)], edges = to_json_list(histogram.share), to_json_list(histogram.edges)
    return {"pit": {"edges": edges, "forecasters": shares}}
