"""The ranking of a Parquet file that is too large to be in memory at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from forecast_rank.files.text_files import REFUSED
from forecast_rank.ranking.rejections import TooFewForecasts
from forecast_rank.ranking.settings import InvalidSetting, Settings

if TYPE_CHECKING:
    from forecast_rank.reports import Report

STREAMED_ROWS = 40_000_000
"""Parquet files of more rows are read in batches: 20 million rows took 5 GiB at once."""


def is_streamed(source: Any, format: str | None) -> bool:
    """Whether the source is one Parquet file of more rows than are read at once."""
    if not isinstance(source, Path | str) or format not in (None, "parquet") or not Path(source).is_file():
        return False
    with Path(source).open("rb") as file:
        if file.read(4) != b"PAR1":
            return False
    try:
        return int(pl.scan_parquet(source).select(pl.len()).collect().item()) > STREAMED_ROWS
    except (*REFUSED, OSError):
        return False  # reading it says why


def rank_in_batches(path: Path | str, settings: Settings, *, allow_rejected: bool = False, **reading: Any) -> Report:
    """The report of a Parquet file from sums over its batches, with the metrics that are means over forecasts.

    A note names the metrics that are left out. Raises InvalidSetting if none is left, and TooFewForecasts as `rank`.
    """
    from forecast_rank.partial import MEAN_METRICS, Partial

    added = [name for name in settings.metrics if name in MEAN_METRICS]
    left_out = [name for name in settings.metrics if name not in MEAN_METRICS]
    if not added:
        raise InvalidSetting(
            f"metrics: of more than {STREAMED_ROWS:,} rows, which are read in batches, only {', '.join(MEAN_METRICS)}"
        )
    part = Partial.of_parquet(path, metrics=added, gamma=settings.gammas, log_clip=settings.log_clip, **reading)
    counts = part.counts
    if not counts["forecasts"] or (
        2 * counts["rejected"] > counts["rows"] - counts["unresolved"] and not allow_rejected
    ):
        raise TooFewForecasts(f"{counts['rejected']:,} of {counts['rows']:,} rows are rejected")
    report = part.report(
        bootstrap=settings.bootstrap,
        seed=settings.seed,
        interval=settings.interval,
        level=settings.level,
        min_questions=settings.min_questions,
    )
    if left_out:
        report.to_dict()["notes"].append(
            f"without {', '.join(left_out)}: these need all forecasts at once; rank a sample of the events for them"
        )
    return report
