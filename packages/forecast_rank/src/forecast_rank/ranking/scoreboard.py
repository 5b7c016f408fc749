"""The figures of a panel: forecasters and the references behind them."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from forecast_rank.metrics.calibration_bins import share_bins
from forecast_rank.metrics.calibration_error import unbiased_ece_at_levels
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel, references
from forecast_rank.metrics.uncertainty import RESAMPLES, event_sums, resample_counts
from forecast_rank.ranking.figure_table import FigureTable
from forecast_rank.ranking.settings import Settings

MOST_EVENTS_OF_BINS = 1000
"""More events are merged at random for the bootstrap of the calibration error, which has sums for every bin."""


class Scoreboard(FigureTable):
    """The figures of a panel.

    Attributes
    ----------
    panel : Panel
        Forecasts of forecasters and references together.
    """

    def __init__(self, panel: Panel, settings: Settings, reference_panel: Panel | None = None) -> None:
        beside = references(panel.uncached()) if reference_panel is None else reference_panel
        self.panel = concatenate_panels(panel, beside)
        names = self.panel.forecasters
        answered = np.bincount(self.panel.forecaster, minlength=len(names))
        super().__init__(names, len(panel.forecasters), answered, len(self.panel.events[0]), settings)

    def copy(self) -> Scoreboard:
        """A scoreboard of the same forecasts and figures, to which more can be added without a change of this one."""
        duplicate = copy(self)
        duplicate.panel = self.panel.uncached()
        duplicate.figures = {key: dict(part) if isinstance(part, dict) else part for key, part in self.figures.items()}
        duplicate.rankings, duplicate.no_interval = dict(self.rankings), dict(self.no_interval)
        return duplicate

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
        """Stores the means of a score of each forecast, (F,), with errors and intervals, and ranks by them."""
        sums = event_sums(self.panel if weight is None else replace(self.panel, weight=weight), values)
        ruined = np.bincount(self.panel.forecaster, np.isinf(values), len(sums.means)) > 0
        self.add_mean(ranking, sums, ruined, lower=lower, key=key or ranking, under=under)

    def add_calibration_error(self, bins: int) -> None:
        """Stores the unbiased calibration error with its interval, and ranks by it."""
        level, events = self.settings.level, event_sums(self.panel, np.zeros(len(self.panel))).events
        panel = merged_events(self.panel, MOST_EVENTS_OF_BINS, self.settings.seed)
        share_bins(self.panel, panel, bins)
        groups = min(self.event_count, MOST_EVENTS_OF_BINS)
        counts = resample_counts(groups, self.settings.bootstrap or RESAMPLES, self.settings.seed)
        # Bonferroni: intervals that hold together do not overlap unless the errors differ.
        together = 1 - (1 - level) / max(self.forecaster_count, 1)
        (values, ends), (_, apart) = unbiased_ece_at_levels(panel, counts, (level, together), bins)
        self.set_figure("ece_unbiased", values)
        self.set_interval("ece_ci", ends, values, events, ranking="calibration")
        self.add_ranking("calibration", values, None, lower=True)
        if not self.settings.bootstrap or "calibration" not in self.rankings:
            return
        values = self._of_ranked(values)
        ranges = _separated(self._of_ranked(apart), values, self.forecaster_count)
        self.set_figure("rank_ranges", ranges, "calibration")


def _separated(intervals: Floats, values: Floats, forecasters: int) -> Floats:
    """Rank ranges by intervals that hold together: only one that ends before another begins is surely better."""
    low, high = intervals[:, 0], intervals[:, 1]
    better = (high[None, :forecasters] < low[:, None]).sum(axis=1)
    worse = (low[None, :forecasters] > high[:, None]).sum(axis=1)
    ranked = ~np.isnan(values)
    rivals = ranked[:forecasters].sum() + (np.arange(len(values)) >= forecasters)
    return np.where(ranked[:, None], np.stack([1 + better, rivals - worse], axis=1), np.nan)


def merged_events(panel: Panel, most: int, seed: int) -> Panel:
    """The panel with its events merged at random into at most so many, which are as independent as they were."""
    codes, place = np.unique(panel.questions.event, return_inverse=True)
    if len(codes) <= most:
        return panel
    group = np.random.default_rng(seed).permutation(len(codes)) % most
    names = [str(k) for k in range(most)]
    return replace(panel, questions=replace(panel.questions, event=group[place], event_names=names))


def concatenate_panels(panel: Panel, references: Panel) -> Panel:
    """Forecasts of two panels with the same questions as one panel; the forecasters of `others` come last."""
    forecaster = np.concatenate([panel.forecaster, references.forecaster + len(panel.forecasters)])
    question = np.concatenate([panel.question, references.question])
    order = np.argsort(question, kind="stable")
    sizes = np.concatenate([panel.sizes, references.sizes])[order]
    starts = np.concatenate([panel.offsets[:-1], references.offsets[:-1] + panel.offsets[-1]])[order]
    offsets: Codes = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)

    def joined(name: str, places: Codes) -> Floats:
        return np.concatenate([getattr(panel, name), getattr(references, name)])[places]

    return replace(
        panel,
        forecasters=[*panel.forecasters, *references.forecasters],
        forecaster=forecaster[order],
        question=question[order],
        offsets=offsets,
        probability=joined("probability", cells),
        odds=joined("odds", cells),
        no_odds=joined("no_odds", cells),
        weight=joined("weight", order),
        made_at=joined("made_at", order),
        quote=None if panel.quote is None or references.quote is None else joined("quote", cells),
    )
