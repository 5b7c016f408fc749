"""A field of the wrong type, one at a time: which rows it costs, what of a row is still taken, what stays on record.

In the tables a value stands as it does in JSON. Each test plays every wrong value of a field at once, on a market or
a model of its own, so that it shows too that the others lose nothing by it.
"""

import json
import re
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from werkzeug import Request, Response

from agents.models import Decision, Position
from foundation.models import Run
from markets.models import Market, Outcome
from tests.answers import HOLD
from tests.commands import DECISION, SUNDAY, run
from tests.faults.entry_points import bought_all
from tests.faults.upstream import Fault, answering, faulty
from tests.sandbox import Venue, addresses
from venue_sandbox.prompt import ModelRequest

pytestmark = [
    pytest.mark.usefixtures("retries_without_waits"),
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.each_database,
]

ABSENT = "absent"
WRONG = [ABSENT, "null", "7", "true", '"x"', "[]", "{}", '""']
EVERY = " ".join(WRONG)
LATER = SUNDAY + timedelta(hours=6)


def replace_field(row: dict[str, Any], path: str, value: str) -> dict[str, Any]:
    """The row with the field at `path` set to a JSON value, or taken out."""
    head, _, tail = path.partition(".")
    if tail:
        inner = row[head]
        is_list = isinstance(inner, list)
        replaced = replace_field(inner[0] if is_list else inner, tail, value)
        return row | {head: [replaced] if is_list else replaced}
    fields = {key: field_value for key, field_value in row.items() if key != head}
    return fields if value == ABSENT else fields | {head: json.loads(value)}


# ── Gamma's rows in a sync ────────────────────────────────────────────────────────────────────────

WHOLE_ROW = {
    "description": "The rules.",
    "category": "Weather",
    "tags": [{"label": "Rain"}],
    "liquidity": "500",
    "liquidityNum": 500,
    "bestBid": 0.39,
    "bestAsk": 0.41,
    "closedTime": None,
    "enableOrderBook": True,
    "umaResolutionStatus": "proposed",
    "umaResolutionStatuses": '["proposed"]',
}
GAMMA = {
    # field: (values that cost the row, values that change what is on record); for all others it stays as it was
    "question": ('absent null 7 true [] {} ""', '"x"'),
    "outcomes": (EVERY, ""),
    "outcomePrices": (EVERY, ""),
    "closed": ('7 "x" [] {} ""', "true"),
    "clobTokenIds": ("", ""),
    "active": ("", ""),
    "acceptingOrders": ("", ""),
    "enableOrderBook": ("", ""),
    "conditionId": ("", '7 "x"'),
    "slug": ("", '"x"'),
    "description": ("", '"x"'),
    "category": ("", EVERY),  # else its tags say
    "tags": ("", ""),
    "events": ("", ""),
    "volume": ("", ""),
    "volumeNum": ("", "7"),
    "liquidity": ("", ""),
    "liquidityNum": ("", "7"),
    "endDate": ("", ""),
    "closedTime": ("", ""),
    "bestBid": ("", EVERY),  # an offer that is not stated now is not an offer
    "bestAsk": ("", EVERY),
    "umaResolutionStatus": ("", '"x"'),
    "umaResolutionStatuses": ("", ""),
    "negRisk": ("", ""),  # a field that nobody reads
}


@pytest.mark.parametrize("name", GAMMA)
def test_field_of_a_gamma_row(venue: Venue, settings: Any, name: str) -> None:
    lost_values, changed = (set(values.split()) for values in GAMMA[name])
    rows = {value: venue.market(f"Known, then {value}?", **WHOLE_ROW) for value in WRONG}
    assert run("sync_markets", SUNDAY)["created"] == len(WRONG)
    markets_by_value = {value: Market.objects.get(external_id=rows[value]["id"]) for value in WRONG}
    before = {value: on_record(market) for value, market in markets_by_value.items()}
    new = {value: venue.market(f"New, with {value}?", **WHOLE_ROW) for value in WRONG}
    page = [replace_field(row, name, value) for listed in (rows, new) for value, row in listed.items()]
    with faulty(Fault(answering(200, {"markets": page}))) as upstream:
        settings.GAMMA_BASE_URL = upstream.url
        ran = run("sync_markets", LATER)
    assert (ran.code, ran["seen"], ran["skipped"]) == (0, len(page), 2 * len(lost_values))
    assert ran["created"] == len(WRONG) - len(lost_values) - (
        name == "closed"
    )  # one that is new and closed is left alone
    log = " ".join(Run.objects.latest("pk").log_texts)
    assert {value for value, row in rows.items() if f"skipped {row['id']}: " in log} == lost_values
    assert {value for value, market in markets_by_value.items() if on_record(market) != before[value]} == changed


