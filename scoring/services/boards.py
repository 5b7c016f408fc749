"""The trading leaderboard: families ranked by mean return, with intervals. Computed after a change, stored, read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from django.db.models import Count, QuerySet, Sum
from forecast_rank.metrics.brier import RANDOM_BRIER, skill_score
from forecast_rank.metrics.resampled_ranks import rank_range
from forecast_rank.metrics.sample_mean import cluster_interval, t_interval
from forecast_rank.metrics.uncertainty import bootstrap_means, resample_counts, table_sums

from agents.models import Agent, Family, UniverseCost
from agents.models.ledger import to_cents
from cohorts.models import Cohort, Methodology
from markets.models import Market
from markets.services.cache_versions import Scope, renew_versions
from scoring import leaderboard_history as history
from scoring.competition import AgentSummary, attach_competition, competition_index
from scoring.constants import ALL_METHODOLOGIES, TRADING
from scoring.leaderboard_history import BoardKey, BoardPeriod, ResolutionTimes
from scoring.models import BrierScore, Leaderboard
from scoring.services.bet_calibration import bet_calibration
from scoring.services.disagreements import store_position_disagreements
from scoring.valuations import Valuation, mean_score, snapshot_valuations, valuations, win_rate

SCORED = ("brier", "brier_ci", "bss_random", "bss_market", "win_rate", "resolved_bets")
"""The fields of an entry that follow from scores alone: as long as their number is the same, so are the fields."""
BACKFILL_LIMIT = 1_000
"""Past boards that are stored in one backfill."""


@dataclass(frozen=True, slots=True)
class _FamilyResults:
    """A family's agents on one board with their values; `returns` are those of the values, in percent."""

    family: Family
    agents: list[Agent | AgentSummary]
    values: list[Valuation]
    returns: list[float]


class TradingBoard(NamedTuple):
    """A board's entries, and the returns in percent by family slug and cohort number."""

    entries: list[dict[str, Any]]
    returns: dict[str, dict[int, float]]


class _Score(NamedTuple):
    """The columns of a Brier score that a board reads; `event` is the unit by which intervals resample."""

    score: float
    market_score: float
    outcome: bool
    event: str


def refresh_boards(*, at: datetime, afresh: bool = True) -> int:
    """Recomputes and stores the board over all methodologies and that of each version in play; returns how many.

    Stores the largest disagreements of the line-up's bets as well. Unless `afresh`, a family without new scores keeps
    its stored SCORED fields: a snapshot changes money alone, and resampling every bet takes longer each week.
    """
    versions = list(Methodology.objects.filter(cohorts__isnull=False).distinct().values_list("version", flat=True))
    entries: list[dict[str, Any]] = []
    report: dict[str, Any] = {}
    for version in [ALL_METHODOLOGIES, *versions]:
        if not entries or len(versions) > 1:  # a single version's board is the one over all
            entries, returns = trading_board(version, {} if afresh else _stored_scored(version))
            calibration = bet_calibration(version, {} if afresh else _stored_calibration(version))
            report = {"calibration": calibration, "returns": returns}
        store_leaderboard(BoardKey(TRADING, version), computed_at=at, entries=entries, report=report)
    store_position_disagreements()
    return len(versions) + 1


def store_leaderboard(key: BoardKey, **fields: Any) -> None:
    """Stores a current leaderboard in place of the one before."""
    with transaction.atomic():
        Leaderboard.objects.update_or_create(**key._asdict(), defaults=fields)
        renew_versions(Scope.LEADERBOARDS)


def trading_entries(
    methodology: str = ALL_METHODOLOGIES, *, at: datetime | None = None, category: str = ""
) -> list[dict[str, Any]]:
    """The entries of `trading_board`."""
    return trading_board(methodology, at=at, category=category).entries


def trading_board(
    methodology: str = ALL_METHODOLOGIES,
    known: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    *,
    at: datetime | None = None,
    category: str = "",
) -> TradingBoard:
    """The board, its entries ranked by mean return over cohorts; equal returns share a rank.

    External agents follow without a rank: they may answer a quarter of an hour later than the line-up.

    `known` may hold the SCORED fields of families by slug; they are used where their number of bets is the current one.
    With `at`, the board of a past instant: cohorts started by then, values of the newest snapshots by then, scores of
    markets resolved by then, costs of universes frozen by then. A `category` narrows the SCORED fields to bets on its
    markets; an agent has one bankroll for all of them, so values, returns and ranks stay those over all.
    """
    participants, values = _participants(methodology, at)
    by_family: dict[int, list[Agent | AgentSummary]] = defaultdict(list)
    for agent in participants:
        by_family[agent.family.pk].append(agent)
    results = [
        _results(agents[0].family, agents, [values[agent.pk] for agent in agents]) for agents in by_family.values()
    ]
    families = [result.family for result in results]
    costs = _costs(methodology, at)
    scored = None if at is None else _stored_history(methodology, at, category, families)
    if scored is None:
        scored = _scored(_scores(methodology, at, category), families, known)

    def rows(of: Iterable[_FamilyResults]) -> list[dict[str, Any]]:
        return [_entry(result, scored[result.family.pk], costs) for result in of]

    def order(row: dict[str, Any]) -> tuple[float, str]:
        return -row["return_percent"], row["family"]

    line_up = [result for result in results if not result.family.external]
    ranked = rows(line_up)
    for row, (low, high) in zip(ranked, _rank_ranges(line_up), strict=True):
        row["rank_low"], row["rank_high"] = int(low), int(high)
    for row in ranked:
        row["rank"] = 1 + sum(other["return_percent"] > row["return_percent"] for other in ranked)
    entries = sorted(ranked, key=order) + sorted(rows(r for r in results if r.family.external), key=order)
    return TradingBoard(entries, {result.family.slug: _by_cohort(result) for result in results})


