"""The forecast leaderboards: families and references by arm. Computed after a change, stored, read."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import QuerySet

from agents.sealing import respecting_seals
from forecast_rank import Settings, rank_panel, to_json_value
from forecast_rank.metrics.agreement import agreement
from forecast_rank.metrics.paired_tests import corrected_margins, holm
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.skill import alpha
from forecast_rank.metrics.studentised import has_no_spread
from forecast_rank.metrics.uncertainty import cluster_se, event_sums
from foundation.bulk import mappings_by, subset
from foundation.heartbeats import beat
from scoring.constants import ALL_METHODOLOGIES, EXTREMISING, FORECAST, GAMMAS, RANKED_BY, REFERENCES
from scoring.leaderboard_keys import LeaderboardKey, arms_asked, ranking_score, versions_in_play
from scoring.models import Leaderboard, QuestionDifficulty
from scoring.services.consistency_report import GroupProfit, consistency_report, stored_profits
from scoring.services.cost_report import AnswerUsage, TaskKey, answer_usage, cost_report
from scoring.services.cutoff_report import cutoff_report
from scoring.services.forecast_inputs import (
    NO_PARTICIPATION,
    inputs_version,
    is_current,
    is_fit_due,
    participation_by_family,
    refused_forecasts,
)
from scoring.services.forecast_panels import (
    Panels,
    ResolvedEntry,
    Selection,
    family_names,
    last_forecasts,
    panels,
    resolved_entries,
)
from scoring.services.forecasts_and_trades import family_figures, forecast_bets, stake_points
from scoring.services.market_record import market_record
from scoring.services.release_report import ReleaseRecords, release_report, stored_releases
from scoring.services.time_report import Ranking, time_report
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboards

AVERAGED = ("brier", "log", "spherical", "average_return", "alpha", "calibration", "adjusted_brier")
FITTED = ("bradley_terry",)
SLOWLY_FITTED = ("irt", "weighted_brier")
"""Metrics that take seconds to fit; copied from the stored leaderboard unless it is to be fitted again."""
SLOW_FIGURES = ("irt_ability", "irt_se", "irt_ability_ci", "weighted_brier", "weighted_brier_ci")
"""The figures of an entry that the slow fits give."""
ROUNDING = 1e-12
"""Adjusted scores are solutions of equations: equal ones differ by as much."""
CURVE_POINTS = 120
FIGURES = (
    "coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "average_return",
    "average_return_ci", "log_wealth", "ruins", "alpha", "alpha_se", "alpha_ci", "bss_uniform", "bss_market", "ece",
    "ece_noise_floor", "weighted_brier", "adjusted_brier", "adjusted_brier_se", "adjusted_brier_ci",
    "weighted_brier_ci", "irt_ability", "irt_se", "irt_ability_ci", "bt_ability", "bt_se", "bt_ability_ci",
    "pool_weight",
)  # fmt: skip
"""Figures that an entry copies from a report; null where they were not computed."""
REFERENCE_NAMES = {name: name.replace("_", " ").capitalize() for name in REFERENCES}
LOWER_IS_BETTER = frozenset({"brier", "ece", "weighted_brier", "adjusted_brier"})
RANKING = (
    "brier", "log", "spherical", "accuracy", "alpha", "ece", "weighted_brier", "adjusted_brier", "irt_ability",
    "bt_ability",
)  # fmt: skip
"""The figures that rank forecasters, besides the averaged returns."""


def refresh_forecast_leaderboards(*, at: datetime, refit: bool = True) -> int:
    """Stores the leaderboards of every methodology, arm and category whose forecasts, scores or bets have changed.

    Without `refit`, leaderboards by category and slow fits are only computed where there are none yet, since the job
    runs every hour. With it, slow fits of many forecasts are repeated daily, or as soon as more than 1 % are new.
    Returns how many leaderboards it stored.
    """
    with respecting_seals(at=at):
        selections = leaderboard_selections()
        return sum(_refresh(selection, versions, at=at, refit=refit) for selection, versions in selections)


def leaderboard_selections() -> Iterator[tuple[Selection, list[str]]]:
    """Each selection with the methodologies its leaderboards are stored under; a single one shares those of all."""
    versions = versions_in_play(FORECAST)
    for arm in arms_asked():
        if len(versions) == 1:
            yield Selection(arm), [ALL_METHODOLOGIES, *versions]
        else:
            yield from ((Selection(arm, version), [version]) for version in (ALL_METHODOLOGIES, *versions))


def forecast_leaderboard(
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
    *,
    metrics: tuple[str, ...] = AVERAGED,
    reported: bool = True,
) -> LeaderboardContents:
    """The leaderboard over these entries, by the adjusted Brier score where the library heads its report by it.

    Families without an answer have nulls and stand last. `families` and `externals` are display names by slug. A
    reference's rank is the place that it would take among the families; an external agent has none. The report is
    empty unless `reported`.
    """
    built = panels(resolved, families, externals)
    step = max(1, math.ceil(len(resolved) / CURVE_POINTS))
    report = _rank(built, Settings(metrics, GAMMAS, stream=step))
    figures_by_name = report["forecasters"] | report["references"] | report["externals"]
    questions: dict[str, int] = {}
    for panel in built:
        questions |= questions_answered(panel)
    resolved_questions = len({entry.question for entry in resolved})
    ranked_by = report["headline"] if report["headline"] in RANKED_BY else "brier"
    names = {**families, **externals, **REFERENCE_NAMES}
    entries = []
    for name, figures in figures_by_name.items():
        rank_low, rank_high = figures.get("rank_ranges", {}).get(ranked_by) or (None, None)
        entry = {
            "forecaster": name,
            "family": None if name in REFERENCES else name,
            "display_name": names[name],
            "reference": name in REFERENCES,
            "external": name in externals,
            "rank": None,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "ranked_by": ranked_by,
            "n": questions[name],
            "forecasts": figures["n"],
        }
        entry |= {key: figures.get(key) for key in FIGURES}
        entry["coverage"] = questions[name] / max(resolved_questions, 1)
        entries.append(entry)
    if not reported:
        return LeaderboardContents(rank_entries(entries), {})
    parts = {"agreement": _agreement(entries), "market": market_tests(built.families)}
    return LeaderboardContents(rank_entries(entries), _report(report, resolved) | parts)


def market_tests(families: Panel) -> dict[str, dict[str, Any]]:
    """The paired test of each family and the market's prices on the same questions, clustered by event.

    By slug: `difference` (alpha), `p_holm`, corrected for the number of families, and `margin`, half the interval that
    leaves out 0 where the corrected p is below 5 %; null where the difference is the same on all events.
    """
    from scipy.stats import t

    sums = event_sums(families, alpha(families))
    difference, freedom = sums.means, np.maximum(sums.events - 1, 1)
    error = np.where(has_no_spread(sums), np.nan, cluster_se(sums))
    p = 2 * t.sf(np.abs(difference / error), freedom)
    columns = {"difference": difference, "p_holm": holm(p), "margin": corrected_margins(error, freedom, p)}
    tests = {}
    for place, name in enumerate(families.forecasters):
        tests[name] = {key: to_json_value(values[place]) for key, values in columns.items()}
    return tests


def _rank(built: Panels, settings: Settings) -> dict[str, Any]:
    """The report of the library on families and references, with the figures of `externals`."""
    families, references, externals = built
    beat()  # a fit of many forecasts takes seconds without a query
    rank = partial(rank_panel, families, settings, agreement_of_rankings=False)
    # Externals apart from the others: no figure of a family or a reference depends on them.
    apart = rank(reference_panel=externals)["references"] if externals.forecasters else {}
    return rank(reference_panel=references) | {"externals": apart}


class SlowFits(NamedTuple):
    """The figures of each forecaster that the slow fits give, and what they say of the models and the questions."""

    figures: dict[str, dict[str, Any]]
    models: dict[str, Any]
    notes: list[str]
    questions: dict[str, dict[str, Any]]


def slow_fits(resolved: Sequence[ResolvedEntry], families: Mapping[str, str], externals: Mapping[str, str]) -> SlowFits:
    """The slow fits to these entries: a question is one item, whatever the days it was asked on, with the last
    forecast of each."""
    report = _rank(panels(last_forecasts(resolved), families, externals), Settings(SLOWLY_FITTED, GAMMAS))
    figures_by_name = report["forecasters"] | report["references"] | report["externals"]
    slow_figures = {}
    for name, figures in figures_by_name.items():
        slow_figures[name] = {key: figures.get(key) for key in SLOW_FIGURES}
    return SlowFits(slow_figures, report["models"], report["notes"], report["questions"])


def _refresh(selection: Selection, versions: Sequence[str], *, at: datetime, refit: bool) -> int:
    """Stores the leaderboards of one arm under each of `versions`, which share them; returns how many."""
    inputs, rows = inputs_version(selection), stored_leaderboards(selection.arm, versions[0])
    before, stored = rows.filter(category="").first(), dict(rows.values_list("category", "report__inputs"))
    has_fits = before is not None and before.report.get("fitted") is not None
    slow = is_fit_due(before, inputs, at=at) if refit else not has_fits
    current, resolved = set(), set()
    for category, stored_inputs in stored.items():
        if is_current(category, stored_inputs, inputs):
            current.add(category)
    for category, category_inputs in inputs["categories"].items():
        if category and "resolved" in category_inputs:
            resolved.add(category)
    if "" in current and (not refit or (not slow and current >= resolved)):
        return 0
    omitted = current if refit else stored.keys() - {""}
    leaderboards, difficulties = compute_forecast_leaderboards(
        selection, inputs, before, at=at, slow=slow, omitted=omitted
    )
    by_key = {}
    for version, category in product(versions, leaderboards):
        by_key[LeaderboardKey(FORECAST, version, selection.arm, category)] = leaderboards[category]
    with transaction.atomic():
        store_leaderboards(by_key, at=at)
        if slow and versions[0] == ALL_METHODOLOGIES:
            store_difficulties(selection.arm, difficulties)
    return len(by_key)


def store_difficulties(arm: str, difficulties: Sequence[QuestionDifficulty]) -> None:
    """Replaces the difficulties of an arm's questions."""
    with transaction.atomic():
        QuestionDifficulty.objects.filter(arm=arm).delete()
        QuestionDifficulty.objects.bulk_create(difficulties, batch_size=500)


