"""Every figure of cohorts, families and agents is the API's."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from scoring.templatetags import arena
from tests.figures import WORDS, by
from tests.told import (
    AGENT,
    DATA,
    DECISION,
    MARKET,
    Arena,
    closed,
    columns_of_a_trade,
    curves,
    half,
    holdings,
    instant_of,
    interval,
    moment,
    ranks,
    text_of,
    total,
)


def test_the_cohorts(shown: Arena) -> None:
    cohorts = by(shown.rows("cohorts/"), "number")
    ours = {
        key: [Decimal(a["pnl_percent"]) for a in shown.rows(f"agents/?cohort={key[0]}") if a["family"] != "guest"]
        for key in cohorts
    }
    page = shown.page("/cohorts/")

    def open_positions(cohort: Any) -> tuple[str, str]:
        number, waiting = held(shown, f"cohort={cohort['number']}")
        return arena.count(number), f"{arena.count(waiting)} await resolution" if waiting else ""

    page.table(
        "Cohorts",
        lambda row: cohorts[row.target(r"/cohorts/(\d+)/")],
        {
            "Cohort": WORDS,
            "Week start": lambda c: text_of(arena.day(instant_of(c["week_start"]))),
            "Status": WORDS,
            "Agents": lambda c: arena.count(c["agents"]),
            "Leads": WORDS,
            "Return": lambda c: arena.signed_percent(max(ours[(str(c["number"]),)])),
            "Mean of all": lambda c: arena.signed_percent(mean(ours[(str(c["number"]),)])),
            "Held": open_positions,
            "Rules": lambda c: c["methodology"],
        },
        rows=len(cohorts),
    )
    closed(page, 15)


def mean(values: list[Decimal]) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_cohort(shown: Arena, number: int) -> None:
    page = shown.page(f"/cohorts/{number}/")
    agents = by(shown.rows(f"agents/?cohort={number}"), "cohort", "family")

    def open_positions(agent: Any) -> tuple[str, str]:
        count, waiting = held(shown, f"agent={agent['id']}")
        return arena.count(count), f"{arena.count(waiting)} await" if waiting else ""

    def rank(agent: Any) -> str:
        ahead = [a for a in agents.values() if Decimal(a["pnl_percent"]) > Decimal(agent["pnl_percent"])]
        return "–" if agent["family"] == "guest" else str(1 + sum(a["family"] != "guest" for a in ahead))

    page.table(
        "agents",
        lambda row: agents[row.target(AGENT)],
        {"Rank": rank, "Model": WORDS, "Held": open_positions, **money_of_an_agent(shown)},
        rows=len(agents),
    )
    values = shown.one(f"performance/?range=ALL&cohort={number}")
    curves(page, shown, f"{DATA}Total value of each agent over time", values)
    badges = {(row["family"], row["week"]): row for row in shown.rows(f"decisions/?cohort={number}")}
    for row in page.tables.pop("decisions"):
        (_, model), *weeks = row.cells.items()
        for week, (_, cell) in enumerate(weeks, start=1):
            decision = badges.get((shown.names[model.text.removesuffix(" external")], week))
            said = "–" if decision is None else decision["action"] or decision["status"]
            page.compared += 1
            if not cell.text.startswith(said):
                page.faults.append(f"{page.address} {model.text} week {week}: {cell.text}, the API {said}")
    decisions = shown.rows(f"decisions/?cohort={number}")
    trades = shown.rows(f"trades/?cohort={number}")
    count, waiting = held(shown, f"cohort={number}")
    cohort = shown.one(f"cohorts/{number}/")
    page.fact("Week start", text_of(arena.day(instant_of(cohort["week_start"]))))
    page.fact("Started", text_of(arena.when(instant_of(cohort["started_at"]))))
    page.fact("Decisions", arena.count(len(decisions)))
    page.fact("Trades", arena.count(len(trades)))
    page.fact("Positions held", (arena.count(count), f"{waiting} await resolution" if waiting else ""))
    page.fact("Model cost", arena.cost(total(decisions, "cost_usd")))
    page.fact("Rules", cohort["methodology"])
    closed(page, 100)


@pytest.mark.parametrize("slug", ["gpt-5.1", "grok-4", "qwen-3-next", "guest"])
def test_a_family(shown: Arena, slug: str) -> None:
    page = shown.page(f"/models/{slug}/")
    agents = by(shown.rows(f"agents/?family={slug}"), "cohort", "family")

    def tokens(agent: Any) -> str:
        decided = shown.rows(f"decisions/?agent={agent['id']}")
        return " / ".join(arena.count(total(decided, f"tokens_{way}")) for way in ("input", "output"))

    page.table(
        "cohorts",
        lambda row: agents[row.target(AGENT)],
        {
            "Cohort": WORDS,
            "Release": lambda a: a["model_id"],
            "Tokens": tokens,
            **money_of_an_agent(shown),
        },
        rows=len(agents),
    )
    (entry,) = [row for row in shown.rows("leaderboard/") if row["family"] == slug]
    page.fact("Rank", (str(entry["rank"] or "external, apart"), f"({ranks(entry)})" if ranks(entry) else ""))
    page.fact("Mean return", (arena.signed_percent(entry["return_percent"]), half(entry["return_ci"])))
    page.fact("Mean value", arena.money(entry["total_value"]))
    page.fact("Brier", (arena.score(entry["brier"]), interval(entry["brier_ci"])))
    page.fact("Skill against the market", arena.signed_score(entry["bss_market"]))
    page.fact("Skill against chance", arena.signed_score(entry["bss_random"]))
    page.fact("Win rate", (arena.share(entry["win_rate"]), f"of {arena.count(entry['resolved_bets'])}"))
    page.fact("Model cost", arena.cost(entry["cost_usd"]))
    arms = {"with the market’s prices": "priced", "without prices": "blind"}
    said = {
        label: next(e for e in shown.rows(f"leaderboard/?protocol=forecast&arm={arm}") if e["family"] == slug)
        for label, arm in arms.items()
    }
    page.table(
        "forecasts",
        lambda row: said[row.cells["Arm"].text],
        {
            "Arm": WORDS,
            "Rank": lambda e: (str(e["rank"] or "apart"), ranks(e)),
            "Brier, mean form": lambda e: (arena.score(e["brier"]), interval(e["brier_ci"])),
            "Log score": lambda e: arena.signed_score(e["log"]),
            "Accuracy": lambda e: arena.share(e["accuracy"]),
            "Alpha": lambda e: (arena.signed_score(e["alpha"]), interval(e["alpha_ci"], arena.signed_score, " to ")),
            "ECE": lambda e: arena.score(e["ece"]),
            "Return": lambda e: arena.score(e["average_return"]["0"]),
            "Questions": lambda e: (arena.count(e["n"]), f"{arena.share(e['coverage'])} of those asked"),
            "Cost": lambda e: arena.cost(e["cost_usd"]),
        },
        rows=2,
    )
    releases = by(shown.rows(f"releases/?family={slug}"), "model_id")
    released = {r["id"]: shown.rows(f"agents/?release={r['id']}&ordering=-cohort") for r in releases.values()}
    page.table(
        "releases",
        lambda row: releases[(row.cells["Release"].text,)],
        {
            "Release": WORDS,
            "Since": lambda r: text_of(arena.day(instant_of(r["effective_from"]))),
            "$ per million tokens in": lambda r: arena.money(Decimal(r["price_prompt"]) * 1_000_000),
            "Out": lambda r: arena.money(Decimal(r["price_completion"]) * 1_000_000),
            "Cohorts": lambda r: " ".join(str(a["cohort"]) for a in reversed(released[r["id"]])) or "–",
        },
        rows=len(releases),
    )
    values = shown.one(f"performance/?range=ALL&family={slug}")
    curves(page, shown, f"{DATA}Mean value of its portfolios over time", values)
    page.words("cost")  # compared by itself
    closed(page, 30)


def test_every_agent(shown: Arena) -> None:
    agents = shown.rows("agents/")
    assert len(agents) == 32
    for agent in agents:
        page = shown.page(f"/cohorts/{agent['cohort']}/{agent['family']}/")
        decisions = by(shown.rows(f"decisions/?agent={agent['id']}"), "id")
        positions = shown.rows(f"positions/?agent={agent['id']}")
        realized = arena.signed_money(total(positions, "realized_pnl"))
        unrealized = arena.signed_money(total(positions, "unrealized_pnl"))
        parts = f"{realized} realized, {unrealized} not" if positions else ""
        page.fact("Total value", arena.money(agent["total_value"]))
        page.fact("Return", arena.signed_percent(agent["pnl_percent"]))
        page.fact("P/L", (arena.signed_money(agent["pnl"]), parts))
        page.fact("Cash", arena.money(agent["cash"]))
        page.fact("Positions", arena.money(agent["positions_value"]))
        page.fact("Brier", arena.score(agent["brier"]))
        page.fact("Win rate", (arena.share(agent["win_rate"]), f"of {arena.count(agent['resolved_bets'])}"))
        tokens = [arena.count(total(decisions.values(), f"tokens_{way}")) for way in ("input", "output")]
        cost = arena.cost(total(decisions.values(), "cost_usd"))
        page.fact("Model cost", (cost, f"{tokens[0]} tokens in, {tokens[1]} out"))
        curves(
            page,
            shown,
            f"{DATA}Total value over time",
            {
                "series": [
                    {
                        "family": agent["family"],
                        "points": [
                            (row["taken_at"], row["total_value"])
                            for row in shown.rows(f"snapshots/?agent={agent['id']}")
                        ],
                    }
                ]
            },
        )
        holdings(page, shown, positions, "agent")
        trades, refused = {}, {}
        for (pk,) in decisions:
            one = shown.one(f"decisions/{pk}/")
            trades[pk] = len(one["trades"])
            refused[pk] = sum(not wish["executed"] for wish in one["instructions"])
        page.table(
            "decisions",
            lambda row, decisions=decisions: decisions[row.target(DECISION)],
            {
                "Week": lambda d: f"Week {d['week']}",
                "Action": WORDS,
                "Trades": lambda d, trades=trades: arena.count(trades[str(d["id"])]),
                "Rejected": lambda d, refused=refused: arena.count(refused[str(d["id"])]),
                "Reasoning": WORDS,
                "Cost": lambda d: arena.cost(d["cost_usd"]),
                "Decided": lambda d: text_of(arena.when(moment(d["decided_at"]))),
            },
            rows=len(decisions),
        )
        closed(page, 10)
        trades_of(shown, agent)


def trades_of(shown: Arena, agent: dict[str, Any]) -> None:
    page = shown.page(f"/cohorts/{agent['cohort']}/{agent['family']}/trades/")
    trades = shown.rows(f"trades/?agent={agent['id']}")
    known = {
        (str(t["market"]), str(t["decision"]), f"{t['kind']} {t['side']}", arena.money(t["amount"])): t for t in trades
    }
    page.table(
        "Trades",
        lambda row: known[
            (*row.target(MARKET), *row.target(DECISION), row.cells["Trade"].text, row.cells["Amount"].text)
        ],
        {**dict.fromkeys(("Market", "Trade", "Decision", "Week"), WORDS), **columns_of_a_trade(shown)},
        rows=len(trades),
    )
    closed(page, 0)


def money_of_an_agent(shown: Arena) -> dict[str, Callable[[Any], Any]]:
    """The columns that say what an agent is worth, how it does and what it cost."""

    def cost(agent: Any) -> str:
        return arena.cost(total(shown.rows(f"decisions/?agent={agent['id']}"), "cost_usd"))

    return {
        "Value": lambda a: arena.money(a["total_value"]),
        "P/L": lambda a: arena.signed_money(a["pnl"]),
        "Return": lambda a: arena.signed_percent(a["pnl_percent"]),
        "Cash": lambda a: arena.money(a["cash"]),
        "Brier": lambda a: arena.score(a["brier"]),
        "Win rate": lambda a: arena.share(a["win_rate"]),
        "Resolved bets": lambda a: arena.count(a["resolved_bets"]),
        "Cost": cost,
    }


def held(shown: Arena, query: str) -> tuple[int, int]:
    """How many positions are open, and how many of them on markets that are closed."""
    status = {row["id"]: row["status"] for row in shown.rows("markets/")}
    positions = shown.rows(f"positions/?{query}&status=open")
    return len(positions), sum(status[row["market"]] == "closed" for row in positions)
