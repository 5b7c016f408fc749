"""The trading leaderboard: who leads, by what, how sure. Computed once when something changed, then only read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from django.db import connection
from django.db.models import Count, QuerySet

from agents.models import Agent, Family
from agents.models.ledger import to_cents
from cohorts.models import Cohort, Methodology
from markets.fields import stored_unit
from markets.models import Market, Universe
from scoring import past
from scoring.metrics.brier import RANDOM_BRIER, skill_score
from scoring.metrics.uncertainty import (
    bootstrap_means,
    cluster_interval,
    rank_range,
    resample_counts,
    t_interval,
    table_sums,
)
from scoring.models import BrierScore, Leaderboard, UniverseCost
from scoring.roster import Player, roster, with_company
from scoring.services.bet_calibration import bet_calibration
from scoring.services.contrasts import keep_opposed
from scoring.valuations import Valuation, mean_score, recorded, valuations, win_rate

TRADING = past.TRADING
ALL_METHODOLOGIES = ""
SCORED = ("brier", "brier_ci", "bss_random", "bss_market", "win_rate", "resolved_bets")
"""What of an entry rests on scores alone: they are written once, so that as many of them give the same again."""
MOST = 1_000
"""Boards of past instants of which it is kept at a time."""


@dataclass(frozen=True, slots=True)
class _Record:
    """All that is known of a family on one board; `returns` are those of `values`, in percent."""

    family: Family
    agents: list[Agent | Player]
    values: list[Valuation]
    returns: list[float]


class TradingBoard(NamedTuple):
    """A board's entries, and what each family's slug made in percent of each cohort's number."""

    entries: list[dict[str, Any]]
    returns: dict[str, dict[int, float]]


class _Score(NamedTuple):
    """What a board needs of a bet's score; `event` is the unit by which intervals resample."""

    score: float
    market_score: float
    outcome: bool
    event: str


