"""The sandbox: formats of the real services, seed and clock, its markets and its models."""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.captured import CAPTURED
from venue_sandbox.catalogue import Market, ResolutionKind, load_season
from venue_sandbox.exchange import Exchange, MarketState, Stage
from venue_sandbox.http_messages import zulu
from venue_sandbox.personas import PERSONAS
from venue_sandbox.server import Addresses, running

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
DAY = timedelta(days=1)

GPT, GEMINI, GROK = "openai/gpt-5.2", "google/gemini-3-pro-preview", "x-ai/grok-4.1-fast"
CLAUDE, DEEPSEEK = "anthropic/claude-opus-4.5", "deepseek/deepseek-v3.2"
KIMI, QWEN = "moonshotai/kimi-k2-thinking", "qwen/qwen3-235b-a22b-2507"

Row = dict[str, Any]


class Season:
    """A client of one running sandbox."""

    def __init__(self, addresses: Addresses, exchange: Exchange):
        self.addresses, self.exchange = addresses, exchange
        self.http = httpx.Client(timeout=30)

    def turn_to(self, at: datetime | float) -> datetime:
        """Set the clock to an instant, or so many days into the season."""
        now = at if isinstance(at, datetime) else self.exchange.season.starts + at * DAY
        self.http.post(self.addresses.clock, json={"now": zulu(now)}).raise_for_status()
        return now

    def gamma(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(self.addresses.gamma + path, params=query)

    def clob(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(self.addresses.clob + path, params=query)

    def midpoints(self, *tokens: str) -> dict[str, str]:
        return self._batch("midpoints", tokens)

    def books(self, *tokens: str) -> list[Row]:
        return self._batch("books", tokens)

    def _batch(self, name: str, tokens: Sequence[str]) -> Any:
        return self.http.post(f"{self.addresses.clob}/{name}", json=[{"token_id": token} for token in tokens]).json()

    def walk(self, **query: Any) -> list[list[Row]]:
        """All pages of the open markets."""
        pages = []
        while True:
            body = self.gamma("/markets/keyset", **query).json()
            pages.append(body["markets"])
            if "next_cursor" not in body:
                return pages
            query["after_cursor"] = body["next_cursor"]

    def ask(self, model: str, user: str, *, key: str | None = None, **more: Any) -> httpx.Response:
        messages = [{"role": "system", "content": "Trade."}, {"role": "user", "content": user}]
        headers = {"Idempotency-Key": key} if key else {}
        body = {"model": model, "messages": messages, **more}
        return self.http.post(f"{self.addresses.openrouter}/chat/completions", json=body, headers=headers)

    def answer(self, model: str, user: str) -> str:
        text: str = self.ask(model, user).raise_for_status().json()["choices"][0]["message"]["content"]
        return text

    def prompt(
        self, at: datetime, *, week: int = 1, cash: str = "10000.00", positions: Sequence[list[Any]] = ()
    ) -> str:
        """A user message as the arena writes it, from the exchange's own prices."""
        markets = [
            [
                state.market.id,
                state.market.question,
                "Any",
                {side(name): float(price) for name, price in zip(state.market.outcomes, state.prices, strict=True)},
                int(state.volume),
                f"{state.market.closes:%Y-%m-%d}",
            ]
            for state in open_markets(self.exchange, at)
        ]
        portfolio = {"cash": cash, "max_bet": "2500.00", "week": week, "date": f"{at:%Y-%m-%d}"}
        columns = ["position_id", "market_id", "question", "side", "shares", "entry_price", "price", "value", "pnl"]
        blocks: dict[str, list[Any]] = {
            "PORTFOLIO": [portfolio],
            "POSITIONS": [columns, *positions],
            "MARKETS": [["market_id", "question", "category", "prices", "volume_usd", "closes"], *markets],
        }
        text = "\n\n".join(
            "\n".join([name, *(json.dumps(row, ensure_ascii=False) for row in rows)]) for name, rows in blocks.items()
        )
        return f"Here is your portfolio.\n\n{text}\n\nAnswer with one JSON object."


def side(outcome: str) -> str:
    return outcome.upper() if outcome in ("Yes", "No") else outcome


def open_markets(exchange: Exchange, at: datetime) -> list[MarketState]:
    """The markets that are listed and open at an instant."""
    listed = [market for market in exchange.season.markets if exchange.is_listed(market, at)]
    return [state for market in listed if (state := exchange.market_state(market, at)).open]


def instants(exchange: Exchange, market: Market, count: int = 12) -> list[datetime]:
    """Moments spread over the market's open life."""
    return [market.lists + (market.closes - market.lists) * i / count for i in range(count)]


@pytest.fixture(scope="module")
def exchange() -> Exchange:
    return Exchange(load_season(), seed=0)


@pytest.fixture(scope="module")
def season(exchange: Exchange) -> Iterator[Season]:
    with running(seed=0) as addresses:
        client = Season(addresses, exchange)
        with client.http:
            yield client


# Gamma


def test_gamma_lists_are_json_strings_of_text_prices(season: Season) -> None:
    season.turn_to(3)
    for row in season.walk()[0]:
        outcomes, prices, tokens = (json.loads(row[key]) for key in ("outcomes", "outcomePrices", "clobTokenIds"))
        assert len(outcomes) == len(prices) == len(tokens) >= 2
        assert all(isinstance(price, str) and 0 < Decimal(price) < 1 for price in prices)
        assert all(token.isdigit() and len(token) > 60 for token in tokens)
        assert re.fullmatch("0x[0-9a-f]{64}", row["conditionId"])
        assert row["id"].isdigit()
        assert isinstance(row["volume"], str)
        assert Decimal(row["volume"]) == Decimal(str(row["volumeNum"]))


@pytest.mark.captured
@pytest.mark.parametrize(
    ("capture", "closed"),
    [
        ("gamma/markets__funkekaiser__gamma_binary_market.json", False),
        ("gamma/markets__nautechsystems__gamma_market_closed_binary_accepting_false.json", True),
    ],
)
def test_a_row_has_the_fields_and_types_of_a_captured_one(season: Season, capture: str, closed: bool) -> None:
    real = json.loads((CAPTURED / "polymarket" / capture).read_text())
    real = real[0] if isinstance(real, list) else real
    season.turn_to(20)
    ours = season.gamma("/markets/keyset", closed=str(closed).lower(), limit=1).json()["markets"][0]
    number = (int, float)
    for name in real.keys() & ours.keys():
        kind = number if type(real[name]) in number else type(real[name])
        assert isinstance(ours[name], kind), name
    assert len(real.keys() & ours.keys()) > 40


@pytest.mark.captured
def test_clob_answers_have_the_fields_and_types_of_captured_ones(season: Season, exchange: Exchange) -> None:
    season.turn_to(3)
    market = exchange.season.markets[0]
    for capture, ours in [
        ("book__nautilus.json", season.books(market.tokens[0])[0]),
        ("clob_market__closed_accepting_false.json", season.clob(f"/markets/{market.condition_id}").json()),
    ]:
        real = json.loads((CAPTURED / "polymarket" / "clob" / capture).read_text())
        shared = real.keys() & ours.keys()
        assert shared
        for name in shared - {"minimum_tick_size"}:
            assert type(ours[name]) is type(real[name]), (capture, name)


def test_keyset_pages_hold_every_open_market_once(season: Season, exchange: Exchange) -> None:
    now = season.turn_to(10)
    pages = season.walk(limit=500, order="volumeNum", ascending="false")
    rows = [row for page in pages for row in page]
    listed_at = now - timedelta(minutes=5)
    assert [len(page) for page in pages[:-1]] == [100] * (len(pages) - 1)
    assert len(pages) > 1
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["id"] for row in rows} == {state.market.id for state in open_markets(exchange, listed_at)}
    assert all(a["volumeNum"] > b["volumeNum"] for a, b in pairwise(rows))


def test_a_cursor_under_another_name_is_ignored(season: Season) -> None:
    season.turn_to(10)
    first = season.gamma("/markets/keyset", limit=5).json()
    repeated = season.gamma("/markets/keyset", limit=5, cursor=first["next_cursor"]).json()
    assert repeated == first


def test_closed_markets_show_only_when_asked_for(season: Season, exchange: Exchange) -> None:
    market = next(m for m in exchange.season.markets if m.resolution is ResolutionKind.PLAIN)
    season.turn_to(market.closes + DAY)
    assert season.gamma("/markets/keyset", id=market.id).json() == {"markets": []}
    (row,) = season.gamma("/markets/keyset", id=market.id, closed="true").json()["markets"]
    alone = season.gamma(f"/markets/{market.id}").json()
    assert row["id"] == alone["id"] == market.id
    assert alone["closed"] is True
    assert alone["active"] is True
    assert "bestBid" not in alone
    assert re.fullmatch(r"2026-\d\d-\d\d \d\d:\d\d:\d\d\+00", alone["closedTime"])


@pytest.mark.parametrize(
    ("path", "query", "error"),
    [
        ("/markets/keyset", {"offset": "0"}, "offset is not allowed on keyset endpoints"),
        ("/markets/keyset", {"order": "volume_num"}, "order fields are not valid"),
        ("/markets/keyset", {"after_cursor": "???"}, "after_cursor is invalid"),
        ("/markets/keyset", {"limit": "many"}, "limit is invalid"),
        ("/markets/keyset", {"closed": "perhaps"}, "closed is invalid"),
        ("/markets/0xabc", {}, "id is invalid"),
    ],
)
def test_gamma_refuses_invalid_requests(season: Season, path: str, query: Row, error: str) -> None:
    reply = season.gamma(path, **query)
    assert (reply.status_code, reply.json()) == (422, {"type": "validation error", "error": error})


def test_market_includes_its_event_and_tags(season: Season) -> None:
    season.turn_to(12)
    rows = [row for page in season.walk(limit=500, include_tag="true") for row in page]
    group = [row for row in rows if row["events"][0]["title"] == "Harbour Cup winner 2026"]
    (event,) = {json.dumps(row["events"]) for row in group}
    assert json.loads(event)[0]["negRisk"]
    assert {tag["label"] for row in group for tag in row["tags"]} == {"Sports"}
    assert len(group) == 8
    assert 0.98 < sum(float(json.loads(row["outcomePrices"])[0]) for row in group) < 1.25
    assert json.loads(event)[0]["volume"] == pytest.approx(sum(row["volumeNum"] for row in group))


# The CLOB


def test_midpoints_leave_out_tokens_without_a_book(season: Season, exchange: Exchange) -> None:
    season.turn_to(10)
    shut = next(m for m in exchange.season.markets if m.closes < exchange.season.starts + 9 * DAY)
    open_ = next(m for m in exchange.season.markets if m.closes > exchange.season.starts + 11 * DAY)
    mids = season.midpoints(*shut.tokens, *open_.tokens, "12345")
    assert mids.keys() == set(open_.tokens)
    assert sum(map(Decimal, mids.values())) == 1
    assert season.books(*shut.tokens, "12345") == []


def test_best_levels_of_a_book_are_last_and_enclose_the_midpoint(season: Season, exchange: Exchange) -> None:
    season.turn_to(2)
    tokens = [token for market in exchange.season.markets[:40] for token in market.tokens]
    mids = season.midpoints(*tokens)
    for book in season.books(*tokens):
        bids, asks = ([Decimal(level["price"]) for level in book[side]] for side in ("bids", "asks"))
        assert bids == sorted(bids)
        assert asks == sorted(asks, reverse=True)
        assert (bids[-1] + asks[-1]) / 2 == Decimal(mids[book["asset_id"]])


def test_market_that_is_told_to_resolve_is_resolved(exchange: Exchange) -> None:
    with running(seed=0) as addresses:
        season = Season(addresses, exchange)
        at = season.turn_to(3)
        plain = (m for m in exchange.season.markets if m.resolution is ResolutionKind.PLAIN and m.version == "v1")
        market = next(m for m in plain if exchange.is_listed(m, at) and exchange.market_state(m, at).open)
        told = {"market": market.id, "winner": 1}
        twice = [season.http.post(f"{addresses.root}/sandbox/resolutions", json=told).status_code for _ in range(2)]
        season.turn_to(at + timedelta(minutes=5))
        row, flags = season.gamma(f"/markets/{market.id}").json(), season.clob(f"/markets/{market.condition_id}").json()
    assert twice == [200, 422]
    assert (row["closed"], json.loads(row["outcomePrices"])) == (True, ["0", "1"])
    assert row["closedTime"] == f"{at:%Y-%m-%d %H:%M:%S}+00"
    assert [token["winner"] for token in flags["tokens"]] == [False, True]


def test_gamma_shows_the_prices_of_five_minutes_ago(season: Season, exchange: Exchange) -> None:
    token_of = {m.id: m.tokens[0] for m in exchange.season.markets}
    moment = exchange.season.starts + 8 * DAY
    season.turn_to(moment)
    mids = season.midpoints(*token_of.values())
    season.turn_to(moment + timedelta(minutes=5))
    for row in (row for page in season.walk(limit=100) for row in page):
        if exchange.by_id[row["id"]].one_sided is None:
            first = json.loads(row["outcomePrices"])[0]
            assert first == mids[token_of[row["id"]]]
            assert Decimal(str(row["bestBid"])) < Decimal(first) < Decimal(str(row["bestAsk"]))


def test_winner_flags_are_set_after_the_oracle_resolves(season: Season, exchange: Exchange) -> None:
    market = exchange.season.markets[0]
    season.turn_to(market.closes + timedelta(minutes=1))
    early = season.clob(f"/markets/{market.condition_id}").json()
    season.turn_to(market.closes + DAY)
    late = season.clob(f"/markets/{market.condition_id}").json()
    assert early["closed"]
    assert not any(token["winner"] for token in early["tokens"])
    assert [token["winner"] for token in late["tokens"]] == [i == exchange.winner(market) for i in (0, 1)]
    assert sorted(token["price"] for token in late["tokens"]) == [0, 1]
    assert season.clob("/markets/0x00").status_code == 404


# Prices and resolutions


def test_open_prices_stay_in_range_on_their_tick_and_volume_grows(exchange: Exchange) -> None:
    for market in exchange.season.markets:
        states = [exchange.market_state(market, at) for at in instants(exchange, market)]
        for state in states:
            assert all(Decimal("0.003") <= price <= Decimal("0.997") for price in state.prices)
            assert all(price % Decimal("0.001") == 0 for price in state.prices)
            assert abs(sum(state.prices, Decimal(-1))) < Decimal("0.03")
        assert all(a.volume < b.volume for a, b in pairwise(states))


def test_every_plain_market_resolves_to_its_outcome(exchange: Exchange) -> None:
    for market in exchange.season.markets:
        if market.resolution is ResolutionKind.PLAIN and market.version == "v1":
            state = exchange.market_state(market, market.closes + DAY)
            assert (state.stage, state.oracle[-1]) == (Stage.RESOLVED, "resolved")
            assert state.prices == tuple(Decimal(i == exchange.winner(market)) for i in range(len(state.prices)))


def test_exactly_one_market_of_an_exclusive_group_resolves_yes(exchange: Exchange) -> None:
    for event in exchange.season.events:
        if event.exclusive:
            assert [exchange.winner(market) for market in event.markets].count(0) == 1


def test_true_chances_are_calibrated_and_prices_shade_them_toward_the_middle() -> None:
    expected = happened = 0.0
    for seed in range(3):
        exchange = Exchange(load_season(), seed)
        for market in exchange.season.markets:
            middle = market.lists + (market.closes - market.lists) / 2
            favourite = max(exchange.truth(market, middle))
            expected += favourite
            happened += exchange.truth(market, middle).index(favourite) == exchange.winner(market)
            if len(market.outcomes) == 2 and 0.6 < favourite < 0.95:
                assert max(exchange.quotes(market, middle)) < Decimal(str(favourite + 0.006))
    assert expected == pytest.approx(happened, rel=0.05)


def test_season_always_has_many_distinct_markets(exchange: Exchange) -> None:
    starts, markets = exchange.season.starts, exchange.season.markets
    assert len(markets) >= 220
    assert len({exchange.market_state(m, m.closes).volume for m in markets}) == len(markets)
    assert sum(m.closes < starts + 35 * DAY for m in markets) > 120
    for week in range(1, 6):
        assert any(starts + (week - 1) * 7 * DAY < m.lists < starts + week * 7 * DAY for m in markets)
    assert any(m.outcomes == ("No", "Yes") for m in markets)
    assert any(len(m.outcomes) > 3 for m in markets)
    assert any(not m.question.isascii() for m in markets)


@pytest.mark.parametrize(
    ("resolution", "statuses", "prices", "winners"),
    [
        (ResolutionKind.DISPUTED, {8: "disputed", 72: "disputed"}, ["0.0005", "0.9995"], 0),
        (ResolutionKind.DISPUTED, {24 * 6: "resolved"}, ["0", "1"], 1),
        (ResolutionKind.EVEN, {24: "resolved"}, ["0.5", "0.5"], 0),
        (ResolutionKind.SILENT, {24: None}, ["0", "1"], 1),
        (ResolutionKind.RESIDUE, {2: None, 73: None, 24 * 30: None}, None, 0),
    ],
)
def test_oracle_status_prices_and_winner_follow_the_kind_of_resolution(
    season: Season,
    exchange: Exchange,
    resolution: ResolutionKind,
    statuses: dict[int, str | None],
    prices: list[str] | None,
    winners: int,
) -> None:
    market = next(market for market in exchange.season.markets if market.resolution is resolution)
    for hours, status in statuses.items():
        season.turn_to(market.closes + timedelta(hours=hours))
        row = season.gamma(f"/markets/{market.id}").json()
        assert (row["closed"], row.get("umaResolutionStatus")) == (True, status)
        listed = sorted(json.loads(row["outcomePrices"]))
        assert listed == prices if prices else all(0 < Decimal(price) < 1 for price in listed)
        tokens = season.clob(f"/markets/{market.condition_id}").json()["tokens"]
        assert [token["winner"] for token in tokens].count(True) == winners


def test_two_markets_are_delisted_and_one_returns(season: Season, exchange: Exchange) -> None:
    absent = [market for market in exchange.season.markets if market.absent]
    returning = [market for market in absent if market.absent and market.absent[1] < market.closes]
    assert (len(absent), len(returning)) == (3, 1)
    for market in absent:
        assert market.absent
        season.turn_to(market.absent[0] + timedelta(hours=1))
        assert season.gamma(f"/markets/{market.id}").status_code == 404
        assert season.gamma("/markets/keyset", id=market.id).json()["markets"] == []
        assert season.midpoints(*market.tokens) == {}
    (market,) = returning
    assert market.absent
    season.turn_to(market.absent[1] + timedelta(hours=1))
    assert season.gamma(f"/markets/{market.id}").json()["id"] == market.id
    assert season.midpoints(*market.tokens).keys() == set(market.tokens)


def test_one_sided_book_moves_the_midpoint_but_not_gammas_price(season: Season, exchange: Exchange) -> None:
    market = next(m for m in exchange.season.markets if m.one_sided)
    assert market.one_sided
    now = season.turn_to(market.one_sided[0] + timedelta(hours=3))
    (book,) = season.books(market.tokens[0])
    assert book["bids"] == []
    assert book["asks"][-1]["price"] == "0.02"
    assert season.midpoints(*market.tokens) == {market.tokens[0]: "0.01", market.tokens[1]: "0.99"}
    quote = exchange.quotes(market, now - timedelta(minutes=5))[0]
    assert json.loads(season.gamma(f"/markets/{market.id}").json()["outcomePrices"])[0] == str(quote.normalize())
    season.turn_to(market.one_sided[1])
    assert season.books(market.tokens[0])[0]["bids"]


# Seed and clock


def test_seed_determines_the_answers(season: Season) -> None:
    def responses(client: Season) -> list[str]:
        now = client.turn_to(9)
        return [client.gamma("/markets/keyset", limit=100).text, client.ask(CLAUDE, client.prompt(now)).text]

    def responses_to_seed(seed: int) -> list[str]:
        with running(seed=seed) as addresses:
            client = Season(addresses, Exchange(load_season(), seed))
            with client.http:
                return responses(client)

    first, second, third = responses(season), responses_to_seed(0), responses_to_seed(8)
    assert first == second
    assert first[0] != third[0]
    assert first[1] != third[1]
    tokens = [[row["clobTokenIds"] for row in json.loads(lists)["markets"]] for lists, _ in (first, third)]
    assert set(tokens[0]) & set(tokens[1])  # the catalogue itself does not depend on the seed


def test_clock_stays_at_the_set_instant(season: Season) -> None:
    clock = season.addresses.clock
    reply = season.http.post(clock, json={"now": "2026-03-08T02:05:00+02:00"})
    assert reply.json() == season.http.get(clock).json() == {"now": "2026-03-08T00:05:00Z"}
    bads: tuple[Any, ...] = ({"now": "2026-03-08T00:05:00"}, {"now": "soon"}, {}, [])
    for bad in bads:
        refused = season.http.post(clock, json=bad)
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("now:")
    assert season.http.get(clock).json() == {"now": "2026-03-08T00:05:00Z"}


def test_connection_stays_open_after_refusals(season: Season) -> None:
    replies = [season.gamma("/markets/0x1"), season.clob("/nowhere"), season.gamma("/markets/keyset", limit=1)]
    callers = {reply.extensions["network_stream"].get_extra_info("client_addr") for reply in replies}
    assert [reply.status_code for reply in replies] == [422, 404, 200]
    assert len(callers) == 1
    assert all("content-length" in reply.headers for reply in replies)


def test_server_prints_its_addresses_and_stops_on_sigterm() -> None:
    code = "from venue_sandbox.server import serve; serve(seed=3)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        addresses = json.loads(process.stdout.readline())
        with httpx.Client() as http:
            now = http.get(f"{addresses['root']}/sandbox/clock").json()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5) == 0
    assert now == {"now": "2026-03-01T00:00:00Z"}
    assert addresses["openrouter"] == f"{addresses['root']}/openrouter/api/v1"


