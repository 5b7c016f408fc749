"""Every figure of markets, decisions and questions is the API's."""

import re
from bisect import bisect_right
from datetime import datetime
from typing import Any

from scoring.templatetags import arena
from tests.figures import ANY, WORDS, Page, by, text
from tests.told import (
    DATA,
    DECISION,
    MARKET,
    Arena,
    chart,
    closed,
    columns_of_a_trade,
    holdings,
    instant_of,
    link,
    moment,
    plus_minus,
    points,
    sha256,
    text_of,
    total,
)


def test_the_markets(shown: Arena) -> None:
    markets = by(shown.rows("markets/"), "id")
    page = shown.page("/markets/")
    holders = {key: len(shown.rows(f"positions/?market={key[0]}&status=open")) for key in markets}
    page.table(
        "Markets",
        lambda row: markets[row.target(MARKET)],
        {
            "Question": WORDS,
            "Status": lambda m: (m["status"], m["winning_side"] or ""),
            "Price": lambda m: (
                " ".join(f"{o['side']} {arena.price(o['price'])}" for o in m["outcomes"][:2])
                if m["outcomes"][0]["price"]
                else WORDS
            ),
            "Volume": lambda m: arena.dollars(m["volume"]),
            "Closes": lambda m: text_of(arena.day(moment(m["closes_at"]))),
            "Held by": lambda m: arena.count(holders[(str(m["id"]),)] or None),
        },
        rows=len(markets),
    )
    closed(page, 50)


def test_every_market(shown: Arena) -> None:
    for market in shown.rows("markets/"):
        page = shown.page(f"/markets/{market['id']}/")
        sides = by(market["outcomes"], "side")
        bought = [t["side"] for t in shown.rows(f"trades/?market={market['id']}&kind=BUY")]
        page.table(
            "prices",
            lambda row, sides=sides: sides[(row.cells["Side"].text.removesuffix(" won"),)],
            {
                **dict.fromkeys(("Side", "From", "Venue’s quote"), WORDS),
                "Price": lambda o: arena.price(o["price"]),
                "Accepted": lambda o: text_of(arena.when(moment(o["price_at"]))),
                "Bets": lambda o, bought=bought: arena.count(bought.count(o["side"])),
            },
            rows=len(sides),
        )
        prices = by(shown.rows(f"prices/?market={market['id']}"), "side", "observed_at")
        prices = {(side, text_of(arena.when(instant_of(at)))): price for (side, at), price in prices.items()}
        page.table(
            "Observed prices",
            lambda row, prices=prices: prices[row.cells["Side"].text, row.cells["Observed"].text],
            {
                **dict.fromkeys(("Observed", "Side", "From"), WORDS),
                "Price": lambda o: arena.price(o["price"]),
                "Midpoint": lambda o: arena.price(o["midpoint"]),
                "Gamma": lambda o: arena.price(o["gamma"]),
                "Bid / ask": lambda o: f"{arena.price(o['bid'])} / {arena.price(o['ask'])}",
                "Verdict": lambda o: o["reason"] if o["stale"] else f"accepted {o['reason']}",
            },
        )
        holdings(page, shown, shown.rows(f"positions/?market={market['id']}"), "market")
        trades = shown.rows(f"trades/?market={market['id']}")
        known = {(str(t["decision"]), f"{t['kind']} {t['side']}", arena.money(t["amount"])): t for t in trades}
        page.table(
            "trades",
            lambda row, known=known: known[(*row.target(DECISION), row.cells["Trade"].text, row.cells["Amount"].text)],
            {**dict.fromkeys(("Family", "Cohort", "Trade", "Decision"), WORDS), **columns_of_a_trade(shown)},
            rows=len(trades),
        )
        page.fact("Volume", arena.dollars(market["volume"]))
        if market["liquidity"] is not None:
            page.fact("Liquidity", arena.dollars(market["liquidity"]))
        page.fact("Nominal end", text_of(arena.when(moment(market["closes_at"]))))
        if market["closed_at"]:
            page.fact("Closed", text_of(arena.when(moment(market["closed_at"]))))
        if market["resolved_at"]:
            word = "Cancelled" if market["status"] == "cancelled" else "Resolved"
            page.fact(word, text_of(arena.when(moment(market["resolved_at"]))))
        paid = total(shown.rows(f"positions/?market={market['id']}"), "realized_pnl")
        brought = page.facts.pop("Brought", None)
        if brought is not None:
            assert brought.text.startswith(f"{text(arena.signed_money(paid))} realized")
        page.words("Venue", "First seen", "Last heard of", "Came to", "Source")
        history(page, shown, market)
        closed(page, 6)