def compute_forecast_leaderboards(
    selection: Selection,
    inputs: Mapping[str, Any],
    before: Leaderboard | None,
    *,
    at: datetime,
    slow: bool,
    omitted: Collection[str] = (),
) -> tuple[dict[str, LeaderboardContents], list[QuestionDifficulty]]:
    """The leaderboards of an arm by category, but the `omitted` ones, and the difficulties of its questions.

    Without `slow`, the results of the slow fits are those of the leaderboard `before`, and there are no difficulties.
    With `slow`, an omitted leaderboard over all categories is part of the result: the one `before`, with new results
    of the slow fits.
    """
    unchanged = before if "" in omitted else None
    resolved = resolved_entries(selection, without=omitted if unchanged and not slow else ())
    families, externals = family_names(selection), family_names(selection, external=True)
    leaderboards = _by_category(selection, [e for e in resolved if e.category not in omitted], families, externals)
    for category, contents in leaderboards.items():
        contents.report["inputs"] = inputs["categories"].get(category)
    slow = slow and bool(resolved)
    if unchanged is None:
        leaderboards[""] = _over_categories(selection, resolved, families, externals)
        leaderboards[""].report["inputs"] = inputs
        if before and not slow:
            _copy_slow_figures(leaderboards[""], before)
    elif slow:
        leaderboards[""] = LeaderboardContents(unchanged.entries, unchanged.report)
    if not slow:
        return leaderboards, []
    fits = slow_fits(resolved, families, externals)
    _add_fits(leaderboards[""], fits)
    leaderboards[""].report.update(fitted=inputs["resolved"], fitted_at=at.isoformat())
    difficulties = []
    for question, figures in fits.questions.items():
        if figures["difficulty"] is not None:
            difficulties.append(QuestionDifficulty(question_id=int(question), arm=selection.arm, **figures))
    return leaderboards, difficulties


