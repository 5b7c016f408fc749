"""Figures by forecaster, each with its interval, rank range and ranking.

References are scored in the same columns behind the forecasters, so that all share one set of resamples. Ranks are
among the forecasters; the rank range of a reference is the one it would have among them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from forecast_rank.metrics.panel import Codes, Floats, Panel, references
from forecast_rank.metrics.resampled_ranks import probability_best, rank_range
from forecast_rank.metrics.uncertainty import (
    EventSums,
    bca_interval,
    bootstrap_means,
    cluster_se,
    event_sums,
    percentile_interval,
    resample_counts,
)
from forecast_rank.ranking.settings import Settings

INTEGER_FIGURES = frozenset({"rank_range", "rank_ranges"})
"""Figures with integer values, stored as floats because they may be missing."""


class Scoreboard:
    """The figures of N forecasters and of the references behind them.

    Attributes
    ----------
    panel : Panel
        Forecasts of forecasters and references together.
    figures : dict
        Key of the report to an array of shape (N + references, …), or to a dict of such arrays by gamma or ranking.
    rankings : dict of str to array, shape (N,)
        Positions by ranking, the best lowest; NaN without a figure.
    """

    def __init__(self, panel: Panel, settings: Settings, reference_panel: Panel | None = None) -> None:
        self.panel = concatenate_panels(panel, references(panel) if reference_panel is None else reference_panel)
        self.settings = settings
        self.forecaster_count = len(panel.forecasters)
        self.figures: dict[str, Any] = {}
        self.rankings: dict[str, Floats] = {}

    @cached_property
    def counts(self) -> NDArray[np.uint8]:
        """How often each event is drawn in each resample, the same for every metric."""
        events = len(np.unique(self.panel.questions.event[self.panel.question]))
        return resample_counts(events, self.settings.bootstrap, self.settings.seed)

    @cached_property
    def single_event(self) -> NDArray[np.bool_]:
        """Whether each forecaster has forecasts on fewer than two events, so that no spread is known."""
        return event_sums(self.panel, np.zeros(len(self.panel))).events < 2

    def set_figure(self, key: str, values: NDArray, under: str | None = None) -> None:
        """Stores a figure of all forecasters and references; `under` is its gamma, ranking or category."""
        if under is None:
            self.figures[key] = values
        else:
            self.figures.setdefault(key, {})[under] = values

    def add_score(
        self,
        ranking: str,
        values: Floats,
        *,
        lower: bool,
        key: str | None = None,
        under: str | None = None,
        weight: Floats | None = None,
    ) -> None:
        """Stores the means of a score of each forecast, (F,), with errors and intervals, and ranks by them.

        A forecaster with an infinite loss is ranked last.
        """
        key = key or ranking
        sums = event_sums(self.panel if weight is None else replace(self.panel, weight=weight), values)
        ruined = np.bincount(self.panel.forecaster, np.isinf(values), len(sums.means)) > 0
        means = np.where(ruined, np.inf if lower else -np.inf, sums.means)
        self.set_figure(key, means, under)
        self.set_figure(f"{key}_se", cluster_se(sums), under)
        if not self.settings.bootstrap:
            self.add_ranking(ranking, means, None, lower=lower)
            return
        draws = bootstrap_means(sums, self.counts)
        self.set_figure(f"{key}_ci", self._interval(draws, sums), under)
        self.add_ranking(ranking, means, draws, lower=lower)

    def interval(self, draws: Floats) -> Floats:
        """The percentile interval of draws, at the level of the settings."""
        return percentile_interval(draws, self.settings.level)

    def _interval(self, draws: Floats, sums: EventSums) -> Floats:
        if self.settings.interval == "bca":
            return bca_interval(draws, sums, self.settings.level)
        return self.interval(draws)

    def add_estimate(
        self,
        ranking: str,
        value: Floats,
        error: Floats,
        *,
        lower: bool,
        key: str,
        difference_error: Floats | None = None,
    ) -> None:
        """Stores a model's estimates, (N + references,), with normal intervals, and ranks by them.

        Ranks are drawn from independent normal distributions. `difference_error` holds the errors of differences
        between forecasters, without the error that is common to all.
        """
        self.set_figure(key, value)
        reach = float(ndtri((1 + self.settings.level) / 2)) * error
        self.set_figure(f"{key}_ci", np.stack([value - reach, value + reach], axis=1))
        draws = None
        if self.settings.bootstrap:
            noise = np.random.default_rng(self.settings.seed).normal(size=(self.settings.bootstrap, len(value)))
            spread = error if difference_error is None else difference_error
            draws = np.where(np.isnan(spread), np.nan, value + noise * spread)
        self.add_ranking(ranking, value, draws, lower=lower)

    def add_ranking(self, ranking: str, values: Floats, draws: Floats | None, *, lower: bool) -> None:
        """Ranks the forecasters by a figure that somebody has; rank ranges come from draws, (R, N + references)."""
        own = values[: self.forecaster_count]
        if not np.isfinite(own).any():
            return
        self.rankings[ranking] = own if lower else -own
        ranges = np.full((len(values), 2), np.nan)
        best = np.full(len(values), np.nan)
        if draws is not None:
            level, forecasters = self.settings.level, np.arange(self.forecaster_count)
            ranges[forecasters] = rank_range(draws[:, forecasters], own, lower_is_better=lower, level=level)
            best[forecasters] = probability_best(draws[:, forecasters], own, lower_is_better=lower)
            for reference in range(self.forecaster_count, len(values)):
                compared = np.append(forecasters, reference)
                ranges[reference] = rank_range(
                    draws[:, compared], values[compared], lower_is_better=lower, level=level
                )[-1]
        self.set_figure("rank_ranges", ranges, ranking)
        self.set_figure("probability_best", best, ranking)

    def order(self, ranking: str) -> list[int]:
        """Indices of the forecasters from best to worst, ties by name, those without a figure last."""
        positions, names = self.rankings[ranking], self.panel.forecasters
        return sorted(range(self.forecaster_count), key=lambda i: (np.isnan(positions[i]), positions[i], names[i]))

    def entry(self, index: int) -> dict[str, Any]:
        """The figures of one forecaster or reference as JSON values."""
        return {key: _of(values, index, integers=key in INTEGER_FIGURES) for key, values in self.figures.items()}


def _of(values: Any, index: int, *, integers: bool) -> Any:
    if isinstance(values, Mapping):
        return {name: _of(part, index, integers=integers) for name, part in values.items()}
    value = to_json_value(values[index])
    return [int(rank) for rank in value] if integers and value is not None else value


def to_json_value(value: Any) -> Any:
    """A NumPy number or array as Python values; None for infinite or missing numbers and for an array of them."""
    if isinstance(value, np.ndarray):
        items = [to_json_value(item) for item in value]
        return None if items and all(item is None for item in items) else items
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating | float):
        return float(value) if np.isfinite(value) else None
    return value


def to_json_list(values: Floats) -> list[float | None]:
    """An array as Python numbers, None for infinite or missing values."""
    return [float(value) if np.isfinite(value) else None for value in values]


def concatenate_panels(panel: Panel, others: Panel) -> Panel:
    """Forecasts of two panels with the same questions as one panel; the forecasters of `others` come last."""
    forecaster = np.concatenate([panel.forecaster, others.forecaster + len(panel.forecasters)])
    question = np.concatenate([panel.question, others.question])
    order = np.lexsort((forecaster, question))
    sizes = np.concatenate([panel.sizes, others.sizes])[order]
    starts = np.concatenate([panel.offsets[:-1], others.offsets[:-1] + panel.offsets[-1]])[order]
    offsets: Codes = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)

    def joined(name: str, places: Codes) -> Floats:
        return np.concatenate([getattr(panel, name), getattr(others, name)])[places]

    return replace(
        panel,
        forecasters=[*panel.forecasters, *others.forecasters],
        forecaster=forecaster[order],
        question=question[order],
        offsets=offsets,
        probability=joined("probability", cells),
        odds=joined("odds", cells),
        no_odds=joined("no_odds", cells),
        weight=joined("weight", order),
        made_at=joined("made_at", order),
        quote=None if panel.quote is None or others.quote is None else joined("quote", cells),
    )
