"""The content of a report as one dictionary: figures with uncertainty, rankings, pairs, agreement and curves."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import comb
from typing import Any

import numpy as np

from forecast_rank.blas_threads import one_blas_thread
from forecast_rank.metrics.agreement import agreement
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.skill import overround
from forecast_rank.ranking import model_fits, score_figures
from forecast_rank.ranking.calibration_figures import calibration_figures
from forecast_rank.ranking.figure_table import FigureTable
from forecast_rank.ranking.json_values import to_json_value
from forecast_rank.ranking.return_figures import returns
from forecast_rank.ranking.scoreboard import Scoreboard
from forecast_rank.ranking.scores import USUAL_METRICS
from forecast_rank.ranking.settings import MOST_MODELLED, Settings
from forecast_rank.ranking.threads import results_in_order

Progress = Callable[[int, int, str], None]
Part = Callable[[Scoreboard, Panel, dict[str, Any]], None]

EQUAL_COVERAGE = 0.95
"""Forecasters answered the same questions, more or less, if the least coverage is at least so much of the largest."""


def rank_panel(
    panel: Panel,
    settings: Settings,
    progress: Progress = lambda count, of, caption: None,
    reference_panel: Panel | None = None,
    *,
    agreement_of_rankings: bool = True,
    unranked: Collection[str] = (),
) -> dict[str, Any]:
    """The report of a panel: every figure asked for, by forecaster and reference.

    Parameters
    ----------
    panel : Panel
    settings : Settings
    progress : callable
        Called with steps done, steps in all and the name of the next step.
    reference_panel : Panel, optional
        The references, a panel on the same questions; `panel.references(panel)` by default.
    agreement_of_rankings : bool
        Whether to compute `agreement`.
    unranked : collection of str
        Forecasters that every fit includes, with scores, but without rank, rank range and pairs.

    Returns
    -------
    dict
        As in `Report.to_dict`, without settings and rejected rows. Undefined figures are None: without prices, with a
        single event, after ruin.
    """
    with one_blas_thread():
        template = Scoreboard(panel, settings, reference_panel)
        template.unranked = unranked
        return _rank_panel(template, panel, settings, progress, agreement_of_rankings)


def _rank_panel(
    template: Scoreboard, panel: Panel, settings: Settings, progress: Progress, agreement_of_rankings: bool
) -> dict[str, Any]:
    set_presence(template)
    scoreboard, report = template.copy(), empty_report()
    is_too_large = len(panel.forecasters) > MOST_MODELLED and settings.metrics == USUAL_METRICS
    if is_too_large:
        report["notes"].append(_NOT_FITTED)
    captions, functions = [], []
    for metrics, caption, function in _PARTS:
        if set(metrics) & set(settings.metrics) and not (is_too_large and function in _FITTED):
            captions.append(caption)
            functions.append(function)
    compute = partial(_part, template, panel)
    results = results_in_order(compute, functions, len(panel), lambda function: _PRIORITY.get(function, 1))
    for index, caption in enumerate(captions):
        progress(index, len(captions), caption)
        table, of_part = next(results)
        scoreboard.include(table)
        for name, content in of_part.items():
            report[name] = report[name] + content if isinstance(content, list) else report[name] | content
    progress(len(captions), len(captions), "")
    return assemble_report(
        scoreboard,
        data_size(panel.uncached()),
        report | {"agreement": agreement_table(scoreboard) if agreement_of_rankings else {}},
    )


def _part(template: Scoreboard, panel: Panel, function: Part) -> tuple[Scoreboard, dict[str, Any]]:
    """The figures and the report of a group of metrics."""
    scoreboard, report = template.copy(), empty_report()
    function(scoreboard, panel.uncached(), report)
    scoreboard.panel = template.panel  # its copy has cached arrays, half a gigabyte for 20 million rows
    return scoreboard, report


def empty_report() -> dict[str, Any]:
    return {"curves": {}, "pairs": [], "notes": [], "models": {}, "questions": {}}


def assemble_report(
    scoreboard: FigureTable,
    data: dict[str, Any],
    report: dict[str, Any],
    headings: tuple[str, str] = ("brier", "adjusted_brier"),
    *,
    lower: bool = True,
) -> dict[str, Any]:
    """The report of the figures, with the size of the `data` and the other parts in `report`.

    `headings` are the ranking that heads a report, and the one that does so where coverage differs; `lower` tells
    whether a lower score is better in them.
    """
    names, entries = scoreboard.names, scoreboard.entries()
    forecaster_count = scoreboard.forecaster_count
    forecasters = dict(zip(names[:forecaster_count], entries[:forecaster_count], strict=True))
    headline = _headline(scoreboard, *headings)
    better = _shown_better(report["pairs"], 1 - scoreboard.settings.level, lower)
    for ranking in headings:
        ranked = [names[i] for i in scoreboard.order(ranking)] if ranking in scoreboard.rankings else []
        if len(report["pairs"]) == comb(len(ranked), 2) > 0:
            _set_ranges(forecasters, ranking, ranked, better)
    return {
        "headline": headline,
        "forecasters": forecasters,
        "references": dict(zip(names[forecaster_count:], entries[forecaster_count:], strict=True)),
        "rankings": {name: [names[i] for i in scoreboard.order(name)] for name in scoreboard.rankings},
        "no_interval": scoreboard.no_interval,
        "data": data,
        **report,
    }


def _shown_better(pairs: Sequence[Mapping[str, Any]], significance: float, lower: bool) -> set[tuple[str, str]]:
    """The pairs of a better and a worse forecaster that the corrected paired tests tell apart."""
    better = set()
    for pair in pairs:
        if pair["p_holm"] is not None and pair["p_holm"] < significance:
            first_wins = (pair["difference"] < 0) == lower
            better.add((pair["first"], pair["second"]) if first_wins else (pair["second"], pair["first"]))
    return better


def _set_ranges(
    forecasters: Mapping[str, dict[str, Any]], ranking: str, ranked: Sequence[str], better: Collection[tuple[str, str]]
) -> None:
    """Ranges of ranks by the tests of all pairs: no range claims more than a test does.

    A range holds the forecaster's rank, which the raw score of other questions may place outside.
    """
    for rank, name in enumerate(ranked, start=1):
        figures = forecasters[name]
        if figures["rank_ranges"][ranking] is None:
            continue
        low = 1 + sum(worse == name for _, worse in better)
        high = len(ranked) - sum(winner == name for winner, _ in better)
        figures["rank_ranges"][ranking] = [min(low, rank), max(high, rank)]
        if ranking == "brier":
            figures["rank_range"] = figures["rank_ranges"][ranking]


def _headline(scoreboard: FigureTable, plain: str, adjusted: str) -> str | None:
    """The ranking that heads the report: by the adjusted score where coverage differs, else by the plain score.

    With selective answering the raw score ranks the choice of questions: its rank range holds the best forecaster in a
    fifth of simulated worlds, that of the adjusted score in 94 %.
    """
    coverage = scoreboard.figures["coverage"][: scoreboard.forecaster_count][scoreboard.qualified]
    coverage = coverage[coverage > 0]
    differs = len(coverage) > 0 and coverage.min() < EQUAL_COVERAGE * coverage.max()
    preferred = (adjusted, plain) if differs else (plain, adjusted)
    return next((name for name in (*preferred, *scoreboard.rankings) if name in scoreboard.rankings), None)


def data_size(panel: Panel) -> dict[str, Any]:
    """The size of the data."""
    return {
        "forecasters": len(panel.forecasters),
        "questions": len(panel.questions),
        "events": len(np.unique(panel.questions.event)),
        "forecasts": len(panel),
        "options": len(panel.probability),
        "priced": int(panel.priced.sum()),
        "overround": to_json_value(np.nanmean(overround(panel))) if panel.priced.any() else None,
    }


def set_presence(scoreboard: Scoreboard) -> None:
    combined = scoreboard.panel
    n = np.bincount(combined.forecaster, minlength=len(combined.forecasters))
    scoreboard.set_figure("n", n)
    scoreboard.set_figure("coverage", n / max(len(combined.questions), 1))


def agreement_table(scoreboard: FigureTable) -> dict[str, Any]:
    """Rank correlations between all rankings, as tables of name by name."""
    names = scoreboard.names[: scoreboard.forecaster_count]
    correlations = agreement(
        {
            ranking: dict(zip(names, positions.tolist(), strict=True))
            for ranking, positions in scoreboard.rankings.items()
        }
    )
    names = correlations.names
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in ("spearman", "kendall", "common"):
        tables[measure] = {}
        for name, row in zip(names, getattr(correlations, measure), strict=True):
            tables[measure][name] = dict(zip(names, map(to_json_value, row), strict=True))
    return tables


_PARTS: tuple[tuple[tuple[str, ...], str, Part], ...] = (
    (("brier",), "Brier scores and pairs", score_figures.brier_figures),
    (("log",), "log scores", score_figures.log_figures),
    (("spherical",), "spherical scores", score_figures.spherical_figures),
    (("brier", "log", "spherical"), "accuracy", score_figures.accuracy_figures),
    (("ranked_probability",), "ranked probability scores", score_figures.ranked_probability_figures),
    (("average_return",), "averaged returns", returns),
    (("alpha",), "alpha", score_figures.alpha_figures),
    (("calibration",), "calibration", calibration_figures),
    (("adjusted_brier", "thurstone_mosteller"), "Brier scores adjusted for difficulty", model_fits.difficulty_models),
    (("thurstone_mosteller", "bradley_terry"), "Bradley–Terry", model_fits.bradley_terry),
    (("irt", "weighted_brier"), "item response theory", model_fits.response_theory),
    (("auc",), "areas under the ROC curve", score_figures.auc_figures),
)
_FITTED = (model_fits.bradley_terry, model_fits.response_theory)
_NOT_FITTED = (
    f"more than {MOST_MODELLED} forecasters: pool weights, Bradley–Terry, item response theory and the weighted Brier "
    "score are fitted only where asked for, as by --metrics thurstone_mosteller,irt,weighted_brier"
)
_PRIORITY: dict[Part, int] = {returns: 0, model_fits.difficulty_models: 2, model_fits.response_theory: 0}
"""The parts that two threads take first (0) and last (2); all others are 1.

Of many forecasts returns take the longest, and need little memory beside item response theory and the scores. Of a
million the sample's item response theory takes the longest.
"""
