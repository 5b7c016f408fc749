"""Calibration of bets: the share of won sides, by the confidence that the stake implies."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from forecast_rank import Settings, rank_panel
from forecast_rank.metrics.panel import from_arrays
from foundation.bulk import subset
from scoring.constants import MARKET
from scoring.models import BrierScore

FIGURES = ("n", "ece", "ece_noise_floor", "murphy")


def bet_calibration(methodology: str = "", *, at: datetime | None = None) -> dict[str, Any]:
    """The number of resolved bets, and by family (and `market`) the reliability diagram, its error and Brier parts.

    With `at`, the bets on markets that had resolved by then.
    """
    scores = BrierScore.objects.filter(agent__cohort__voided_at=None).order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    columns = ("agent__family__slug", "agent__family__external", "probability", "market_probability", "outcome")
    bets = list(scores.values_list(*columns))
    if not bets:
        return {"bets": 0, "families": {}, MARKET: None}
    forecasters = [*sorted({slug for slug, *_ in bets}), MARKET]
    probability = np.full((len(forecasters), len(bets), 1), np.nan)
    for place, (slug, external, confidence, price, _) in enumerate(bets):
        probability[forecasters.index(slug), place] = confidence
        if not external:
            probability[-1, place] = price
    panel = from_arrays(probability, [[won] for *_, won in bets], exclusive=False)
    panel = replace(panel, forecasters=forecasters)
    no_references = panel.take(np.zeros(len(panel), dtype=bool))
    settings = Settings(("calibration",), bootstrap=0)
    report = rank_panel(panel, settings, reference_panel=no_references, agreement_of_rankings=False)
    bins = report["curves"]["reliability"]["forecasters"]
    families = {}
    for name, figures in report["forecasters"].items():
        families[name] = subset(figures, FIGURES) | {"bins": bins[name]}
    market = families.pop(MARKET)
    return {"bets": len(bets), "families": families, MARKET: market if market["n"] else None}
