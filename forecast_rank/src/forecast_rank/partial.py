"""Results of parts of the data, which add up to the report of all of it: for files beyond one machine's memory."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.api import Source, comma_separated, read
from forecast_rank.atomic_files import atomic_write
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.metrics.panel import Floats, Panel
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.returns import average_return, log_wealth
from forecast_rank.metrics.skill import alpha
from forecast_rank.metrics.uncertainty import EventSums
from forecast_rank.ranking.forecasts import LoadedForecasts
from forecast_rank.ranking.report import agreement_table, assemble_report
from forecast_rank.ranking.scoreboard import FigureTable
from forecast_rank.ranking.settings import InvalidSetting, Settings
from forecast_rank.reports import Report

MEAN_METRICS = ("brier", "log", "spherical", "average_return", "alpha")
"""Metrics that are means over forecasts; the others need all forecasts at once."""
COUNTS = ("rows", "rejected", "superseded", "repeated", "normalised", "forecasts", "options", "priced")
NOTE = "from parts: without references, pairs, curves and metrics that need all forecasts at once"


class Partial:
    """Sums over events of the scores of some forecasts; `+` adds those of others.

    The report of a sum has the figures, errors, intervals and ranks that `rank` gives for all forecasts together. Parts
    may cut an event; all rows of a forecaster on a question belong to one part.

    Parameters
    ----------
    source : as in `read`, or LoadedForecasts
    metrics : list of str, or str separated by commas
        Some of "brier", "log", "spherical", "average_return" and "alpha".
    gamma : list of float, or str separated by commas
        Risk aversions of the averaged return, in [0, 1].
    log_clip : float
        Lowest probability that the log score charges, in [0, 1).
    **reading
        Keywords of `read`.

    Raises
    ------
    InvalidSetting
        For another metric or a setting out of range; also when parts with different settings are added.
    UnreadableFile
        If the source as a whole cannot be used.

    Examples
    --------
    >>> import forecast_rank as fr
    >>> rows = pl.DataFrame({
    ...     "forecaster": ["ann", "bob"] * 2, "question": ["q1", "q1", "q2", "q2"],
    ...     "probability": [0.8, 0.6, 0.4, 0.6], "outcome": [1, 1, 0, 0],
    ... })
    >>> halves = [Partial(rows[:2], metrics="brier"), Partial(rows[2:], metrics="brier")]
    >>> (halves[0] + halves[1]).report(bootstrap=0).ranked("brier")
    {'ann': (1, 0.1), 'bob': (2, 0.26)}
    """

    def __init__(
        self,
        source: Source,
        *,
        metrics: Iterable[str] | str = MEAN_METRICS,
        gamma: Iterable[float | str] | float | str = Settings().gammas,
        log_clip: float = Settings().log_clip,
        **reading: Any,
    ) -> None:
        settings = Settings(metrics=comma_separated(metrics), gammas=comma_separated(gamma), log_clip=log_clip)
        if others := [name for name in settings.metrics if name not in MEAN_METRICS]:
            raise InvalidSetting(f"metrics: {', '.join(others)} cannot be added up; {', '.join(MEAN_METRICS)} can")
        loaded = source if isinstance(source, LoadedForecasts) else read(source, **reading)
        panel = loaded.panel
        self._settings: dict[str, Any] = {
            "metrics": list(settings.metrics),
            "gammas": list(settings.gammas),
            "log_clip": log_clip,
        }
        self._counts = {
            "rows": loaded.rows,
            "rejected": len(loaded.rejected),
            "superseded": loaded.superseded,
            "repeated": loaded.repeated,
            "normalised": loaded.normalised,
            "forecasts": len(panel),
            "options": len(panel.probability),
            "priced": int(panel.priced.sum()),
        }
        self._questions = pl.DataFrame({"question": panel.questions.names}, schema={"question": pl.String})
        self._sums = _event_table(panel, settings)

    def __add__(self, other: Partial) -> Partial:
        if self._settings != other._settings:
            raise InvalidSetting(f"parts with different settings: {self._settings} and {other._settings}")
        return Partial._of(
            self._settings,
            {name: self._counts[name] + other._counts[name] for name in COUNTS},
            pl.concat([self._questions, other._questions]).unique(),
            pl.concat([self._sums, other._sums]).group_by("forecaster", "event").sum(),
        )

    def __repr__(self) -> str:
        return f"<Partial: {self._counts['forecasts']:,} forecasts on {len(self._questions):,} questions>"

    def save(self, path: Path | str) -> None:
        """Writes the sums to a file. An existing file is replaced only when all is written."""
        with atomic_write(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("settings.json", json.dumps({"settings": self._settings, "counts": self._counts}))
            for name, table in (("questions", self._questions), ("sums", self._sums)):
                content = io.BytesIO()
                table.write_parquet(content)
                archive.writestr(f"{name}.parquet", content.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> Partial:
        """The sums that `save` wrote.

        Raises
        ------
        UnreadableFile
            If the file is no such file.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                stated = json.loads(archive.read("settings.json"))
                questions, sums = (pl.read_parquet(archive.read(f"{name}.parquet")) for name in ("questions", "sums"))
                return cls._of(stated["settings"], stated["counts"], questions, sums)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
            raise UnreadableFile(f"{path} is not a saved partial result: {error}") from error

    @classmethod
    def _of(
        cls, settings: dict[str, Any], counts: dict[str, int], questions: pl.DataFrame, sums: pl.DataFrame
    ) -> Partial:
        part = cls.__new__(cls)
        part._settings, part._counts, part._questions, part._sums = settings, counts, questions, sums
        return part

    def report(self, **options: Any) -> Report:
        """The report of all forecasts that were added up.

        Parameters
        ----------
        **options
            `bootstrap`, `seed`, `interval`, `level` and `min_questions`, as in `rank`.

        Returns
        -------
        Report
            Without references, pairs and curves.

        Raises
        ------
        InvalidSetting
            For a setting out of range.
        """
        settings = Settings(
            metrics=tuple(self._settings["metrics"]),
            gammas=tuple(self._settings["gammas"]),
            log_clip=self._settings["log_clip"],
            **options,
        )
        events = self._sums.select("event").unique().sort("event").with_row_index("column")
        names = self._sums["forecaster"].unique().sort().to_list()
        cells = self._sums.join(events, on="event")
        row = np.searchsorted(np.array(names, dtype=object), cells["forecaster"].to_numpy()).astype(np.int64)
        place, shape = row * len(events) + cells["column"].to_numpy(), (len(names), len(events))

        def dense(column: str) -> Floats:
            return np.bincount(place, cells[column].to_numpy(), shape[0] * shape[1]).astype(np.float64).reshape(shape)

        answered = np.bincount(row, cells["n"].to_numpy(), len(names)).astype(np.int64)
        table = FigureTable(names, len(names), answered, len(events), settings)
        table.set_figure("n", answered)
        table.set_figure("coverage", answered / max(len(self._questions), 1))
        for ranking, key, lower, gamma in _rankings(settings):
            ruined = dense(f"{ranking} ruins").sum(axis=1) > 0
            sums = np.where(ruined[:, None], np.nan, dense(f"{ranking} sum"))
            table.add_mean(
                ranking, EventSums(sums, dense(f"{ranking} weight")), ruined, lower=lower, key=key, under=gamma
            )
            if key == "average_return":
                table.set_figure("net_return", table.figures[key][gamma] - 1, gamma)
        if "brier" in table.rankings:
            table.set_figure("rank_range", table.figures["rank_ranges"]["brier"])
        data: dict[str, Any] = {
            **self._counts,
            "forecasters": len(names),
            "questions": len(self._questions),
            "events": len(events),
            "overround": None,
            "ignored_columns": [],
        }
        parts: dict[str, Any] = {"curves": {}, "pairs": [], "notes": [NOTE], "models": {}, "questions": {}}
        content = assemble_report(table, data, parts | {"agreement": agreement_table(table)})
        stated = {**asdict(settings), **self._settings, "like": None}
        return Report({"settings": stated, **content, "rejected": [], "rejection_groups": []})