def refresh_boards(*, at: datetime, afresh: bool = True) -> int:
    """Recomputes the board over all methodologies and that of each version in play; returns how many.

    With them, where any two of the line-up bet against each other.

    Unless `afresh`, a family without new scores keeps what the board on record says of them: a snapshot moves money
    alone, and to resample every bet ever made takes longer each week.
    """
    versions = list(Methodology.objects.filter(cohorts__isnull=False).distinct().values_list("version", flat=True))
    entries: list[dict[str, Any]] = []
    report: dict[str, Any] = {}
    for version in [ALL_METHODOLOGIES, *versions]:
        if not entries or len(versions) > 1:  # a single version's board is the one over all
            entries, returns = trading_board(version, {} if afresh else _on_record(version))
            calibration = bet_calibration(version, {} if afresh else _calibration_on_record(version))
            report = {"calibration": calibration, "returns": returns}
        Leaderboard.objects.update_or_create(
            protocol=TRADING,
            methodology=version,
            arm="",
            category="",
            defaults={"computed_at": at, "entries": entries, "report": report},
        )
    keep_opposed()
    return len(versions) + 1


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

    External agents follow without one: they may answer a quarter of an hour later than the line-up.

    `known` may hold the SCORED part of families by slug; it is believed where it counts as many bets as there are.
    With `at`, the board of a past instant: cohorts started by then, money as the newest snapshots had it, scores of
    markets resolved by then, the cost of weeks frozen by then. A `category` narrows the SCORED part to bets on its
    markets; money is one purse for all of them, so values, returns and ranks stay those over all.
    """
    played, worth = _played(methodology, at)
    by_family: dict[int, list[Agent | Player]] = defaultdict(list)
    for agent in played:
        by_family[agent.family.pk].append(agent)
    records = [
        _record(agents[0].family, agents, [worth[agent.pk] for agent in agents]) for agents in by_family.values()
    ]
    families = [record.family for record in records]
    costs = _costs(methodology, at)
    scored = None if at is None else _kept(methodology, at, category, families)
    if scored is None:
        scored = _scored(_scores(methodology, at, category), families, known)

    def rows(of: Iterable[_Record]) -> list[dict[str, Any]]:
        return [_entry(record, scored[record.family.pk], costs) for record in of]

    def order(row: dict[str, Any]) -> tuple[float, str]:
        return -row["return_percent"], row["family"]

    line_up = [record for record in records if not record.family.external]
    ranked = rows(line_up)
    for row, (low, high) in zip(ranked, _rank_ranges(line_up), strict=True):
        row["rank_low"], row["rank_high"] = int(low), int(high)
    for row in ranked:
        row["rank"] = 1 + sum(other["return_percent"] > row["return_percent"] for other in ranked)
    entries = sorted(ranked, key=order) + sorted(rows(r for r in records if r.family.external), key=order)
    return TradingBoard(entries, {record.family.slug: _by_cohort(record) for record in records})


def _played(methodology: str, at: datetime | None) -> tuple[Sequence[Agent | Player], dict[int, Valuation]]:
    """Whom the board is about, by cohort, and what each is worth, now or as of an instant, by its id."""
    if at is not None:
        of_version = [p for p in roster().players if methodology in (ALL_METHODOLOGIES, p.cohort.methodology.version)]
        started = sorted((p for p in of_version if p.cohort.started_at <= at), key=lambda p: p.cohort.number)
        return started, recorded(started, at)
    agents = Agent.objects.order_by("cohort__number")
    if methodology:
        agents = agents.filter(cohort__methodology__version=methodology)
    played = with_company(agents)
    return played, valuations(played)


def _by_cohort(record: _Record) -> dict[int, float]:
    return {agent.cohort.number: percent for agent, percent in zip(record.agents, record.returns, strict=True)}


def category_entries(methodology: str, category: str) -> list[dict[str, Any]]:
    """The entries of the board on record, their SCORED part narrowed to bets on markets of a category."""
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    entries: list[dict[str, Any]] = next(iter(board.values_list("entries", flat=True)), [])
    families = {f.slug: f for f in Family.objects.filter(slug__in=[entry["family"] for entry in entries])}
    scored = _kept(methodology, None, category, families.values())
    if scored is None:
        scored = _scored(_scores(methodology, None, category), families.values(), {})
    return [entry | scored[families[entry["family"]].pk] for entry in entries]


def keep_past_scores(methodology: str) -> int:
    """Keeps the SCORED part of boards of past instants of which it is not on record, newest first; of how many?"""
    under = past.token(TRADING)
    scores = _scores(methodology, None, "")
    ends = past.Ends.of(scores.order_by().values_list("market__category", "resolved_at").distinct())
    lacking = past.lacking(past.Key(TRADING, methodology), ends, under)[:MOST]
    if not lacking:
        return 0
    events = _event_keys(scores)
    columns = ("agent__family", "score", "market_score", "outcome", "market", "resolved_at", "market__category")
    by_family: dict[int, list[tuple[_Score, datetime, str]]] = defaultdict(list)
    for family, score, market_score, outcome, market, resolved_at, category in scores.values_list(*columns):
        by_family[family].append((_Score(score, market_score, outcome, events[market]), resolved_at, category))
    known: dict[tuple[int, str, int], dict[str, Any]] = {}

    def pooled(family: int, category: str, until: datetime) -> dict[str, Any]:
        own = [score for score, at, of in by_family[family] if at <= until and category in ("", of)]
        which = (family, category, len(own))  # later ones hold all that earlier ones do
        if which not in known:
            known[which] = _pooled(own)
        return known[which]

    return past.keep(
        ((one, {str(pk): pooled(pk, one.key.category, one.since) for pk in by_family}) for one in lacking),
        TRADING,
        under,
    )


def _kept(
    methodology: str, at: datetime | None, category: str, families: Iterable[Family]
) -> dict[int, dict[str, Any]] | None:
    """The SCORED part of each family's entry as of an instant (none: of all there is), by its id, if on record."""
    if methodology and not Cohort.objects.exclude(methodology__version=methodology).exists():
        methodology = ALL_METHODOLOGIES  # a single version's are those over all
    found = past.stored(past.Key(TRADING, methodology, "", category), at)
    if found is None:
        return None
    return {family.pk: found.get(str(family.pk)) or _pooled(()) for family in families}


def _record(family: Family, agents: list[Agent | Player], values: list[Valuation]) -> _Record:
    return _Record(family, agents, values, [value.return_percent for value in values])


def _entry(record: _Record, scored: dict[str, Any], costs: Mapping[int, Decimal]) -> dict[str, Any]:
    returns = t_interval(record.returns)
    return {
        "family": record.family.slug,
        "display_name": record.family.display_name,
        "external": record.family.external,
        "rank": None,
        "rank_low": None,
        "rank_high": None,
        "cohorts": len(record.agents),
        "total_value": str(to_cents(sum((v.total for v in record.values), Decimal(0)) / len(record.values))),
        "pnl": str(sum((v.pnl for v in record.values), Decimal(0))),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": returns.interval,
        **scored,
        "cost_usd": f"{costs.get(record.family.pk, Decimal(0)):.6f}",
    }