def on_record(market: Market) -> list[Any]:
    described = Market.objects.filter(pk=market.pk).values_list(
        *("question", "kind", "status", "accepts_orders", "oracle_status", "condition_id", "slug", "description"),
        *("category", "event_id", "event_title", "volume", "liquidity", "closes_at"),
    )
    return [*described, *Outcome.objects.filter(market=market).values_list("name", "token_id", "quote", "price", "bid")]


def test_id_that_is_none_costs_the_row_and_no_other(venue: Venue) -> None:
    for value in WRONG:
        row = venue.market(f"With the id {value}?")
        venue.rows[row["id"]] = replace_field(row, "id", value)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["skipped"]) == (0, 2, 6)
    assert set(Market.objects.values_list("external_id", flat=True)) == {"7", "x"}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e99999999999999999999", "9" * 5000, "0." + "3" * 5000])
def test_number_beyond_the_column_costs_its_own_field(venue: Venue, settings: Any, number: str) -> None:
    rows = [venue.market("Broken?", volumeNum=-1), venue.market("Whole?")]
    page = json.dumps({"markets": rows}).replace('"volumeNum": -1', f'"volumeNum": {number}')
    with faulty(Fault(answering(200, page.encode()))) as upstream:
        settings.GAMMA_BASE_URL = upstream.url
        ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["skipped"]) == (0, 2, 0)
    assert Market.objects.get(question="Broken?").volume == 999_999  # as the text beside it says


@pytest.mark.parametrize("name", ["conditionId", "slug", "category", "endDate", "umaResolutionStatus", "volume"])
def test_endless_text_is_cut_or_left_out_and_fails_no_batch(venue: Venue, name: str) -> None:
    venue.market("Endless?", **{name: "9" * 100_000})
    venue.market("Whole?")
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"]) == (0, 2)


# ── Gamma's rows in a settlement ──────────────────────────────────────────────────────────────────

FINAL = {
    # field: values in spite of which the market settles; for all others it waits, or its row is skipped
    "id": "",
    "question": '"x"',
    "outcomes": "",
    "outcomePrices": "",
    "closed": "true",
    "umaResolutionStatus": "",
    "clobTokenIds": EVERY,
    "acceptingOrders": EVERY,
    "closedTime": EVERY,
    "conditionId": EVERY,
    "events": EVERY,
}


@pytest.mark.parametrize("name", FINAL)
def test_field_of_a_final_row_settles_nothing_wrong(venue: Venue, name: str) -> None:
    bought_all(venue, *WRONG)
    for value in WRONG:
        venue.resolve(value, "Yes")
    for value, row in zip(WRONG, list(venue.rows.values()), strict=True):
        venue.rows[row["id"]] = replace_field(row, name, value)
    ran = run("check_resolutions", LATER)
    settles = set(FINAL[name].split())
    assert (ran.code, ran["resolved"], ran["positions_settled"], ran["cancelled"]) == (0, *[len(settles)] * 2, 0)
    paid = Position.objects.filter(status=Position.Status.SETTLED)
    assert set(paid.values_list("settlement__payout", flat=True)) <= {Decimal("125.00")}
    assert Position.objects.open().count() == len(WRONG) - len(settles)


# ── the CLOB's midpoints, books and winners ───────────────────────────────────────────────────────

MIDPOINTS = {
    '"0.41"': True,
    "0.41": True,
    '"0.4100000000000000000000000000000001"': True,
    **dict.fromkeys(["null", "7", "true", '"x"', "[]", "{}", '""', '{"mid": "0.41"}', '["0.41"]'], False),
    **dict.fromkeys(['"NaN"', "NaN", "Infinity", "-0.41", '"1.01"', "0", '"1"', "1e-400", '"٠.٤"'], False),
}
"""A midpoint as the CLOB may write it, and whether it is believed; where not, the last price stands, flagged."""


