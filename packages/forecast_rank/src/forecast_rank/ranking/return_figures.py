"""Figures of betting: averaged returns, log wealth, and their curves in order of closing."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.paired_tests import paired_tests
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.returns import return_stream
from forecast_rank.metrics.running_intervals import running_intervals
from forecast_rank.metrics.skill import overround
from forecast_rank.metrics.staking import betting_results, equivalent_return
from forecast_rank.ranking.figure_table import LEAST_EVENTS_OF_RETURNS
from forecast_rank.ranking.json_values import to_json_list
from forecast_rank.ranking.scoreboard import Scoreboard

SIGNIFICANCE, POWER = 0.05, 0.8


def returns(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    combined, names = scoreboard.panel, scoreboard.panel.forecasters
    scoreboard.set_figure("overround", combined.forecaster_means(overround(combined)))
    forecaster_count, step = scoreboard.forecaster_count, scoreboard.settings.stream
    curves: dict[str, Any] = {}
    texts, gammas = scoreboard.settings.gammas, [float(text) for text in scoreboard.settings.gammas]
    results = betting_results(combined, gammas)
    results.reverse()
    for text, gamma in zip(texts, gammas, strict=True):
        paid, wealth, utility = results.pop(), results.pop(), results.pop()  # none of many forecasts stays in memory
        scoreboard.add_score(f"average_return:{text}", paid, lower=False, key="average_return", under=text)
        scoreboard.set_figure("net_return", scoreboard.figures["average_return"][text] - 1, text)
        if note := _note_on_returns(scoreboard, paid, text):
            report["notes"].append(note)
        scoreboard.add_score(f"log_wealth:{text}", wealth, lower=False, key="log_wealth", under=text)
        scoreboard.set_figure("ruins", np.bincount(combined.forecaster[wealth == -np.inf], minlength=len(names)), text)
        scoreboard.set_figure(
            "certainty_equivalent", equivalent_return(combined.forecaster_means(utility), gamma), text
        )
        stream = return_stream(combined, paid, step)
        lines = [(name, to_json_list(means)) for name, means in zip(names, stream.means, strict=True)]
        level = scoreboard.settings.level
        ends = running_intervals(combined, paid, step, level, least_events=LEAST_EVENTS_OF_RETURNS)[:forecaster_count]
        bands = {name: [to_json_list(part) for part in rows.T] for name, rows in zip(names, ends, strict=False)}
        curves[text] = {
            "questions": stream.questions.tolist(),
            "closed_at": to_json_list(stream.closed_at),
            "forecasters": dict(lines[:forecaster_count]),
            "references": dict(lines[forecaster_count:]),
            "bands": bands,
        }
    report["curves"]["average_return"] = curves


def _note_on_returns(scoreboard: Scoreboard, paid: Floats, gamma: str) -> str:
    """A warning that returns are noisy, where they cannot tell the first two forecasters apart; else empty."""
    order = scoreboard.order(f"average_return:{gamma}")[:2] if f"average_return:{gamma}" in scoreboard.rankings else []
    if len(order) < 2:
        return ""
    combined, names = scoreboard.panel, scoreboard.panel.forecasters
    place = np.full(len(names), -1)
    place[order] = range(len(order))
    is_selected = place[combined.forecaster] >= 0
    pair = combined.take(is_selected)
    pair = replace(pair, forecasters=[names[i] for i in order], forecaster=place[pair.forecaster])
    tests = paired_tests(pair, paid[is_selected])
    if not len(tests.p) or not tests.p[0] >= SIGNIFICANCE:
        return ""
    difference, error, common = abs(tests.difference[0]), tests.se[0], tests.n[0]
    text = (
        f"averaged return, risk aversion {gamma}, is a noisy measure: {names[order[0]]} and {names[order[1]]} cannot "
    )
    if not difference > 0:
        return f"{text}be told apart on {common:,} common questions"
    questions = common * ((ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER)) * error / difference) ** 2
    return (
        f"{text}be told apart on {common:,} common questions; it would take some {questions:,.0f} ({POWER:.0%} power)"
    )
