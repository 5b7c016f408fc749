"""Every figure of markets, decisions and questions is the API's."""

from typing import Any

from scoring.templatetags import arena
from tests.figures import ANY, WORDS, Page, by, text
from tests.told import (
    DATA,
    DECISION,
    MARKET,
    Arena,
    closed,
    columns_of_a_trade,
    holdings,
    instant_of,
    moment,
    plus_minus,
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
        page.words(f"{DATA}Accepted prices over time, with every entry and exit")
        closed(page, 6)


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
        page.words("prices", "Rules", "Link", "Previous hash", "Record’s hash", "This link’s hash")
        closed(page, 5)


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
        page.words("Venue", "Options", *[name for name in page.tables if "day by day" in name])
        closed(page, 20)


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
