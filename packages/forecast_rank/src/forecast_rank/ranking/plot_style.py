"""What the pictures of a report have in common: colours, names and titles as they can be drawn."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from forecast_rank.ranking.names import distinct_names
from forecast_rank.ranking.scores import LABELS

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F5A2E")
"""Okabe and Ito's palette, which readers with colour-blindness can tell apart, its yellow made dark enough to see."""
DASHES = {"market": (0, (5, 1.5)), "uniform": (0, (1, 1.5)), "ensemble": (0, (4, 1.5, 1, 1.5))}
GREY, DARK = "#b5b5b5", "#404040"
LINES_SHOWN = len(COLOURS)
PANELS_SHOWN = 12
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "forecaster-arena",
    "svg.fonttype": "none",
}

Report = dict[str, Any]


def ranking_title(ranking: str) -> str:
    name, _, gamma = ranking.partition(":")
    label = LABELS.get(name, name.replace("_", " "))
    return f"{label}, γ = {gamma}" if gamma else label


def line_values(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def drawn_names(names: Iterable[str], width: int = 20) -> dict[str, str]:
    """The names as they can be drawn: on one line, shortened so that they differ, without formulas."""
    return {name: short.replace("$", r"\$") for name, short in distinct_names(names, width).items()}


def hide_unused(axes: np.ndarray, is_used: int) -> None:
    """Hides unused axes; those above them then show the scale."""
    for number, axis in enumerate(axes.flat):
        axis.set_visible(number < is_used)
        axis.tick_params(labelbottom=number + axes.shape[1] >= is_used)
