"""The fields of the services' JSON that every row has, of the season's markets and of those by hand."""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from venue_sandbox.http_messages import plain

Row = dict[str, Any]


def gamma_market(
    *,
    id: str,
    question: str,
    condition_id: str,
    slug: str,
    prices: Mapping[str, str],
    tokens: Iterable[str],
    volume: Decimal,
    is_open: bool,
) -> Row:
    """A market of Gamma: lists are JSON strings, and prices in them are strings."""
    return {
        "id": id,
        "question": question,
        "conditionId": condition_id,
        "slug": slug,
        "outcomes": json.dumps(list(prices), ensure_ascii=False),
        "outcomePrices": json.dumps(list(prices.values())),
        "clobTokenIds": json.dumps(list(tokens)),
        "volume": plain(volume),
        "volumeNum": int(volume) if volume == volume.to_integral_value() else volume,
        "active": True,
        "closed": not is_open,
        "acceptingOrders": is_open,
    }


def clob_market(condition_id: str, flags: Iterable[tuple[str, str, Any, bool]]) -> Row:
    """A market of the CLOB, with the token, outcome, price and winner flag of each outcome."""
    names = ("token_id", "outcome", "price", "winner")
    return {"condition_id": condition_id, "tokens": [dict(zip(names, flag, strict=True)) for flag in flags]}


def book(token: str, bids: Iterable[tuple[str, str]], asks: Iterable[tuple[str, str]]) -> Row:
    """An order book of prices and sizes, of bids and asks alike the best one last."""
    sides = {"bids": bids, "asks": asks}
    return {"asset_id": token} | {
        side: [{"price": price, "size": size} for price, size in levels] for side, levels in sides.items()
    }


def kalshi_event(ticker: str, title: str, category: str, *, exclusive: bool) -> Row:
    """An event of Kalshi without its markets."""
    return {"event_ticker": ticker, "title": title, "category": category, "mutually_exclusive": exclusive}


def kalshi_market(
    *, ticker: str, event_ticker: str, title: str, label: str, status: str, closes: str, volume: Decimal
) -> Row:
    """A market of Kalshi without a result and quotes."""
    return {
        "ticker": ticker,
        "event_ticker": event_ticker,
        "title": title,
        "yes_sub_title": label,
        "status": status,
        "result": "",
        "close_time": closes,
        "volume_fp": f"{volume:.2f}",
    }


def completion(
    *, id: str, model: str, provider: str | None, created: int, message: Row, finish: str, native_finish: str
) -> Row:
    """A completion of OpenRouter without its usage."""
    choice = {
        "logprobs": None,
        "finish_reason": finish,
        "native_finish_reason": native_finish,
        "index": 0,
        "message": {"role": "assistant", "content": None, "refusal": None} | message,
    }
    return {
        "id": id,
        "provider": provider,
        "model": model,
        "object": "chat.completion",
        "created": created,
        "choices": [choice],
        "system_fingerprint": None,
    }
