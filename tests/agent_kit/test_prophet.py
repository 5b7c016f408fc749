"""`arena_agent.prophet`: an agent of Prophet Arena's SDK plays here unchanged."""

from pathlib import Path
from typing import Any

import pytest

from arena_agent import Evidence, Question
from arena_agent.prophet import event_of
from tests.agent_kit.test_check import checked

SDK = """\
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Outcome:
    name: str
    criteria: str | None = None

@dataclass(frozen=True)
class Source:
    title: str
    url: str
    summary: str

@dataclass(frozen=True)
class Event:
    slug: str
    title: str
    criteria: str
    close_at: object
    outcomes: list
    crowd: dict
    context: list
    mutually_exclusive: bool

@dataclass(frozen=True)
class Forecast:
    probabilities: dict
    rationale: str | None = None

class Agent:
    name = ""
    track = "fixed_context"
    def setup(self): pass
    def on_error(self, event, exc): pass
    def forecast(self, event): raise NotImplementedError
"""
COIN = """\
from arena import Agent, Event, Forecast

class Coin(Agent):
    name = "coin"

    def setup(self):
        self.ready = True

    def forecast(self, event: Event) -> Forecast:
        assert self.ready
        p = 1.0 / len(event.outcomes) if event.mutually_exclusive else 0.5
        return Forecast(probabilities={o.name.upper(): p for o in event.outcomes}, rationale=event.slug)
"""
ASYNC = """\
from arena import Agent

class Crowd(Agent):
    name = "crowd"
    track = "agentic"

    async def forecast_async(self, event):
        return event.crowd or {o.name: 1 / len(event.outcomes) for o in event.outcomes}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with as much of their SDK as an agent needs; the kit does not depend on it."""
    (tmp_path / "arena.py").write_text(SDK)
    return tmp_path


def played(folder: Path, capfd: pytest.CaptureFixture[str], text: str) -> tuple[int, Any]:
    (folder / "theirs.py").write_text(text)
    return checked(capfd, str(folder / "theirs.py"))


def test_agent_of_theirs_is_played_unchanged(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, summary = played(folder, capfd, COIN)
    assert (code, summary["agent"], summary["track"]) == (0, "coin", "closed")
    assert [task["task"] for task in summary["tasks"]] == ["sample-priced", "sample-blind"]
    forecasts = summary["tasks"][0]["answer"]["forecasts"]
    assert forecasts[1] == {"question_id": "89", "probabilities": {"YES": 0.5, "NO": 0.5}, "rationale": "89"}
    assert forecasts[2]["probabilities"] == {"FIRST FILM": 0.5, "SECOND “FILM”": 0.5}


def test_asynchronous_agent_sees_the_crowd(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, summary = played(folder, capfd, ASYNC)
    assert (code, summary["track"]) == (0, "open")
    assert summary["tasks"][0]["answer"]["forecasts"][1]["probabilities"] == {"YES": 0.43, "NO": 0.57}
    assert summary["tasks"][1]["answer"]["forecasts"][1]["probabilities"] == {"YES": 0.5, "NO": 0.5}


def test_fault_of_theirs_costs_its_question_alone(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = COIN.replace("assert self.ready", "assert event.slug != '88', 'no idea'")
    code, summary = played(folder, capfd, text)
    assert (code, summary["tasks"][0]["faults"]) == (1, ["question 88: AssertionError: no idea"])
    assert len(summary["tasks"][0]["answer"]["forecasts"]) == 2


def test_event_has_what_their_agents_read() -> None:
    text = Evidence("Polls", "Press", "https://press.example/1", None, "Alpha leads.")
    question = Question("88", "Who?", "The winner.", True, ("Alpha", "Beta"), None, "2026-06-30", None, (text,))
    event = event_of(question)
    assert (event.slug, event.title, event.criteria, event.crowd) == ("88", "Who?", "The winner.", {})
    assert [outcome.name for outcome in event.outcomes] == ["Alpha", "Beta"]
    assert (event.context[0].title, event.context[0].summary) == ("Polls", "Alpha leads.")
    assert event.close_at.isoformat() == "2026-06-30T00:00:00+00:00"
    assert event_of(Question("1", "?", "", False, ("a", "b"))).close_at.year == 9999
