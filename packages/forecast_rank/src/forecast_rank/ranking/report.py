"""The content of a report as one dictionary: figures with uncertainty, rankings, pairs, agreement and curves."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from forecast_rank.blas_threads import one_blas_thread
from forecast_rank.metrics import arena_evaluation_compatibility, pm_rank_compatibility
from forecast_rank.metrics.agreement import agreement
from forecast_rank.metrics.calibration import (
    ReliabilityCurve,
    ece,
    ece_noise_floor,
    max_calibration_error,
    murphy_decomposition,
    reliability_curve,
    sharpness,
)
from forecast_rank.metrics.calibration_error import ece_debiased
from forecast_rank.metrics.corp import CorpDecomposition
from forecast_rank.metrics.distinct_pairs import brier_parts, distinct_pairs, fitted_line
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.kelly_growth import realised_growth
from forecast_rank.metrics.paired_tests import PairedComparisons, paired_tests
from forecast_rank.metrics.panel import REFERENCES, Panel, references
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
from forecast_rank.metrics.returns import return_stream, sharpe
from forecast_rank.metrics.running_intervals import running_intervals
from forecast_rank.metrics.skill import alpha, brier_skill_against, market_brier, overround, uniform_brier
from forecast_rank.metrics.staking import betting_results, equivalent_return
from forecast_rank.ranking import model_fits
from forecast_rank.ranking.json_values import to_json_list, to_json_value
from forecast_rank.ranking.scoreboard import (
    LEAST_EVENTS_OF_RETURNS,
    FigureTable,
    Scoreboard,
)
from forecast_rank.ranking.settings import MOST_MODELLED, USUAL_METRICS, Settings
from forecast_rank.ranking.threads import results_in_order

Progress = Callable[[int, int, str], None]
Part = Callable[[Scoreboard, Panel, dict[str, Any]], None]

SIGNIFICANCE, POWER = 0.05, 0.8
EQUAL_COVERAGE = 0.95
"""Forecasters answered the same questions, more or less, if the least coverage is at least so much of the largest."""
FEW_QUESTIONS = 0.1
"""A leader with fewer of the questions than this share is named in a note."""


def rank_panel(
    panel: Panel,
    settings: Settings,
    progress: Progress = lambda count, of, caption: None,
    reference_panel: Panel | None = None,
    *,
    agreement_of_rankings: bool = True,
    unranked: Collection[str] = (),
) -> dict[str, Any]:
    """The report of a panel: every figure asked for, by forecaster and reference.

    Parameters
    ----------
    panel : Panel
    settings : Settings
    progress : callable
        Called with steps done, steps in all and the name of the next step.
    reference_panel : Panel, optional
        The references, a panel on the same questions; `panel.references(panel)` by default.
    agreement_of_rankings : bool
        Whether to compute `agreement`.
    unranked : collection of str
        Forecasters that every fit includes, with scores, but without rank, rank range and pairs.

    Returns
    -------
    dict
        As in `Report.to_dict`, without settings and rejected rows. Undefined figures are None: without prices, with a
        single event, after ruin.
    """
    with one_blas_thread():
        template = Scoreboard(panel, settings, reference_panel)
        template.unranked = unranked
        return _rank_panel(template, panel, settings, progress, agreement_of_rankings)


def _rank_panel(
    template: Scoreboard, panel: Panel, settings: Settings, progress: Progress, agreement_of_rankings: bool
) -> dict[str, Any]:
    _presence(template)
    scoreboard, report = template.copy(), _empty_report()
    is_too_large = len(panel.forecasters) > MOST_MODELLED and settings.metrics == USUAL_METRICS
    if is_too_large:
        report["notes"].append(_NOT_FITTED)
    captions, functions = [], []
    for metrics, caption, function in _PARTS:
        if set(metrics) & set(settings.metrics) and not (is_too_large and function in _FITTED):
            captions.append(caption)
            functions.append(function)
    compute = partial(_part, template, panel)
    results = results_in_order(compute, functions, len(panel), lambda function: _PRIORITY.get(function, 1))
    for index, caption in enumerate(captions):
        progress(index, len(captions), caption)
        table, of_part = next(results)
        scoreboard.include(table)
        for name, content in of_part.items():
            report[name] = report[name] + content if isinstance(content, list) else report[name] | content
    progress(len(captions), len(captions), "")
    return assemble_report(
        scoreboard,
        _data(panel.uncached()),
        report | {"agreement": agreement_table(scoreboard) if agreement_of_rankings else {}},
    )


def _part(template: Scoreboard, panel: Panel, function: Part) -> tuple[Scoreboard, dict[str, Any]]:
    """The figures and the report of a group of metrics."""
    scoreboard, report = template.copy(), _empty_report()
    function(scoreboard, panel.uncached(), report)
    scoreboard.panel = template.panel  # its copy has cached arrays, half a gigabyte for 20 million rows
    return scoreboard, report


def _empty_report() -> dict[str, Any]:
    return {"curves": {}, "pairs": [], "notes": [], "models": {}, "questions": {}}


def assemble_report(
    scoreboard: FigureTable,
    data: dict[str, Any],
    report: dict[str, Any],
    headings: tuple[str, str] = ("brier", "adjusted_brier"),
) -> dict[str, Any]:
    """The report of the figures, with the size of the `data` and the other parts in `report`.

    `headings` are the ranking that heads a report, and the one that does so where coverage differs.
    """
    names, entries = scoreboard.names, scoreboard.entries()
    forecaster_count = scoreboard.forecaster_count
    return {
        "headline": _headline(scoreboard, *headings),
        "forecasters": dict(zip(names[:forecaster_count], entries[:forecaster_count], strict=True)),
        "references": dict(zip(names[forecaster_count:], entries[forecaster_count:], strict=True)),
        "rankings": {name: [names[i] for i in scoreboard.order(name)] for name in scoreboard.rankings},
        "no_interval": scoreboard.no_interval,
        "data": data,
        **report,
    }


def _headline(scoreboard: FigureTable, plain: str, adjusted: str) -> str | None:
    """The ranking that heads the report: by the adjusted score where coverage differs, else by the plain score.

    With selective answering the raw score ranks the choice of questions: its rank range holds the best forecaster in a
    fifth of simulated worlds, that of the adjusted score in 94 %.
    """
    coverage = scoreboard.figures["coverage"][: scoreboard.forecaster_count][scoreboard.qualified]
    coverage = coverage[coverage > 0]
    differs = len(coverage) > 0 and coverage.min() < EQUAL_COVERAGE * coverage.max()
    preferred = (adjusted, plain) if differs else (plain, adjusted)
    return next((name for name in (*preferred, *scoreboard.rankings) if name in scoreboard.rankings), None)


def _data(panel: Panel) -> dict[str, Any]:
    """The size of the data."""
    return {
        "forecasters": len(panel.forecasters),
        "questions": len(panel.questions),
        "events": len(np.unique(panel.questions.event)),
        "forecasts": len(panel),
        "options": len(panel.probability),
        "priced": int(panel.priced.sum()),
        "overround": to_json_value(np.nanmean(overround(panel))) if panel.priced.any() else None,
    }


def _presence(scoreboard: Scoreboard) -> None:
    combined = scoreboard.panel
    n = np.bincount(combined.forecaster, minlength=len(combined.forecasters))
    scoreboard.set_figure("n", n)
    scoreboard.set_figure("coverage", n / max(len(combined.questions), 1))


def _brier(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
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


def compared_pairs(
    table: FigureTable, panel: Panel, values: Floats, ranking: str, score: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Paired tests of the first forecasters of a ranking, as many as the settings say, and a note if they are not all.

    `values` are the score of each forecast of the panel.
    """
    forecaster_count, most = sum(name not in table.unranked for name in panel.forecasters), table.settings.pairs
    if forecaster_count > most or forecaster_count < len(panel.forecasters):
        first = np.sort(table.order(ranking)[:most] if ranking in table.rankings else []).astype(np.int64)
        place = np.full(len(panel.forecasters), -1)
        place[first] = np.arange(len(first))
        is_selected = place[panel.forecaster] >= 0
        panel, values = panel.take(is_selected), values[is_selected]
        names = [panel.forecasters[i] for i in first]
        panel = replace(panel, forecasters=names, forecaster=place[panel.forecaster])
    pairs = pair_entries(paired_tests(panel, values), panel.forecasters) if len(panel.forecasters) > 1 else []
    if forecaster_count <= most:
        return pairs, []
    if not pairs:
        return [], ["no pairs are compared, as asked"]
    among = f"among the first {len(panel.forecasters):,} of {forecaster_count:,} forecasters by {score}"
    return pairs, [f"pairs are compared {among}; --pairs N compares more"]


