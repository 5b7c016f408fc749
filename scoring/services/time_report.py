"""Scores by the days to a market's close, and how much beliefs move: parts of the reports of forecast leaderboards."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from math import fsum, inf, isnan
from operator import attrgetter, sub
from statistics import fmean
from typing import Any

from arena_verifier.report_figures import Move, moves
from forecast_rank import bounded_cluster_interval
from foundation.bulk import subset
from scoring.constants import DAYS_AHEAD, EARLY_DAYS
from scoring.selectors.return_tests import difference_interval
from scoring.services.forecast_panels import ResolvedEntry, Vector
from scoring.services.trading_leaderboards import LeaderboardContents

Ranking = Callable[[Sequence[ResolvedEntry]], LeaderboardContents]
"""The leaderboard over some entries."""
LEVEL = 0.95
TESTS = ("data", "pairs", "market")
"""The parts of a report that a headline rests on."""
FIGURES = (
    "forecaster", "family", "display_name", "reference", "external", "rank", "rank_low", "rank_high", "ranked_by", "n",
    "forecasts", "coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier", "adjusted_brier_ci",
)  # fmt: skip


def time_report(resolved: Sequence[ResolvedEntry], names: Collection[str], rank: Ranking) -> dict[str, Any]:
    """Scores by bins of days ahead, those of early forecasts with their tests, and the revisions of each of `names`."""
    bins = []
    for low, high in DAYS_AHEAD:
        entries = [entry for entry in resolved if low <= entry.days_ahead < (high or inf)]
        bins.append({"days_from": low, "days_to": high, **_scores(entries, rank)})
    revisions = []
    for name in names:
        row = _revisions(name, resolved, level=1 - (1 - LEVEL) / len(names))
        if row:
            revisions.append(row)
    early = [entry for entry in resolved if entry.days_ahead >= EARLY_DAYS]
    return {"bins": bins, "early": _scores(early, rank, TESTS) if early else None, "revisions": revisions}


def _scores(entries: Sequence[ResolvedEntry], rank: Ranking, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The leaderboard of these entries, of forecasters that answered any, and parts of its report."""
    contents = rank(entries) if entries else LeaderboardContents([], dict.fromkeys(parts))
    scored = []
    for row in contents.entries:
        if row["brier"] is not None:
            scored.append(subset(row, FIGURES))
    questions, events = set(map(attrgetter("question"), entries)), set(map(attrgetter("event"), entries))
    numbers = {"questions": len(questions), "events": len(events)}
    return {**numbers, "entries": scored, **subset(contents.report, parts)}


def _revisions(name: str, resolved: Sequence[ResolvedEntry], *, level: float) -> dict[str, Any] | None:
    """The mean move of one forecaster between its consecutive forecasts of a question, beside that of the price.

    A question counts once, as the mean of its moves; events are resampled. `level` is that of the difference, which is
    corrected for the number of forecasters.
    """
    by_question: dict[int, list[ResolvedEntry]] = defaultdict(list)
    for entry in resolved:
        if name in entry.forecasts:
            by_question[entry.question].append(entry)
    moves_by_question: dict[int, list[Move]] = {}
    for question, entries in by_question.items():
        if moves_of_question := _moves(name, entries):
            moves_by_question[question] = moves_of_question
    if not moves_by_question:
        return None
    events = {question: by_question[question][0].event for question in moves_by_question}
    revisions, prices, directions = {}, {}, {}
    for question, moves_of_question in moves_by_question.items():
        revisions[question] = fmean(map(attrgetter("revision"), moves_of_question))
        prices[question] = fmean(map(attrgetter("price"), moves_of_question))
        agreements = [float(move.agrees) for move in moves_of_question if move.agrees is not None]
        if agreements:
            directions[question] = fmean(agreements)
    gaps = list(map(sub, revisions.values(), prices.values()))
    return {
        "forecaster": name,
        "n": len(revisions),
        "revisions": sum(map(len, moves_by_question.values())),
        "events": len(set(events.values())),
        **_mean("revision", revisions, events),
        **_mean("price_move", prices, events),
        "difference": fmean(gaps),
        "difference_ci": difference_interval(gaps, list(events.values()), level=level),
        **_mean("same_direction", directions, events),
    }


def _moves(name: str, entries: Sequence[ResolvedEntry]) -> list[Move]:
    """The moves between one forecaster's consecutive forecasts of a question, in order of their days."""
    forecasts = []
    for entry in sorted(entries, key=attrgetter("frozen_at")):
        forecasts.append((entry.forecasts[name], _prices(entry)))
    return moves(forecasts)


def _prices(entry: ResolvedEntry) -> Vector | None:
    """The market's probabilities: mid prices, brought to a sum of 1 where options are exclusive."""
    if any(map(isnan, entry.quote)):
        return None
    total = fsum(entry.quote) if entry.exclusive else 1.0
    return [price / total for price in entry.quote]


def _mean(name: str, values: Mapping[int, float], events: Mapping[int, str]) -> dict[str, Any]:
    """The mean over questions of a value from 0 to 1, and its interval over events."""
    if not values:
        return {name: None, f"{name}_ci": None}
    clusters = [events[question] for question in values]
    interval = bounded_cluster_interval([min(value, 1.0) for value in values.values()], clusters)
    return {name: fmean(values.values()), f"{name}_ci": interval}
