"""Every figure of markets, decisions and questions is the API's."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.markup import elements, links, visible_text
from tests.season import formats
from tests.season.page_figures import ANY_SMALL_PRINT, NO_FIGURE, Page, Row, by
from tests.season.season_api import (
    DATA,
    DECISION,
    MARKET,
    QUESTION,
    SeasonApi,
    check_calls,
    check_chain_link,
    check_chart,
    check_positions,
    instant_of,
    sha256,
    total,
    trade_columns,
)
from tests.selection import some_of_each, some_or_every

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_the_markets(season: SeasonApi) -> None:
    markets = by(season.rows("markets/"), "id")
    page = season.page("/markets/")
    holders = {key: len(season.rows(f"positions/?market={key[0]}&status=open")) for key in markets}
    columns = {
        "Status": lambda m: (m["status"], f"Outcome: {m['winning_side']}" if m["winning_side"] else ""),
        "Price": lambda m: (
            (
                " ".join(f"{row['side']} {formats.price(shown_price(m, row))}" for row in m["outcomes"][:2]),
                "final" if m["status"] == "resolved" else "",
            )
            if m["outcomes"][0]["price"]
            else NO_FIGURE
        ),
        "Volume": lambda m: formats.dollars(m["volume"]),
        "Closes": lambda m: formats.day(m["closes_at"]),
        "Resolved": lambda m: formats.day(m["resolved_at"]),
        "Holders": lambda m: formats.count(holders[(str(m["id"]),)] or None),
    }
    page.table("Markets", markets, columns, MARKET, no_figure=["Question"])
    page.assert_compared(at_least=50)


def shown_price(market: dict[str, Any], outcome: dict[str, Any]) -> str:
    """The price of a side: the final one once its market has resolved."""
    if market["status"] == "resolved":
        return "1" if outcome["side"] == market["winning_side"] else "0"
    return outcome["price"]


def test_the_questions(season: SeasonApi) -> None:
    questions = by(season.rows("questions/"), "id")
    forecasts = Counter(str(row["question"]) for row in season.rows("forecasts/"))
    page = season.page("/questions/")
    columns = {
        "Asked": lambda q: formats.day(q["first_asked_at"]),
        "Closes": lambda q: formats.day(q["closes_at"]),
        "Resolved": lambda q: formats.day(q["resolved_at"]),
        "Forecasts": lambda q: formats.count(forecasts[str(q["id"])]),
        "Market price": question_price,
        "Status": lambda q: (q["status"], question_outcome(q)),
    }
    page.table("Forecast questions", questions, columns, QUESTION, no_figure=["Question"])
    page.assert_compared(at_least=50)


def question_outcome(question: dict[str, Any]) -> str:
    outcome = question["outcome"]
    if outcome is None:
        return ""
    return f"Outcome: {', '.join(outcome) or 'none' if isinstance(outcome, list) else outcome}"


def question_price(question: dict[str, Any]) -> tuple[str, str]:
    """The first of two options, or the one with the highest price, at its price; one without a price comes last."""
    final = {True: "1", False: "0", None: None}
    prices = [
        (option["name"], final[option["happened"]] if question["status"] == "resolved" else option["price"])
        for option in question["options"]
    ]
    known_prices = [pair for pair in prices if pair[1] is not None] or prices
    name, price = known_prices[0] if len(prices) == 2 else max(known_prices, key=lambda pair: Decimal(pair[1] or 0))
    return f"{name} {formats.price(price)}", f"and {len(prices) - 1} more" if len(prices) > 2 else ""


def test_the_decisions(season: SeasonApi) -> None:
    decisions = by(season.rows("decisions/"), "id")
    trades = Counter(str(row["decision"]) for row in season.rows("trades/"))
    columns = {
        "Action": lambda decision: " ".join(
            [decision["action"] or decision["status"], *(["fallback"] if decision["fallback"] else [])]
        ),
        "Cohort": lambda decision: str(decision["cohort"]),
        "Week": lambda decision: str(decision["week"]),
        "Trades": lambda decision: formats.count(trades[str(decision["id"])]),
        "Decided": lambda decision: formats.minute(decision["decided_at"]),
    }
    for number in range(1, 2 + (len(decisions) - 1) // 50):
        page = season.page(f"/decisions/?page={number}")
        page.table("Decisions", decisions, columns, DECISION, no_figure=["Model"], complete=False)
        page.assert_compared(at_least=5)


OBSERVED = {
    "Midpoint": lambda observation: formats.price(observation["midpoint"]),
    "Gamma": lambda observation: formats.price(observation["gamma"]),
    "Bid / ask": lambda observation: f"{formats.price(observation['bid'])} / {formats.price(observation['ask'])}",
}


def trade_key(column: str) -> Callable[[Row], tuple[str, ...]]:
    """The decision and the amount of a trade, and the text in this column, by which a row is known."""
    return lambda row: (*row.target(DECISION), row.cells[column].text, row.cells["Amount"].text)


def test_every_market(season: SeasonApi) -> None:
    for market in season.rows("markets/"):
        page = season.page(f"/markets/{market['id']}/")
        bought = Counter(t["side"] for t in season.rows(f"trades/?market={market['id']}&kind=BUY"))
        columns = {
            "Price": lambda side: formats.price(side["price"]),
            "As of": lambda side: formats.minute(side["price_at"]),
            "Bets": lambda side, bought=bought: formats.count(bought[side["side"]]),
        }
        if market["status"] == "resolved":
            columns["Last price before"] = columns["Price"]
            columns["Final price"] = lambda side, market=market: formats.price(shown_price(market, side))
        sides = by(market["outcomes"], "side")
        page.table("prices", sides, columns, "Side", no_figure=["Side", "Source", "Venue’s quote"])
        prices = {
            (row["side"], formats.minute(row["observed_at"])): row
            for row in season.rows(f"prices/?market={market['id']}")
        }
        columns = {
            "Price": lambda side: formats.price(side["price"]),
            **OBSERVED,
            "Decision": lambda side: side["reason"] if side["stale"] else f"accepted {side['reason']}",
        }
        key = ("Side", "Observed")
        page.table(
            "Observed prices", prices, columns, lambda row, key=key: row.texts(*key), no_figure=[*key, "Source"],
            complete=False,
        )  # fmt: skip
        check_positions(page, season, season.rows(f"positions/?market={market['id']}"), "market")
        trades = season.rows(f"trades/?market={market['id']}")
        trades_by_key = {
            (str(t["decision"]), f"{t['kind']} {t['side']}", formats.money(t["amount"])): t for t in trades
        }
        columns = trade_columns(season)
        page.table(
            "trades", trades_by_key, columns, trade_key("Trade"), no_figure=["Model", "Cohort", "Trade", "Decision"]
        )
        page.fact("Volume", formats.dollars(market["volume"]))
        if market["liquidity"] is not None:
            page.fact("Liquidity", formats.dollars(market["liquidity"]))
        page.fact("Scheduled close", formats.minute(market["closes_at"]))
        if market["closed_at"]:
            page.fact("Closed", formats.minute(market["closed_at"]))
        if market["resolved_at"]:
            word = "Cancelled" if market["status"] == "cancelled" else "Resolved"
            page.fact(word, formats.minute(market["resolved_at"]))
        paid = total(season.rows(f"positions/?market={market['id']}"), "realized_pnl")
        brought = page.facts.pop("Realized P/L", None)
        if brought is not None:
            assert brought.text.startswith(f"{formats.signed_money(paid)} of all agents")
        page.skip("Venue", "First seen", "Last updated", "Outcome", "Outcome, 2", "Source")
        check_price_history(page, season, market)
        page.assert_compared(at_least=6)


def check_price_history(page: Page, season: SeasonApi, market: dict[str, Any]) -> None:
    """The chart of a market: every price of its sides, what each came to, and every trade at its price."""
    rows, trades = season.rows(f"prices/?market={market['id']}"), season.rows(f"trades/?market={market['id']}")
    prices_by_side: dict[str, list[tuple[datetime, str]]] = {outcome["side"]: [] for outcome in market["outcomes"]}
    for row in sorted(
        (row for row in rows if row["price"] is not None), key=lambda row: (row["observed_at"], row["id"])
    ):
        prices_by_side[row["side"]].append((instant_of(row["observed_at"]), row["price"]))
    if not any(prices_by_side.values()):
        assert HISTORY not in page.tables
        return
    if market["status"] == "resolved":
        for side in prices_by_side:
            prices_by_side[side].append(
                (instant_of(market["resolved_at"]), "1" if side == market["winning_side"] else "0")
            )
    instants = sorted(
        {at for prices in prices_by_side.values() for at, _ in prices}
        | {instant_of(trade["executed_at"]) for trade in trades}
    )
    lines = {side: [newest(prices, at) for at in instants] for side, prices in prices_by_side.items()}
    check_chart(page, "prices", instants, lines, formats.price)
    events = [
        (links(mark)[0], path.attributes["class"], visible_text(path, "title"))
        for mark in elements(page.html, "a:has(> path.buy), a:has(> path.sell)")
        for path in elements(mark, "path")
    ]
    answer = sorted(event(trade, season.names) for trade in trades)
    page.compared += len(trades)
    if sorted(events) != answer:
        page.faults.append(f"{page.address}: entries and exits {events}, the API says {answer}")


HISTORY = f"{DATA}prices"


def newest(prices: list[tuple[datetime, str]], at: datetime) -> str | None:
    """The last of the prices, in order of time, that was known at an instant."""
    place = bisect_right(prices, at, key=lambda price: price[0])
    return prices[place - 1][1] if place else None


def event(trade: dict[str, Any], slugs: dict[str, str]) -> tuple[str, str, str]:
    """What the mark of a trade leads to, whether it came or went, and what the mark says."""
    (name,) = [name for name, slug in slugs.items() if slug == trade["family"]]
    did = "bought" if trade["kind"] == "BUY" else "sold"
    at = f"{formats.price(trade['price'])} for {formats.money(trade['amount'])}"
    text = f"{name}, cohort {trade['cohort']}, {did} {trade['side']} at {at}"
    return f"/decisions/{trade['decision']}/", trade["kind"].lower(), text


def bought_key(row: Row) -> tuple[str, ...]:
    return (*row.target(MARKET), row.cells["Trade"].text.partition(" ")[2], row.cells["Amount"].text)


@some_or_every
def test_every_decision(season: SeasonApi, of_each: int) -> None:
    universes = {row["id"]: row for row in season.rows("universes/")}
    for listed in some_of_each(season.rows("decisions/"), kind_of_decision, of_each):
        decision = season.one(f"decisions/{listed['id']}/")
        assert {key: decision[key] for key in listed} == listed
        page = season.page(f"/decisions/{decision['id']}/")
        page.fact("Status", decision["status"])
        page.fact("Decided", formats.minute(decision["decided_at"]))
        page.fact("Model cost", formats.cost(decision["cost_usd"]))
        tokens = (decision["tokens_input"], decision["tokens_output"])
        page.fact("Tokens in / out", " / ".join(map(formats.count, tokens)))
        took = [call["latency_ms"] for call in decision["calls"] if call["latency_ms"] is not None]
        page.fact("Response time", formats.seconds(sum(took)) if took else "–")
        page.fact("Universe", universes[decision["universe"]]["sha256"][:12] if decision["universe"] else "–")
        trades = {(str(t["market"]), t["side"], formats.money(t["amount"])): t for t in decision["trades"]}
        columns = trade_columns(season) | {
            "Price": lambda t: (formats.price(t["price"]), ANY_SMALL_PRINT),
            "Implied confidence": lambda t: (formats.share(t["implied_confidence"]), ANY_SMALL_PRINT),
        }
        page.table("trades", trades, columns, bought_key, no_figure=["Market", "Trade"])
        check_calls(page, decision["calls"])
        columns = {
            "Instruction": lambda instruction: (
                f"BET {instruction['payload']['side']}" if instruction["kind"] == "BET" else NO_FIGURE
            ),
            "Size": lambda instruction: (
                f"${instruction['payload']['amount']}" if instruction["kind"] == "BET" else NO_FIGURE
            ),
            "Result": lambda instruction: (
                "executed" if instruction["executed"] else f"rejected {instruction['reason']}"
            ),
        }
        page.table("instructions", decision["instructions"], columns, no_figure=["Market"])
        page.fact("Methodology", season.one(f"cohorts/{decision['cohort']}/")["methodology"])
        check_price_origins(page, season, decision, universes.get(decision["universe"]))
        check_chain_link(page, season, "decision", decision["id"])
        page.assert_compared(at_least=5)


def kind_of_decision(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["cohort"], row["status"], row["action"], row["fallback"]


def check_price_origins(page: Page, season: SeasonApi, decision: dict[str, Any], universe: Any) -> None:
    """Where the prices of a decision's trades came from: the universe's entry, and what was observed till then."""
    if universe is None:
        return
    entries = {entry["market"]: entry for entry in season.one(f"universes/{universe['id']}/")["entries"]}
    frozen, observations = instant_of(universe["frozen_at"]), []
    for trade in decision["trades"]:
        observed_prices = [
            price
            for price in season.rows(f"prices/?market={trade['market']}")
            if price["side"] == trade["side"] and instant_of(price["observed_at"]) <= frozen
        ]
        last = max(observed_prices, key=lambda price: (instant_of(price["observed_at"]), price["id"]))
        observations.append(last | {"paid": trade["price"], "side": trade["side"], "entry": entries[trade["market"]]})
    columns = {
        "Side": lambda row: (row["side"], ANY_SMALL_PRINT),
        "Price": lambda row: formats.price(row["paid"]),
        "Universe entry": lambda row: f"No. {row['entry']['position']}",
        **OBSERVED,
        "Observed": lambda row: formats.minute(row["observed_at"]),
        "Reason": lambda row: row["reason"] or "–",
    }
    page.table("prices", observations, columns)


def test_every_link_follows_the_one_before_it(season: SeasonApi) -> None:
    """From the first to the head that the front page, the rules and the proof show; those of tasks on their pages."""
    for chain in season.rows("chain/"):
        if chain["protocol"] == "receipt":
            bodies = [one["body"] for one in season.rows("receipts/")]
            hashes = [sha256(json.dumps(body, sort_keys=True, separators=(",", ":"))) for body in bodies]
            assert [body["previous"] for body in bodies] == ["0" * 64, *hashes[:-1]]
            assert (len(bodies), hashes[-1]) == (chain["length"], chain["head"])
            continue
        links = season.rows(f"chain-links/?protocol={chain['protocol']}")
        assert [one["sequence"] for one in links] == list(range(1, chain["length"] + 1))
        assert [one["previous"] for one in links] == ["0" * 64, *[one["sha256"] for one in links[:-1]]]
        assert all(one["sha256"] == sha256(f"{one['previous']}\n{one['record_sha256']}") for one in links)
        assert links[-1]["sha256"] == chain["head"]
    paths = {"decision": "decisions", "elicitation": "elicitations"}
    for task, path in paths.items():
        linked = {one[task] for one in season.rows("chain-links/") if one[task]}
        assert linked == {row["id"] for row in season.rows(f"{path}/?status=completed")}
        assert len(linked) > 50


def test_a_cohort_names_the_link_of_its_newest_decision(season: SeasonApi) -> None:
    for cohort in season.rows("cohorts/"):
        decision_ids = {row["id"] for row in season.rows(f"decisions/?cohort={cohort['number']}")}
        newest = [one for one in season.rows("chain-links/?protocol=trading") if one["decision"] in decision_ids][-1]
        place = formats.count(newest["sequence"])
        text = f"The newest decision is link {place} of the chain, {cohort['chain_head']} ."
        assert text in season.page(f"/cohorts/{cohort['number']}/").text
        assert newest["sha256"] == cohort["chain_head"]


def test_every_question(season: SeasonApi) -> None:
    for listed in season.rows("questions/"):
        question = season.one(f"questions/{listed['id']}/")
        page = season.page(f"/questions/{question['id']}/")
        columns = {
            "Price": lambda row: formats.price(row["price"]),
            "Price of “no”": lambda row: formats.price(row["no_price"]),
        }
        if question["status"] == "resolved":
            columns = {
                "Final price": lambda row: formats.price({True: "1", False: "0", None: None}[row["happened"]]),
                "Price of “no”": lambda row: formats.price({True: "0", False: "1", None: None}[row["happened"]]),
            }
        page.table("options", by(question["options"], "name"), columns, "Option", no_figure=["Option", "Market"])
        forecasts = by(season.rows(f"forecasts/?question={question['id']}"), "id")
        (newest, *_) = sorted(question["days_asked"], key=lambda batch: batch["day"], reverse=True)
        assert {f"{on(newest)}, {ARMS[arm]}" for arm in ARMS} <= set(page.tables)
        for batch in question["days_asked"]:
            for arm in ARMS:
                check_batch(page, arm, batch, forecasts, season.names)
        page.fact("Days asked", formats.count(len(question["days_asked"])))
        page.fact("First asked", formats.day(question["first_asked_at"]))
        page.fact("Scheduled close", formats.day(question["closes_at"]))
        if question["resolved_at"]:
            page.fact(
                "Cancelled" if question["status"] == "cancelled" else "Resolved",
                formats.minute(question["resolved_at"]),
            )
        for difficulty in question["difficulties"]:
            for name, write in (("difficulty", formats.signed_score), ("discrimination", formats.score)):
                if difficulty[name] is not None:
                    label = f"{name.capitalize()}, {ARMS[difficulty['arm']]}"
                    page.fact(label, (write(difficulty[name]), formats.plus_minus(difficulty[f"{name}_se"])))
        trades = {
            (str(t["decision"]), t["side"], formats.money(t["amount"])): t
            for option in question["options"]
            if option["market"]
            for t in season.rows(f"trades/?market={option['market']}&kind=BUY")
        }
        without = ["Model", "Cohort", "Side", "Decision"]
        page.table("trades", trades, trade_columns(season), trade_key("Side"), no_figure=without, complete=False)
        check_days(page, season, question, list(forecasts.values()))
        page.skip("Venue", "Options", "Outcome")
        page.assert_compared(at_least=20)


def check_days(page: Page, season: SeasonApi, question: dict[str, Any], forecasts: list[Any]) -> None:
    """The charts of a question: what each family said of an option on each day, in each arm, beside the market."""
    prices = {instant_of(batch["day"]): batch["prices"] for batch in question["days_asked"]}
    days = sorted(prices)
    names = {slug: name for name, slug in season.names.items()}
    forecasts_by_family = {
        (f["arm"], names[f["family"]], instant_of(f["made_at"]).date()): f["probabilities"] for f in forecasts
    }
    headings = [
        visible_text(heading).rpartition(", ")[::2]
        for heading in elements(page.html, 'section[aria-labelledby="over-days"] h3')
    ]
    arms = (
        [arm for arm in ARMS if any(arm == arm_stated for arm_stated, *_ in forecasts_by_family)]
        if len(days) > 1
        else []
    )
    assert [words for _, words in headings] == [ARMS[arm] for arm in arms]
    for arm, (option, _) in zip(arms, headings, strict=True):
        option = option.removesuffix(" ")
        lines = {
            name: [forecasts_by_family.get((arm, name, day.date()), {}).get(option) for day in days]
            for name in {name for arm_stated, name, _ in forecasts_by_family if arm_stated == arm}
        }
        lines["Market"] = [prices[day].get(option, {}).get("price") for day in days]
        check_chart(page, arm, days, lines, formats.share)


ARMS = {"priced": "with the market’s prices", "blind": "without prices"}
"""How the headings of a question's charts name them."""


