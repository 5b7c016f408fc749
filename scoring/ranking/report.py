"""The whole of a ranking as one dictionary: every figure with its uncertainty, pairs, agreement and curves."""

from collections.abc import Callable
from typing import Any

import numpy as np

from scoring.metrics import like_pm_rank
from scoring.metrics.agreement import agreement
from scoring.metrics.calibration import (
    ece,
    ece_debiased,
    ece_draws,
    ece_noise_floor,
    max_error,
    murphy,
    reliability,
    sharpness,
    slope_intercept,
)
from scoring.metrics.pairs import paired_tests
from scoring.metrics.panel import REFERENCES, Panel, references
from scoring.metrics.proper import accuracy, brier, brier_sum, by_category, infinite_losses, log_score, spherical
from scoring.metrics.returns import average_return, certainty_equivalent, log_wealth, return_stream, sharpe
from scoring.metrics.skill import alpha, brier_skill_against, market_brier, overround, uniform_brier
from scoring.ranking import fits
from scoring.ranking.settings import Settings
from scoring.ranking.standings import Standings, plain, plain_list

Progress = Callable[[int, int, str], None]


def rank(
    panel: Panel,
    settings: Settings,
    progress: Progress = lambda done, of, caption: None,
    guests: Panel | None = None,
    *,
    agreement_of_rankings: bool = True,
) -> dict[str, Any]:
    """Every figure asked for, by forecaster and reference, with rankings, pairs, agreement and curves.

    `agreement` is empty unless `agreement_of_rankings` is asked for. The references are `guests`, a panel on the same
    questions, where they are given; else those of `references`. `progress` is told (steps done, steps in all, what
    comes next). Numbers that do not exist are None: no price was seen, one event says nothing of spread, a stake was
    ruined.
    """
    standings = Standings(panel, settings, guests)
    report: dict[str, Any] = {"curves": {}, "pairs": [], "notes": [], "models": {}, "questions": {}}
    parts = [part for part in _PARTS if not part[0] or set(part[0]) & set(settings.metrics)]
    for done, (_, caption, act) in enumerate(parts):
        progress(done, len(parts), caption)
        act(standings, panel, report)
    progress(len(parts), len(parts), "")
    return _assembled(standings, panel, report | {"agreement": _agreement(standings) if agreement_of_rankings else {}})


def _assembled(standings: Standings, panel: Panel, report: dict[str, Any]) -> dict[str, Any]:
    names = standings.panel.forecasters
    people = standings.people
    return {
        "forecasters": {names[i]: standings.entry(i) for i in range(people)},
        "references": {names[i]: standings.entry(i) for i in range(people, len(names))},
        "rankings": {name: [names[i] for i in standings.order(name)] for name in standings.rankings},
        "data": _data(panel),
        **report,
    }


def _data(panel: Panel) -> dict[str, Any]:
    """What was scored, in numbers."""
    return {
        "forecasters": len(panel.forecasters),
        "questions": len(panel.questions),
        "events": len(np.unique(panel.questions.event)),
        "forecasts": len(panel),
        "options": len(panel.probability),
        "priced": int(panel.priced.sum()),
        "overround": plain(np.nanmean(overround(panel))) if panel.priced.any() else None,
    }


def _presence(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    everybody = standings.panel
    n = np.bincount(everybody.forecaster, minlength=len(everybody.forecasters))
    standings.put("n", n)
    standings.put("coverage", n / max(len(panel.questions), 1))


def _brier(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    everybody = standings.panel
    scores = brier(everybody)
    standings.measure("brier", scores, lower=True)
    nowhere = np.full((len(everybody.forecasters), 2), np.nan)
    standings.put("rank_range", standings.figures.get("rank_ranges", {}).get("brier", nowhere))
    standings.put("brier_sum", everybody.forecaster_means(brier_sum(everybody)))
    standings.put("bss_uniform", brier_skill_against(everybody, uniform_brier(everybody)))
    standings.put("bss_market", brier_skill_against(everybody, market_brier(everybody)))
    categories = everybody.questions.category_names
    if len(categories) > 1:
        for name, column in zip(categories, by_category(everybody, scores).T, strict=True):
            standings.put("brier_by_category", column, name)
    report["pairs"] = _pairs(panel)


def _pairs(panel: Panel) -> list[dict[str, Any]]:
    """Who differs from whom on the questions that both answered, in the Brier score."""
    found = paired_tests(panel, brier(panel))
    columns = {name: getattr(found, name) for name in found._fields if name not in ("first", "second")}
    names = panel.forecasters
    return [
        {"first": names[a], "second": names[b], **{name: plain(column[k]) for name, column in columns.items()}}
        for k, (a, b) in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True))
    ]


