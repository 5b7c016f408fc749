"""The forecast leaderboards: families and references by arm. Computed after a change, stored, read."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, Sum
from forecast_rank.metrics.agreement import agreement
from forecast_rank.metrics.panel import Panel

from agents.models import Elicitation, Forecast, ModelCall, Trade
from forecast_rank import Settings, rank_panel, to_json_value
from markets.foundation.heartbeats import beat
from markets.models import Market
from scoring.constants import ALL_METHODOLOGIES, EXTREMISING, FORECAST, GAMMAS, REFERENCES
from scoring.leaderboard_history import LeaderboardKey
from scoring.methodologies import arms_asked, versions_in_play
from scoring.models import ForecastScore, Leaderboard, QuestionDifficulty
from scoring.services.forecast_panels import (
    Panels,
    ResolvedEntry,
    Selection,
    asked_and_resolved,
    family_names,
    last_forecasts,
    panels,
    resolved_entries,
    selection_families,
)
from scoring.services.forecast_participation import NO_PARTICIPATION, participation_by_family, refused_forecasts
from scoring.services.forecasts_and_trades import family_figures, forecast_bets, stake_points
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboard
from scoring.stored_json import to_json

AVERAGED = ("brier", "log", "spherical", "average_return", "alpha", "calibration")
FITTED = ("adjusted_brier", "bradley_terry")
SLOWLY_FITTED = ("irt", "weighted_brier")
"""Metrics that take seconds to fit; copied from the stored leaderboard unless it is to be fitted again."""
SLOW_FIGURES = ("irt_ability", "irt_se", "weighted_brier")
"""The figures of an entry that the slow fits give."""
CURVE_POINTS = 120
FIGURES = (
    "coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "average_return",
    "average_return_ci", "log_wealth", "ruins", "alpha", "alpha_se", "alpha_ci", "bss_uniform", "bss_market", "ece",
    "ece_noise_floor", "weighted_brier", "adjusted_brier", "adjusted_brier_se", "irt_ability", "irt_se", "bt_ability",
    "bt_se", "pool_weight",
)  # fmt: skip
"""Figures that an entry copies from a report; null where they were not computed."""
REFERENCE_NAMES = {name: name.replace("_", " ").capitalize() for name in REFERENCES}
LOWER_IS_BETTER = frozenset({"brier", "ece", "weighted_brier", "adjusted_brier"})
RANKING = (
    "brier", "log", "spherical", "accuracy", "alpha", "ece", "weighted_brier", "adjusted_brier", "irt_ability",
    "bt_ability",
)  # fmt: skip
"""The figures that rank forecasters, besides the averaged returns."""
FORMAT = 5
"""The format of stored leaderboards: those of an older one are computed anew, although their inputs are the same."""


def refresh_forecast_leaderboards(*, at: datetime, refit: bool = True) -> int:
    """Stores the leaderboards of every methodology, arm and category whose forecasts, scores or bets have changed.

    Without `refit`, leaderboards by category and slow fits are only computed where there are none yet, since the job
    runs every hour. Returns how many leaderboards it stored.
    """
    return sum(_refresh(selection, versions, at=at, refit=refit) for selection, versions in leaderboard_selections())


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
    slow: tuple[str, ...] = (),
    reported: bool = True,
) -> LeaderboardContents:
    """The leaderboard over these entries, by Brier score; families without an answer have nulls and stand last.

    `families` and `externals` are display names by slug. A reference's rank is the place that it would take among the
    families; an external agent has none. The `slow` metrics take a question as one item, whatever the days it was
    asked on, with the last forecast of each. The report is empty unless `reported`.
    """
    built = panels(resolved, families, externals)
    step = max(1, math.ceil(len(resolved) / CURVE_POINTS))
    report = _rank(built, Settings(metrics, GAMMAS, stream=step))
    if slow:
        _join(report, _rank(panels(last_forecasts(resolved), families, externals), Settings(slow, GAMMAS)))
    figures_by_name = report["forecasters"] | report["references"] | report["externals"]
    questions = {name: number for panel in built for name, number in _questions_answered(panel, resolved)}
    names = {**families, **externals, **REFERENCE_NAMES}
    entries = [
        {
            "forecaster": name,
            "family": None if name in REFERENCES else name,
            "display_name": names[name],
            "reference": name in REFERENCES,
            "external": name in externals,
            "rank": None,
            **dict(zip(("rank_low", "rank_high"), figures["rank_range"] or (None, None), strict=True)),
            "n": questions[name],
            "forecasts": figures["n"],
            **{key: figures.get(key) for key in FIGURES},
        }
        for name, figures in figures_by_name.items()
    ]
    if not reported:
        return LeaderboardContents(rank_entries(entries), {})
    return LeaderboardContents(rank_entries(entries), _report(report, resolved) | {"agreement": _agreement(entries)})


def _rank(built: Panels, settings: Settings) -> dict[str, Any]:
    """The report of the library on families and references, with the figures of `externals`."""
    families, references, externals = built
    beat()  # a fit of many forecasts takes seconds without a query
    rank = partial(rank_panel, families, settings, agreement_of_rankings=False)
    # Externals apart from the others: no figure of a family or a reference depends on them.
    apart = rank(reference_panel=externals)["references"] if externals.forecasters else {}
    return rank(reference_panel=references) | {"externals": apart}


def _join(report: dict[str, Any], fitted: Mapping[str, Any]) -> None:
    """Adds the slow fits to a report of the other metrics."""
    for group in ("forecasters", "references", "externals"):
        for name, figures in fitted[group].items():
            report[group][name] |= {key: figures.get(key) for key in SLOW_FIGURES}
    report["models"] |= fitted["models"]
    report["questions"] = fitted["questions"]
    report["notes"] += fitted["notes"]


def _refresh(selection: Selection, versions: Sequence[str], *, at: datetime, refit: bool) -> int:
    """Stores the leaderboards of one arm under each of `versions`, which share them; returns how many."""
    inputs, stored = inputs_version(selection), stored_by_category(selection.arm, versions[0])
    before = stored.get("")
    fitted = is_fitted(before, inputs)
    current = {category for category, row in stored.items() if is_current(row, inputs)}
    if "" in current and (not refit or (fitted and current == stored.keys())):
        return 0
    slow = not fitted and (refit or before is None or before.report.get("fitted") is None)
    omitted = (current if refit else stored.keys()) - {""}
    leaderboards, difficulties = compute_forecast_leaderboards(
        selection, inputs, before, at=at, slow=slow, omitted=omitted
    )
    with transaction.atomic():
        for version in versions:
            for category, contents in leaderboards.items():
                key = LeaderboardKey(FORECAST, version, selection.arm, category)
                store_leaderboard(key, computed_at=at, **contents._asdict())
        if slow and versions[0] == ALL_METHODOLOGIES:
            store_difficulties(selection.arm, difficulties)
    return len(versions) * len(leaderboards)


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
    """
    resolved = resolved_entries(selection)
    families, externals = family_names(selection), family_names(selection, external=True)
    slow = slow and bool(resolved)
    leaderboard = forecast_leaderboard(
        resolved, families, externals, metrics=(*AVERAGED, *FITTED), slow=SLOWLY_FITTED if slow else ()
    )
    bets = forecast_bets(selection.arm, selection.methodology)
    report_before = before.report if before else {}
    leaderboard.report.update(
        inputs=inputs,
        fitted=inputs["resolved"] if slow else report_before.get("fitted"),
        fitted_at=at.isoformat() if slow else report_before.get("fitted_at"),
        forecasts_and_trades=family_figures(bets),
        stakes=stake_points(bets),
    )
    if before and not slow:
        _copy_slow_figures(leaderboard, before)
    participation = participation_by_family(selection)
    for entry in leaderboard.entries:
        entry |= dict.fromkeys(NO_PARTICIPATION) if entry["reference"] else participation[entry["family"]]
    figures_by_question = leaderboard.report.pop("questions")
    by_category = _by_category(selection, [e for e in resolved if e.category not in omitted], families, externals)
    for category, contents in by_category.items():
        contents.report["inputs"] = inputs["categories"].get(category)
    difficulties = [
        QuestionDifficulty(question_id=int(question), arm=selection.arm, **figures)
        for question, figures in figures_by_question.items()
        if slow and figures["difficulty"] is not None
    ]
    return {"": leaderboard} | by_category, difficulties