def _rankings(settings: Settings) -> Iterator[tuple[str, str, bool, str | None]]:
    """Name, key, whether lower is better, and gamma of each ranking that the metrics give."""
    for name, lower in (("brier", True), ("log", False), ("spherical", False)):
        if name in settings.metrics:
            yield name, name, lower, None
    if {"brier", "log", "spherical"} & set(settings.metrics):
        yield "accuracy", "accuracy", False, None
    for gamma in settings.gammas if "average_return" in settings.metrics else ():
        yield f"average_return:{gamma}", "average_return", False, gamma
        yield f"log_wealth:{gamma}", "log_wealth", False, gamma
    if "alpha" in settings.metrics:
        yield "alpha", "alpha", False, None


def _values(panel: Panel, key: str, gamma: str | None, log_clip: float) -> Floats:
    """The score of each forecast, (F,)."""
    if key == "log":
        return log_score(panel, log_clip)
    if gamma is not None:
        return {"average_return": average_return, "log_wealth": log_wealth}[key](panel, float(gamma))
    return {"brier": brier, "spherical": spherical, "accuracy": accuracy, "alpha": alpha}[key](panel)


def _event_table(panel: Panel, settings: Settings) -> pl.DataFrame:
    """A row for each forecaster and event: questions, and for each ranking the sum, the weight and the ruins."""
    columns: dict[str, Any] = {
        "forecaster": np.array(panel.forecasters, dtype=object)[panel.forecaster],
        "event": np.array(panel.questions.event_names, dtype=object)[panel.questions.event[panel.question]],
        "n": np.ones(len(panel)),
    }
    for ranking, key, _, gamma in _rankings(settings):
        values = _values(panel, key, gamma, settings.log_clip)
        known = ~np.isnan(values)
        columns[f"{ranking} sum"] = np.where(known & np.isfinite(values), values, 0.0) * panel.weight
        columns[f"{ranking} weight"] = np.where(known, panel.weight, 0.0)
        columns[f"{ranking} ruins"] = np.isinf(values).astype(np.float64)
    schema = {"forecaster": pl.String, "event": pl.String}
    table = pl.DataFrame(columns, schema_overrides=schema, strict=False)
    return table.group_by("forecaster", "event").sum()
