"""Results of parts of the data, which add up to the report of all of it: for files beyond one machine's memory."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.atomic_files import atomic_write
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.parquet_batches import count_events, parquet_batches
from forecast_rank.metrics.event_groups import MOST_EVENTS
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import REFERENCES, references
from forecast_rank.metrics.uncertainty import EventSums
from forecast_rank.partial_tables import (
    PAIR_KEY,
    add_options,
    event_table,
    mean_panel,
    option_table,
    pair_table,
    rankings,
    tests_of_pairs,
    with_event_groups,
)
from forecast_rank.ranking.figure_table import FigureTable
from forecast_rank.ranking.forecasts import LoadedForecasts
from forecast_rank.ranking.pair_comparisons import pair_entries
from forecast_rank.ranking.report import agreement_table, assemble_report
from forecast_rank.ranking.settings import InvalidSetting, Settings
from forecast_rank.reports import Report
from forecast_rank.sources import Source, comma_separated, read

MEAN_METRICS = ("brier", "log", "spherical", "average_return", "alpha")
"""Metrics that are means over forecasts; the others need all forecasts at once."""
COUNTS = ("rows", "rejected", "superseded", "repeated", "unresolved", "normalised", "forecasts", "options", "priced")
PAIRED = 50
"""More forecasters are not compared in pairs: their sums would grow with the square of the number."""
PAIR_ROWS = 5_000_000
"""More pairs x events are not kept either: some 500 MiB."""
BATCH = 4_000_000
"""Rows of a Parquet file that are read at a time."""
KEPT_EVENTS = 20_000
"""A Parquet file with more events is summed over groups of events."""
NOTE = "from parts: without curves and metrics that need all forecasts at once"
NOT_PAIRED = {
    "off": "no pairs, as asked",
    "cut": "no pairs, for parts cut questions; cut between questions to have them",
    "many": f"no pairs, for there are more than {PAIRED} forecasters",
    "long": f"no pairs, for pairs times events are more than {PAIR_ROWS:,}",
}


class Partial:
    """Sums over events of the scores of some forecasts; `+` adds those of others.

    The report of a sum has the figures, errors, intervals, ranks and references that `rank` gives for all forecasts
    together. Parts may cut an event or a question; all rows of a forecaster on a question belong to one part.

    Parameters
    ----------
    source : as in `read`, or LoadedForecasts
    metrics : list of str, or str separated by commas
        Some of "brier", "log", "spherical", "average_return" and "alpha".
    gamma : list of float, or str separated by commas
        Risk aversions of the averaged return, in [0, 1].
    log_clip : float
        Lowest probability that the log score charges, in [0, 1).
    pairs : bool
        Whether to keep the sums of pairs of forecasters, pairs times events in number.
    event_groups : int, optional
        Deals the events at random into so many groups and keeps sums by group: for events too many to keep. Errors and
        intervals then come from the groups; with 2,000 of them a standard error varies by 1.6 % of itself.
    **reading
        Keywords of `read`.

    Attributes
    ----------
    counts : dict of str to int
        Rows, rejected, superseded, repeated, unresolved and priced ones, normalised forecasts, forecasts and options.

    Raises
    ------
    InvalidSetting
        For another metric or a setting out of range; also when parts with different settings are added.
    UnreadableFile
        If the source as a whole cannot be used; also when parts that contradict each other are added.

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
        pairs: bool = True,
        event_groups: int | None = None,
        **reading: Any,
    ) -> None:
        settings = Settings(metrics=comma_separated(metrics), gammas=comma_separated(gamma), log_clip=log_clip)
        if unsupported := [name for name in settings.metrics if name not in MEAN_METRICS]:
            raise InvalidSetting(f"metrics: {', '.join(unsupported)} cannot be added up; {', '.join(MEAN_METRICS)} can")
        loaded = source if isinstance(source, LoadedForecasts) else read(source, **reading)
        panel = loaded.panel if event_groups is None else with_event_groups(loaded.panel, event_groups)
        self._settings: dict[str, Any] = {
            "metrics": list(settings.metrics),
            "gammas": list(settings.gammas),
            "log_clip": log_clip,
            "event_groups": event_groups,
        }
        self.counts = {
            "rows": loaded.rows,
            "rejected": len(loaded.rejected),
            "superseded": loaded.superseded,
            "repeated": loaded.repeated,
            "unresolved": loaded.unresolved,
            "normalised": loaded.normalised,
            "forecasts": len(panel),
            "options": len(panel.probability),
            "priced": int(panel.priced.sum()),
        }
        self._sums, self._options = event_table(panel, settings), option_table(loaded.panel)
        self._not_paired = "off" if not pairs else "many" if len(panel.forecasters) > PAIRED else ""
        self._pairs = None if self._not_paired else pair_table(panel)

    @classmethod
    def of_parquet(cls, path: Path | str, *, rows_at_once: int = BATCH, **keywords: Any) -> Partial:
        """The sums of a Parquet file of any size, read in batches.

        The rows of a forecaster on a question must stand together; a file in order of question, or of forecaster and
        question, has them so. Batches end between questions where rows are in order of question.

        Parameters
        ----------
        path : path
        rows_at_once : int
            Rows in memory at a time.
        **keywords
            As in `Partial`. A file with more than 20,000 events is summed over 2,000 groups of events, unless
            `event_groups` is given.

        Returns
        -------
        Partial

        Raises
        ------
        UnreadableFile
            If the file cannot be read, or the rows of a forecaster on a question stand apart.
        """
        total: Partial | None = None
        if keywords.get("event_groups") is None and count_events(Path(path)) > KEPT_EVENTS:
            keywords["event_groups"] = MOST_EVENTS
        for batch in parquet_batches(Path(path), rows_at_once):
            if total is not None and total._not_paired:
                keywords["pairs"] = False
            part = cls(batch, **keywords)
            total = part if total is None else total + part
        if total is None:
            raise UnreadableFile(f"{path} has no rows")
        return total

    def __add__(self, other: Partial) -> Partial:
        if self._settings != other._settings:
            raise InvalidSetting(f"parts with different settings: {self._settings} and {other._settings}")
        options = add_options(self._options, other._options)
        total = Partial._of(
            self._settings,
            {name: self.counts[name] + other.counts[name] for name in COUNTS},
            pl.concat([self._sums, other._sums]).group_by("forecaster", "event").sum(),
            options,
            None,
            self._not_paired or other._not_paired,
        )
        if not total._not_paired and len(options) < len(self._options) + len(other._options):
            total._not_paired = "cut"
        if not total._not_paired and total._sums["forecaster"].n_unique() > PAIRED:
            total._not_paired = "many"
        if self._pairs is not None and other._pairs is not None and not total._not_paired:
            pairs = pl.concat([self._pairs, other._pairs]).group_by(PAIR_KEY).sum()
            if len(pairs) > PAIR_ROWS:
                total._not_paired = "long"
            else:
                total._pairs = pairs
        return total

    def __repr__(self) -> str:
        return f"<Partial: {self.counts['forecasts']:,} forecasts on {self._question_count():,} questions>"

    def _question_count(self) -> int:
        return self._options["question"].n_unique()

    def save(self, path: Path | str) -> None:
        """Writes the sums to a file. An existing file is replaced only when all is written."""
        tables = {"sums": self._sums, "options": self._options}
        if self._pairs is not None:
            tables["pairs"] = self._pairs
        contents = {"settings": self._settings, "counts": self.counts, "not_paired": self._not_paired}
        with atomic_write(Path(path)) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("settings.json", json.dumps(contents))
            for name, table in tables.items():
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
                contents = json.loads(archive.read("settings.json"))
                names = ("sums", "options") if contents["not_paired"] else ("sums", "options", "pairs")
                tables = {name: pl.read_parquet(archive.read(f"{name}.parquet")) for name in names}
                return cls._of(
                    contents["settings"],
                    dict.fromkeys(COUNTS, 0) | contents["counts"],
                    tables["sums"],
                    tables["options"],
                    tables.get("pairs"),
                    contents["not_paired"],
                )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
            raise UnreadableFile(f"{path} is not a saved partial result: {error}") from error

    @classmethod
    def _of(
        cls,
        settings: dict[str, Any],
        counts: dict[str, int],
        sums: pl.DataFrame,
        options: pl.DataFrame,
        pairs: pl.DataFrame | None,
        not_paired: str,
    ) -> Partial:
        part = cls.__new__(cls)
        part._settings, part.counts = settings, counts
        part._sums, part._options, part._pairs, part._not_paired = sums, options, pairs, not_paired
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
            Without curves. Pairs are compared where each question lies within one part, among at most 50 forecasters.

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
        names = self._sums["forecaster"].unique().sort().to_list()
        table = self._figures(names, settings)
        data: dict[str, Any] = {
            **self.counts,
            "forecasters": len(names),
            "questions": self._question_count(),
            "events": self._options["event"].n_unique(),
            "overround": None,
            "ignored_columns": [],
        }
        notes, pairs = [NOTE], []
        if groups := self._settings.get("event_groups"):
            notes.append(f"errors and intervals from {groups:,} groups, into which the events were dealt at random")
        if "brier" in settings.metrics:
            if self._pairs is None:
                notes.append(NOT_PAIRED[self._not_paired])
            else:
                pairs = pair_entries(tests_of_pairs(self._pairs, names), names)
        parts: dict[str, Any] = {"curves": {}, "pairs": pairs, "notes": notes, "models": {}, "questions": {}}
        content = assemble_report(table, data, parts | {"agreement": agreement_table(table)})
        own_settings = {**asdict(settings), **self._settings, "like": None}
        return Report({"settings": own_settings, **content, "rejected": [], "rejection_groups": []})

    def _figures(self, names: list[str], settings: Settings) -> FigureTable:
        """The figures of the forecasters and, behind them, of the references."""
        everybody = [*names, *REFERENCES]
        means = mean_panel(self._options)
        if groups := self._settings.get("event_groups"):
            means = with_event_groups(means, groups)
        rows = pl.concat(
            [
                sums.join(
                    pl.DataFrame({"forecaster": forecaster_names, "row": range(start, start + len(forecaster_names))}),
                    on="forecaster",
                )
                for sums, forecaster_names, start in (
                    (self._sums, names, 0),
                    (event_table(references(means), settings), list(REFERENCES), len(names)),
                )
            ]
        )
        events = rows["event"].unique().sort()
        row = rows["row"].to_numpy()
        place, shape = row * len(events) + events.search_sorted(rows["event"]).to_numpy(), (len(everybody), len(events))

        def dense(column: str) -> Floats:
            return np.bincount(place, rows[column].to_numpy(), shape[0] * shape[1]).astype(np.float64).reshape(shape)

        answered = np.bincount(row, rows["n"].to_numpy(), len(everybody)).astype(np.int64)
        table = FigureTable(everybody, len(names), answered, len(events), settings)
        table.set_figure("n", answered)
        table.set_figure("coverage", answered / max(self._question_count(), 1))
        for ranking, key, lower, gamma in rankings(settings):
            ruined = dense(f"{ranking} ruins").sum(axis=1) > 0
            sums = np.where(ruined[:, None], np.nan, dense(f"{ranking} sum"))
            table.add_mean(
                ranking, EventSums(sums, dense(f"{ranking} weight")), ruined, lower=lower, key=key, under=gamma
            )
            if key == "average_return":
                table.set_figure("net_return", table.figures[key][gamma] - 1, gamma)
        if "brier" in table.rankings:
            table.set_figure("rank_range", table.figures["rank_ranges"]["brier"])
        return table