def _over_categories(
    selection: Selection,
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
) -> LeaderboardContents:
    """The leaderboard over all categories, without slow fits."""
    leaderboard = forecast_leaderboard(resolved, families, externals, metrics=(*AVERAGED, *FITTED))
    bets = forecast_bets(selection.arm, selection.methodology)
    leaderboard.report.update(
        fitted=None, fitted_at=None, forecasts_and_trades=family_figures(bets), stakes=stake_points(bets)
    )
    leaderboard.report.update(market_record(resolved, families))
    leaderboard.report.update(report_parts(selection, resolved, families))
    participation = participation_by_family(selection)
    for entry in leaderboard.entries:
        entry |= dict.fromkeys(NO_PARTICIPATION) if entry["reference"] else participation[entry["family"]]
    return leaderboard


def report_parts(
    selection: Selection, resolved: Sequence[ResolvedEntry], families: Mapping[str, str]
) -> dict[str, Any]:
    """Parts of a report: scores by days to the close, cost, release and knowledge cut-off, and consistency."""
    parts = stored_parts(selection, resolved, families)
    return {**parts, "after_cutoff": cutoff_report(resolved, _ranking(families))}


def stored_parts(
    selection: Selection, resolved: Sequence[ResolvedEntry], families: Mapping[str, str]
) -> dict[str, Any]:
    """The parts of a report whose figures are in archives, from stored rows."""
    inputs = ReportInputs(answer_usage(selection), stored_releases(), stored_profits(selection))
    return archived_parts(resolved, families, inputs)


