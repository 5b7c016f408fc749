"""Every figure of cohorts, families and agents is the API's."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from statistics import mean
from typing import Any

import pytest
from django.utils.text import Truncator

from tests.commands import SUNDAY
from tests.season import formats
from tests.season.full_season import ENDS_AFTER
from tests.season.page_figures import Row, by
from tests.season.season_api import (
    AGENT,
    COHORT,
    DATA,
    DECISION,
    MARKET,
    SeasonApi,
    check_curves,
    check_positions,
    check_returns,
    instant_of,
    ranks,
    total,
    trade_columns,
)
from tests.selection import chosen

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_the_cohorts(season: SeasonApi) -> None:
    cohorts = season.rows("cohorts/")
    returns = {
        call["number"]: [
            Decimal(a["pnl_percent"]) for a in season.rows(f"agents/?cohort={call['number']}") if a["family"] != "guest"
        ]
        for call in cohorts
    }
    page = season.page("/cohorts/")
    columns = {
        "Week start": lambda call: formats.day(call["week_start"]),
        "Agents": lambda call: formats.count(call["agents"]),
        "Return": lambda call: formats.signed_percent(max(returns[call["number"]])),
        "Mean return": lambda call: formats.signed_percent(mean(returns[call["number"]])),
        "Open positions": lambda call: open_positions(season, f"cohort={call['number']}", "awaiting resolution"),
        "Methodology": lambda call: call["methodology"],
    }
    page.table("Cohorts", by(cohorts, "number"), columns, COHORT, no_figure=["Cohort", "Status", "Leader"])
    page.assert_compared(at_least=15)


def weeks_over(cohort: Any) -> int:
    """The weeks whose decision window had closed at the season's end: that of the last Sunday was still open."""
    return int((SUNDAY + ENDS_AFTER - instant_of(cohort["week_start"])) / timedelta(weeks=1))


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_cohort(season: SeasonApi, number: int) -> None:
    page = season.page(f"/cohorts/{number}/")
    agents = by(season.rows(f"agents/?cohort={number}"), "cohort", "family")

    def rank(agent: Any) -> str:
        ahead = [a for a in agents.values() if Decimal(a["pnl_percent"]) > Decimal(agent["pnl_percent"])]
        return "–" if agent["family"] == "guest" else str(1 + sum(a["family"] != "guest" for a in ahead))

    columns = {
        "Rank": rank,
        "Open positions": lambda a: open_positions(season, f"agent={a['id']}", "awaiting resolution"),
        **money_of_an_agent(season),
    }
    page.table("agents", agents, columns, AGENT, no_figure=["Model"])
    values = season.one(f"performance/?range=ALL&cohort={number}")
    check_curves(page, season, "values", values)
    cohort = season.one(f"cohorts/{number}/")
    badges = {(row["family"], row["week"]): row for row in season.rows(f"decisions/?cohort={number}")}
    for row in page.tables.pop("decisions"):
        (_, model), *weeks = row.cells.items()
        for week, (_, cell) in enumerate(weeks, start=1):
            family = season.names[model.text.removesuffix(" external")]
            decision = badges.get((family, week))
            is_over = agents[str(number), family]["status"] != "bankrupt" and week <= weeks_over(cohort)
            without = "missed" if is_over else "–"
            expected = without if decision is None else decision["action"] or decision["status"]
            page.compared += 1
            if not cell.text.startswith(expected):
                page.faults.append(f"{page.address} {model.text} week {week}: {cell.text}, the API {expected}")
    decisions = season.rows(f"decisions/?cohort={number}")
    trades = season.rows(f"trades/?cohort={number}")
    page.fact("Week start", formats.day(cohort["week_start"]))
    page.fact("Started", formats.minute(cohort["started_at"]))
    page.fact("Decisions", formats.count(len(decisions)))
    page.fact("Trades", formats.count(len(trades)))
    page.fact("Open positions", open_positions(season, f"cohort={number}", "awaiting resolution"))
    page.fact("Model cost", formats.cost(total(decisions, "cost_usd")))
    page.fact("Methodology", cohort["methodology"])
    page.assert_compared(at_least=100)