def test_every_market_of_the_fixture_has_its_own_question_and_closes_after_it_lists(exchange: Exchange) -> None:
    markets = exchange.season.markets
    for names in ([market.question for market in markets], [market.slug for market in markets]):
        assert [name for name, times in Counter(names).items() if times > 1] == []
    assert [market.question for market in markets if market.lists >= market.closes] == []


# The models


@cache
def answers(season: Season, model: str) -> list[str]:
    """A model's answers at noon of each of three weeks, when none is down."""
    texts = []
    for week in (1, 2, 3):
        now = season.turn_to(7 * week + 0.5)
        texts += [season.answer(model, season.prompt(now, week=k)) for k in range(1, week + 1)]
    return texts


def parsed(text: str) -> Row:
    """The one JSON object in an answer."""
    answer: Row = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return answer


@pytest.mark.parametrize("model", [GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI])
def test_bets_are_legal_in_their_order(season: Season, exchange: Exchange, model: str) -> None:
    staked = 0
    for text in answers(season, model):
        answer = parsed(text)
        assert answer["action"] in ("BET", "HOLD")
        assert ("bets" in answer) == (answer["action"] == "BET")
        cash = Decimal(10_000)
        for bet in answer.get("bets", ()):
            amount = Decimal(str(bet["amount"]).lstrip("$"))
            market = exchange.by_id[bet["market_id"]]
            assert bet["side"].casefold() in {outcome.casefold() for outcome in market.outcomes}
            assert 50 <= amount <= cash / 4
            cash -= amount
            staked += 1
    assert staked


