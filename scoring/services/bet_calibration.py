"""Calibration of bets: the share of won sides, by the confidence that the stake implies."""

from collections import defaultdict
from typing import Any

import numpy as np
from forecast_rank.metrics.calibration import ece, ece_noise_floor, murphy_decomposition, reliability_curve
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.ranking.scoreboard import to_json_value

from scoring.constants import MARKET
from scoring.models import BrierScore

BIN_FIGURES = ("forecast", "outcome", "low", "high", "weight", "pairs")


def bet_calibration(methodology: str = "") -> dict[str, Any]:
    """The number of resolved bets, and by family (and `market`) the reliability diagram, its error and Brier parts."""
    scores = BrierScore.objects.order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    by_family: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    market: list[tuple[float, bool]] = []
    columns = ("agent__family__slug", "agent__family__external", "probability", "market_probability", "outcome")
    for slug, external, confidence, price, won in scores.values_list(*columns):
        by_family[slug].append((confidence, won))
        if not external:
            market.append((price, won))
    rows = {slug: _calibration_figures(pairs) for slug, pairs in sorted(by_family.items())}
    return {
        "bets": sum(map(len, by_family.values())),
        "families": rows,
        MARKET: _calibration_figures(market) if market else None,
    }


def _calibration_figures(pairs: list[tuple[float, bool]]) -> dict[str, Any]:
    confidence, won = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    panel = from_arrays([[[each] for each in confidence]], [[each] for each in won], exclusive=False)
    curve = reliability_curve(panel)
    return {
        "n": len(pairs),
        "ece": float(ece(panel)[0]),
        "ece_noise_floor": float(ece_noise_floor(panel)[0]),
        "murphy": {name: float(part[0]) for name, part in murphy_decomposition(panel)._asdict().items()},
        "bins": [
            {
                "from": float(curve.edges[0, place]),
                "to": float(curve.edges[0, place + 1]),
                **{name: to_json_value(getattr(curve, name)[0, place]) for name in BIN_FIGURES},
            }
            for place in np.flatnonzero(curve.pairs[0])
        ],
    }