def history(page: Page, shown: Arena, market: dict[str, Any]) -> None:
    """The chart of a market: every price of its sides, what each came to, and every trade at its price."""
    rows, trades = shown.rows(f"prices/?market={market['id']}"), shown.rows(f"trades/?market={market['id']}")
    known: dict[str, list[tuple[datetime, str]]] = {outcome["side"]: [] for outcome in market["outcomes"]}
    for row in sorted(
        (row for row in rows if row["price"] is not None), key=lambda row: (row["observed_at"], row["id"])
    ):
        known[row["side"]].append((instant_of(row["observed_at"]), row["price"]))
    if not any(known.values()):
        assert HISTORY not in page.tables
        return
    if market["status"] == "resolved":
        for side in known:
            known[side].append((instant_of(market["resolved_at"]), "1" if side == market["winning_side"] else "0"))
    instants = sorted(
        {at for prices in known.values() for at, _ in prices} | {instant_of(trade["executed_at"]) for trade in trades}
    )
    lines = {side: [newest(prices, at) for at in instants] for side, prices in known.items()}
    chart(page, "history", HISTORY, instants, lines, arena.price)
    marks = [[round(instant_of(t["executed_at"]).timestamp() * 1000), float(t["price"])] for t in trades]
    drawn = [mark[:2] for mark in points(page, "history")["events"]]
    events = re.findall(r'<a href="([^"]*)"><path class="(buy|sell)"[^>]*><title>(.*?)</title>', page.markup)
    told = sorted(event(trade, shown.names) for trade in trades)
    page.compared += 2 * len(trades)
    if sorted(drawn) != sorted(marks) or sorted((*event[:2], text(event[2])) for event in events) != told:
        page.faults.append(f"{page.address}: entries and exits {events} at {drawn}, the API says {told} at {marks}")


HISTORY = f"{DATA}Accepted prices over time, with every entry and exit"


def newest(prices: list[tuple[datetime, str]], at: datetime) -> str | None:
    """The last of the prices, in order of time, that was known at an instant."""
    place = bisect_right(prices, at, key=lambda price: price[0])
    return prices[place - 1][1] if place else None


def event(trade: dict[str, Any], slugs: dict[str, str]) -> tuple[str, str, str]:
    """What the mark of a trade leads to, whether it came or went, and what the mark says."""
    (name,) = [name for name, slug in slugs.items() if slug == trade["family"]]
    did = "bought" if trade["kind"] == "BUY" else "sold"
    at = f"{text(arena.price(trade['price']))} for {arena.money(trade['amount'])}"
    said = f"{name}, cohort {trade['cohort']}, {did} {trade['side']} at {at}"
    return f"/decisions/{trade['decision']}/", trade["kind"].lower(), said


def test_every_decision(shown: Arena) -> None:
    universes = {row["id"]: row for row in shown.rows("universes/")}
    for listed in shown.rows("decisions/"):
        decision = shown.one(f"decisions/{listed['id']}/")
        assert {key: decision[key] for key in listed} == listed
        page = shown.page(f"/decisions/{decision['id']}/")
        page.fact("Status", decision["status"])
        page.fact("Decided", text_of(arena.when(moment(decision["decided_at"]))))
        page.fact("Model cost", arena.cost(decision["cost_usd"]))
        tokens = (decision["tokens_input"], decision["tokens_output"])
        page.fact("Tokens in / out", " / ".join(map(arena.count, tokens)))
        took = [call["latency_ms"] for call in decision["calls"]]
        page.fact("Time to answer", arena.seconds(sum(ms or 0 for ms in took)) if took else WORDS)
        page.fact("Universe", universes[decision["universe"]]["sha256"][:12] if decision["universe"] else "–")
        trades = {(str(t["market"]), t["side"], arena.money(t["amount"])): t for t in decision["trades"]}
        page.table(
            "trades",
            lambda row, trades=trades: trades[
                (*row.target(MARKET), row.cells["Trade"].text.partition(" ")[2], row.cells["Amount"].text)
            ],
            {
                "Market": WORDS,
                "Trade": WORDS,
                **columns_of_a_trade(shown),
                "Price": lambda t: (arena.price(t["price"]), ANY),
                "Implied confidence": lambda t: (arena.share(t["implied_confidence"]), ANY),
            },
            rows=len(trades),
        )
        calls = by(decision["calls"], "sequence")
        page.table(
            "calls",
            lambda row, calls=calls: calls[(row.cells["#"].text,)],
            {
                "#": WORDS,
                "Result": WORDS,
                "Asked": lambda c: c["model"],
                "Answered by": lambda c: (arena.text(c["returned_model"]), c["provider"] or ""),
                "Tokens in / out": lambda c: " / ".join(map(arena.count, (c["tokens_input"], c["tokens_output"]))),
                "Cost": WORDS,
                "Took": lambda c: arena.seconds(c["latency_ms"]),
                "Sent": WORDS,
                "Error": WORDS,
            },
            rows=len(decision["calls"]),
        )
        wishes = iter(decision["instructions"])
        page.table(
            "instructions",
            lambda row, wishes=wishes: next(wishes),
            {
                "Instruction": lambda w: f"BET {w['payload']['side']}" if w["kind"] == "BET" else WORDS,
                "Market": WORDS,
                "Size": lambda w: f"${w['payload']['amount']}" if w["kind"] == "BET" else WORDS,
                "Came to": lambda w: "executed" if w["executed"] else f"rejected {w['reason']}",
            },
            rows=len(decision["instructions"]),
        )
        page.fact("Rules", shown.one(f"cohorts/{decision['cohort']}/")["methodology"])
        origins(page, shown, decision, universes.get(decision["universe"]))
        link(page, shown, "decision", decision["id"])
        closed(page, 5)


