"""Questions and markets as they were shown, the outcomes of questions, and the prices recorded."""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby
from typing import Any

from agents.records import sha256
from foundation.json_lines import json_line
from markets.models.market import NO, YES
from markets.pricing import GAMMA, MIDPOINT, TRADE
from markets.prompt_conditions import BLIND
from markets.services.questions import QUESTION_COLUMNS
from scoring.exports.encoding import parse_decimal
from scoring.exports.verification.archive_reader import Archive, Row, mismatches

PRICED_BY = {MIDPOINT: "midpoint", GAMMA: "gamma", TRADE: "gamma"}
"""The column that an accepted price of each source is taken from."""


def check_shown_texts(archive: Archive) -> Iterator[str]:
    """The QUESTIONS block of each batch follows from its questions, the MARKETS block names its universe's prices."""
    wanted = {(row["kind"], row["id"]): row["sha256"] for row in archive.rows("blocks")}
    questions = archive.by_id("questions")
    options = archive.grouped("question_options", "question")
    entries: dict[tuple[int, int], list[Row]] = {}
    for entry in archive.rows("question_entries"):
        entries.setdefault((entry["question_set"], entry["batch"]), []).append(entry)
    for pk, batch in archive.question_batches.items():
        lines = [json_line(QUESTION_COLUMNS)]
        for entry in sorted(entries[batch["question_set"], batch["number"]], key=lambda entry: entry["position"]):
            lines.append(_question_line(questions[entry["question"]], options[entry["question"]], entry, batch["arm"]))
        if sha256("\n".join(lines)) != wanted.pop(("questions", pk), None):
            yield f"blocks: that of question batch {pk} is not what its questions make"
    bettable = archive.grouped("universe_entries", "universe")
    universes = {digest: pk for (kind, pk), digest in wanted.items() if kind == "markets"}
    for row in archive.rows("prompts"):
        if row["kind"] == "markets" and (pk := universes.get(row["sha256"])) is not None:
            yield from _check_market_block(pk, row["text"], bettable[pk])


def _question_line(question: Row, options: list[Row], entry: Row, arm: str) -> str:
    names = [option["name"] for option in sorted(options, key=lambda option: option["index"])]
    quoted = {name: entry["prices"][name]["price"] for name in names}
    prices = {name: price if price is None else parse_decimal(price) for name, price in quoted.items()}
    closes = entry["closes_on"] or None
    stated: list[Any] = [str(question["id"]), question["text"], question["rules"], question["exclusive"], names]
    return json_line([*stated, None if arm == BLIND else prices, closes])


def _check_market_block(universe: int, block: str, entries: list[Row]) -> Iterator[str]:
    shown = [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in block.split("\n")[1:]]
    listed = sorted((entry for entry in entries if entry["bettable"]), key=lambda entry: entry["position"])
    if [market for market, *_ in shown] != [str(entry["market"]) for entry in listed]:
        yield f"universe_entries: those of universe {universe} are not the markets that were shown"
        return
    for (_, _, _, prices, *_), entry in zip(shown, listed, strict=True):
        if prices != {side: Decimal(price) for side, price in entry["prices"].items()}:
            yield f"universe_entries: market {entry['market']} of universe {universe} was shown at other prices"


def check_outcomes(archive: Archive) -> Iterator[str]:
    """The outcome of each resolved question is that of its markets; no other question has one."""
    options = archive.grouped("question_options", "question")
    for question in archive.rows("questions"):
        own = options.pop(question["id"], [])
        stated = {option["index"]: option["happened"] for option in own}
        if sorted(stated) != [*range(len(own))]:
            yield f"question_options: those of question {question['id']} are not numbered from 0"
        computed = _happened(archive, question, own) if question["status"] == "resolved" else dict.fromkeys(stated)
        if stated != computed:
            yield f"question_options: the outcome of question {question['id']} is not that of its markets"
        if (question["resolved_at"] is not None) != (question["status"] in ("resolved", "cancelled")):
            yield f"questions: question {question['id']} is {question['status']}, resolved at {question['resolved_at']}"
    for market in archive.markets.values():
        resolved, final = market["status"] == "resolved", market["status"] in ("resolved", "cancelled")
        if (market["winning_outcome"] is not None) != resolved or (market["resolved_at"] is not None) != final:
            yield f"markets: market {market['id']} is {market['status']}, resolved at {market['resolved_at']}"
    for pk in options:
        yield f"question_options: of question {pk}, which is not in the archive"


def _happened(archive: Archive, question: Row, options: list[Row]) -> dict[int, bool | None] | None:
    markets = {o["index"]: archive.markets[archive.outcomes[o["outcome"]]["market"]] for o in options if o["outcome"]}
    won: dict[int, bool | None] = {
        o["index"]: o["index"] in markets and markets[o["index"]]["winning_outcome"] == o["outcome"] for o in options
    }
    statuses = [market["status"] for market in markets.values()]
    if not question["exclusive"]:
        decided = set(statuses) <= {"resolved", "cancelled"} and "resolved" in statuses
        void = [index for index, market in markets.items() if market["status"] == "cancelled"]
        return won | dict.fromkeys(void) if decided else None
    if sum(map(bool, won.values())) == 1:
        return won
    all_resolved = all(status == "resolved" for status in statuses)
    rest: dict[int, bool | None] = {option["index"]: option["outcome"] is None for option in options}
    return rest if all_resolved and not any(won.values()) and any(rest.values()) else None


def check_prices(archive: Archive) -> Iterator[str]:
    """Accepted prices are those of their source, NO's numbers one less YES's, and an outcome's price is its last."""
    last: dict[int, Row] = {}
    kinds = {pk: market["kind"] for pk, market in archive.markets.items()}
    for (market, at), observed in groupby(archive.rows("prices"), key=lambda row: (row["market"], row["observed_at"])):
        rows = list(observed)
        for row in rows:
            name = f"prices: of outcome {row['outcome']} at {at}"
            outcome = archive.outcomes.get(row["outcome"])
            if outcome is None:
                if archive.is_whole:
                    yield f"{name}: there is no such outcome"
                continue
            yield from mismatches(name, row, {column: outcome[column] for column in ("market", "side")})
            if row["source"] in PRICED_BY and row["price"] != row[PRICED_BY[row["source"]]]:
                yield f"{name}: the price {row['price']} is not its {PRICED_BY[row['source']]}"
            last[row["outcome"]] = row
        sides = {row["side"]: row for row in rows}
        if kinds.get(market) == "binary" and sides.keys() == {YES, NO} and len(rows) == 2:
            yield from _check_sides(sides[YES], sides[NO])
    if archive.is_whole:
        unpriced = {"price": None, "source": "", "stale": False}
        for pk, outcome in archive.outcomes.items():
            row = last.get(pk, unpriced)
            computed = {"price": row["price"], "price_source": row["source"], "price_stale": row["stale"]}
            yield from mismatches(f"outcomes: outcome {pk}", outcome, computed)


def _check_sides(yes: Row, no: Row) -> Iterator[str]:
    pairs = (("midpoint", "midpoint"), ("gamma", "gamma"), ("bid", "ask"), ("ask", "bid"))
    computed = {name: None if yes[other] is None else 1 - yes[other] for name, other in pairs}
    yield from mismatches(f"prices: of outcome {no['outcome']} at {no['observed_at']}", no, computed)