def pair_entries(tests: PairedComparisons, names: list[str]) -> list[dict[str, Any]]:
    """Paired tests as JSON values."""
    columns = {name: getattr(tests, name) for name in tests._fields if name not in ("first", "second")}
    entries = []
    for k, (first, second) in enumerate(zip(tests.first.tolist(), tests.second.tolist(), strict=True)):
        figures = {name: to_json_value(column[k]) for name, column in columns.items()}
        entries.append({"first": names[first], "second": names[second], **figures})
    return entries


def _log(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("log", log_score(scoreboard.panel, scoreboard.settings.log_clip), lower=False)
    scoreboard.set_figure("infinite_losses", infinite_losses(scoreboard.panel))


def _spherical(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("spherical", spherical(scoreboard.panel), lower=False)


def _ranked_probability(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("ranked_probability", ranked_probability(scoreboard.panel), lower=True)


def _accuracy(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("accuracy", accuracy(scoreboard.panel), lower=False)


def _returns(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    combined, names = scoreboard.panel, scoreboard.panel.forecasters
    scoreboard.set_figure("overround", combined.forecaster_means(overround(combined)))
    forecaster_count, step = scoreboard.forecaster_count, scoreboard.settings.stream
    curves: dict[str, Any] = {}
    texts, gammas = scoreboard.settings.gammas, [float(text) for text in scoreboard.settings.gammas]
    *results, expected = betting_results(combined, gammas)
    scoreboard.set_figure("expected_growth", combined.forecaster_means(expected))
    realised = results[1::3][gammas.index(1)] if 1 in gammas else realised_growth(combined)
    scoreboard.set_figure("realised_growth", combined.forecaster_means(realised))
    del expected, realised
    results.reverse()
    for text, gamma in zip(texts, gammas, strict=True):
        paid, wealth, utility = results.pop(), results.pop(), results.pop()  # none of many forecasts stays in memory
        scoreboard.add_score(f"average_return:{text}", paid, lower=False, key="average_return", under=text)
        scoreboard.set_figure("net_return", scoreboard.figures["average_return"][text] - 1, text)
        scoreboard.set_figure("sharpe", sharpe(combined, paid), text)
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


def _alpha(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    scoreboard.add_score("alpha", alpha(scoreboard.panel), lower=False)


def _calibration(scoreboard: Scoreboard, panel: Panel, report: dict[str, Any]) -> None:
    combined, bins = scoreboard.panel, scoreboard.settings.bins
    scoreboard.set_figure("ece", ece(combined, bins))
    scoreboard.add_calibration_error(bins)
    scoreboard.set_figure("ece_noise_floor", ece_noise_floor(combined, bins))
    scoreboard.set_figure("ece_debiased", ece_debiased(combined, bins))
    scoreboard.set_figure("max_calibration_error", max_calibration_error(combined, bins))
    # Sorting each forecaster's pairs takes longer than `recalibration_line` and `corp_decomposition` of sorted ones.
    lines, parts = np.full((2, len(combined.forecasters)), np.nan), np.full((4, len(combined.forecasters)), np.nan)
    for person, pairs in distinct_pairs(combined):
        lines[:, person], parts[:, person] = fitted_line(pairs), brier_parts(pairs)
    scoreboard.set_figure("calibration_slope", lines[0])
    scoreboard.set_figure("calibration_intercept", lines[1])
    scoreboard.set_figure("sharpness", sharpness(combined))
    for name, part in murphy_decomposition(combined, bins)._asdict().items():
        scoreboard.set_figure("murphy", part, name)
    for name, part in CorpDecomposition(*parts)._asdict().items():
        scoreboard.set_figure("corp", part, name)
    curve = reliability_curve(combined, bins, level=scoreboard.settings.level)
    curves: dict[str, dict[str, Any]] = {"forecasters": {}, "references": {}}
    for i, name in enumerate(combined.forecasters):
        group = "forecasters" if i < scoreboard.forecaster_count else "references"
        curves[group][name] = [_reliability_bin(curve, i, b) for b in np.flatnonzero(curve.pairs[i]).tolist()]
    report["curves"]["reliability"] = curves


def _reliability_bin(curve: ReliabilityCurve, i: int, b: int) -> dict[str, Any]:
    entry = {"from": to_json_value(curve.edges[i, b]), "to": to_json_value(curve.edges[i, b + 1])}
    for name in ("forecast", "outcome", "weight", "pairs", "low", "high"):
        entry[name] = to_json_value(getattr(curve, name)[i, b])
    return entry


ARENA_EVALUATION_RANKINGS = {"brier": True, "skill": False, "ece": True}
"""The figures that rank, and whether lower is better."""


def rank_with_pm_rank_definitions(panel: Panel, settings: Settings, *, defects: bool = False) -> dict[str, Any]:
    """The report with the figures of the package pm_rank, under its names; its errors only with `defects`.

    A reference has no pool weight, since it is not in the pool.
    """
    scoreboard = Scoreboard(panel, settings)
    gammas = [float(text) for text in settings.gammas]
    forecaster_figures = pm_rank_compatibility.scores(panel, gammas, defects=defects)
    reference_figures = pm_rank_compatibility.scores(references(panel), gammas, defects=defects)
    reference_figures["pool_weight"] = np.full(len(REFERENCES), np.nan)
    _presence(scoreboard)
    for name, values in forecaster_figures.items():
        combined = np.concatenate([values, reference_figures[name]])
        scoreboard.set_figure(name, combined)
        scoreboard.add_ranking(name, combined, None, lower=name == "calibration")
    return assemble_report(scoreboard, _data(panel), _empty_report() | {"agreement": agreement_table(scoreboard)})


def rank_with_arena_evaluation_definitions(panel: Panel, settings: Settings) -> dict[str, Any]:
    """The report with the figures of the package arena-evaluation, under its names, and those of its slices."""
    scoreboard = Scoreboard(panel, settings)
    _presence(scoreboard)
    of_references = arena_evaluation_compatibility.scores(references(panel), bins=settings.bins)
    figures = {}
    for name, values in arena_evaluation_compatibility.scores(panel, bins=settings.bins).items():
        figures[name] = np.concatenate([values, of_references[name]])
        scoreboard.set_figure(name, figures[name])
    for name, lower in ARENA_EVALUATION_RANKINGS.items():
        scoreboard.add_ranking(name, figures[name], None, lower=lower)
    names = panel.forecasters
    slices: dict[str, dict[str, Any]] = {}
    for part, selected in arena_evaluation_compatibility.slices(panel).items():
        of_part = arena_evaluation_compatibility.scores(panel, bins=settings.bins, selected=selected)
        slices[part] = {}
        for place in np.flatnonzero(of_part["n_cells"]).tolist():
            slices[part][names[place]] = {figure: to_json_value(values[place]) for figure, values in of_part.items()}
    columns = arena_evaluation_compatibility.reliability(panel, bins=settings.bins)._asdict()
    curves: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for i, name in enumerate(names):
        for b in range(settings.bins):
            means = {field: to_json_value(column[i, b]) for field, column in columns.items()}
            curves[name].append({"center": (b + 0.5) / settings.bins, **means})
    parts = {"curves": {"reliability": {"forecasters": curves}}, "slices": slices}
    return assemble_report(
        scoreboard, _data(panel), _empty_report() | parts | {"agreement": agreement_table(scoreboard)}
    )


def agreement_table(scoreboard: FigureTable) -> dict[str, Any]:
    """Rank correlations between all rankings, as tables of name by name."""
    names = scoreboard.names[: scoreboard.forecaster_count]
    correlations = agreement(
        {
            ranking: dict(zip(names, positions.tolist(), strict=True))
            for ranking, positions in scoreboard.rankings.items()
        }
    )
    names = correlations.names
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in ("spearman", "kendall", "common"):
        tables[measure] = {}
        for name, row in zip(names, getattr(correlations, measure), strict=True):
            tables[measure][name] = dict(zip(names, map(to_json_value, row), strict=True))
    return tables


_PARTS: tuple[tuple[tuple[str, ...], str, Part], ...] = (
    (("brier",), "Brier scores and pairs", _brier),
    (("log",), "log scores", _log),
    (("spherical",), "spherical scores", _spherical),
    (("brier", "log", "spherical"), "accuracy", _accuracy),
    (("ranked_probability",), "ranked probability scores", _ranked_probability),
    (("average_return",), "averaged returns", _returns),
    (("alpha",), "alpha", _alpha),
    (("calibration",), "calibration", _calibration),
    (("adjusted_brier", "thurstone_mosteller"), "Brier scores adjusted for difficulty", model_fits.difficulty_models),
    (("thurstone_mosteller", "bradley_terry"), "Bradley–Terry", model_fits.bradley_terry),
    (("irt", "weighted_brier"), "item response theory", model_fits.response_theory),
)
_FITTED = (model_fits.bradley_terry, model_fits.response_theory)
_NOT_FITTED = (
    f"more than {MOST_MODELLED} forecasters: pool weights, Bradley–Terry, item response theory and the weighted Brier "
    "score are fitted only where asked for, as by --metrics thurstone_mosteller,irt,weighted_brier"
)
_PRIORITY: dict[Part, int] = {_returns: 0, model_fits.difficulty_models: 2, model_fits.response_theory: 0}
"""The parts that two threads take first (0) and last (2); all others are 1.

Of many forecasts returns take the longest, and need little memory beside item response theory and the scores. Of a
million the sample's item response theory takes the longest.
"""