def origins(page: Page, shown: Arena, decision: dict[str, Any], universe: Any) -> None:
    """Where the prices of a decision's trades came from: the universe's entry, and what was observed till then."""
    if universe is None:
        return
    entries = {entry["market"]: entry for entry in shown.one(f"universes/{universe['id']}/")["entries"]}
    frozen, trades = instant_of(universe["frozen_at"]), iter(decision["trades"])

    def origin(row: Any) -> dict[str, Any]:
        trade = next(trades)
        seen = [
            price
            for price in shown.rows(f"prices/?market={trade['market']}")
            if price["side"] == trade["side"] and instant_of(price["observed_at"]) <= frozen
        ]
        last = max(seen, key=lambda price: (instant_of(price["observed_at"]), price["id"]))
        return last | {"paid": trade["price"], "side": trade["side"], "entry": entries[trade["market"]]}

    page.table(
        "prices",
        origin,
        {
            "Side": lambda o: (o["side"], ANY),
            "Price": lambda o: arena.price(o["paid"]),
            "Entry in the universe": lambda o: f"No. {o['entry']['position']}",
            "Midpoint": lambda o: arena.price(o["midpoint"]),
            "Gamma": lambda o: arena.price(o["gamma"]),
            "Bid / ask": lambda o: f"{arena.price(o['bid'])} / {arena.price(o['ask'])}",
            "Observed": lambda o: text_of(arena.when(instant_of(o["observed_at"]))),
            "Verdict": lambda o: o["reason"] or "–",
        },
        rows=len(decision["trades"]),
    )


def test_every_link_follows_the_one_before_it(shown: Arena) -> None:
    """From the first to the head that the front page, the rules and the proof show; those of tasks on their pages."""
    for chain in shown.rows("chain/"):
        links = shown.rows(f"chain-links/?protocol={chain['protocol']}")
        assert [one["sequence"] for one in links] == list(range(1, chain["length"] + 1))
        assert [one["previous"] for one in links] == ["0" * 64, *[one["sha256"] for one in links[:-1]]]
        assert all(one["sha256"] == sha256(f"{one['previous']}\n{one['record_sha256']}") for one in links)
        assert links[-1]["sha256"] == chain["head"]
    done = {"decision": "decisions", "elicitation": "elicitations"}
    for task, path in done.items():
        linked = {one[task] for one in shown.rows("chain-links/") if one[task]}
        assert linked == {row["id"] for row in shown.rows(f"{path}/?status=completed")}
        assert len(linked) > 50


def test_a_cohort_names_the_link_of_its_newest_decision(shown: Arena) -> None:
    for cohort in shown.rows("cohorts/"):
        own = {row["id"] for row in shown.rows(f"decisions/?cohort={cohort['number']}")}
        newest = [one for one in shown.rows("chain-links/?protocol=trading") if one["decision"] in own][-1]
        place = arena.count(newest["sequence"])
        said = f"The newest decision is link {place} of the chain, {cohort['chain_head']} ."
        assert said in text(shown.page(f"/cohorts/{cohort['number']}/").markup)
        assert newest["sha256"] == cohort["chain_head"]


