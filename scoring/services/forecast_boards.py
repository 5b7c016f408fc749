"""The forecast leaderboards: families and references by arm. Computed after a change, stored, read."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum
from forecast_rank.metrics.agreement import agreement
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.scoreboard import to_json_value
from forecast_rank.ranking.settings import Settings

from agents.models import Elicitation, Family, Forecast, ModelCall, RefusedForecast, Trade
from markets.models import QuestionBatch, QuestionSet
from markets.prompt_conditions import PRICED
from scoring.constants import ALL_METHODOLOGIES, EXTREMISING, FORECAST, GAMMAS, REFERENCES
from scoring.leaderboard_history import BoardKey
from scoring.models import ForecastScore, Leaderboard, QuestionDifficulty
from scoring.services.boards import store_leaderboard
from scoring.services.disagreements import store_forecast_disagreements
from scoring.services.forecast_panels import (
    ResolvedEntry,
    Selection,
    external_panel,
    family_slugs,
    last_forecasts,
    panels,
    resolved_entries,
)
from scoring.services.forecasts_and_trades import by_family, forecast_bets, stake_points

AVERAGED = ("brier", "log", "spherical", "average_return", "alpha", "calibration")
FITTED = ("adjusted_brier", "bradley_terry")
SLOWLY_FITTED = ("irt", "weighted_brier")
"""Metrics that take seconds to fit: only when boards are computed afresh, else copied from the stored board."""
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
LOWER_IS_BETTER = frozenset({"brier", "ece", "weighted_brier", "adjusted_brier"})
RANKING = (
    "brier", "log", "spherical", "accuracy", "alpha", "ece", "weighted_brier", "adjusted_brier", "irt_ability",
    "bt_ability",
)  # fmt: skip
"""The figures that rank forecasters, besides the averaged returns."""
PARTICIPATION = ("cost_usd", "declined", "refused", "asked")
FORMAT = 2
"""The format of stored boards: those of an older one are computed anew, although their inputs are the same."""


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard as it is stored."""

    entries: list[dict[str, Any]]
    report: dict[str, Any]


def refresh_forecast_boards(*, at: datetime, afresh: bool = True) -> int:
    """Stores the boards of every methodology, arm and category whose forecasts, scores or bets have changed.

    Unless `afresh`, boards by category and slow fits are only computed where there are none yet, since the job runs
    every hour. Stores the largest disagreements of the line-up's forecasts as well. Returns how many boards it stored.
    """
    versions = list(QuestionSet.objects.order_by().values_list("methodology", flat=True).distinct())
    written = 0
    for arm in QuestionBatch.objects.order_by("arm").values_list("arm", flat=True).distinct():
        for version in [ALL_METHODOLOGIES, *versions] if len(versions) > 1 else [ALL_METHODOLOGIES]:
            copies = [version] if len(versions) > 1 else [ALL_METHODOLOGIES, *versions]
            written += _refresh(Selection(arm, version), copies, at=at, afresh=afresh)
    store_forecast_disagreements(PRICED)
    return written


def forecast_board(
    asked: Sequence[ResolvedEntry],
    families: Sequence[str],
    *,
    externals: Sequence[str] = (),
    metrics: Sequence[str] = AVERAGED,
    reported: bool = True,
) -> Board:
    """The board over these entries, by Brier score; families without an answer have nulls and stand last.

    A reference's rank is the place that it would take among the families; an external agent has none. The slow fits
    among `metrics` take a question as one item, whatever the days it was asked on, with the last forecast of each. The
    report is empty unless `reported`.
    """
    made = panels(asked, families)
    step = max(1, math.ceil(len(asked) / CURVE_POINTS))
    averaged = tuple(metric for metric in metrics if metric not in SLOWLY_FITTED)
    settings = Settings(averaged, GAMMAS, stream=step)
    found = rank_panel(made.families, settings, reference_panel=made.references, agreement_of_rankings=False)
    if slow := tuple(metric for metric in metrics if metric in SLOWLY_FITTED):
        _join(found, _fitted(last_forecasts(asked), families, slow))
    everybody = (
        found["forecasters"] | found["references"] | _external_figures(asked, families, externals, averaged, slow)
    )
    names = display_names([*families, *externals])
    questions = _questions_answered(asked, [*families, *externals])
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
        for name, figures in everybody.items()
    ]
    report = _report(found, asked) | {"agreement": _agreement(entries)} if reported else {}
    return Board(ranked(entries), report)


def _external_figures(
    asked: Sequence[ResolvedEntry],
    families: Sequence[str],
    externals: Sequence[str],
    averaged: tuple[str, ...],
    slow: tuple[str, ...],
) -> dict[str, dict[str, Any]]:
    """The figures of external agents, computed apart: no figure of a family or a reference depends on them."""
    if not externals:
        return {}
    figures: dict[str, dict[str, Any]] = {name: {} for name in externals}
    for metrics, entries in ((averaged, asked), (slow, last_forecasts(asked) if slow else ())):
        if metrics:
            ours, theirs = panels(entries, families).families, external_panel(entries, externals)
            ranked = rank_panel(ours, Settings(metrics, GAMMAS), reference_panel=theirs, agreement_of_rankings=False)
            found = ranked["references"]
            for name in externals:
                figures[name] = found[name] | figures[name]
    return figures