def stored_by_category(arm: str, methodology: str) -> dict[str, Leaderboard]:
    """The stored leaderboards of an arm under a methodology."""
    rows = Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=methodology)
    return {row.category: row for row in rows}


def is_current(leaderboard: Leaderboard, inputs: Mapping[str, Any]) -> bool:
    """True if a stored leaderboard was computed from these inputs, or from those of its category."""
    own = inputs["categories"].get(leaderboard.category) if leaderboard.category else inputs
    return leaderboard.report.get("inputs") == own


def is_fitted(leaderboard: Leaderboard | None, inputs: Mapping[str, Any]) -> bool:
    """True if the slow fits of a stored leaderboard are of these inputs."""
    return leaderboard is not None and leaderboard.report.get("fitted") == inputs["resolved"]


def _by_category(
    selection: Selection,
    resolved: Sequence[ResolvedEntry],
    families: Mapping[str, str],
    externals: Mapping[str, str],
) -> dict[str, LeaderboardContents]:
    refused = refused_forecasts(selection, "entry__question__category")
    leaderboards = {}
    for category in sorted({entry.category for entry in resolved} - {""}):
        of_category = [entry for entry in resolved if entry.category == category]
        leaderboard = forecast_leaderboard(of_category, families, externals)
        leaderboard.report.pop("questions")
        # A batch mixes categories: its cost, and whether its model declined, belongs to none of them.
        for row in leaderboard.entries:
            refusals = None if row["reference"] else refused[row["family"], category]
            row.update(dict.fromkeys(NO_PARTICIPATION) | {"refused": refusals})
        leaderboards[category] = leaderboard
    return leaderboards