def test_each_persona_answers_in_its_own_style(season: Season) -> None:
    by_model = {model: answers(season, model) for model in PERSONAS}
    for model in (GPT, GEMINI, GROK, CLAUDE):
        assert all(json.loads(text)["reasoning"] for text in by_model[model])
    fenced = [text for text in by_model[DEEPSEEK] if "```json" in text and not text.startswith("```")]
    assert fenced == by_model[DEEPSEEK]
    assert any(re.search(r'"amount": "\$\d+"', text) for text in fenced)
    assert any('"side": "yes"' in text or '"side": "no"' in text for text in fenced)
    assert all("<think>" in text for text in by_model[KIMI])
    holds = [parsed(text)["action"] for text in by_model[KIMI]]
    assert holds.count("HOLD") >= len(holds) / 2


def test_qwen_makes_each_of_its_faults_and_some_valid_answers(season: Season) -> None:
    kinds: Counter[str] = Counter()
    now = season.turn_to(7.5)
    for week in range(60):
        reply = season.ask(QWEN, season.prompt(now, week=week)).json()["choices"][0]
        text = reply["message"]["content"]
        objects = len(re.findall(r'"action"', text))
        if reply["finish_reason"] == "length":
            with pytest.raises(ValueError):
                json.loads(text)
            kinds["truncated"] += 1
        elif objects == 2:
            kinds["doubled" if "Or rather" in text else "duplicated"] += 1
        else:
            amounts = [bet["amount"] for bet in json.loads(text).get("bets", [])]
            kinds["overdone" if max(amounts, default=0) > 2500 else "good"] += 1
    assert kinds.keys() == {"truncated", "doubled", "duplicated", "overdone", "good"}