def _pooled(scores: Sequence[_Score]) -> dict[str, Any]:
    """A family's bet-implied Brier over all its rows, its interval over events, and what goes with it."""
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


def _rank_ranges(records: list[_Record]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The ranks by mean return that each family may hold, cohorts being drawn: (families, 2)."""
    returns = table_sums(_returns(records))
    draws = bootstrap_means(returns, resample_counts(returns.sums.shape[1]))
    return rank_range(draws, returns.means, lower_is_better=False)


def _returns(records: list[_Record]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Families by cohorts, NaN where a family did not play."""
    cohorts = sorted({agent.cohort.pk for record in records for agent in record.agents})
    column = {cohort: index for index, cohort in enumerate(cohorts)}
    returns = np.full((len(records), len(cohorts)), np.nan)
    for row, record in enumerate(records):
        for agent, percent in zip(record.agents, record.returns, strict=True):
            returns[row, column[agent.cohort.pk]] = percent
    return returns


def _scores(methodology: str, at: datetime | None, category: str) -> QuerySet[BrierScore]:
    """The scores that a board rests on."""
    scores = BrierScore.objects.order_by("pk")
    if methodology:
        scores = scores.filter(agent__cohort__methodology__version=methodology)
    if at is not None:
        scores = scores.filter(resolved_at__lte=at)
    return scores.filter(market__category=category) if category else scores


def _scored(
    scores: QuerySet[BrierScore], families: Iterable[Family], known: Mapping[str, dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """The SCORED part of each family's entry, by its id; of the scores themselves only those that are needed."""
    counts = dict(scores.order_by().values_list("agent__family").annotate(Count("pk"))) if known else {}
    kept = {
        family.pk: known[family.slug]
        for family in families
        if family.slug in known and known[family.slug]["resolved_bets"] == counts.get(family.pk, 0)
    }
    scores = scores.exclude(agent__family__in=kept)
    event_keys = _event_keys(scores)
    by_family: dict[int, list[_Score]] = defaultdict(list)
    # Bare columns: a model with its market for each bet ever made would be most of a board's time.
    for family_id, score, market_score, outcome, market_id in scores.values_list(
        "agent__family", "score", "market_score", "outcome", "market"
    ):
        by_family[family_id].append(_Score(score, market_score, outcome, event_keys[market_id]))
    return {family.pk: kept.get(family.pk) or _pooled(by_family[family.pk]) for family in families}


def _event_keys(scores: QuerySet[BrierScore]) -> dict[int, str]:
    """What markets of one event share, by the id of each market that has any of these scores."""
    events = Market.objects.filter(pk__in=scores.order_by().values("market")).only("source", "event_id")
    return {market.pk: market.event_key for market in events}


def _on_record(methodology: str) -> dict[str, dict[str, Any]]:
    """The SCORED part of the board on record, by the family's slug."""
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="").first()
    return {entry["family"]: {name: entry[name] for name in SCORED} for entry in board.entries} if board else {}


def _calibration_on_record(methodology: str) -> dict[str, Any]:
    """How calibrated bets are by the board on record."""
    boards = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    found: dict[str, Any] = next(iter(boards.values_list("report", flat=True)), {})
    return found.get("calibration") or {}


def _costs(methodology: str, at: datetime | None) -> dict[int, Decimal]:
    """What the calls for each family's decisions took, by the family's id.

    By when their universe was frozen: calls bear the real clock's time, which says nothing of the instant that a replay
    is for.
    """
    cost, universe = UniverseCost._meta.db_table, Universe._meta.db_table
    conditions: dict[str, Any] = {"methodology = %s": methodology} if methodology else {}
    if at is not None:
        conditions["frozen_at <= %s"] = connection.ops.adapt_datetimefield_value(at)
    # By hand: the ORM takes longer to write the statement than the database to carry it out.
    sql = (
        f"SELECT family_id, SUM(cost_usd) FROM {cost} JOIN {universe} ON {universe}.id = universe_id "  # noqa: S608
        f"WHERE {' AND '.join(conditions) or 'TRUE'} GROUP BY family_id"
    )
    unit = stored_unit(UniverseCost, "cost_usd")
    with connection.cursor() as cursor:
        cursor.execute(sql, list(conditions.values()))
        return {family: total * unit for family, total in cursor.fetchall()}
