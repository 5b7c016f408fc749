"""Calibration of bets: how often the side won, by the confidence that the stake implies."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from forecast_rank.metrics.calibration import ece, ece_noise_floor, murphy_decomposition, reliability_curve
from forecast_rank.metrics.panel import from_arrays

from scoring.constants import MARKET
from scoring.models import BrierScore


def bet_calibration(methodology: str = "", known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The number of resolved bets, and by family (and `market`) the reliability diagram, its error and Brier parts.

    Returns `known` if it has as many bets: scores never change.
    """
    scores = BrierScore.objects.order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    number = scores.count()
    if known and known.get("bets") == number:
        return dict(known)
    by_family: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    market: list[tuple[float, bool]] = []
    columns = ("agent__family__slug", "agent__family__external", "probability", "market_probability", "outcome")
    for slug, external, confidence, price, won in scores.values_list(*columns):
        by_family[slug].append((confidence, won))
        if not external:
            market.append((price, won))
    rows = {slug: _calibrated(pairs) for slug, pairs in sorted(by_family.items())}
    return {"bets": number, "families": rows, MARKET: _calibrated(market) if market else None}


def _calibrated(pairs: list[tuple[float, bool]]) -> dict[str, Any]:
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
                "forecast": float(curve.forecast[0, place]),
                "outcome": float(curve.outcome[0, place]),
                "low": float(curve.low[0, place]),
                "high": float(curve.high[0, place]),
                "weight": float(curve.weight[0, place]),
                "pairs": int(curve.pairs[0, place]),
            }
            for place in range(curve.pairs.shape[1])
            if curve.pairs[0, place]
        ],
    }
