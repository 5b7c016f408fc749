"""A walk through the examples of `docs/api.md` with the client that CI generates from the published description.

Run by `.ci/run demo`, with the client's folder on the path and the address of a running demo.
"""

import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeVar

import httpx
from arena_client import Client
from arena_client.api.brier_scores import brier_scores_list
from arena_client.api.decisions import decisions_list, decisions_retrieve
from arena_client.api.leaderboard import leaderboard_list
from arena_client.api.performance import performance_retrieve
from arena_client.api.snapshots import snapshots_list
from arena_client.api.trades import trades_list
from arena_client.models import (
    BrierScore,
    Decision,
    DecisionDetail,
    DecisionsListFieldsItem,
    DecisionsListStatus,
    LeaderboardEntry,
    PaginatedAnyLeaderboardEntryList,
    PaginatedBrierScoreList,
    PaginatedDecisionList,
    PaginatedSnapshotList,
    PaginatedTradeList,
    Performance,
    PerformanceRetrieveRange,
    Problem,
    Trade,
    TradesListOrderingItem,
)

FAMILY = "gpt-5.1"
Answer = TypeVar("Answer")


def join_by_commas(request: httpx.Request) -> None:
    """Writes several values of a parameter as one, which the generator leaves to its user."""
    query = request.url.params
    request.url = request.url.copy_with(params={name: ",".join(query.get_list(name)) for name in query})


def answer(kind: type[Answer], arguments: object) -> Answer:
    assert isinstance(arguments, kind), arguments
    return arguments


def walk(client: Client) -> None:
    board = answer(
        PaginatedAnyLeaderboardEntryList, leaderboard_list.sync(client=client, as_of=datetime(2026, 3, 20, tzinfo=UTC))
    )
    leader = answer(LeaderboardEntry, board.results[0])
    assert leader.rank == 1
    print(f"leaderboard: {board.count} families, led by {leader.family} at {Decimal(str(leader.total_value))}")

    month = PerformanceRetrieveRange("1M")
    performance = answer(Performance, performance_retrieve.sync(client=client, range_=month, family=FAMILY))
    (curve,) = performance.series
    assert (performance.range_, curve.family) == ("1M", FAMILY)
    print(f"performance: {len(curve.points)} points of {curve.family}")

    names = [DecisionsListFieldsItem(name) for name in ("id", "family", "week", "action", "cost_usd")]
    decisions = answer(
        PaginatedDecisionList,
        decisions_list.sync(client=client, cohort=1, status=DecisionsListStatus.COMPLETED, fields=names, page_size=500),
    )
    newest = answer(Decision, decisions.results[0])
    assert set(newest.to_dict()) == {name.value for name in names}
    print(f"decisions: {decisions.count} completed, the newest costs {Decimal(str(newest.cost_usd))} dollars")

    detail = answer(DecisionDetail, decisions_retrieve.sync("1", client=client))
    assert detail.calls
    assert detail.trades
    print(f"decision 1: {len(detail.calls)} call, {len(detail.trades)} trades")

    trades = answer(
        PaginatedTradeList,
        trades_list.sync(
            client=client,
            executed_at_gte=date(2026, 3, 1),
            executed_at_lt=date(2026, 3, 2),
            ordering=[TradesListOrderingItem("-amount")],
        ),
    )
    amounts = [Decimal(str(answer(Trade, trade).amount)) for trade in trades.results]
    assert amounts
    assert amounts == sorted(amounts, reverse=True)
    print(f"trades: {len(amounts)} on the first day, the largest of {amounts[0]}")

    scores = answer(PaginatedBrierScoreList, brier_scores_list.sync(client=client, family=FAMILY))
    assert {answer(BrierScore, score).family for score in scores.results} == {FAMILY}
    unchanged = {"If-None-Match": brier_scores_list.sync_detailed(client=client, family=FAMILY).headers["ETag"]}
    again = brier_scores_list.sync_detailed(client=client.with_headers(unchanged), family=FAMILY)
    assert again.status_code == 304
    print(f"brier-scores: {scores.count} of {FAMILY}, then a 304")

    cursor = answer(PaginatedSnapshotList, snapshots_list.sync(client=client, page_size=2)).next_
    assert cursor
    page = httpx.URL(cursor).params["cursor"]
    following = answer(PaginatedSnapshotList, snapshots_list.sync(client=client, page_size=2, cursor=page))
    assert len(following.results) == 2
    print("snapshots: a second page by its cursor")

    refused = answer(Problem, trades_list.sync(client=client, family="no-such-family"))
    assert refused.status == 400
    print(f"an unknown family: {refused.status} {refused.title}")


if __name__ == "__main__":
    patient = httpx.HTTPTransport(retries=5)
    hooks = {"request": [join_by_commas]}
    walk(Client(base_url=sys.argv[1], follow_redirects=True, httpx_args={"transport": patient, "event_hooks": hooks}))