def test_only_a_changed_prompt_changes_the_answer(season: Season) -> None:
    prompt = season.prompt(season.turn_to(7.5))
    first, second = season.answer(QWEN, prompt), season.answer(QWEN, prompt)
    retries = {season.answer(QWEN, f"{prompt}\n\nYour answer was malformed ({i}).") for i in range(4)}
    assert first == second
    assert len(retries | {first}) == 5


def test_qwen_is_down_in_the_first_hours_of_weeks_two_and_four(season: Season) -> None:
    prompt = season.prompt(season.exchange.season.starts + 7 * DAY)
    for day, status in ((0, 200), (7, 503), (7.12, 503), (7.125, 200), (14, 200), (21, 503), (21.2, 200)):
        season.turn_to(day)
        reply = season.ask(QWEN, prompt)
        assert reply.status_code == status
        assert status == 200 or reply.json()["error"]["code"] == status
    season.turn_to(7)
    assert season.ask(GPT, prompt).status_code == 200


def test_sales_name_only_sellable_positions(season: Season, exchange: Exchange) -> None:
    now = season.turn_to(14.5)
    open_ = [state.market for state in open_markets(exchange, now) if state.market.outcomes == ("Yes", "No")]
    rows = [[str(i), m.id, m.question, "YES", "500", "0.10", "0.45", "225", "175"] for i, m in enumerate(open_[:3])]
    rows.insert(0, ["99", "1", "Closed long ago?", "YES", "500", "0.10", "0.99", "495", "445"])
    sold, sellers = set(), set()
    for week in range(1, 9):
        for model in (GPT, GROK):
            answer = json.loads(season.answer(model, season.prompt(now, week=week, positions=rows)))
            if answer["action"] == "SELL":
                assert "bets" not in answer
                sellers.add(model)
                sold |= {sale["position_id"] for sale in answer["sells"]}
                assert all(1 <= sale["percentage"] <= 100 for sale in answer["sells"])
    assert sold == {"0", "1", "2"}
    assert sellers == {GPT, GROK}


