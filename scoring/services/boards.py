"""The trading leaderboard: who leads, by what, how sure. Computed once when something changed, then only read."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
from django.db.models import Sum

from agents.models import Agent, Family, ModelCall
from agents.models.ledger import to_cents
from cohorts.models import Methodology
from scoring.metrics.brier import RANDOM_BRIER, skill_score
from scoring.metrics.intervals import cluster_interval, rank_ranges, t_interval
from scoring.models import BrierScore, Leaderboard
from scoring.valuations import Valuation, valuations

TRADING = "trading"
ALL_METHODOLOGIES = ""


@dataclass(frozen=True, slots=True)
class _Record:
    """All that is known of a family on one board."""

    family: Family
    agents: list[Agent]
    values: list[Valuation]


def refresh_boards(*, at: datetime) -> int:
    """Recomputes the board over all methodologies and that of each version in play; returns how many."""
    versions = list(Methodology.objects.filter(cohorts__isnull=False).distinct().values_list("version", flat=True))
    for version in [ALL_METHODOLOGIES, *versions]:
        Leaderboard.objects.update_or_create(
            protocol=TRADING,
            methodology=version,
            defaults={"computed_at": at, "entries": trading_entries(version)},
        )
    return len(versions) + 1


def trading_entries(methodology: str = ALL_METHODOLOGIES) -> list[dict[str, Any]]:
    """The board's entries, ranked by mean return over cohorts; equal returns share a rank."""
    agents = Agent.objects.select_related("family", "cohort__methodology").order_by("cohort__number")
    if methodology:
        agents = agents.filter(cohort__methodology__version=methodology)
    by_family: dict[Family, list[Agent]] = defaultdict(list)
    for agent in agents:
        by_family[agent.family].append(agent)
    worth = valuations(agents)
    records = [_Record(family, played, [worth[agent.pk] for agent in played]) for family, played in by_family.items()]
    costs = _costs(methodology)
    scores = _scores(methodology)
    rows = [_entry(record, scores.get(record.family.pk, []), costs.get(record.family.pk)) for record in records]
    ranges = rank_ranges(_returns(records)) if records else []
    for row, (low, high) in zip(rows, ranges, strict=True):
        row["rank_low"], row["rank_high"] = low, high
    rows.sort(key=lambda row: (-row["return_percent"], row["family"]))
    for row in rows:
        row["rank"] = 1 + sum(other["return_percent"] > row["return_percent"] for other in rows)
    return rows


def _entry(record: _Record, scores: list[BrierScore], cost: Decimal | None) -> dict[str, Any]:
    returns = t_interval([value.return_percent for value in record.values])
    pooled = _pooled(scores)
    return {
        "family": record.family.slug,
        "display_name": record.family.display_name,
        "rank": 0,
        "rank_low": 0,
        "rank_high": 0,
        "cohorts": len(record.agents),
        "total_value": str(to_cents(sum((v.total for v in record.values), Decimal(0)) / len(record.values))),
        "pnl": str(sum((v.pnl for v in record.values), Decimal(0))),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": returns.interval,
        **pooled,
        "cost_usd": f"{cost or Decimal(0):.6f}",
    }


def _pooled(scores: list[BrierScore]) -> dict[str, Any]:
    """A family's bet-implied Brier over all its rows, its interval over events, and what goes with it."""
    if not scores:
        return {
            "brier": None, "brier_ci": None, "bss_random": None, "bss_market": None, "win_rate": None,
            "resolved_bets": 0,
        }  # fmt: skip
    values = np.array([row.score for row in scores])
    brier = float(values.mean())
    market = float(np.mean([row.market_score for row in scores]))
    return {
        "brier": brier,
        "brier_ci": cluster_interval(values, [row.market.event_key for row in scores]),
        "bss_random": skill_score(brier, RANDOM_BRIER),
        "bss_market": skill_score(brier, market),
        "win_rate": float(np.mean([row.outcome for row in scores])),
        "resolved_bets": len(scores),
    }


def _returns(records: list[_Record]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Families by cohorts, NaN where a family did not play."""
    cohorts = sorted({agent.cohort_id for record in records for agent in record.agents})
    column = {cohort: index for index, cohort in enumerate(cohorts)}
    returns = np.full((len(records), len(cohorts)), np.nan)
    for row, record in enumerate(records):
        for agent, value in zip(record.agents, record.values, strict=True):
            returns[row, column[agent.cohort_id]] = value.return_percent
    return returns


def _scores(methodology: str) -> dict[int, list[BrierScore]]:
    rows = BrierScore.objects.select_related("market", "agent")
    if methodology:
        rows = rows.filter(agent__cohort__methodology__version=methodology)
    by_family: dict[int, list[BrierScore]] = defaultdict(list)
    for row in rows:
        by_family[row.agent.family_id].append(row)
    return by_family


def _costs(methodology: str) -> dict[int, Decimal]:
    calls = ModelCall.objects.all()
    if methodology:
        calls = calls.filter(decision__cohort__methodology__version=methodology)
    sums = calls.order_by().values("decision__agent__family").annotate(cost=Sum("cost_usd"))
    return {row["decision__agent__family"]: row["cost"] for row in sums}
