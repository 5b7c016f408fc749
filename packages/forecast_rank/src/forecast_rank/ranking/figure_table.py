"""Figures by forecaster, each with its interval, rank range and ranking, from sums over events.

References are scored in the same columns behind the forecasters, so that all share one set of resamples. Ranks are
among the forecasters; the rank range of a reference is the one it would have among them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.event_groups import MOST_EVENTS, grouped_events
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.sample_mean import clopper_pearson, clustered_share_intervals
from forecast_rank.metrics.simultaneous_ranks import all_rank_ranges
from forecast_rank.metrics.studentised import NO_SPREAD, has_no_spread, studentised_interval
from forecast_rank.metrics.uncertainty import (
    EventSums,
    bca_interval,
    bootstrap_means,
    cluster_se,
    percentile_interval,
    resample_counts,
)
from forecast_rank.ranking.json_values import to_json_value
from forecast_rank.ranking.names import listed
from forecast_rank.ranking.scores import LIMITS, UNLIMITED
from forecast_rank.ranking.settings import Settings

LEAST_EVENTS = 4
"""Fewer events give no bounded studentised interval."""
LEAST_EVENTS_OF_RETURNS = 40
"""Fewer seldom hold one of the long shots that decide an averaged return: at risk aversion 0 and with heavy tails its
interval holds in 79 % of worlds with 10 events, 87 with 20, 89 with 30, 92 with 40 and 94 with 50."""
INTEGER_FIGURES = frozenset({"rank_range", "rank_ranges"})
"""Figures with integer values, stored as floats because they may be missing."""


class FigureTable:
    """The figures of N forecasters and of the references behind them, from sums over events.

    Attributes
    ----------
    names : list of str
        Of the forecasters, then of the references.
    forecaster_count : int
        N.
    answered : array of int, shape (N + references,)
        Questions of each.
    event_count : int
        Events with forecasts.
    counts : array of int, shape (resamples, events or groups of them)
        How often each is drawn in each resample; empty without resamples.
    figures : dict
        Key of the report to an array of shape (N + references, …), or to a dict of such arrays by gamma or ranking.
    rankings : dict of str to array, shape (N,)
        Positions by ranking, the best lowest; NaN without a figure.
    no_interval : dict of str to str
        By ranking, why forecasters have a figure without an interval.
    unranked : collection of str
        Forecasters with figures that are neither ranked nor compared in pairs.
    """

    def __init__(
        self, names: list[str], forecaster_count: int, answered: Codes, event_count: int, settings: Settings
    ) -> None:
        self.names, self.forecaster_count = names, forecaster_count
        self.answered, self.event_count = answered, event_count
        self.settings = settings
        drawn, resamples = min(event_count, MOST_EVENTS), settings.bootstrap
        self.counts = resample_counts(drawn, resamples or 1, settings.seed)[:resamples]
        self.figures: dict[str, Any] = {}
        self.rankings: dict[str, Floats] = {}
        self.no_interval: dict[str, str] = {}
        self.unranked: Collection[str] = ()

    @cached_property
    def qualified(self) -> NDArray[np.bool_]:
        """Whether each forecaster is to be ranked and has the questions that a rank takes."""
        names = self.names[: self.forecaster_count]
        ranked = np.array([name not in self.unranked for name in names], dtype=bool)
        return ranked & (self.answered[: self.forecaster_count] >= self.settings.min_questions)

    def set_figure(self, key: str, values: NDArray, under: str | None = None) -> None:
        """Stores a figure of all forecasters and references; `under` is its gamma, ranking or category."""
        if under is None:
            self.figures[key] = values
        else:
            self.figures.setdefault(key, {})[under] = values

    def add_mean(
        self,
        ranking: str,
        sums: EventSums,
        ruined: NDArray,
        *,
        lower: bool,
        key: str,
        under: str | None = None,
        limits: tuple[float, float] | None = None,
    ) -> None:
        """Stores means with errors and intervals, and ranks by them. Who is `ruined` by an infinite loss is last.

        The intervals end at the `limits`, those of the score if not given.
        """
        means = np.where(ruined, np.inf if lower else -np.inf, sums.means)
        self.set_figure(key, means, under)
        self.set_figure(f"{key}_se", cluster_se(sums), under)
        groups = self._groups(sums)
        if key == "accuracy" and limits is None and self.settings.bootstrap:
            ends = clustered_share_intervals(sums, level=self.settings.level)
        else:
            ends = np.clip(self._interval(sums, groups), *(limits or self._limits(key)))
        least = LEAST_EVENTS
        if key == "average_return" and limits is None:
            least = LEAST_EVENTS_OF_RETURNS
            ends[sums.events < least] = np.nan
        constant = has_no_spread(sums)
        self.set_interval(
            f"{key}_ci", ends, means, sums.events, ranking=ranking, under=under, least=least, constant=constant
        )
        self.add_ranking(ranking, means, sums, groups, lower=lower)

    def add_share(self, key: str, sums: EventSums) -> None:
        """Stores shares of forecasts, in [0, 1], with errors and intervals."""
        self.set_figure(key, sums.means)
        self.set_figure(f"{key}_se", cluster_se(sums))
        ends = np.clip(self._interval(sums, self._groups(sums)), 0.0, 1.0)
        ends = self._proportions(ends, sums.means, sums.events)
        self.set_interval(f"{key}_ci", ends, sums.means, sums.events, ranking=key, constant=has_no_spread(sums))

    def add_estimate(
        self,
        ranking: str,
        values: Floats,
        sums: EventSums,
        *,
        lower: bool,
        key: str,
        least: int = LEAST_EVENTS,
        stretch: float = 1.0,
        ranked: bool = True,
        limits: tuple[float, float] | None = None,
        freedom: Floats | None = None,
    ) -> None:
        """Stores a model's estimates with intervals, and ranks by them; `sums` are the estimates as means over events.

        A forecaster without sums, whose error is not known, has no interval and may have any rank; one with fewer than
        `least` events has no interval. An interval holds its own ends times `stretch` too, and ends at the `limits`,
        those of the score if not given, or at an estimate beyond them. `freedom` are the degrees of freedom of each,
        where events differ in size; one less than the number of events if not given.
        """
        self.set_figure(key, values)
        groups = self._groups(sums)
        ends = np.where((sums.events >= least)[:, None], self._interval(sums, groups, freedom), np.nan)
        low, high = ends.T
        lowest, highest = limits or self._limits(key)
        low = np.maximum(np.minimum(low, low * stretch), np.fmin(values, lowest))
        high = np.minimum(np.maximum(high, high * stretch), np.fmax(values, highest))
        ends = np.stack([low, high], axis=1)
        self.set_interval(f"{key}_ci", ends, values, sums.events, ranking=ranking, least=least)
        if not ranked:
            return
        unknown = ~np.isnan(values) & (sums.events == 0)
        if unknown.any():
            sums, groups = (
                EventSums(np.where(unknown[:, None], np.nan, part.sums), np.where(unknown[:, None], 1.0, part.weights))
                for part in (sums, groups)
            )
        self.add_ranking(ranking, values, sums, groups, lower=lower, freedom=freedom)

    def set_interval(
        self,
        key: str,
        ends: Floats,
        values: Floats,
        events: Codes,
        *,
        ranking: str,
        under: str | None = None,
        least: int = LEAST_EVENTS,
        constant: NDArray[np.bool_] | None = None,
    ) -> None:
        """Stores intervals, and why forecasters with a value have none. One of width 0 is none.

        `constant` tells whose score is the same on all events.
        """
        width = ends[:, 1] - ends[:, 0]
        without_width = width <= NO_SPREAD * np.maximum(np.abs(ends[:, 0]), np.abs(ends[:, 1]))
        ends = np.where(without_width[:, None], np.nan, ends)
        constant = without_width if constant is None else without_width | constant
        if self.settings.bootstrap:
            self.set_figure(key, ends, under)
        self._explain(ranking, values, np.isnan(ends.sum(axis=1)), events, least, constant)

    def _limits(self, key: str) -> tuple[float, float]:
        """The range of a score."""
        if key == "log" and self.settings.log_clip:
            return float(np.log(self.settings.log_clip)), 0.0
        return LIMITS.get(key, UNLIMITED)

    def _groups(self, sums: EventSums) -> EventSums:
        """The sums of groups of events, which are resampled; without resamples the sums of the events."""
        return grouped_events(sums, MOST_EVENTS, self.settings.seed) if self.settings.bootstrap else sums

    def _interval(self, sums: EventSums, groups: EventSums, freedom: Floats | None = None) -> Floats:
        """Intervals of the kind that the settings name; NaN without resamples."""
        if not self.settings.bootstrap:
            return np.full((len(sums.sums), 2), np.nan)
        if self.settings.interval == "studentised":
            return studentised_interval(sums, self.counts, self.settings.level, drawn=groups, freedom=freedom)
        draws = bootstrap_means(groups, self.counts)
        if self.settings.interval == "bca":
            return bca_interval(draws, sums, self.settings.level)
        return percentile_interval(draws, self.settings.level)

    def _proportions(self, ends: Floats, means: Floats, events: Codes) -> Floats:
        """The intervals with Clopper and Pearson's, an event counting once, where all forecasts succeeded or none."""
        pure = ((means == 0) | (means == 1)) & (events >= LEAST_EVENTS) & (self.settings.bootstrap > 0)
        exact = clopper_pearson(np.where(pure, means, 0), np.maximum(events, 1), level=self.settings.level)
        return np.where(pure[:, None], exact, ends)

    def _explain(
        self,
        ranking: str,
        values: Floats,
        missing: NDArray[np.bool_],
        events: Codes,
        least: int,
        constant: NDArray[np.bool_],
    ) -> None:
        """Says why forecasters with a figure have no interval."""
        without = [i for i in range(self.forecaster_count) if missing[i] and not np.isnan(values[i])]
        if not without:
            return
        if not self.settings.bootstrap:
            self.no_interval[ranking] = "no resamples"
            return
        groups: dict[str, list[str]] = {}
        for i in without:
            if np.isinf(values[i]):
                why = "the expected loss after a ruin is unbounded"
            elif events[i] == 0:
                why = "the model gives no standard error"
            elif events[i] < least:
                why = f"fewer than {least} events"
            elif constant[i]:
                why = "the score is the same on all events"
            else:
                why = "too few events with a score unlike the others"
            groups.setdefault(why, []).append(self.names[i])
        self.no_interval[ranking] = "; ".join(f"{why}: {listed(names)}" for why, names in groups.items())

    def add_ranking(
        self,
        ranking: str,
        values: Floats,
        sums: EventSums | None,
        groups: EventSums | None = None,
        *,
        lower: bool,
        freedom: Floats | None = None,
    ) -> None:
        """Ranks the forecasters by a figure that somebody has; rank ranges come from its event sums.

        `groups` are the sums of groups of events, which are resampled.
        """
        values = self._of_ranked(values)
        forecaster_values = values[: self.forecaster_count]
        if not np.isfinite(forecaster_values).any():
            return
        self.rankings[ranking] = forecaster_values if lower else -forecaster_values
        ranges = np.full((len(values), 2), np.nan)
        if sums is not None and groups is not None and self.settings.bootstrap:
            absent = np.isnan(self._of_ranked(np.zeros(len(values))))[:, None]
            if absent.any():
                sums, groups = (
                    EventSums(np.where(absent, 0.0, part.sums), np.where(absent, 0.0, part.weights))
                    for part in (sums, groups)
                )
            ranges = all_rank_ranges(
                sums, self.forecaster_count, lower_is_better=lower, level=self.settings.level, freedom=freedom
            )
        self.set_figure("rank_ranges", ranges, ranking)

    def _of_ranked(self, rows: Floats) -> Floats:
        """The rows of the references and of forecasters with enough questions; NaN for the others."""
        absent = np.zeros(len(rows), dtype=bool)
        absent[: self.forecaster_count] = ~self.qualified
        return np.where(absent.reshape(-1, *[1] * (rows.ndim - 1)), np.nan, rows)

    def include(self, table: FigureTable) -> None:
        """Takes over the figures and rankings of a table of the same forecasters and references that it lacks."""
        for key, values in table.figures.items():
            if isinstance(values, dict):
                figures = self.figures.setdefault(key, {})
                figures |= {name: part for name, part in values.items() if name not in figures}
            else:
                self.figures.setdefault(key, values)
        self.rankings |= {name: values for name, values in table.rankings.items() if name not in self.rankings}
        self.no_interval |= {name: why for name, why in table.no_interval.items() if name not in self.no_interval}

    def order(self, ranking: str) -> list[int]:
        """Indices of the forecasters with a rank from best to worst, ties by name, those without a figure last."""
        positions, names = self.rankings[ranking], self.names
        ranked = np.flatnonzero(self.qualified).tolist()
        return sorted(ranked, key=lambda i: (np.isnan(positions[i]), positions[i], names[i]))

    def entries(self) -> list[dict[str, Any]]:
        """The figures of each forecaster and reference as JSON values."""
        columns = {key: _json_column(values, integers=key in INTEGER_FIGURES) for key, values in self.figures.items()}
        entries = []
        for index in range(len(self.names)):
            entries.append({key: column[index] for key, column in columns.items()})
        return entries


def _json_column(values: Any, *, integers: bool) -> list[Any]:
    """One figure of everybody; a dictionary of such figures by gamma, ranking or category as one of each."""
    if isinstance(values, Mapping):
        columns = {name: _json_column(part, integers=integers) for name, part in values.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    column = [to_json_value(value) for value in (values.tolist() if values.ndim == 1 else values)]
    return [value and [int(rank) for rank in value] for value in column] if integers else column