def inputs_version(selection: Selection) -> dict[str, Any]:
    """Numbers and newest instants of an arm's inputs, as JSON: as long as they are the same, so are its leaderboards.

    Numbers alone would miss an outcome that was reversed.
    """
    forecasts = Forecast.objects.filter(arm=selection.arm)
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
    tasks = selection.elicitations()
    calls = ModelCall.objects.filter(elicitation__in=tasks)
    bets = Trade.objects.filter(kind=Trade.Kind.BUY)
    resolved_bets = bets.filter(market__status=Market.Status.RESOLVED)
    scores = ForecastScore.objects.filter(forecast__in=forecasts.order_by())
    number = Count("pk")
    families = list(selection_families(selection).order_by("pk").values_list("slug", "display_name", "external"))
    inputs = {
        "format": FORMAT,
        "families": families,
        "categories": _category_inputs(selection, families),
        "resolved": asked_and_resolved(selection).aggregate(number=number, newest=Max("question__resolved_at"))
        | scores.aggregate(forecasts=number, scored_at=Max("scored_at")),
        "forecasts": forecasts.aggregate(number=number, newest=Max("made_at")),
        "asked": tasks.aggregate(number=number, completed=Count("pk", filter=Q(status=Elicitation.Status.COMPLETED))),
        "calls": calls.aggregate(number=number, cost=Sum("cost_usd")),
        "bets": bets.aggregate(number=number, newest=Max("executed_at")),
        "resolved_bets": resolved_bets.aggregate(number=number, newest=Max("market__resolved_at")),
    }
    return to_json(inputs)


