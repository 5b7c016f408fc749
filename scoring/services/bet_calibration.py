"""Calibration of bets: the share of won sides, by the confidence that the stake implies."""

from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

import numpy as np

from forecast_rank import Settings, rank_panel
from forecast_rank.metrics.panel import from_arrays
from foundation.bulk import subset
from scoring.constants import MARKET
from scoring.selectors.scored_bets import leaderboard_scores

FIGURES = ("n", "ece", "ece_noise_floor", "murphy")


def bet_calibration(methodology: str = "", *, at: datetime | None = None) -> dict[str, Any]:
    """The number of resolved bets, and by family (and `market`) the reliability diagram, its error and Brier parts.

    With `at`, the bets on markets that had resolved by then.
    """
    columns = ("agent__family__slug", "agent__family__external", "probability", "market_probability", "outcome")
    bets = list(leaderboard_scores(methodology, at).values_list(*columns, named=True))
    if not bets:
        return {"bets": 0, "families": {}, MARKET: None}
    forecasters = [*sorted(set(map(attrgetter("agent__family__slug"), bets))), MARKET]
    probability, outcome = np.full((len(forecasters), len(bets), 1), np.nan), np.zeros((len(bets), 1))
    for place, bet in enumerate(bets):
        probability[forecasters.index(bet.agent__family__slug), place] = bet.probability
        outcome[place] = bet.outcome
        if not bet.agent__family__external:
            probability[-1, place] = bet.market_probability
    panel = from_arrays(probability, outcome, exclusive=False)
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