def _log(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    standings.measure("log", log_score(standings.panel, standings.settings.log_clip), lower=False)
    standings.put("infinite_losses", infinite_losses(standings.panel))


def _spherical(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    standings.measure("spherical", spherical(standings.panel), lower=False)


def _accuracy(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    standings.measure("accuracy", accuracy(standings.panel), lower=False)


def _returns(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    everybody, names = standings.panel, standings.panel.forecasters
    standings.put("overround", everybody.forecaster_means(overround(everybody)))
    curves: dict[str, Any] = {}
    for text in standings.settings.gammas:
        gamma = float(text)
        paid = average_return(everybody, gamma)
        standings.measure(f"average_return:{text}", paid, lower=False, key="average_return", under=text)
        standings.put("net_return", standings.figures["average_return"][text] - 1, text)
        standings.put("sharpe", sharpe(everybody, paid), text)
        wealth = log_wealth(everybody, gamma)
        standings.measure(f"log_wealth:{text}", wealth, lower=False, key="log_wealth", under=text)
        standings.put("ruins", np.bincount(everybody.forecaster[wealth == -np.inf], minlength=len(names)), text)
        standings.put("certainty_equivalent", certainty_equivalent(everybody, gamma), text)
        stream = return_stream(everybody, paid, standings.settings.stream)
        lines = {name: plain_list(stream.means[i]) for i, name in enumerate(names)}
        curves[text] = {
            "questions": stream.questions.tolist(),
            "closed_at": plain_list(stream.closed_at),
            "forecasters": dict(list(lines.items())[: standings.people]),
            "references": {name: plain_list(stream.means[i]) for i, name in enumerate(names) if i >= standings.people},
        }
    report["curves"]["average_return"] = curves


def _alpha(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    standings.measure("alpha", alpha(standings.panel), lower=False)


def _calibration(standings: Standings, panel: Panel, report: dict[str, Any]) -> None:
    everybody, bins = standings.panel, standings.settings.bins
    found = ece(everybody, bins)
    standings.put("ece", found)
    draws = ece_draws(everybody, standings.counts, bins) if standings.settings.bootstrap else None
    if draws is not None:
        draws[:, standings.lone] = np.nan
        standings.put("ece_ci", np.maximum(2 * found[:, None] - standings.interval(draws)[:, ::-1], 0.0))
    standings.rank("calibration", found, draws, lower=True)
    standings.put("ece_noise_floor", ece_noise_floor(everybody, bins))
    standings.put("ece_debiased", ece_debiased(everybody, bins))
    standings.put("max_calibration_error", max_error(everybody, bins))
    line = slope_intercept(everybody)
    standings.put("calibration_slope", line[:, 0])
    standings.put("calibration_intercept", line[:, 1])
    standings.put("sharpness", sharpness(everybody))
    for name, part in murphy(everybody, bins)._asdict().items():
        standings.put("murphy", part, name)
    curve = reliability(everybody, bins, level=standings.settings.level)
    report["curves"]["reliability"] = {
        group: {
            everybody.forecasters[i]: [
                {
                    "from": plain(curve.edges[i, b]),
                    "to": plain(curve.edges[i, b + 1]),
                    **{
                        name: plain(getattr(curve, name)[i, b])
                        for name in ("forecast", "outcome", "weight", "pairs", "low", "high")
                    },
                }
                for b in np.flatnonzero(curve.pairs[i])
            ]
            for i in members
        }
        for group, members in (
            ("forecasters", range(standings.people)),
            ("references", range(standings.people, len(everybody.forecasters))),
        )
    }


def rank_like_pm_rank(panel: Panel, settings: Settings, *, defects: bool = False) -> dict[str, Any]:
    """The figures of the package pm_rank by its names and definitions, its defects only where asked for.

    A report of the same shape as that of `rank`. A reference has no pool weight: it is no part of the pool.
    """
    standings = Standings(panel, settings)
    gammas = [float(text) for text in settings.gammas]
    own = like_pm_rank.scores(panel, gammas, defects=defects)
    guests = like_pm_rank.scores(references(panel), gammas, defects=defects)
    guests["pool_weight"] = np.full(len(REFERENCES), np.nan)
    _presence(standings, panel, {})
    for name, values in own.items():
        everybody = np.concatenate([values, guests[name]])
        standings.put(name, everybody)
        standings.rank(name, everybody, None, lower=name == "calibration")
    report: dict[str, Any] = {"curves": {}, "pairs": [], "notes": [], "models": {}, "questions": {}}
    return _assembled(standings, panel, report | {"agreement": _agreement(standings)})


def _agreement(standings: Standings) -> dict[str, Any]:
    """Rank correlations between all rankings, as tables of name by name."""
    names = standings.panel.forecasters[: standings.people]
    found = agreement(
        {
            ranking: dict(zip(names, positions.tolist(), strict=True))
            for ranking, positions in standings.rankings.items()
        }
    )
    return {
        measure: {
            row: {column: plain(getattr(found, measure)[i, j]) for j, column in enumerate(found.names)}
            for i, row in enumerate(found.names)
        }
        for measure in ("spearman", "kendall", "common")
    }


_PARTS: tuple[tuple[tuple[str, ...], str, Callable[[Standings, Panel, dict[str, Any]], None]], ...] = (
    ((), "who answered what", _presence),
    (("brier",), "Brier scores and pairs", _brier),
    (("log",), "log scores", _log),
    (("spherical",), "spherical scores", _spherical),
    (("brier", "log", "spherical"), "accuracy", _accuracy),
    (("average_return",), "averaged returns", _returns),
    (("alpha",), "alpha", _alpha),
    (("calibration",), "calibration", _calibration),
    (("adjusted_brier",), "Brier scores adjusted for difficulty", fits.adjusted),
    (("bradley_terry",), "Bradley–Terry", fits.bradley_terry),
    (("irt", "weighted_brier"), "item response theory", fits.response_theory),
)