def test_every_question(shown: Arena) -> None:
    for listed in shown.rows("questions/"):
        question = shown.one(f"questions/{listed['id']}/")
        page = shown.page(f"/questions/{question['id']}/")
        options = by(question["options"], "name")
        page.table(
            "options",
            lambda row, options=options: options[(row.cells["Option"].text.removesuffix(" happened"),)],
            {
                "Option": WORDS,
                "Price now": lambda o: arena.price(o["price"]),
                "Price against it": lambda o: arena.price(o["no_price"]),
                "Market": WORDS,
            },
            rows=len(options),
        )
        forecasts = by(shown.rows(f"forecasts/?question={question['id']}"), "id")
        (newest, *_) = sorted(question["asked"], key=lambda asked: asked["day"], reverse=True)
        assert {f"{on(newest)}, {arm}" for arm in ("priced", "blind")} <= set(page.tables)
        for asked in question["asked"]:
            for arm in ("priced", "blind"):
                sheet(page, f"{on(asked)}, {arm}", asked, forecasts, shown.names)
        page.fact("Days asked", arena.count(len(question["asked"])))
        page.fact("First asked", text_of(arena.day(moment(question["first_asked_at"]))))
        page.fact("Nominal end", text_of(arena.day(moment(question["closes_at"]))))
        if question["resolved_at"]:
            page.fact("Ended", text_of(arena.when(moment(question["resolved_at"]))))
        for found in question["difficulties"]:
            for name, write in (("difficulty", arena.signed_score), ("discrimination", arena.score)):
                if found[name] is not None:
                    label = f"{name.capitalize()}, {found['arm']}"
                    page.fact(label, (write(found[name]), plus_minus(found[f"{name}_se"])))
        trades = {
            (str(t["decision"]), t["side"], arena.money(t["amount"])): t
            for option in question["options"]
            if option["market"]
            for t in shown.rows(f"trades/?market={option['market']}&kind=BUY")
        }
        page.table(
            "bets",
            lambda row, trades=trades: trades[
                (*row.target(DECISION), row.cells["Side"].text, row.cells["Amount"].text)
            ],
            {**dict.fromkeys(("Family", "Cohort", "Side", "Decision"), WORDS), **columns_of_a_trade(shown)},
        )
        day_by_day(page, shown, question, list(forecasts.values()))
        page.words("Venue", "Options")
        closed(page, 20)


def day_by_day(page: Page, shown: Arena, question: dict[str, Any], forecasts: list[Any]) -> None:
    """The charts of a question: what each family said of an option on each day, in each arm, beside the market."""
    prices = {instant_of(asked["day"]): asked["prices"] for asked in question["asked"]}
    days = sorted(prices)
    names = {slug: name for name, slug in shown.names.items()}
    stated = {(f["arm"], names[f["family"]], instant_of(f["made_at"]).date()): f["probabilities"] for f in forecasts}
    section = page.markup.partition('id="over-days"')[2].partition('id="said"')[0]
    headings = [text(heading).rpartition(", ")[::2] for heading in re.findall(r"<h3>(.*?)</h3>", section, re.S)]
    arms = [arm for arm in ARMS if any(arm == said for said, *_ in stated)] if len(days) > 1 else []
    assert [words for _, words in headings] == [ARMS[arm] for arm in arms]
    labels = [name for name in page.tables if name.startswith(DAY_BY_DAY)]
    for arm, (option, _), label in zip(arms, headings, labels, strict=True):
        option = option.removesuffix(" ")
        lines = {
            name: [stated.get((arm, name, day.date()), {}).get(option) for day in days]
            for name in {name for said, name, _ in stated if said == arm}
        }
        lines["Market"] = [prices[day].get(option, {}).get("price") for day in days]
        chart(page, arm, label, days, lines, arena.share)


ARMS = {"priced": "with the market’s prices", "blind": "without prices"}
"""How the headings of a question's charts name them."""
DAY_BY_DAY = f"{DATA}What everybody said, day by day"


def on(asked: dict[str, Any]) -> str:
    """The day of a sheet, as a page writes it."""
    return text_of(arena.day(instant_of(asked["day"])))


def sheet(page: Page, label: str, asked: dict[str, Any], forecasts: dict[Any, Any], slugs: dict[str, str]) -> None:
    """What everybody said on one day in one arm, by option, beside the market; at the end what it scored."""
    that_day = [f for f in forecasts.values() if f["made_at"][:10] == asked["day"][:10]]
    stated = {f["family"]: f for f in that_day if label.endswith(f["arm"])}
    rows = page.tables.pop(label, [])
    for row in rows:
        option = row.cells["Option"].text.removesuffix(" happened")
        for name, cell in row.cells.items():
            forecast = stated.get(slugs.get(name.removesuffix(" external"), ""))
            prices = asked["prices"].get(option)
            if name == "Option" or (option == SCORED and name in ("Market", "Ask")):
                continue
            if name in ("Market", "Ask"):
                said = arena.price(prices["price" if name == "Market" else "ask"])
            elif option == SCORED:
                said = arena.score(forecast["brier"])
            else:
                said = arena.share(forecast["probabilities"][option])
            page.compared += 1
            if cell.text != text(said):
                page.faults.append(f"{page.address} {label}: {name} of {option}: {cell.text}, the API {said}")


SCORED = "Brier, mean form"
"""The last row of a sheet whose question is resolved."""
