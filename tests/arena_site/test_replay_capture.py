"""`replay_capture` over made-up captures: every row is read or counted with its reason, every odd file is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

GAMMA = {
    "id": "1",
    "question": "Rain?",
    "outcomes": '["Yes", "No"]',
    "outcomePrices": '["0.4", "0.6"]',
    "active": True,
    "closed": False,
}
KALSHI = {"ticker": "KXRAIN-1", "title": "Rain?", "status": "active", "last_price_dollars": "0.4000"}
COMPLETION = {"id": "gen-1", "choices": [{"message": {"role": "assistant", "content": "HOLD"}}]}
NO_PRICE = "no price: no trade yet, and no book of two sides"
UNKNOWN = "no parser knows this file"

FILES: list[tuple[str, Any, int, dict[str, int]]] = [
    ("polymarket/gamma/list.json", [GAMMA, GAMMA | {"version": "v9"}], 1, {"version: 'v9' is unknown": 1}),
    ("polymarket/gamma/page.json", {"markets": [GAMMA], "next_cursor": "x"}, 1, {}),
    ("polymarket/gamma/event.json", {"id": "e", "title": "Rain", "markets": [GAMMA, GAMMA]}, 2, {}),
    ("polymarket/gamma/wrapped.json", {"meta": {"url": "/markets"}, "data": [GAMMA]}, 1, {}),
    ("polymarket/clob/book.json", {"bids": [], "asks": [{"price": "0.1", "size": "5"}]}, 1, {}),
    ("polymarket/clob/mid.json", {"mid": "2"}, 0, {"'2' is outside [0, 1]": 1}),
    ("polymarket/clob/price.json", {"price": "0.1"}, 0, {UNKNOWN: 1}),
    ("kalshi/events.json", {"events": [{"event_ticker": "KX", "markets": [KALSHI]}], "cursor": ""}, 1, {}),
    ("kalshi/market.json", {"market": KALSHI | {"last_price_dollars": "0.0000"}}, 0, {NO_PRICE: 1}),
    ("kalshi/orderbook.json", {"orderbook_fp": {}, "ticker": "KX"}, 0, {UNKNOWN: 1}),
    ("kalshi/broken.json", '{"markets": [', 0, {"the file is no JSON": 1}),
    ("openrouter/chat.jsonl", f'{json.dumps({"status": 200, "body": COMPLETION})}\n\nnot json\n', 1,
     {"line 3 is no JSON": 1}),
    ("openrouter/separator.jsonl", json.dumps(COMPLETION | {"model": "a\u2028b"}, ensure_ascii=False), 1, {}),
    ("openrouter/refused.json", {"http_status": 429, "body": {"error": {"code": 429, "message": "slow"}}}, 1, {}),
    ("openrouter/changed.json", {"output": []}, 0, {"gateway answered without choices": 1}),
    ("openrouter/models.json", {"data": [{"id": "m", "pricing": {"prompt": "0.1", "completion": "0.1"}}, 7]}, 1,
     {"no model with prices": 1}),
    ("notes.md", "# notes", 0, {UNKNOWN: 1}),
]  # fmt: skip


def write(directory: Path, name: str, content: Any) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize(("name", "content", "read", "reasons"), FILES, ids=[name for name, *_ in FILES])
def test_file_is_read_by_the_parser_of_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: Any, read: int, reasons: dict[str, int]
) -> None:
    write(tmp_path, name, content)
    call_command("replay_capture", tmp_path, "--json")
    output = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (output["files"], output["read"], output["skipped"]) == (1, read, sum(reasons.values()))
    assert [item["reasons"] for item in output["items"]] == ([reasons] if reasons else [])


def test_table_names_each_file_with_its_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content, _, _ in FILES:
        write(tmp_path, name, content)
    call_command("replay_capture", tmp_path)
    table = capsys.readouterr().out
    assert all(name in table for name, *_ in FILES)
    assert "1 × version: 'v9' is unknown" in table


def test_directory_that_is_none_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is no directory") as refused:
        call_command("replay_capture", tmp_path / "nothing")
    assert refused.value.returncode == 2