def _fitted(asked: Sequence[ResolvedEntry], families: Sequence[str], metrics: Sequence[str]) -> dict[str, Any]:
    made = panels(asked, families)
    settings = Settings(tuple(metrics), GAMMAS)
    return rank_panel(made.families, settings, reference_panel=made.references, agreement_of_rankings=False)


def _join(found: dict[str, Any], fitted: Mapping[str, Any]) -> None:
    """Adds the slow fits to a report of the other metrics."""
    for group in ("forecasters", "references"):
        for name, figures in fitted[group].items():
            found[group][name] |= {key: figures.get(key) for key in SLOW_FIGURES}
    found["models"] |= fitted["models"]
    found["questions"] = fitted["questions"]
    found["notes"] += fitted["notes"]


def _refresh(selection: Selection, versions: Sequence[str], *, at: datetime, afresh: bool) -> int:
    """Stores the boards of one arm under each of `versions`, whose boards are the same; returns how many."""
    current = _fingerprint(selection)
    of_arm = Leaderboard.objects.filter(protocol=FORECAST, arm=selection.arm)
    known = of_arm.filter(methodology=versions[0], category="").first()
    before = known.report if known else {}
    fitted = before.get("fitted") == current["scored"]
    if before.get("inputs") == current and (fitted or not afresh):
        return 0
    asked, families = resolved_entries(selection), family_slugs(selection)
    slow = SLOWLY_FITTED if asked and not fitted and (afresh or before.get("fitted") is None) else ()
    externals = family_slugs(selection, external=True)
    board = forecast_board(asked, families, externals=externals, metrics=(*AVERAGED, *FITTED, *slow))
    bets = forecast_bets(selection.arm, selection.methodology)
    board.report.update(
        inputs=current,
        fitted=current["scored"] if slow else before.get("fitted"),
        fitted_at=at.isoformat() if slow else before.get("fitted_at"),
        forecasts_and_trades=by_family(bets),
        stakes=stake_points(bets),
    )
    if not slow and known:
        _copy_slow_figures(board, known)
    _add_participation(board.entries, _participation(selection))
    stored_categories = (
        set() if afresh else set(of_arm.filter(methodology=versions[0]).values_list("category", flat=True))
    )
    boards = {"": board} | _by_category(
        selection, [e for e in asked if e.category not in stored_categories], families, externals
    )
    difficulties = board.report.pop("questions")
    with transaction.atomic():
        for version in versions:
            for category, made in boards.items():
                key = BoardKey(FORECAST, version, selection.arm, category)
                store_leaderboard(key, computed_at=at, entries=made.entries, report=made.report)
        if slow and versions[0] == ALL_METHODOLOGIES:
            _store_difficulties(selection.arm, difficulties)
    return len(versions) * len(boards)


def _by_category(
    selection: Selection, asked: Sequence[ResolvedEntry], families: Sequence[str], externals: Sequence[str]
) -> dict[str, Board]:
    by_category: dict[str, list[ResolvedEntry]] = defaultdict(list)
    for entry in asked:
        if entry.category:
            by_category[entry.category].append(entry)
    refused = _refused(selection, "entry__question__category")
    boards = {}
    for category, entries in sorted(by_category.items()):
        board = forecast_board(entries, families, externals=externals)
        board.report.pop("questions")
        # A batch mixes categories: its cost, and whether its model declined, belongs to none of them.
        for row in board.entries:
            refusals = None if row["reference"] else refused[row["family"], category]
            row.update(dict.fromkeys(PARTICIPATION) | {"refused": refusals})
        boards[category] = board
    return boards


def _fingerprint(selection: Selection) -> dict[str, Any]:
    """The numbers of inputs of an arm's boards: as long as they are the same, so are the boards."""
    forecasts = Forecast.objects.filter(arm=selection.arm)
    tasks = Elicitation.objects.filter(batch__arm=selection.arm)
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
        tasks = tasks.filter(methodology__version=selection.methodology)
    bets = Trade.objects.filter(kind=Trade.Kind.BUY)
    return {
        "format": FORMAT,
        "scored": ForecastScore.objects.filter(forecast__in=forecasts.order_by()).count(),
        "forecasts": forecasts.count(),
        "asked": tasks.count(),
        "answered": tasks.filter(status=Elicitation.Status.COMPLETED).count(),
        "bets": bets.count(),
        "scored_bets": bets.filter(brier_score__isnull=False).count(),
    }


def _report(found: Mapping[str, Any], asked: Sequence[ResolvedEntry]) -> dict[str, Any]:
    """The results besides the ranking."""
    everybody = found["forecasters"] | found["references"]
    return {
        "murphy": {name: figures["murphy"] for name, figures in everybody.items() if figures.get("murphy")},
        "pairs": found["pairs"],
        "curves": found["curves"],
        "rankings": found["rankings"],
        "models": found["models"],
        "notes": found["notes"],
        "questions": found["questions"],
        "data": found["data"] | {"questions": len({e.question for e in asked}), "entries": len(asked)},
        "extremising": EXTREMISING,
    }