@pytest.mark.parametrize("slug", ["gpt-5.1", "grok-4", "qwen-3-next", "guest"])
def test_a_family(season: SeasonApi, slug: str) -> None:
    page = season.page(f"/models/{slug}/")
    agents = by(season.rows(f"agents/?family={slug}"), "cohort", "family")

    def tokens(agent: Any) -> str:
        decided = season.rows(f"decisions/?agent={agent['id']}")
        return " / ".join(formats.count(total(decided, f"tokens_{way}")) for way in ("input", "output"))

    columns = {"Release": lambda a: a["model_id"], "Tokens": tokens, **money_of_an_agent(season)}
    page.table("cohorts", agents, columns, AGENT, no_figure=["Cohort"])
    (entry,) = [row for row in season.rows("leaderboard/") if row["family"] == slug]
    page.fact("Rank", (str(entry["rank"] or "external, unranked"), f"({ranks(entry)})" if ranks(entry) else ""))
    page.fact("Mean return", (formats.signed_percent(entry["return_percent"]), formats.half_width(entry["return_ci"])))
    page.fact("Mean value", formats.money(entry["total_value"]))
    page.fact("Bet-sizing score", (formats.score(entry["brier"]), formats.interval(entry["brier_ci"])))
    page.fact("Win rate", (formats.share(entry["win_rate"]), f"of {formats.count(entry['resolved_bets'])}"))
    page.fact("Model cost", formats.cost(entry["cost_usd"]))
    arms = {"with the market’s prices": "priced", "without prices": "blind"}
    boards = {
        (label,): next(e for e in season.rows(f"leaderboard/?protocol=forecast&arm={arm}") if e["family"] == slug)
        for label, arm in arms.items()
    }
    columns = {
        "Rank": lambda e: (str(e["rank"] or "unranked"), ranks(e)),
        "Brier score": lambda e: formats.with_interval(e, "brier"),
        "Log score": lambda e: formats.signed_score(e["log"]),
        "Top-choice accuracy": lambda e: formats.share(e["accuracy"]),
        "Alpha": lambda e: formats.with_interval(e, "alpha", formats.signed_score, " to "),
        "ECE": lambda e: formats.score(e["ece"]),
        "Return": lambda e: formats.net_return(e["average_return"]["0"]),
        "Questions": lambda e: (formats.count(e["n"]), f"{formats.share(e['coverage'])} coverage"),
        "Cost": lambda e: formats.cost(e["cost_usd"]),
    }
    page.table("forecasts", boards, columns, "Prompt condition", no_figure=["Prompt condition"])
    releases = by(season.rows(f"releases/?family={slug}"), "model_id")
    cohorts = {
        release["id"]: season.rows(f"agents/?release={release['id']}&ordering=cohort") for release in releases.values()
    }
    columns = {
        "Available since": lambda release: (
            "the beginning" if release["effective_from"] < "2021" else formats.day(release["effective_from"])
        ),
        "$ per million input tokens": lambda release: formats.money(Decimal(release["price_prompt"]) * 1_000_000),
        "$ per million output tokens": lambda release: formats.money(Decimal(release["price_completion"]) * 1_000_000),
        "Cohorts": lambda release: formats.consecutive_ranges([a["cohort"] for a in cohorts[release["id"]]]),
    }
    page.table("releases", releases, columns, "Release", no_figure=["Release"])
    check_returns(page, season, season.rows(f"agents/?family={slug}"))
    if f"{DATA}calibration" in page.tables:
        page.skip(f"{DATA}calibration")  # compared on the page of the calibration
    page.skip("cost")  # compared by itself
    page.assert_compared(at_least=30)


LONGEST_QUESTION = 80
"""The characters of a question in the list of decisions."""


def largest_trades(decision: dict[str, Any]) -> str:
    """The two largest trades of a decision, and how many more it made."""
    trades = sorted(decision["trades"], key=lambda trade: -float(trade["amount"]))
    texts = []
    for trade in trades[:2]:
        kind = "from selling" if trade["kind"] == "SELL" else "on"
        question = Truncator(decision["questions"][trade["market"]]).chars(LONGEST_QUESTION)
        texts.append(f"{formats.money(trade['amount'])} {kind} {trade['side']} : {question}")
    return " ".join([*texts, *([f"and {len(trades) - 2} more"] if len(trades) > 2 else [])])


DECISIONS = {
    "Week": lambda disagreement: f"Week {disagreement['week']}",
    "Trades": lambda disagreement: (formats.count(len(disagreement["trades"])), largest_trades(disagreement)),
    "Rejected": lambda disagreement: formats.count(sum(not wish["executed"] for wish in disagreement["instructions"])),
    "Cost": lambda disagreement: formats.cost(disagreement["cost_usd"]),
    "Decided": lambda disagreement: formats.minute(disagreement["decided_at"]),
}