def test_midpoint_of_a_token(venue: Venue, settings: Any) -> None:
    bought_all(venue, *MIDPOINTS)
    tokens = [venue.tokens(value)[0] for value in MIDPOINTS]
    answer = ", ".join(f'"{token}": {value}' for token, value in zip(tokens, MIDPOINTS, strict=True))
    sides = {"bids": [{"price": "0.40", "size": "10"}], "asks": [{"price": "0.42", "size": "10"}]}
    books = [{"asset_id": token, **sides} for token in tokens]
    midpoints = answering(200, f"{{{answer}}}".encode())
    with faulty(Fault(answering(200, json.dumps(books).encode())), midpoints) as upstream:
        settings.CLOB_BASE_URL = upstream.url
        ran = run("take_snapshots", LATER)
    believed = sum(MIDPOINTS.values())
    assert (ran.code, ran["priced"], ran["fallback_prices"]) == (0, believed, len(MIDPOINTS) - believed)
    marked = Outcome.objects.filter(side="YES")
    prices = {outcome.market.question: (outcome.price, outcome.price_stale) for outcome in marked}
    assert prices == {
        value: (Decimal("0.41"), False) if usable else (Decimal("0.40"), True) for value, usable in MIDPOINTS.items()
    }


BID, ASK = '[{"price": "0.695", "size": "10"}]', '[{"price": "0.705", "size": "10"}]'
BOOKS = {
    f'"bids": {BID}, "asks": {ASK}': True,
    f'"bids": {BID}, "asks": {ASK}, "asset_id": "of another"': False,
    **{f'"bids": {BID}, "asks": {value}': False for value in WRONG[1:]},
    **{f'"bids": {value}, "asks": {ASK}': False for value in WRONG[1:]},
    **{f'"bids": [{{"price": {value}}}], "asks": {ASK}': False for value in WRONG[1:]},
    **{f'"bids": [{{"price": "0.695", "size": {size}}}], "asks": {ASK}': size == "7" for size in WRONG[1:]},
    f'"bids": {ASK}, "asks": {BID}': False,
    f'"bids": [{{"price": "0.5"}}], "asks": {ASK}': False,
}
"""The book behind a midpoint far from Gamma's price, and whether it bears the midpoint out."""


def test_book_behind_a_doubtful_midpoint(venue: Venue, settings: Any) -> None:
    bought_all(venue, *BOOKS)
    tokens = {book: venue.tokens(book)[0] for book in BOOKS}
    books = ", ".join(f'{{"asset_id": "{token}", {book}}}' for book, token in tokens.items())
    midpoints = answering(200, dict.fromkeys(tokens.values(), "0.70"))
    with faulty(Fault(answering(200, f"[null, 7, {books}]".encode())), midpoints) as upstream:
        settings.CLOB_BASE_URL = upstream.url
        assert run("take_snapshots", LATER).code == 0
    believed = Outcome.objects.filter(side="YES", price=Decimal("0.70"), price_stale=False)
    assert {outcome.market.question for outcome in believed} == {book for book, usable in BOOKS.items() if usable}
    assert not Outcome.objects.filter(side="YES", price=Decimal("0.40"), price_stale=False).exists()


YES, NO = '"token_id": "{yes}", "winner": true', '"token_id": "{no}", "winner": '
SETTLES, WAITS, FAILS = "settles", "waits", "fails"
WINNERS = {
    f"[{{{YES}}}]": SETTLES,
    f"[{{{YES}}}, {{{NO} false}}, null, 7]": SETTLES,
    f"[{{{YES}}}, {{{YES}}}]": WAITS,
    f'[{{{YES}}}, {{{NO} "true"}}]': WAITS,
    f"[{{{NO} true}}]": WAITS,
    **{f'[{{"token_id": "{{yes}}", "winner": {value}}}]': WAITS for value in WRONG[1:] if value != "true"},
    **{f'[{{"token_id": {value}, "winner": true}}]': WAITS for value in WRONG[1:]},
    **{f"[{value}]": WAITS for value in WRONG[1:]},
    "[]": WAITS,
    **{value: FAILS for value in WRONG[1:] if value != "[]"},
}
"""What the CLOB shows as a market's tokens, and what becomes of the market: closed at 1 and 0, its oracle silent."""