def _questions_answered(asked: Sequence[ResolvedEntry], families: Sequence[str]) -> dict[str, int]:
    """The number of questions with a forecast of each forecaster, a question of several days counted once."""
    answered: dict[str, set[int]] = {name: set() for name in (*families, *REFERENCES)}
    for entry in asked:
        for slug in (*entry.forecasts, *entry.external_forecasts):
            if slug in answered:
                answered[slug].add(entry.question)
        for name in _references_of(entry):
            answered[name].add(entry.question)
    return {name: len(questions) for name, questions in answered.items()}


def _references_of(entry: ResolvedEntry) -> Iterable[str]:
    market, uniform, *ensembles = REFERENCES
    yield uniform
    if not any(math.isnan(price) for price in entry.quote):
        yield market
    if entry.forecasts:
        yield from ensembles


def ranked(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def display_names(families: Sequence[str]) -> dict[str, str]:
    """The display names of families, by slug, and of references."""
    known = dict(Family.objects.filter(slug__in=families).order_by().values_list("slug", "display_name"))
    return {slug: known.get(slug, slug) for slug in families} | {
        name: name.replace("_", " ").capitalize() for name in REFERENCES
    }


def _copy_slow_figures(board: Board, known: Leaderboard) -> None:
    """Copies the results of the last slow fits from the stored board."""
    before = {entry["forecaster"]: entry for entry in known.entries}
    for entry in board.entries:
        entry |= {key: before.get(entry["forecaster"], {}).get(key) for key in SLOW_FIGURES}
    board.report["agreement"] = _agreement(board.entries)
    if "irt" in known.report.get("models", {}):
        board.report["models"]["irt"] = known.report["models"]["irt"]


def _participation(selection: Selection) -> dict[str, dict[str, Any]]:
    """The cost of each family's forecasts and how often it was asked, declined and was refused, by slug."""
    tasks, calls = Elicitation.objects.filter(batch__arm=selection.arm), ModelCall.objects.all()
    calls = calls.filter(elicitation__batch__arm=selection.arm)
    if selection.methodology:
        tasks = tasks.filter(methodology__version=selection.methodology)
        calls = calls.filter(elicitation__methodology__version=selection.methodology)
    found: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"cost_usd": f"{Decimal(0):.6f}", "declined": 0, "refused": 0, "asked": 0}
    )
    counted = tasks.order_by().values_list("family__slug")
    for slug, asked, declined in counted.annotate(Count("pk"), declined=Count("pk", filter=Q(declined=True))):
        found[slug] |= {"asked": asked, "declined": declined}
    for slug, cost in calls.order_by().values_list("elicitation__family__slug").annotate(Sum("cost_usd")):
        found[slug]["cost_usd"] = f"{cost:.6f}"
    for (slug, _), refused in _refused(selection).items():
        found[slug]["refused"] += refused
    return found


def _refused(selection: Selection, by: str = "call__elicitation__batch__arm") -> Counter[tuple[str, str]]:
    """The number of refused forecasts by family and another column."""
    refused = RefusedForecast.objects.filter(
        call__elicitation__batch__arm=selection.arm, call__result__in=ModelCall.READ
    )
    if selection.methodology:
        refused = refused.filter(call__elicitation__methodology__version=selection.methodology)
    rows = refused.order_by().values_list("call__elicitation__family__slug", by).annotate(Count("pk"))
    return Counter({(slug, column): count for slug, column, count in rows})


def _add_participation(entries: Iterable[dict[str, Any]], participation: Mapping[str, dict[str, Any]]) -> None:
    none = {"cost_usd": f"{Decimal(0):.6f}", "declined": 0, "refused": 0, "asked": 0}
    for entry in entries:
        entry |= dict.fromkeys(PARTICIPATION) if entry["reference"] else participation.get(entry["family"], none)


def _agreement(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Rank correlations between the ranking figures of the families, as tables of name by name."""
    positions: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in entries:
        if not (entry["reference"] or entry["external"]):
            for name, value in _ranking_figures(entry):
                positions[name][entry["forecaster"]] = math.nan if value is None else value
    found = agreement({name: column for name, column in positions.items() if not all(map(math.isnan, column.values()))})
    return {
        measure: {
            row: {column: to_json_value(getattr(found, measure)[i, j]) for j, column in enumerate(found.names)}
            for i, row in enumerate(found.names)
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


def _store_difficulties(arm: str, difficulties: Mapping[str, Mapping[str, float | None]]) -> None:
    """Replaces the stored difficulties of an arm's questions."""
    QuestionDifficulty.objects.filter(arm=arm).delete()
    QuestionDifficulty.objects.bulk_create(
        [
            QuestionDifficulty(question_id=int(question), arm=arm, **figures)
            for question, figures in difficulties.items()
            if figures["difficulty"] is not None
        ],
        batch_size=500,
    )