class ReportInputs(NamedTuple):
    """What the parts of a report follow from, besides resolved entries."""

    usage: Mapping[TaskKey, AnswerUsage]
    releases: ReleaseRecords
    profits: Mapping[str, Sequence[GroupProfit]]


def archived_parts(
    resolved: Sequence[ResolvedEntry], families: Mapping[str, str], inputs: ReportInputs
) -> dict[str, Any]:
    """The parts of a report whose figures are in archives, from what they follow from."""
    return {
        "time": time_report(resolved, families, _ranking(families)),
        "costs": cost_report(resolved, inputs.usage, _ranking(families)),
        "releases": release_report(resolved, inputs.releases),
        "consistency": consistency_report(resolved, families, inputs.profits),
    }


def _ranking(families: Mapping[str, str]) -> Ranking:
    metrics = ("brier", "alpha", "adjusted_brier")
    return partial(forecast_leaderboard, families=families, externals={}, metrics=metrics)


def stored_leaderboards(arm: str, methodology: str) -> QuerySet[Leaderboard]:
    """The stored leaderboards of an arm under a methodology, one of each category."""
    return Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology)


def _by_category(
    selection: Selection,
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
) -> dict[str, LeaderboardContents]:
    refused = refused_forecasts(selection, "entry__question__category")
    leaderboards = {}
    by_category: dict[str, list[ResolvedEntry]] = defaultdict(list)
    for entry in resolved:
        by_category[entry.category].append(entry)
    for category in sorted(by_category.keys() - {""}):
        leaderboard = forecast_leaderboard(by_category[category], families, externals)
        # A batch mixes categories: its cost, and whether its model declined, belongs to none of them.
        for row in leaderboard.entries:
            refusals = None if row["reference"] else refused[row["family"], category]
            row.update(dict.fromkeys(NO_PARTICIPATION) | {"refused": refusals})
        leaderboards[category] = leaderboard
    return leaderboards