def test_every_persona_holds_without_cash_for_a_legal_bet(season: Season) -> None:
    now = season.turn_to(7.5)
    for model in (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI):
        assert parsed(season.answer(model, season.prompt(now, cash="199.99")))["action"] == "HOLD"


def test_careful_forecaster_beats_the_market(season: Season, exchange: Exchange) -> None:
    def edge(model: str) -> float:
        """How much more the bought shares paid than they cost, on average."""
        worth = []
        for day in (7.5, 14.5, 21.5, 28.5):
            now = season.turn_to(day)
            for week in range(4):
                for bet in parsed(season.answer(model, season.prompt(now, week=week))).get("bets", ()):
                    market = exchange.by_id[bet["market_id"]]
                    i = [side(outcome) for outcome in market.outcomes].index(bet["side"])
                    worth.append((i == exchange.winner(market)) - float(exchange.quotes(market, now)[i]))
        return sum(worth) / len(worth)

    assert edge(CLAUDE) > 0.1 > edge(GROK)


def test_completion_has_the_gateways_fields(season: Season) -> None:
    prompt = season.prompt(season.turn_to(7.5))
    body = season.ask(GPT, prompt).json()
    usage, content = body["usage"], body["choices"][0]["message"]["content"]
    assert body["model"] == "openai/gpt-5.2-20251211"
    assert body["provider"] == "OpenAI"
    assert body["id"].startswith("gen-")
    assert body["choices"][0]["finish_reason"] == "stop"
    assert usage["completion_tokens"] == -(-len(content) // 4)
    assert usage["prompt_tokens"] == pytest.approx(len(prompt) / 4, abs=4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    spent = usage["prompt_tokens"] * Decimal("0.00000175") + usage["completion_tokens"] * Decimal("0.000014")
    assert usage["cost"] == pytest.approx(float(spent))
    cut = season.ask(GPT, prompt, max_tokens=10).json()["choices"][0]
    assert cut["finish_reason"] == "length"
    assert cut["message"]["content"] == content[:40]


def test_idempotency_key_repeats_answers_but_not_failures(season: Season) -> None:
    prompt = season.prompt(season.turn_to(21))
    assert season.ask(QWEN, prompt, key="attempt-1").status_code == 503
    season.turn_to(21.5)
    reply = season.ask(QWEN, prompt, key="attempt-1")
    season.turn_to(21.6)
    assert reply.status_code == 200
    assert season.ask(QWEN, prompt, key="attempt-1").content == reply.content
    assert season.ask(QWEN, prompt, key="attempt-2").json()["id"] != reply.json()["id"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, 400, "No models provided"),
        ({"model": GPT}, 400, "Input required"),
        ({"model": GPT, "messages": ["hi"]}, 400, "messages: "),
        ({"model": GPT, "messages": [{"role": "user", "content": "hi"}], "max_tokens": "many"}, 400, "max_tokens: "),
        ({"model": GPT, "messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "web"}]}, 400, "tools: "),
        (
            {
                "model": GPT,
                "messages": [{"role": "user", "content": "hi"}],
                "tools": [{"type": "openrouter:web_search", "parameters": {"engine": "auto"}}],
            },
            400,
            "engine: ",
        ),
        (
            {
                "model": GPT,
                "messages": [{"role": "user", "content": "hi"}],
                "max_tool_calls": 0,
                "tools": [{"type": "openrouter:web_search"}],
            },
            400,
            "max_uses, ",
        ),
        ({"model": "acme/none", "messages": [{"role": "user", "content": "hi"}]}, 404, "No endpoints found for acme"),
    ],
)
def test_gateway_refuses_invalid_requests(season: Season, body: Row, status: int, message: str) -> None:
    reply = season.http.post(f"{season.addresses.openrouter}/chat/completions", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, status)
    assert error["message"].startswith(message)


def test_gateway_lists_seven_models_with_text_prices(season: Season) -> None:
    listed = season.http.get(f"{season.addresses.openrouter}/models").json()["data"]
    assert [model["id"] for model in listed] == [GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN]
    assert listed[0]["pricing"] == {"prompt": "0.00000175", "completion": "0.000014"}