def _participants(methodology: str, at: datetime | None) -> tuple[Sequence[Agent | AgentSummary], dict[int, Valuation]]:
    """The agents of a board in the order of their cohorts, and their values now or as of an instant, by id."""
    if at is not None:
        started = [
            agent
            for agent in competition_index().agents
            if methodology in (ALL_METHODOLOGIES, agent.cohort.methodology.version) and agent.cohort.started_at <= at
        ]
        started.sort(key=lambda agent: agent.cohort.number)
        return started, snapshot_valuations(started, at)
    agents = Agent.objects.order_by("cohort__number")
    if methodology:
        agents = agents.filter(cohort__methodology__version=methodology)
    participants = attach_competition(agents)
    return participants, valuations(participants)


def _by_cohort(result: _FamilyResults) -> dict[int, float]:
    return {agent.cohort.number: percent for agent, percent in zip(result.agents, result.returns, strict=True)}


def category_entries(methodology: str, category: str) -> list[dict[str, Any]]:
    """The entries of the stored board, their SCORED fields narrowed to bets on markets of a category."""
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    entries: list[dict[str, Any]] = next(iter(board.values_list("entries", flat=True)), [])
    families = {f.slug: f for f in Family.objects.filter(slug__in=[entry["family"] for entry in entries])}
    scored = _stored_history(methodology, None, category, families.values())
    if scored is None:
        scored = _scored(_scores(methodology, None, category), families.values(), {})
    return [entry | scored[families[entry["family"]].pk] for entry in entries]


def backfill_trading_history(methodology: str) -> int:
    """Stores the SCORED fields of past boards that are missing, the newest first; returns of how many."""
    version = history.begin_backfill(TRADING)
    missing = history.missing_boards(BoardKey(TRADING, methodology), resolution_times(methodology), version)
    boards = past_scored(methodology, missing[:BACKFILL_LIMIT]) if missing else ()
    return history.store_boards(boards, TRADING, version)


def resolution_times(methodology: str) -> ResolutionTimes:
    """When the scores of a board were decided."""
    scores = _scores(methodology, None, "").order_by()
    return ResolutionTimes.of(scores.values_list("market__category", "resolved_at").distinct())


def past_scored(
    methodology: str, periods: Iterable[BoardPeriod]
) -> Iterator[tuple[BoardPeriod, dict[str, dict[str, Any]]]]:
    """The SCORED fields of past boards by family id, each as of the beginning of its period."""
    scores = _scores(methodology, None, "")
    events = _event_keys(scores)
    columns = ("agent__family", "score", "market_score", "outcome", "market", "resolved_at", "market__category")
    by_family: dict[int, list[tuple[_Score, datetime, str]]] = defaultdict(list)
    for family, score, market_score, outcome, market, resolved_at, category in scores.values_list(*columns):
        by_family[family].append((_Score(score, market_score, outcome, events[market]), resolved_at, category))
    known: dict[tuple[int, str, int], dict[str, Any]] = {}

    def pooled(family: int, category: str, until: datetime) -> dict[str, Any]:
        own = [score for score, at, of in by_family[family] if at <= until and category in ("", of)]
        cache_key = (family, category, len(own))  # of a family and a category, later boards hold all earlier scores
        if cache_key not in known:
            known[cache_key] = _pooled(own)
        return known[cache_key]

    for period in periods:
        fields = {str(pk): pooled(pk, period.key.category, period.since) for pk in by_family}
        yield period, {pk: scored for pk, scored in fields.items() if scored["resolved_bets"]}


def _stored_history(
    methodology: str, at: datetime | None, category: str, families: Iterable[Family]
) -> dict[int, dict[str, Any]] | None:
    """The stored SCORED fields of a past board (None: of all scores) by family id; None where they are not stored."""
    if methodology and not Cohort.objects.exclude(methodology__version=methodology).exists():
        methodology = ALL_METHODOLOGIES  # the board of a single version is the one over all
    entries = history.stored_entries(BoardKey(TRADING, methodology, "", category), at)
    if entries is None:
        return None
    return {family.pk: entries.get(str(family.pk)) or _pooled(()) for family in families}


def _results(family: Family, agents: list[Agent | AgentSummary], values: list[Valuation]) -> _FamilyResults:
    return _FamilyResults(family, agents, values, [value.return_percent for value in values])