def _report(report: Mapping[str, Any], resolved: Sequence[ResolvedEntry]) -> dict[str, Any]:
    """The results besides the ranking."""
    figures_by_name = report["forecasters"] | report["references"]
    return {
        "murphy": {name: figures["murphy"] for name, figures in figures_by_name.items() if figures.get("murphy")},
        **subset(report, ("pairs", "curves", "rankings", "models", "notes")),
        "data": report["data"] | {"questions": len({e.question for e in resolved}), "entries": len(resolved)},
        "extremising": EXTREMISING,
    }


def questions_answered(panel: Panel) -> dict[str, int]:
    """The number of questions that each forecaster answered, one of several days counted once."""
    # Each of k forecasts of a question weighs 1/k.
    numbers = np.bincount(panel.forecaster, panel.weight, len(panel.forecasters))
    return dict(zip(panel.forecasters, np.rint(numbers).astype(int).tolist(), strict=True))


def rank_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries by rank, each with its rank set; external agents, which have none, come last."""
    families = [entry for entry in entries if not (entry["reference"] or entry["external"])]
    scores = [score for entry in families if (score := ranking_score(entry)) is not None]
    for entry in entries:
        score = ranking_score(entry)
        if not entry["external"]:
            bound = math.inf if score is None else score - ROUNDING
            better = [family_score for family_score in scores if family_score < bound]
            entry["rank"] = 1 + len(better)

    def order(entry: dict[str, Any]) -> tuple[Any, ...]:
        score = ranking_score(entry)
        return entry["external"], score is None, score or 0, entry["reference"], entry["forecaster"]

    return sorted(entries, key=order)


def _add_fits(leaderboard: LeaderboardContents, fits: SlowFits) -> None:
    """Adds the results of the slow fits to a leaderboard that has none of them, or earlier ones."""
    for entry in leaderboard.entries:
        entry |= fits.figures[entry["forecaster"]]
    leaderboard.report["models"] |= fits.models
    leaderboard.report["notes"] += fits.notes
    leaderboard.report["agreement"] = _agreement(leaderboard.entries)


def _copy_slow_figures(leaderboard: LeaderboardContents, before: Leaderboard) -> None:
    """Copies the results of the last slow fits from the stored leaderboard."""
    entries = mappings_by("forecaster", before.entries)
    for entry in leaderboard.entries:
        entry |= {key: entries.get(entry["forecaster"], {}).get(key) for key in SLOW_FIGURES}
    leaderboard.report["agreement"] = _agreement(leaderboard.entries)
    leaderboard.report.update({name: before.report.get(name) for name in ("fitted", "fitted_at")})
    if "irt" in before.report.get("models", {}):
        leaderboard.report["models"]["irt"] = before.report["models"]["irt"]


def _agreement(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Rank correlations between the ranking figures of the families, as tables of name by name."""
    positions: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in entries:
        if not (entry["reference"] or entry["external"]):
            for name, value in _ranking_figures(entry):
                positions[name][entry["forecaster"]] = math.nan if value is None else value
    present = {name: column for name, column in positions.items() if not all(map(math.isnan, column.values()))}
    tables = agreement(present)
    correlations: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in ("spearman", "kendall", "common"):
        correlations[measure] = {}
        for name, row in zip(tables.names, getattr(tables, measure), strict=True):
            correlations[measure][name] = dict(zip(tables.names, map(to_json_value, row), strict=True))
    return correlations


def _ranking_figures(entry: Mapping[str, Any]) -> Iterable[tuple[str, float | None]]:
    """The ranking figures, each with the sign by which less is better."""
    for name in RANKING:
        value = entry[name]
        yield name, value if value is None or name in LOWER_IS_BETTER else -value
    for gamma in GAMMAS:
        value = (entry["average_return"] or {}).get(gamma)
        yield f"average_return:{gamma}", None if value is None else -value
