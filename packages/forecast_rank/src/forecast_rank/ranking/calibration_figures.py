"""Figures of calibration: errors, decompositions of the Brier score, and reliability diagrams."""

from typing import Any

import numpy as np

from forecast_rank.metrics.calibration import (
    ReliabilityCurve,
    ece,
    ece_noise_floor,
    max_calibration_error,
    murphy_decomposition,
    reliability_curve,
    sharpness,
)
from forecast_rank.metrics.calibration_error import ece_debiased
from forecast_rank.metrics.corp import CorpDecomposition
from forecast_rank.metrics.distinct_pairs import brier_parts, distinct_pairs
from forecast_rank.metrics.panel import Panel
from forecast_rank.ranking.json_values import to_json_value
from forecast_rank.ranking.scoreboard import Scoreboard


def calibration_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    combined, bins = scoreboard.panel, scoreboard.settings.bins
    scoreboard.set_figure("ece", ece(combined, bins))
    scoreboard.add_calibration_error(bins)
    scoreboard.set_figure("ece_noise_floor", ece_noise_floor(combined, bins))
    scoreboard.set_figure("ece_debiased", ece_debiased(combined, bins))
    scoreboard.set_figure("max_calibration_error", max_calibration_error(combined, bins))
    parts = np.full((4, len(combined.forecasters)), np.nan)
    for person, pairs in distinct_pairs(combined):
        parts[:, person] = brier_parts(pairs)
    scoreboard.set_figure("sharpness", sharpness(combined))
    for name, part in murphy_decomposition(combined, bins)._asdict().items():
        scoreboard.set_figure("murphy", part, name)
    for name, part in CorpDecomposition(*parts)._asdict().items():
        scoreboard.set_figure("corp", part, name)
    curve = reliability_curve(combined, bins, level=scoreboard.settings.level)
    curves: dict[str, dict[str, Any]] = {"forecasters": {}, "references": {}}
    for i, name in enumerate(combined.forecasters):
        group = "forecasters" if i < scoreboard.forecaster_count else "references"
        curves[group][name] = [_reliability_bin(curve, i, b) for b in np.flatnonzero(curve.pairs[i]).tolist()]
    report["curves"]["reliability"] = curves


def _reliability_bin(curve: ReliabilityCurve, i: int, b: int) -> dict[str, Any]:
    entry = {"from": to_json_value(curve.edges[i, b]), "to": to_json_value(curve.edges[i, b + 1])}
    for name in ("forecast", "outcome", "weight", "pairs", "low", "high"):
        entry[name] = to_json_value(getattr(curve, name)[i, b])
    return entry
