"""Figures of fitted models: Thurstone–Mosteller, Bradley–Terry, item response theory, difficulty-adjusted scores.

The forecasters are fitted alone, so that references do not change their figures. The references take part in a second
fit, whose scale is then shifted to that of the first by the figures that both give the forecasters.
"""

from typing import Any

import numpy as np

from forecast_rank.metrics import irt
from forecast_rank.metrics.bradley_terry import exponential_form, pairwise_ability, pool_weights
from forecast_rank.metrics.difficulty_adjustment import AdjustedScores, adjusted_brier
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.linear_pool import pool_contests
from forecast_rank.metrics.pair_sums import event_freedom
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.thurstone_mosteller import MarginAbility, margin_ability
from forecast_rank.metrics.uncertainty import EventSums, event_sums
from forecast_rank.ranking.json_values import to_json_list, to_json_value
from forecast_rank.ranking.names import listed
from forecast_rank.ranking.scoreboard import Scoreboard

MOST_RESPONSES = 50_000
"""More forecasts are sampled for item response theory: a fit of 50,000 took 6 s of processor time, of a million over
200 s."""
LEAST_EVENTS_OF_ABILITIES = 40
"""With fewer, intervals of item response abilities say little: with 15 events they hold the truth of ten forecasters in
96 % of simulated cases, and are 5 to 9 standard deviations of the abilities wide."""
LEAST_RELIABILITY = 0.25
"""Intervals allow for no more errors than three quarters of the spread of abilities: they are at most twice as wide."""

FITTED_DIGITS = 13
"""Decimals of fitted scores: beyond them equal forecasters differ by rounding errors, which are no ranks."""


