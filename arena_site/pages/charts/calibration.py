"""Figures of calibration: reliability diagrams of forecasts, and stakes against forecasts."""

from collections.abc import Sequence
from datetime import datetime

from arena_site.pages.charts.diagrams import SquareDiagram, reliability_grid, stakes_grid
from arena_site.pages.charts.figures import Figure

RELIABILITY_NOTE = (
    "Each marker is one of ten bins: larger markers hold more forecasts, and n is their number. On the dashed line "
    "calibration is perfect. The 95 % Wilson intervals treat forecasts as independent, so they are too short."
)
STAKES_NOTE = (
    "Each marker is a bet, filled where the side won: the latest 200 bets of each model on markets for which the same "
    "release stated a probability at the same frozen prices. On the dashed line the stake equals the forecast."
)


def reliability_figure(
    diagrams: Sequence[SquareDiagram],
    *,
    name: str = "calibration",
    forecasters: str = "each forecaster",
    condition: str = "",
    at: datetime | None,
    query: str = "",
) -> Figure | None:
    """Reliability diagrams of stated probabilities; None without diagrams.

    `forecasters` names who stated them, `condition` the prompt condition where all diagrams have one.
    """
    if not diagrams:
        return None
    statement = f"How often events happened, by the probability that {forecasters} gave them"
    title = f"{statement}, {condition}." if condition else f"{statement}."
    return Figure(name, title, reliability_grid(diagrams), RELIABILITY_NOTE, at=at, query=query)


def stakes_figure(diagrams: Sequence[SquareDiagram], *, at: datetime | None, query: str = "") -> Figure | None:
    """Scatter plots of stakes over stated probabilities; None without diagrams."""
    if not diagrams:
        return None
    title = "How much each model staked, by the probability that it gave the side that it bought."
    return Figure("stakes-by-forecast", title, stakes_grid(diagrams), STAKES_NOTE, at=at, query=query)
