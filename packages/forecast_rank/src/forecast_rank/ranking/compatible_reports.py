"""Reports with the definitions of other packages, under their names."""

from typing import Any

import numpy as np

from forecast_rank.metrics import arena_evaluation_compatibility, pm_rank_compatibility
from forecast_rank.metrics.panel import REFERENCES, Panel, references
from forecast_rank.ranking.json_values import to_json_value
from forecast_rank.ranking.report import agreement_table, assemble_report, data_size, empty_report, set_presence
from forecast_rank.ranking.scoreboard import Scoreboard
from forecast_rank.ranking.settings import Settings

ARENA_EVALUATION_RANKINGS = {"brier": True, "skill": False, "ece": True}
"""The figures that rank, and whether lower is better."""


def rank_with_pm_rank_definitions(panel: Panel, settings: Settings) -> dict[str, Any]:
    """The report with the figures of the package pm_rank, under its names.

    A reference has no pool weight, since it is not in the pool.
    """
    scoreboard = Scoreboard(panel, settings)
    gammas = [float(text) for text in settings.gammas]
    forecaster_figures = pm_rank_compatibility.scores(panel, gammas)
    reference_figures = pm_rank_compatibility.scores(references(panel), gammas)
    reference_figures["pool_weight"] = np.full(len(REFERENCES), np.nan)
    set_presence(scoreboard)
    for name, values in forecaster_figures.items():
        combined = np.concatenate([values, reference_figures[name]])
        scoreboard.set_figure(name, combined)
        scoreboard.add_ranking(name, combined, None, lower=name == "calibration")
    return assemble_report(scoreboard, data_size(panel), empty_report() | {"agreement": agreement_table(scoreboard)})


def rank_with_arena_evaluation_definitions(panel: Panel, settings: Settings) -> dict[str, Any]:
    """The report with the figures of the package arena-evaluation, under its names, and those of its slices."""
    scoreboard = Scoreboard(panel, settings)
    set_presence(scoreboard)
    of_references = arena_evaluation_compatibility.scores(references(panel), bins=settings.bins)
    figures = {}
    for name, values in arena_evaluation_compatibility.scores(panel, bins=settings.bins).items():
        figures[name] = np.concatenate([values, of_references[name]])
        scoreboard.set_figure(name, figures[name])
    for name, lower in ARENA_EVALUATION_RANKINGS.items():
        scoreboard.add_ranking(name, figures[name], None, lower=lower)
    names = panel.forecasters
    slices: dict[str, dict[str, Any]] = {}
    for part, selected in arena_evaluation_compatibility.slices(panel).items():
        of_part = arena_evaluation_compatibility.scores(panel, bins=settings.bins, selected=selected)
        slices[part] = {}
        for place in np.flatnonzero(of_part["n_cells"]).tolist():
            slices[part][names[place]] = {figure: to_json_value(values[place]) for figure, values in of_part.items()}
    columns = arena_evaluation_compatibility.reliability(panel, bins=settings.bins)._asdict()
    curves: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for i, name in enumerate(names):
        for b in range(settings.bins):
            means = {field: to_json_value(column[i, b]) for field, column in columns.items()}
            curves[name].append({"center": (b + 0.5) / settings.bins, **means})
    parts = {"curves": {"reliability": {"forecasters": curves}}, "slices": slices}
    return assemble_report(
        scoreboard, data_size(panel), empty_report() | parts | {"agreement": agreement_table(scoreboard)}
    )