def bradley_terry(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    """Adds pool weights, the exponential form and pairwise ability; the last is ranked, if the settings name it."""
    contests = pool_contests(panel.uncached())
    pool, exponential = pool_weights(panel, contests=contests), exponential_form(panel, contests=contests)
    del contests  # tables of questions by forecasters
    scoreboard.set_figure("pool_weight", _without_references(scoreboard, pool.weight))
    scoreboard.set_figure("exponential_weight", _without_references(scoreboard, exponential.value))
    joint = pairwise_ability(scoreboard.panel)
    joint = joint._replace(sums=_of_references(scoreboard, joint.sums))
    ability = pairwise_ability(panel)
    value, error = with_references(ability.value, ability.se, joint.value, joint.se)
    scoreboard.set_figure("bt_se", error)
    sums = sums_with_references(scoreboard, panel, ability.sums, joint.sums, value)
    ranked = "bradley_terry" in scoreboard.settings.metrics
    scoreboard.add_estimate("bradley_terry", value, sums, lower=False, key="bt_ability", ranked=ranked)
    if ranked:
        report["notes"].append(
            "Bradley–Terry counts wins, not margins: who is a little better most of the time and much worse at others "
            "stands above a forecaster with the better score"
        )
    report["models"]["pool_weight"] = {
        name: to_json_value(getattr(pool, name))
        for name in ("kkt_gap", "iterations", "converged", "pseudo_count", "log_likelihood", "impossible")
    }
    report["models"]["exponential_weight"] = {
        name: to_json_value(getattr(exponential, name)) for name in ("slope", "iterations", "converged", "ridge")
    }
    report["models"]["bt_ability"] = {"ridge": ability.ridge, "separable": ability.separable}
    if not pool.converged:
        report["notes"].append(
            f"pool weights: not converged, gap {pool.kkt_gap:.1e} after {pool.iterations} iterations"
        )
    if ability.separable:
        report["notes"].append(
            "Bradley–Terry: some forecasters never lost to some others: their distance is set by the ridge, not by "
            "data, and there are no standard errors"
        )
    _note_unlinked("Bradley–Terry", panel, ability.components, report)


def difficulty_models(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    """Adds the difficulty-adjusted Brier score and the abilities by its margins, which are one fit in two units."""
    scores, joint_scores = brier(panel), brier(scoreboard.panel)
    joint = adjusted_brier(scoreboard.panel, joint_scores)
    joint = joint._replace(
        sums=_of_references(scoreboard, joint.sums), effect_sums=_of_references(scoreboard, joint.effect_sums)
    )
    adjusted = adjusted_brier(panel, scores)
    if "adjusted_brier" in scoreboard.settings.metrics:
        _adjusted(scoreboard, panel, adjusted, joint, report)
    if "thurstone_mosteller" in scoreboard.settings.metrics:
        abilities = margin_ability(panel, scores, fit=adjusted)
        _thurstone_mosteller(
            scoreboard, panel, abilities, margin_ability(scoreboard.panel, joint_scores, fit=joint), report
        )


def _adjusted(
    scoreboard: Scoreboard, panel: Panel, separate: AdjustedScores, joint: AdjustedScores, report: dict[str, Any]
) -> None:
    value, error = with_references(separate.value, separate.se, joint.value, joint.se)
    effect, effect_error = with_references(separate.effect, separate.effect_se, joint.effect, joint.effect_se)
    scoreboard.set_figure("adjusted_brier_se", error)
    scoreboard.set_figure("adjusted_effect", effect)
    scoreboard.set_figure("adjusted_effect_se", effect_error)
    value = np.round(value, FITTED_DIGITS) + 0.0  # no negative zero
    sums = sums_with_references(scoreboard, panel, separate.sums, joint.sums, value)
    sums = sums._replace(sums=np.round(sums.sums, FITTED_DIGITS))
    scoreboard.add_estimate(
        "adjusted_brier", value, sums, lower=True, key="adjusted_brier", freedom=_freedom(scoreboard)
    )
    _note_unlinked("adjusted Brier score", panel, separate.component, report)


def _thurstone_mosteller(
    scoreboard: Scoreboard, panel: Panel, separate: MarginAbility, joint: MarginAbility, report: dict[str, Any]
) -> None:
    unit = joint.noise / separate.noise  # the unit is the forecasters' noise: the references must not change it
    value, error = with_references(separate.value, separate.se, joint.value * unit, joint.se * unit)
    scoreboard.set_figure("tm_se", error)
    scaled = EventSums(joint.sums.sums * unit, joint.sums.weights)
    sums = sums_with_references(scoreboard, panel, separate.sums, scaled, value)
    scoreboard.add_estimate(
        "thurstone_mosteller", value, sums, lower=False, key="tm_ability", freedom=_freedom(scoreboard)
    )
    report["models"]["tm_ability"] = {"noise": to_json_value(separate.noise)}
    _note_unlinked("Thurstone–Mosteller", panel, separate.component, report)


def _freedom(scoreboard: Scoreboard) -> Floats:
    """The degrees of freedom of each forecaster and reference by the weights of their events."""
    weights = event_sums(scoreboard.panel, np.zeros(len(scoreboard.panel))).weights
    return event_freedom(weights.sum(axis=1), np.square(weights).sum(axis=1))


def response_theory(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    """Adds abilities, the questions' difficulties, and the Brier score weighted by discrimination.

    Of many forecasts only those on a random sample of the events are fitted, and a note says so.
    """
    if len(panel) <= MOST_RESPONSES:
        _response_theory(scoreboard, panel, report)
        return
    sampled = sampled_events(panel, MOST_RESPONSES, scoreboard.settings.seed)
    part = Scoreboard(sampled, scoreboard.settings)
    part.answered, part.unranked = scoreboard.answered, scoreboard.unranked
    _response_theory(part, sampled, report)
    scoreboard.include(part)
    report["notes"].append(
        f"item response theory and the weighted Brier score: from {len(sampled):,} of {len(panel):,} forecasts, on a "
        "random sample of the events"
    )


def sampled_events(panel: Panel, most: int, seed: int) -> Panel:
    """The forecasts on a random sample of the events, at most so many unless a single event has more."""
    size = np.bincount(panel.questions.event[panel.question], minlength=len(panel.questions.event_names))
    order = np.random.default_rng(seed).permutation(len(size))
    count = max(int(np.searchsorted(np.cumsum(size[order]), most, side="right")), 1)
    is_selected = np.zeros(len(size), dtype=bool)
    is_selected[order[:count]] = True
    return panel.take(is_selected[panel.questions.event[panel.question]])


def _response_theory(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    fit = irt.fit_irt(panel)
    if "irt" in scoreboard.settings.metrics:
        _abilities(scoreboard, panel, fit, report)
    if "weighted_brier" in scoreboard.settings.metrics:
        combined = scoreboard.panel
        # References took no part in the fit, so that the weights of their forecasts do not depend on them.
        weight = np.nan_to_num(fit.discrimination[combined.question], nan=1.0)
        weight[combined.forecaster < scoreboard.forecaster_count] = irt.discrimination_weights(panel, fit)
        scoreboard.add_score("weighted_brier", brier(combined), lower=True, weight=combined.weight * weight)
    report["models"]["irt"] = {
        name: to_json_value(getattr(fit, name)) for name in ("integrated", "converged", "log_likelihood")
    }
    if not fit.converged and len(panel):
        report["notes"].append("item response theory: the search ended before it converged")


def _abilities(scoreboard: Scoreboard, panel: Panel, fit: irt.IrtFit, report: dict[str, Any]) -> None:
    joint = irt.fit_irt(scoreboard.panel, fit.integrated)
    in_both = ~np.isnan(fit.ability) & ~np.isnan(joint.ability[: scoreboard.forecaster_count])
    # The unit is the standard deviation of the fitted abilities: the references must not change it.
    own_ability, joint_ability = fit.ability[in_both], joint.ability[: scoreboard.forecaster_count][in_both]
    unit = own_ability.std() / joint_ability.std() if in_both.any() and joint_ability.std() > 0 else np.nan
    value, error = with_references(fit.ability, fit.ability_se, joint.ability * unit, joint.ability_se * unit)
    scoreboard.set_figure("irt_se", error)
    beside = _of_references(scoreboard, joint.sums)
    scaled = EventSums(np.nan_to_num(beside.sums * unit), beside.weights)
    sums = sums_with_references(scoreboard, panel, fit.sums, scaled, value)
    scoreboard.add_estimate(
        "irt", value, sums, lower=False, key="irt_ability", least=LEAST_EVENTS_OF_ABILITIES, stretch=_stretch(fit)
    )
    columns = {
        name: to_json_list(getattr(fit, name))
        for name in ("difficulty", "difficulty_se", "discrimination", "discrimination_se")
    }
    for j, name in enumerate(scoreboard.panel.questions.names):
        report["questions"][name] = {key: column[j] for key, column in columns.items()}


def _stretch(fit: irt.IrtFit) -> float:
    """The factor by which abilities may exceed the estimates, whose unit is their own spread.

    Errors add to that spread, so that an estimate is drawn to 0 by the root of the reliability: the share of the
    variance that is not error. By how much is known only roughly, so that an interval holds what it would be in either
    unit. Without it, intervals of ten forecasters of 50 questions held the ability of one of them in 71 % of
    simulated worlds.
    """
    variance = np.square(fit.ability_se[~np.isnan(fit.ability_se)])
    reliability = 1 - variance.mean() if len(variance) else 1.0
    return float(1 / np.sqrt(max(reliability, LEAST_RELIABILITY)))


def with_references(values: Floats, error: Floats, joint: Floats, joint_error: Floats) -> tuple[Floats, Floats]:
    """Estimates and errors of the forecasters from their own fit, and of the references from the joint fit.

    The joint fit is shifted so that forecasters with an estimate in both fits have the same mean in both.
    """
    in_both = ~np.isnan(values) & ~np.isnan(joint[: len(values)])
    shift = (values - joint[: len(values)])[in_both].mean() if in_both.any() else np.nan
    reference_rows = slice(len(values), None)
    return np.append(values, joint[reference_rows] + shift), np.append(error, joint_error[reference_rows])


def sums_with_references(
    scoreboard: Scoreboard, panel: Panel, separate: EventSums, joint: EventSums, value: Floats
) -> EventSums:
    """Event sums of the forecasters from their own fit, and of the references, `joint`, moved to their `value`."""
    moved = joint.sums + np.nan_to_num(value[len(separate.sums) :] - joint.means)[:, None] * joint.weights
    # References may have events that no forecaster has.
    combined = scoreboard.panel
    events, _ = combined.events
    columns = np.searchsorted(events, panel.events[0])
    table, own_weights = np.zeros((2, len(separate.sums), len(events)))
    table[:, columns], own_weights[:, columns] = separate.sums, separate.weights
    return EventSums(np.concatenate([table, moved]), np.concatenate([own_weights, joint.weights]))


def _of_references(scoreboard: Scoreboard, sums: EventSums) -> EventSums:
    """The rows of the references, without the memory of the others."""
    rows = slice(scoreboard.forecaster_count, None)
    return EventSums(sums.sums[rows].copy(), sums.weights[rows].copy())


def _without_references(scoreboard: Scoreboard, values: Floats) -> Floats:
    """Figures of the forecasters, with NaN for the references."""
    return np.append(values, np.full(len(scoreboard.panel.forecasters) - scoreboard.forecaster_count, np.nan))


def _note_unlinked(model_name: str, panel: Panel, component: Codes, report: dict[str, Any]) -> None:
    outside = [name for name, part in zip(panel.forecasters, component.tolist(), strict=True) if part != 0]
    if outside and (component == 0).any():
        report["notes"].append(f"{model_name}: no common question links {listed(outside)} to the others")
