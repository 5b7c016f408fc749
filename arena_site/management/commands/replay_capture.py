"""Feeds recorded answers of the services through the parsers, to find a format that has changed."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from agents.gateway.catalogue import parse_catalogue
from agents.gateway.completions import CompletionParser, GatewayFailure
from foundation.commands import ArenaCommand, CommandResult, table_text
from foundation.http import Exchange, parse_json
from markets.sources import kalshi
from markets.sources.base import SkippedMarket
from markets.sources.polymarket import clob

UNKNOWN = "no parser knows this file"
READ = ""
"""Stands for a row that is read, among the reasons why others are skipped."""
WRAPPERS = ("body", "response", "answer", "payload")
"""The keys of a record of an exchange that may hold the service's own answer."""
Reasons = Iterable[str]
"""For each row of an answer the reason why it is skipped, or READ."""


class Command(ArenaCommand):
    help = "Reads recorded answers (polymarket/gamma, polymarket/clob, kalshi, openrouter below DIR); asks no service."
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("directory", type=Path)

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        directory: Path = options["directory"].resolve()
        if not directory.is_dir():
            self.refuse(f"{options['directory']} is no directory")
        items: list[dict[str, Any]] = []
        for path in sorted(filter(Path.is_file, directory.rglob("*"))):
            reasons = Counter(replay(path))
            read = reasons.pop(READ, 0)
            name = str(path.relative_to(directory))
            items.append({"file": name, "read": read, "skipped": reasons.total(), "reasons": reasons})
        totals = Counter({"files": len(items), "read": 0, "skipped": 0})
        for item in items:
            totals.update(read=item["read"], skipped=item["skipped"])
        summary = dict(totals)
        if options["json"]:
            return CommandResult(summary | {"items": [item for item in items if item["skipped"]]})
        self.stdout.write(_table(items))
        return CommandResult(summary)


def _table(items: Iterable[dict[str, Any]]) -> str:
    from rich.table import Table

    table = Table("file", "read", "skipped", "why", box=None, pad_edge=False)
    for item in items:
        why = "\n".join(f"{times} × {reason}" for reason, times in item["reasons"].most_common())
        table.add_row(item["file"], str(item["read"]), str(item["skipped"]), why)
    return table_text(table, width=160)


def replay(path: Path) -> Iterator[str]:
    """The reasons of the parser for the file's folder."""
    parse = next((PARSERS[folder.name] for folder in path.parents if folder.name in PARSERS), None)
    if parse is None or path.suffix not in (".json", ".jsonl"):
        yield UNKNOWN
        return
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        yield f"can not be read: {error}"
        return
    lines = text.split("\n") if path.suffix == ".jsonl" else None
    for number, line in enumerate(lines or [text], start=1):
        if lines and not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            yield f"line {number} is no JSON" if lines else "the file is no JSON"
        else:
            yield from parse(record)


def _unwrapped(record: Any) -> Any:
    """The service's own answer in a record that holds the request or other data beside it."""
    while isinstance(record, dict) and (key := next((key for key in WRAPPERS if key in record), None)):
        record = record[key]
    if isinstance(record, dict) and record.keys() - {"data"} == {"meta"}:
        record = record["data"]
    return record


def _rows(answer: Any, *row_fields: str) -> list[Any] | None:
    """The rows of a page, a list or a single row, which has one of the `row_fields`; None if it is none of them."""
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, dict):
        return None
    if not answer.keys().isdisjoint(row_fields):
        return [answer]
    for key in ("events", "markets", "data"):
        if isinstance(answer.get(key), list):
            return list(answer[key])
    return next(([answer[key]] for key in ("event", "market") if isinstance(answer.get(key), dict)), None)


def _parse_venue(
    record: Any,
    row_fields: Iterable[str],
    parse_event: Callable[[Any, str], list[Any]],
    parse_market: Callable[..., Any],
) -> Reasons:
    rows = _rows(_unwrapped(record), *row_fields)
    if rows is None:
        return [UNKNOWN]
    parsed: list[Any] = []
    for place, row in enumerate(rows, start=1):
        nested = isinstance(row, dict) and "markets" in row
        parsed += parse_event(row, f"event {place}") if nested else [parse_market(row, f"row {place}")]
    return [row.reason if isinstance(row, SkippedMarket) else READ for row in parsed]


def _parse_gamma(record: Any) -> Reasons:
    from markets.sources.polymarket.parsing import parse_event, parse_market

    return _parse_venue(record, ["id"], parse_event, parse_market)


def _parse_kalshi(record: Any) -> Reasons:
    row_fields = ["ticker", "event_ticker"] if isinstance(record, dict) and "orderbook_fp" not in record else []
    return _parse_venue(record, row_fields, kalshi.parse_event, kalshi.parse_market)


def _parse_clob(record: Any) -> Iterator[str]:
    rows = _rows(_unwrapped(record), "bids", "asks", "mid", "tokens")
    for row in [None] if rows is None else rows:
        try:
            if isinstance(row, dict) and "tokens" in row:
                clob.parse_winner(row)
            elif isinstance(row, dict) and "mid" in row:
                clob.parse_midpoint("", row)
            elif isinstance(row, dict) and not row.keys().isdisjoint(("bids", "asks")):
                clob.parse_book("", row)
            else:
                yield UNKNOWN
                continue
        except ValueError as error:
            yield str(error)
        else:
            yield READ


def _parse_openrouter(record: Any) -> Iterator[str]:
    from httpx import Headers

    answer, exchange = _unwrapped(record), record if isinstance(record, dict) else {}
    models = answer.get("data") if isinstance(answer, dict) else answer
    if isinstance(models, list):
        yield from (READ if parse_catalogue([row]).models else "no model with prices" for row in models)
        return
    status = next((exchange[key] for key in ("status", "http_status") if type(exchange.get(key)) is int), 200)
    body = answer if isinstance(answer, str) else json.dumps(answer, default=float)
    headers = exchange.get("headers")
    try:
        parsed_headers = Headers(
            {key: str(value) for key, value in headers.items()} if isinstance(headers, dict) else {}
        )
        CompletionParser(Exchange(status, parsed_headers, body.encode(errors="replace"), 0), redact=str).parse()
    except GatewayFailure as failure:
        # An error that the gateway states is an answer like any other.
        is_error = status >= 400 or (isinstance(answer, dict) and bool(answer.get("error")))
        yield READ if is_error else failure.reason
    else:
        yield READ


PARSERS: dict[str, Callable[[Any], Reasons]] = {
    "gamma": _parse_gamma,
    "clob": _parse_clob,
    "kalshi": _parse_kalshi,
    "openrouter": _parse_openrouter,
}
"""The parser of the answers in a folder."""