def on(batch: dict[str, Any]) -> str:
    """The day of a batch, as a page writes it."""
    return formats.day(batch["day"])


def check_batch(page: Page, arm: str, batch: dict[str, Any], forecasts: dict[Any, Any], slugs: dict[str, str]) -> None:
    """What everybody said on one day in one arm, by option, beside the market; at the end what it scored."""
    that_day = [f for f in forecasts.values() if f["made_at"][:10] == batch["day"][:10]]
    forecasts_by_family = {f["family"]: f for f in that_day if f["arm"] == arm}
    label = f"{on(batch)}, {ARMS[arm]}"
    rows = page.tables.pop(label, [])
    for row in rows:
        option = row.cells["Option"].text.removesuffix(" happened").removesuffix(" cancelled")
        for name, cell in row.cells.items():
            forecast = forecasts_by_family.get(slugs.get(name.removesuffix(" external"), ""))
            prices = batch["prices"].get(option)
            if name == "Option" or (option == SCORED and name in ("Market", "Ask")):
                continue
            if name in ("Market", "Ask"):
                expected = formats.price(prices["price" if name == "Market" else "ask"])
            elif option == SCORED:
                expected = formats.score(forecast["brier"])
            else:
                expected = formats.share(forecast["probabilities"][option])
            page.compared += 1
            if cell.text != expected:
                page.faults.append(f"{page.address} {label}: {name} of {option}: {cell.text}, the API {expected}")


SCORED = "Brier score"
"""The last row of a batch whose question is resolved."""
