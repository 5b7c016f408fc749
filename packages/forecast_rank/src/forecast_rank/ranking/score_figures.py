"""Figures of proper scores and of what statisticians ask for beside them."""

from typing import Any

import numpy as np

from forecast_rank.metrics.discrimination import auc_sums
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import (
    accuracy,
    brier,
    brier_sum,
    by_category,
    infinite_losses,
    log_score,
    spherical,
)
from forecast_rank.metrics.ranked_probability import ranked_probability
from forecast_rank.metrics.skill import alpha, brier_skill_against, market_brier, uniform_brier
from forecast_rank.ranking.pair_comparisons import compared_pairs
from forecast_rank.ranking.scoreboard import Scoreboard

FEW_QUESTIONS = 0.1
"""A leader with fewer of the questions than this share is named in a note."""


def brier_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    combined = scoreboard.panel
    scores = brier(combined)
    scoreboard.add_score("brier", scores, lower=True)
    no_range = np.full((len(combined.forecasters), 2), np.nan)
    scoreboard.set_figure("rank_range", scoreboard.figures.get("rank_ranges", {}).get("brier", no_range))
    scoreboard.set_figure("brier_sum", combined.forecaster_means(brier_sum(combined)))
    scoreboard.set_figure("bss_uniform", brier_skill_against(combined, uniform_brier(combined)))
    scoreboard.set_figure("bss_market", brier_skill_against(combined, market_brier(combined)))
    categories = combined.questions.category_names
    if len(categories) > 1:
        for name, column in zip(categories, by_category(combined, scores).T, strict=True):
            scoreboard.set_figure("brier_by_category", column, name)
    pairs, note = compared_pairs(scoreboard, panel, brier(panel), "brier", "the Brier score")
    report["pairs"], report["notes"] = pairs, [*report["notes"], *note]
    leader = next(iter(scoreboard.order("brier")), None) if "brier" in scoreboard.rankings else None
    if leader is not None and scoreboard.figures["coverage"][leader] < FEW_QUESTIONS:
        report["notes"].append(
            f"{panel.forecasters[leader]} leads by the Brier score with {scoreboard.figures['n'][leader]:,} of "
            f"{len(panel.questions):,} questions; --min-questions N ranks only forecasters with N or more"
        )


def log_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("log", log_score(scoreboard.panel, scoreboard.settings.log_clip), lower=False)
    scoreboard.set_figure("infinite_losses", infinite_losses(scoreboard.panel))


def spherical_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("spherical", spherical(scoreboard.panel), lower=False)


def ranked_probability_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("ranked_probability", ranked_probability(scoreboard.panel), lower=True)


def accuracy_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("accuracy", accuracy(scoreboard.panel), lower=False)


def alpha_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("alpha", alpha(scoreboard.panel), lower=False)


def auc_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    sums = auc_sums(scoreboard.panel)
    scoreboard.add_estimate("auc", sums.means, sums, lower=False, key="auc", limits=(0.0, 1.0))