def test_winner_that_the_clob_flags(venue: Venue, settings: Any) -> None:
    bought_all(venue, *WINNERS)
    tokens = {}
    for flags in WINNERS:
        venue.close(flags, "1", "0")
        yes, no = venue.tokens(flags)
        tokens[venue.row(flags)["conditionId"]] = flags.replace("{yes}", yes).replace("{no}", no)

    def answer(request: Request) -> Response:
        return Response(f'{{"tokens": {tokens[request.path.rsplit("/", 1)[1]]}}}')

    venue.server.expect_request(re.compile("^/odd/markets/")).respond_with_handler(answer)
    settings.CLOB_BASE_URL = venue.server.url_for("/odd")
    ran = run("check_resolutions", LATER)
    counts = Counter(WINNERS.values())
    assert (ran.code, ran["resolved"], ran["waiting"]) == (1, counts[SETTLES], counts[WAITS])
    assert len(ran.stderr.strip().splitlines()) == counts[FAILS]
    settled = Market.objects.filter(status=Market.Status.RESOLVED, winning_outcome__side="YES")
    assert {m.question for m in settled} == {flags for flags, end in WINNERS.items() if end == SETTLES}


# ── a completion ──────────────────────────────────────────────────────────────────────────────────

COMPLETION = {
    "id": "gen-1",
    "provider": "Scripted",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": json.dumps(HOLD), "refusal": None, "reasoning": None},
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.001,
    },
}
FIELDS = {
    # field: (values with which the call fails and is tried again later, values that end in a HOLD by fallback)
    "id": ("", ""),
    "model": ('"x"', ""),
    "provider": ("", ""),
    "error": ('7 true "x"', ""),
    "choices": ('null 7 true "x" [] {} ""', ""),
    "choices.index": ("", ""),
    "choices.error": ('7 true "x"', ""),
    "choices.finish_reason": ("", ""),
    "choices.message": ('null 7 true "x" [] ""', "{}"),
    "choices.message.role": ("", ""),
    "choices.message.content": ("7 true {}", 'null "x" [] ""'),
    "choices.message.refusal": ("", ""),
    "choices.message.reasoning": ("", ""),
    "usage": ("", ""),
    "usage.prompt_tokens": ("", ""),
    "usage.completion_tokens": ("", ""),
    "usage.completion_tokens_details": ("", ""),
    "usage.cost": ("", ""),
}


@pytest.mark.parametrize("name", FIELDS)
def test_field_of_a_completion(venue: Venue, settings: Any, name: str) -> None:
    venue.market("Will it rain?")
    venue.start_first_cohort()
    values: dict[str, str] = {}

    def answer(request: Request) -> Response:
        model = ModelRequest(request.get_json(), {}).model
        if model not in values:
            values[model] = WRONG[1:][len(values)]
        return Response(json.dumps(replace_field(COMPLETION | {"model": model}, name, values[model])))

    venue.server.expect_request("/odd/chat/completions").respond_with_handler(answer)
    settings.OPENROUTER_BASE_URL = venue.server.url_for("/odd")
    ran = run("run_decisions", DECISION)
    decided = {values[decision.agent.model_id]: decision for decision in Decision.objects.all()}
    failed = {value for value, decision in decided.items() if decision.status == Decision.Status.FAILED}
    fallbacks = {value for value, decision in decided.items() if decision.fallback}
    assert (failed, fallbacks) == tuple(set(listed.split()) for listed in FIELDS[name])
    assert (ran.code, ran["failed"], ran["completed"]) == (int(bool(failed)), len(failed), 7 - len(failed))
    settings.OPENROUTER_BASE_URL = addresses(venue.server)["OPENROUTER_BASE_URL"]
    later = run("run_decisions", DECISION + timedelta(hours=1))
    assert (later.code, later["asked"], later["completed"]) == (0, len(failed), len(failed))
