"""`arena-agent mcp`, asked by the client of the official package over standard input and output."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from tests.agent_kit.scripted_arena import TOKEN, ScriptedArena
from tests.lazy_modules import mcp

FORECAST = {
    "question_id": "88",
    "rationale": "Polls.",
    "probabilities": {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2},
}


@pytest.fixture
def arena() -> Iterator[ScriptedArena]:
    with HTTPServer(threaded=True) as server:
        server.expect_request("/api/v1/agents-board/").respond_with_json({"results": [{"forecaster": "market"}]})
        yield ScriptedArena(server, batches=1, decisions=1)


def chat(arena: ScriptedArena, home: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of tools, called one after the other, after the names of all tools and the prompt's text."""

    async def talk() -> list[Any]:
        environment = os.environ | {"ARENA_AGENT_HOME": str(home), "ARENA_AGENT_TOKEN": TOKEN}
        command = ["-m", "arena_agent", "mcp", "--url", arena.url]
        async with mcp.Client(
            mcp.StdioServerParameters(command=sys.executable, args=command, env=environment)
        ) as client:
            tools = sorted(tool.name for tool in (await client.list_tools()).tools)
            prompt = (await client.get_prompt("rules")).messages[0].content.text
            results: list[Any] = [tools, prompt]
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                text = result.content[0].text if result.content else ""
                results.append(text if result.is_error else result.structured_content)
            return results

    return asyncio.run(talk())


def test_chat_ends_in_a_receipt_or_a_sentence(arena: ScriptedArena, tmp_path: Path) -> None:
    answer = json.dumps({"forecasts": [FORECAST, {"question_id": "89", "probabilities": {"YES": 2, "NO": 0}}]})
    tools, prompt, tasks, task, checked, refused, prose, submitted, receipts, board, closed = chat(
        arena, tmp_path / "home",
        ("tasks", {}),
        ("task", {"task": "batch-1"}),
        ("check", {"task": "batch-1", "answer": answer}),
        ("submit", {"task": "batch-1", "answer": {"forecasts": [{"question_id": "88", "probabilities": {}}]}}),
        ("submit", {"task": "agent-1-universe-1", "answer": "I would rather not."}),
        ("submit", {"task": "batch-1", "answer": {"forecasts": [FORECAST]}}),
        ("receipts", {}),
        ("board", {"track": "closed"}),
        ("submit", {"task": "batch-1", "answer": {"forecasts": [FORECAST]}}),
    )  # fmt: skip
    assert tools == ["board", "check", "receipts", "submit", "task", "tasks"]
    assert "You take part in Forecaster Arena at" in prompt
    assert "Own, on the track closed" in prompt
    assert [row["task"] for row in tasks["result"]] == ["agent-1-universe-1", "batch-1"]
    assert task["task"] == "batch-1"
    assert (len(checked["would_be_sent"]["forecasts"]), checked["faults"][0]) == (
        1,
        'question 89: "YES" is given 2, which is outside [0, 1]',
    )
    assert 'question 88: "Alpha" has no probability' in refused
    assert "no JSON object in the answer" in prose
    assert arena.posts == 1
    assert submitted["receipt"]["body"]["sequence"] == 1
    assert json.loads(arena.answers["batch=1"][0][1])["forecasts"][0]["probabilities"] == FORECAST["probabilities"]
    assert receipts["result"] == [submitted["receipt"]]
    assert board["result"] == [{"forecaster": "market"}]
    assert "no task batch-1 is open now; open are: agent-1-universe-1" in closed
