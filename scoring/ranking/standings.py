"""Figures by forecaster as they are gathered: each with its interval, its rank range and its place in a ranking.

The references stand in the same columns behind the forecasters, so that one resample of the events is shared by all;
ranks are among the forecasters alone, and a reference's rank range is that of a guest among them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from scoring.metrics.panel import Codes, Floats, Panel, references
from scoring.metrics.uncertainty import (
    EventSums,
    bca_interval,
    bootstrap_means,
    cluster_se,
    event_sums,
    percentile_interval,
    probability_best,
    rank_range,
    resample_counts,
)
from scoring.ranking.settings import Settings

WHOLE = frozenset({"rank_range", "rank_ranges"})
"""Figures that are whole numbers, and kept as floats only because they may be missing."""


class Standings:
    """What is known of N forecasters and the references behind them.

    panel : the forecasters' and the references' forecasts in one
    figures : key of the contract to an array (N + references, …), or to such arrays by gamma
    rankings : name to the positions of the forecasters, (N,), the best lowest, NaN where there is no figure
    """

    def __init__(self, panel: Panel, settings: Settings, guests: Panel | None = None) -> None:
        self.panel, self.settings = joined(panel, references(panel) if guests is None else guests), settings
        self.people = len(panel.forecasters)
        self.figures: dict[str, Any] = {}
        self.rankings: dict[str, Floats] = {}

    @cached_property
    def counts(self) -> NDArray[np.uint8]:
        """How often each event is drawn in each resample, the same for every metric."""
        events = len(np.unique(self.panel.questions.event[self.panel.question]))
        return resample_counts(events, self.settings.bootstrap, self.settings.seed)

    @cached_property
    def lone(self) -> NDArray[np.bool_]:
        """Who spoke on fewer than two events, so that nothing is known of their spread."""
        return event_sums(self.panel, np.zeros(len(self.panel))).events < 2

    def put(self, key: str, values: NDArray, under: str | None = None) -> None:
        """Keeps a figure of everybody; `under` is the gamma it belongs to."""
        if under is None:
            self.figures[key] = values
        else:
            self.figures.setdefault(key, {})[under] = values

    def measure(
        self,
        ranking: str,
        values: Floats,
        *,
        lower: bool,
        key: str | None = None,
        under: str | None = None,
        weight: Floats | None = None,
    ) -> None:
        """Keeps the means of a score of each forecast, (F,), with their intervals, and ranks by them."""
        key = key or ranking
        sums = event_sums(self.panel if weight is None else replace(self.panel, weight=weight), values)
        self.put(key, sums.means, under)
        self.put(f"{key}_se", cluster_se(sums), under)
        if not self.settings.bootstrap:
            self.rank(ranking, sums.means, None, lower=lower)
            return
        draws = bootstrap_means(sums, self.counts)
        self.put(f"{key}_ci", self._interval(draws, sums), under)
        self.rank(ranking, sums.means, draws, lower=lower)

    def interval(self, draws: Floats) -> Floats:
        """The middle of the draws, at the level asked for."""
        return percentile_interval(draws, self.settings.level)

    def _interval(self, draws: Floats, sums: EventSums) -> Floats:
        if self.settings.interval == "bca":
            return bca_interval(draws, sums, self.settings.level)
        return self.interval(draws)

    def fitted(
        self, ranking: str, value: Floats, error: Floats, *, lower: bool, key: str, apart: Floats | None = None
    ) -> None:
        """Keeps a model's estimates, (N + references,), with normal intervals, and ranks by them.

        Ranks are drawn from independent normals; `apart` holds the errors of what sets forecasters apart, where those
        are known without what moves all of them together.
        """
        self.put(key, value)
        reach = float(ndtri((1 + self.settings.level) / 2)) * error
        self.put(f"{key}_ci", np.stack([value - reach, value + reach], axis=1))
        draws = None
        if self.settings.bootstrap:
            noise = np.random.default_rng(self.settings.seed).normal(size=(self.settings.bootstrap, len(value)))
            spread = error if apart is None else apart
            draws = np.where(np.isnan(spread), np.nan, value + noise * spread)
        self.rank(ranking, value, draws, lower=lower)

    def rank(self, ranking: str, values: Floats, draws: Floats | None, *, lower: bool) -> None:
        """Ranks the forecasters by their figures, and gives everybody a rank range from draws (R, N + references)."""
        own = values[: self.people]
        if np.isnan(own).all():
            return
        self.rankings[ranking] = own if lower else -own
        ranges = np.full((len(values), 2), np.nan)
        best = np.full(len(values), np.nan)
        if draws is not None:
            level, people = self.settings.level, np.arange(self.people)
            ranges[people] = rank_range(draws[:, people], own, lower_is_better=lower, level=level)
            best[people] = probability_best(draws[:, people], own, lower_is_better=lower)
            for guest in range(self.people, len(values)):
                among = np.append(people, guest)
                ranges[guest] = rank_range(draws[:, among], values[among], lower_is_better=lower, level=level)[-1]
        self.put("rank_ranges", ranges, ranking)
        self.put("probability_best", best, ranking)

    def order(self, ranking: str) -> list[int]:
        """The forecasters from best to last, equals by name; those without a figure last."""
        positions, names = self.rankings[ranking], self.panel.forecasters
        return sorted(range(self.people), key=lambda i: (np.isnan(positions[i]), positions[i], names[i]))

    def entry(self, who: int) -> dict[str, Any]:
        """The figures of one forecaster or reference, as JSON has them."""
        return {key: _of(values, who, whole=key in WHOLE) for key, values in self.figures.items()}


def _of(values: Any, who: int, *, whole: bool) -> Any:
    if isinstance(values, Mapping):
        return {name: _of(part, who, whole=whole) for name, part in values.items()}
    value = plain(values[who])
    return [int(rank) for rank in value] if whole and value is not None else value


def plain(value: Any) -> Any:
    """Numbers and lists of Python for those of NumPy; null for what is not finite, or holds only such."""
    if isinstance(value, np.ndarray):
        items = [plain(item) for item in value]
        return None if items and all(item is None for item in items) else items
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating | float):
        return float(value) if np.isfinite(value) else None
    return value


def plain_list(values: Floats) -> list[float | None]:
    """Numbers of Python for those of NumPy, null for what is not finite."""
    return [float(value) if np.isfinite(value) else None for value in values]


def joined(panel: Panel, others: Panel) -> Panel:
    """Both panels' forecasts in one, on the questions that they share; the others' forecasters stand behind."""
    forecaster = np.concatenate([panel.forecaster, others.forecaster + len(panel.forecasters)])
    question = np.concatenate([panel.question, others.question])
    order = np.lexsort((forecaster, question))
    sizes = np.concatenate([panel.sizes, others.sizes])[order]
    starts = np.concatenate([panel.offsets[:-1], others.offsets[:-1] + panel.offsets[-1]])[order]
    offsets: Codes = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)

    def both(name: str, places: Codes) -> Floats:
        return np.concatenate([getattr(panel, name), getattr(others, name)])[places]

    return replace(
        panel,
        forecasters=[*panel.forecasters, *others.forecasters],
        forecaster=forecaster[order],
        question=question[order],
        offsets=offsets,
        probability=both("probability", cells),
        odds=both("odds", cells),
        no_odds=both("no_odds", cells),
        weight=both("weight", order),
        made_at=both("made_at", order),
        quote=None if panel.quote is None or others.quote is None else both("quote", cells),
    )