def _category_inputs(selection: Selection, families: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The numbers and newest instants of the inputs of each category's leaderboard, by category."""
    inputs: dict[str, dict[str, Any]] = defaultdict(lambda: {"format": FORMAT, "families": families})
    resolved = asked_and_resolved(selection).order_by().values_list("question__category")
    for category, number, newest in resolved.annotate(Count("pk"), Max("question__resolved_at")):
        inputs[category]["resolved"] = (number, newest)
    scores = ForecastScore.objects.filter(forecast__arm=selection.arm).order_by()
    if selection.methodology:
        scores = scores.filter(forecast__methodology=selection.methodology)
    by_category = scores.values_list("forecast__question__category")
    for category, number, newest in by_category.annotate(Count("pk"), Max("scored_at")):
        inputs[category]["scores"] = (number, newest)
    refused = refused_forecasts(selection, "entry__question__category")
    for (_, category), number in sorted(refused.items()):
        inputs[category].setdefault("refused", []).append(number)
    return dict(inputs)


def _report(report: Mapping[str, Any], resolved: Sequence[ResolvedEntry]) -> dict[str, Any]:
    """The results besides the ranking."""
    figures_by_name = report["forecasters"] | report["references"]
    return {
        "murphy": {name: figures["murphy"] for name, figures in figures_by_name.items() if figures.get("murphy")},
        **{part: report[part] for part in ("pairs", "curves", "rankings", "models", "notes", "questions")},
        "data": report["data"] | {"questions": len({e.question for e in resolved}), "entries": len(resolved)},
        "extremising": EXTREMISING,
    }


def _questions_answered(panel: Panel, resolved: Sequence[ResolvedEntry]) -> Iterator[tuple[str, int]]:
    """Each forecaster and the number of questions that it answered, one of several days counted once."""
    answered: list[set[int]] = [set() for _ in panel.forecasters]
    for forecaster, entry in zip(panel.forecaster.tolist(), panel.question.tolist(), strict=True):
        answered[forecaster].add(resolved[entry].question)
    yield from zip(panel.forecasters, map(len, answered), strict=True)


def rank_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries by rank, each with its rank set; external agents, which have none, come last."""
    families = [e for e in entries if not (e["reference"] or e["external"])]
    scores = [e["brier"] for e in families if e["brier"] is not None]
    for entry in entries:
        score = entry["brier"]
        if not entry["external"]:
            entry["rank"] = 1 + (len(scores) if score is None else sum(other < score for other in scores))

    def order(entry: dict[str, Any]) -> tuple[Any, ...]:
        unscored = entry["brier"] is None
        return entry["external"], unscored, entry["brier"] or 0, entry["reference"], entry["forecaster"]

    return sorted(entries, key=order)


def _copy_slow_figures(leaderboard: LeaderboardContents, before: Leaderboard) -> None:
    """Copies the results of the last slow fits from the stored leaderboard."""
    entries = {entry["forecaster"]: entry for entry in before.entries}
    for entry in leaderboard.entries:
        entry |= {key: entries.get(entry["forecaster"], {}).get(key) for key in SLOW_FIGURES}
    leaderboard.report["agreement"] = _agreement(leaderboard.entries)
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
    return {
        measure: {
            row: {column: to_json_value(getattr(tables, measure)[i, j]) for j, column in enumerate(tables.names)}
            for i, row in enumerate(tables.names)
        }
        for measure in ("spearman", "kendall", "common")
    }


def _ranking_figures(entry: Mapping[str, Any]) -> Iterable[tuple[str, float | None]]:
    """The ranking figures, each with the sign by which less is better."""
    for name in RANKING:
        value = entry[name]
        yield name, value if value is None or name in LOWER_IS_BETTER else -value
    for gamma in GAMMAS:
        value = (entry["average_return"] or {}).get(gamma)
        yield f"average_return:{gamma}", None if value is None else -value
