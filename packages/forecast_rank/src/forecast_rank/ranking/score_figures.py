"""Figures of proper scores and of what statisticians ask for beside them."""

from typing import Any

import numpy as np

from forecast_rank.metrics.daily_brier import daily_brier_scores
from forecast_rank.metrics.discrimination import auc_sums
from forecast_rank.metrics.murphy_diagram import murphy_diagram
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
from forecast_rank.ranking.json_values import to_json_list
from forecast_rank.ranking.pair_comparisons import add_relative_skill, compared_pairs
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


def relative_skill_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    report["notes"] += add_relative_skill(scoreboard, panel, brier(panel))


def auc_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    sums = auc_sums(scoreboard.panel)
    scoreboard.add_estimate("auc", sums.means, sums, lower=False, key="auc", limits=(0.0, 1.0))


def murphy_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    diagram = murphy_diagram(scoreboard.panel)
    lines = [to_json_list(scores) for scores in diagram.score]
    names, count = scoreboard.names, scoreboard.forecaster_count
    report["curves"]["murphy_diagram"] = {
        "threshold": to_json_list(diagram.threshold),
        "forecasters": dict(zip(names[:count], lines[:count], strict=True)),
        "references": dict(zip(names[count:], lines[count:], strict=True)),
    }


def daily_brier_figures(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    """The daily Brier score of the forecasters; references make no revisions."""
    scores = daily_brier_scores(panel, panel if scoreboard.revisions is None else scoreboard.revisions)
    daily = np.full(len(scoreboard.panel), np.nan)
    daily[scoreboard.panel.forecaster < scoreboard.forecaster_count] = scores
    missing = int(np.isnan(scores).sum())
    if missing:
        report["notes"].append(
            f"daily_brier: {missing:,} of {len(scores):,} forecasts have none, for want of made_at or closed_at"
        )
    if missing < len(scores):
        scoreboard.add_score("daily_brier", daily, lower=True)