@pytest.mark.parametrize("cohort", chosen([1, 4], [1, 2, 3, 4]))
def test_every_agent(season: SeasonApi, cohort: int) -> None:
    agents = season.rows(f"agents/?cohort={cohort}")
    assert len(agents) == 8
    weeks = {row["version"]: row["decision_weeks"] for row in season.rows("methodologies/")}
    weeks_of = {row["number"]: min(weeks[row["methodology"]], weeks_over(row)) for row in season.rows("cohorts/")}
    questions = {row["id"]: row["question"] for row in season.rows("markets/")}
    for agent in agents:
        page = season.page(f"/cohorts/{agent['cohort']}/{agent['family']}/")
        decisions = by(season.rows(f"decisions/?agent={agent['id']}"), "id")
        positions = season.rows(f"positions/?agent={agent['id']}")
        realized = formats.signed_money(total(positions, "realized_pnl"))
        unrealized = formats.signed_money(total(positions, "unrealized_pnl"))
        parts = f"{realized} realized, {unrealized} unrealized" if positions else ""
        page.fact("Total value", formats.money(agent["total_value"]))
        page.fact("Return", formats.signed_percent(agent["pnl_percent"]))
        page.fact("P/L", (formats.signed_money(agent["pnl"]), parts))
        note = f"sold to the last bids: {formats.money(agent['liquidation_value'])}"
        if agent["trades_without_book"]:
            note = f"{formats.plural(agent['trades_without_book'], 'trade')} without an order book"
        page.fact("Return after costs", (formats.signed_percent(agent["return_after_costs"]), note))
        page.fact("Cash", formats.money(agent["cash"]))
        page.fact("Positions", formats.money(agent["positions_value"]))
        page.fact("Bet-sizing score", formats.score(agent["brier"]))
        page.fact("Win rate", (formats.share(agent["win_rate"]), f"of {formats.count(agent['resolved_bets'])}"))
        tokens = [formats.count(total(decisions.values(), f"tokens_{way}")) for way in ("input", "output")]
        cost = formats.cost(total(decisions.values(), "cost_usd"))
        page.fact("Model cost", (cost, f"{tokens[0]} tokens in, {tokens[1]} out"))
        points = [(row["taken_at"], row["total_value"]) for row in season.rows(f"snapshots/?agent={agent['id']}")]
        curve = {"family": agent["family"], "points": points}
        check_curves(page, season, "value", {"series": [curve]})
        check_positions(page, season, positions, "agent")
        answers = {
            key: {**row, **season.one(f"decisions/{key[0]}/"), "questions": questions} for key, row in decisions.items()
        }
        missed = [row for row in page.tables["decisions"] if not row.cells["Week"].links]
        page.tables["decisions"] = [row for row in page.tables["decisions"] if row.cells["Week"].links]
        week_count = weeks_of[agent["cohort"]] if agent["status"] != "bankrupt" else len(decisions)
        assert len(missed) == max(0, week_count - len(decisions))
        assert {row.cells["Action"].text for row in missed} <= {"missed"}
        page.table("decisions", answers, DECISIONS, DECISION, no_figure=["Action", "Reasoning"])
        page.assert_compared(at_least=10)
        check_trades(season, agent)


def check_trades(season: SeasonApi, agent: dict[str, Any]) -> None:
    page = season.page(f"/cohorts/{agent['cohort']}/{agent['family']}/trades/")
    trades = {
        (str(t["market"]), str(t["decision"]), f"{t['kind']} {t['side']}", formats.money(t["amount"])): t
        for t in season.rows(f"trades/?agent={agent['id']}")
    }

    def key(row: Row) -> tuple[str, ...]:
        return (*row.target(MARKET), *row.target(DECISION), row.cells["Trade"].text, row.cells["Amount"].text)

    page.table("Trades", trades, trade_columns(season), key, no_figure=["Market", "Trade", "Decision", "Week"])
    page.assert_compared(at_least=0)


def money_of_an_agent(season: SeasonApi) -> dict[str, Callable[[Any], Any]]:
    """The columns that say what an agent is worth, how it does and what it cost."""

    def cost(agent: Any) -> str:
        return formats.cost(total(season.rows(f"decisions/?agent={agent['id']}"), "cost_usd"))

    return {
        "Value": lambda a: formats.money(a["total_value"]),
        "P/L": lambda a: formats.signed_money(a["pnl"]),
        "Return": lambda a: formats.signed_percent(a["pnl_percent"]),
        "Cash": lambda a: formats.money(a["cash"]),
        "Bet-sizing score": lambda a: formats.score(a["brier"]),
        "Win rate": lambda a: formats.share(a["win_rate"]),
        "Resolved bets": lambda a: formats.count(a["resolved_bets"]),
        "Cost": cost,
    }


def open_positions(season: SeasonApi, query: str, words: str) -> tuple[str, str]:
    """The number of open positions, and of those on closed markets with these words behind it."""
    status = {row["id"]: row["status"] for row in season.rows("markets/")}
    positions = season.rows(f"positions/?{query}&status=open")
    waiting = sum(status[row["market"]] == "closed" for row in positions)
    return formats.count(len(positions)), f"{formats.count(waiting)} {words}" if waiting else ""
