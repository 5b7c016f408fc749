"""What is fitted rather than averaged: Bradley-Terry, item response theory, scores adjusted for difficulty.

The forecasters are fitted by themselves, so that no reference moves their figures. A reference is a guest: it takes
part in a second fit, whose scale is then laid over that of the first by what both say of the forecasters.
"""

from typing import Any

import numpy as np

from scoring.metrics import irt
from scoring.metrics.adjusted import adjusted_brier
from scoring.metrics.bradley_terry import exponential_form, pairwise_ability, pool_weights
from scoring.metrics.panel import Codes, Floats, Panel
from scoring.metrics.proper import brier
from scoring.ranking.standings import Standings, plain, plain_list


def bradley_terry(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    """Pool weights, the exponential form and pairwise ability: three things, of which the last is ranked."""
    pool, exponential = pool_weights(panel), exponential_form(panel)
    standings.put("pool_weight", _alone(standings, pool.weight))
    standings.put("exponential_weight", _alone(standings, exponential.value))
    own, joint = pairwise_ability(panel), pairwise_ability(standings.panel)
    value, error = with_guests(own.value, own.se, joint.value, joint.se)
    standings.put("bt_se", error)
    standings.fitted("bradley_terry", value, error, lower=False, key="bt_ability")
    report["models"]["pool_weight"] = {
        name: plain(getattr(pool, name))
        for name in ("kkt_gap", "iterations", "converged", "pseudo_count", "log_likelihood", "impossible")
    }
    report["models"]["exponential_weight"] = {
        name: plain(getattr(exponential, name)) for name in ("slope", "iterations", "converged", "ridge")
    }
    report["models"]["bt_ability"] = {"ridge": own.ridge, "separable": own.separable}
    if not pool.converged:
        report["notes"].append(
            f"pool weights: not converged, gap {pool.kkt_gap:.1e} after {pool.iterations} iterations"
        )
    if own.separable:
        report["notes"].append(
            "Bradley–Terry: some forecasters never lost to some others: how far they lie apart is the ridge's doing, "
            "and there are no standard errors"
        )
    _mention_parts("Bradley–Terry", panel, own.components, report)


def adjusted(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    """The Brier score as if everybody had answered every question."""
    own = adjusted_brier(panel, brier(panel))
    joint = adjusted_brier(standings.panel, brier(standings.panel))
    value, error = with_guests(own.value, own.se, joint.value, joint.se)
    effect, apart = with_guests(own.effect, own.effect_se, joint.effect, joint.effect_se)
    standings.put("adjusted_brier_se", error)
    standings.put("adjusted_effect", effect)
    standings.put("adjusted_effect_se", apart)
    # What makes all questions hard moves nobody's place: ranks are drawn with the errors of the effects.
    standings.fitted("adjusted_brier", value, error, lower=True, key="adjusted_brier", apart=apart)
    _mention_parts("adjusted Brier score", panel, own.component, report)


def response_theory(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    """Abilities, the questions' difficulties, and the Brier score weighted by the questions' discrimination."""
    own = irt.fit(panel)
    if "irt" in standings.settings.metrics:
        _abilities(standings, own, report)
    if "weighted_brier" in standings.settings.metrics:
        everybody = standings.panel
        # A reference took no part in the fit, so that no answer of its own decides what counts for it.
        weight = np.nan_to_num(own.discrimination[everybody.question], nan=1.0)
        weight[everybody.forecaster < standings.people] = irt.discrimination_weights(panel, own)
        standings.measure("weighted_brier", brier(everybody), lower=True, weight=everybody.weight * weight)
    report["models"]["irt"] = {
        name: plain(getattr(own, name)) for name in ("integrated", "converged", "log_likelihood")
    }
    if not own.converged and len(panel):
        report["notes"].append("item response theory: the search ended before it converged")


def _abilities(standings: Standings, own: irt.Irt, report: dict[str, Any]) -> None:
    joint = irt.fit(standings.panel, own.integrated)
    both = ~np.isnan(own.ability) & ~np.isnan(joint.ability[: standings.people])
    # Abilities are measured in standard deviations of those who were fitted: the guests must not stretch the unit.
    ours, theirs = own.ability[both], joint.ability[: standings.people][both]
    unit = ours.std() / theirs.std() if both.any() and theirs.std() > 0 else np.nan
    value, error = with_guests(own.ability, own.ability_se, joint.ability * unit, joint.ability_se * unit)
    standings.put("irt_se", error)
    standings.fitted("irt", value, error, lower=False, key="irt_ability")
    columns = {
        name: plain_list(getattr(own, name))
        for name in ("difficulty", "difficulty_se", "discrimination", "discrimination_se")
    }
    report["questions"] = {
        name: {key: column[j] for key, column in columns.items()}
        for j, name in enumerate(standings.panel.questions.names)
    }


def with_guests(own: Floats, error: Floats, joint: Floats, joint_error: Floats) -> tuple[Floats, Floats]:
    """Estimates and errors of the forecasters by themselves, then those of the guests on the forecasters' scale.

    The joint fit is shifted so that the forecasters whom both fits place have the same mean in both.
    """
    both = ~np.isnan(own) & ~np.isnan(joint[: len(own)])
    shift = (own - joint[: len(own)])[both].mean() if both.any() else np.nan
    guests = slice(len(own), None)
    return np.append(own, joint[guests] + shift), np.append(error, joint_error[guests])


def _alone(standings: Standings, values: Floats) -> Floats:
    """Figures of the forecasters; a reference has none, being no part of their pool."""
    return np.append(values, np.full(len(standings.panel.forecasters) - standings.people, np.nan))


def _mention_parts(what: str, panel: Panel, component: Codes, report: dict[str, Any]) -> None:
    outside = [name for name, part in zip(panel.forecasters, component.tolist(), strict=True) if part != 0]
    if outside and (component == 0).any():
        shown = ", ".join(outside[:5]) + (f" and {len(outside) - 5} more" if len(outside) > 5 else "")
        report["notes"].append(f"{what}: no common question links {shown} to the others")