def _entry(result: _FamilyResults, scored: dict[str, Any], costs: Mapping[int, Decimal]) -> dict[str, Any]:
    returns = t_interval(result.returns)
    return {
        "family": result.family.slug,
        "display_name": result.family.display_name,
        "external": result.family.external,
        "rank": None,
        "rank_low": None,
        "rank_high": None,
        "cohorts": len(result.agents),
        "total_value": str(to_cents(sum((v.total for v in result.values), Decimal(0)) / len(result.values))),
        "pnl": str(sum((v.pnl for v in result.values), Decimal(0))),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": returns.interval,
        **scored,
        "cost_usd": f"{costs.get(result.family.pk, Decimal(0)):.6f}",
    }


def _pooled(scores: Sequence[_Score]) -> dict[str, Any]:
    """The SCORED fields of a family: its bet-implied Brier score over all its bets, the interval over events."""
    if not scores:
        return dict.fromkeys(SCORED) | {"resolved_bets": 0}
    values = [row.score for row in scores]
    brier = mean_score(values)
    return {
        "brier": brier,
        "brier_ci": cluster_interval(values, [row.event for row in scores]),
        "bss_random": skill_score(brier, RANDOM_BRIER),
        "bss_market": skill_score(brier, mean_score([row.market_score for row in scores])),
        "win_rate": win_rate([row.outcome for row in scores]),
        "resolved_bets": len(scores),
    }


def _rank_ranges(results: list[_FamilyResults]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rank range of each family by mean return, cohorts being resampled: (families, 2)."""
    returns = table_sums(_returns(results))
    draws = bootstrap_means(returns, resample_counts(returns.sums.shape[1]))
    return rank_range(draws, returns.means, lower_is_better=False)


def _returns(results: list[_FamilyResults]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns by family and cohort, NaN where a family has no agent."""
    cohorts = sorted({agent.cohort.pk for result in results for agent in result.agents})
    column = {cohort: index for index, cohort in enumerate(cohorts)}
    returns = np.full((len(results), len(cohorts)), np.nan)
    for row, result in enumerate(results):
        for agent, percent in zip(result.agents, result.returns, strict=True):
            returns[row, column[agent.cohort.pk]] = percent
    return returns


def _scores(methodology: str, at: datetime | None, category: str) -> QuerySet[BrierScore]:
    """The scores of a board."""
    scores = BrierScore.objects.order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    return scores.filter(market__category=category) if category else scores


def _scored(
    scores: QuerySet[BrierScore], families: Iterable[Family], known: Mapping[str, dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """The SCORED fields of each family, by id; reads the scores only of families that `known` does not serve."""
    counts = dict(scores.order_by().values_list("agent__family").annotate(Count("pk"))) if known else {}
    unchanged = {
        family.pk: known[family.slug]
        for family in families
        if family.slug in known and known[family.slug]["resolved_bets"] == counts.get(family.pk, 0)
    }
    scores = scores.exclude(agent__family__in=unchanged)
    event_keys = _event_keys(scores)
    by_family: dict[int, list[_Score]] = defaultdict(list)
    # Columns, since a model with its market for each bet would take most of a board's time.
    for family_id, score, market_score, outcome, market_id in scores.values_list(
        "agent__family", "score", "market_score", "outcome", "market"
    ):
        by_family[family_id].append(_Score(score, market_score, outcome, event_keys[market_id]))
    return {family.pk: unchanged.get(family.pk) or _pooled(by_family[family.pk]) for family in families}


def current_scores(methodology: str, slugs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The SCORED fields of families by slug, from all their scores."""
    families = list(Family.objects.filter(slug__in=list(slugs)))
    scored = _scored(_scores(methodology, None, ""), families, {})
    return {family.slug: scored[family.pk] for family in families}


def _event_keys(scores: QuerySet[BrierScore]) -> dict[int, str]:
    """The event key of each market with any of these scores, by the market's id."""
    events = Market.objects.filter(pk__in=scores.order_by().values("market")).only("source", "event_id")
    return {market.pk: market.event_key for market in events}


def _stored_scored(methodology: str) -> dict[str, dict[str, Any]]:
    """The SCORED fields of the stored board, by family slug."""
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="").first()
    return {entry["family"]: {name: entry[name] for name in SCORED} for entry in board.entries} if board else {}


def _stored_calibration(methodology: str) -> dict[str, Any]:
    """The calibration of bets in the stored board's report."""
    boards = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    report: dict[str, Any] = next(iter(boards.values_list("report", flat=True)), {})
    return report.get("calibration") or {}


def _costs(methodology: str, at: datetime | None) -> dict[int, Decimal]:
    """What the calls for each family's decisions cost, by the family's id.

    By when their universe was frozen: calls bear the time of the clock, not the instant that a replay is for.
    """
    costs = UniverseCost.objects.order_by()
    if methodology:
        costs = costs.filter(universe__methodology=methodology)
    if at is not None:
        costs = costs.filter(universe__frozen_at__lte=at)
    return dict(costs.values_list("family").annotate(Sum("cost_usd")))
