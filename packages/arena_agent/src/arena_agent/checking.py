"""Runs an agent on the bundled sample, without a network."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from arena_agent.worker import AgentCard, AgentEnded, AgentLate, AgentProcess

CHECK_SECONDS = 60.0


@dataclass(frozen=True)
class CheckedTask:
    """The result of one task of the sample."""

    task: str
    answer: dict[str, Any] | None
    faults: list[str]


def check_agent(file: str, seconds: float = CHECK_SECONDS) -> tuple[AgentCard, list[CheckedTask]]:
    """The agent, and its answers to those tasks of the sample that it plays. Raises UnusableAgent."""
    results = []
    with AgentProcess(file) as process:
        card = process.card()
        for line in sample_lines():
            task = json.loads(line)
            if card.plays(task["blocks"]):
                results.append(_check_task(process, task["task"], line, seconds))
    return card, results


def sample_lines() -> list[str]:
    """The tasks of the bundled sample, one to a line."""
    return files("arena_agent").joinpath("sample/tasks.jsonl").read_text("utf-8").splitlines()


def _check_task(process: AgentProcess, task: str, line: str, seconds: float) -> CheckedTask:
    try:
        answer = process.answer(line, seconds)
    except (AgentLate, AgentEnded) as error:
        return CheckedTask(task, None, [str(error)])
    return CheckedTask(task, None if answer.body is None else json.loads(answer.body), answer.faults)
