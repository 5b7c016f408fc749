"""`arena-agent init` and `check`: a first agent, run on a sample without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import arena_agent
from arena_agent.answering import Answerer
from arena_agent.blocks import UnreadableBlock, read_portfolio, read_questions
from arena_agent.checking import sample_lines
from arena_agent.cli import main
from arena_agent.loading import UnusableAgent, load_agent
from arena_agent.worker import AgentCard, read_task

COLUMNS = '["question_id", "question", "rules", "exclusive", "options", "prices", "closes"]'
HEAD = "from arena_agent import Agent, Bet, Forecast, Sell\n\nclass Own(Agent):\n    name = 'own'\n"


def agent_file(folder: Path, body: str, head: str = HEAD) -> str:
    """A file with an agent whose class goes on with `body`."""
    path = folder / "own.py"
    path.write_text(head + "".join(f"    {line}\n" for line in body.splitlines()))
    return str(path)


def checked(capfd: pytest.CaptureFixture[str], file: str) -> tuple[int, Any]:
    code = main(["check", file, "--json"])
    return code, json.loads(capfd.readouterr().out)


def test_init_writes_an_agent_that_passes_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "Deep Thought", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"file": "deep_thought.py"}
    code, summary = checked(capfd, "deep_thought.py")
    assert (code, summary["ok"], summary["agent"], summary["track"]) == (0, True, "deep-thought", "closed")
    assert [task["task"] for task in summary["tasks"]] == ["sample-priced", "sample-blind", "sample-decision"]
    priced = summary["tasks"][0]["answer"]["forecasts"]
    assert priced[0]["probabilities"] == pytest.approx({"Alpha": 41 / 102, "Beta": 33 / 102, "Other": 28 / 102})
    assert priced[2]["probabilities"] == {"First film": 0.8, "Second “film”": 0.15}  # not exclusive
    even = summary["tasks"][1]["answer"]["forecasts"]
    assert even[1]["probabilities"] == {"YES": 0.5, "NO": 0.5}
    assert even[2]["probabilities"] == {"First film": 0.5, "Second “film”": 0.5}  # not exclusive
    assert main(["init", "Deep Thought"]) == 2
    assert "File exists" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["bet", "class"])
def test_init_makes_a_class_beside_the_names_of_the_language_and_the_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", name, "--json"]) == 0
    path = Path(json.loads(capfd.readouterr().out)["file"])
    path.write_text(path.read_text().replace("return []", "return [Bet(markets[0], 'YES', 100)]"))
    code, summary = checked(capfd, str(path))
    assert (code, summary["agent"], summary["tasks"][2]["answer"]["action"]) == (0, name.lower(), "BET")


def test_file_whose_name_is_too_long_is_refused_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{'a' * 300}.py"]) == 2
    error = capfd.readouterr().err
    assert ("File name too long" in error, error.count("\n")) == (True, 1)


@pytest.mark.parametrize("name", ["", "7 dwarfs", "?!", "x" * 101])
def test_init_refuses_a_name_that_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", name]) == 2
    assert "is no name for an agent" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


BROKEN = {
    # what the agent does: (its body, a part of the fault)
    "raises": ("def forecast(self, question): return 1 / 0", "question 88: ZeroDivisionError: division by zero"),
    "raises out of line": ("async def forecast(self, question): raise OSError('gone')", "question 88: OSError: gone"),
    "sums to 1.5": (
        "def forecast(self, question): return dict.fromkeys(question.options, 1.5 / len(question.options))",
        "sum to 1.5, not 1",
    ),
    "returns nothing": ("def forecast(self, question): pass", "must be an object, not null"),
    "bets too much": (
        "def trade(self, portfolio, markets): return [Bet(markets[0], 'YES', portfolio.max_bet + 1)]",
        "bets[0].amount: 2501.00 is above the maximum of 2500.00",
    ),
    "returns no list": ("def trade(self, portfolio, markets): return 7", "must return a list of Bet and Sell, not 7"),
    "answers at length": (
        "def forecast(self, question): return Forecast(question.even(), 'x' * 10_000_000)",
        "the body is longer than 1,000,000 bytes",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_fault_of_an_answer_is_named(tmp_path: Path, name: str) -> None:
    body, fault = BROKEN[name]
    agent = load_agent(agent_file(tmp_path, body))
    tasks = filter(lambda task: AgentCard.of(agent).plays(task.blocks), map(read_task, sample_lines()))
    assert fault in Answerer(agent).answer(next(tasks)).faults[0]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        BROKEN["raises"],
        ("def forecast(self, question): raise SystemExit(7)", "the agent's process ended with code 7"),
        ("def forecast(self, question): __import__('os')._exit(9)", "ended with code 9"),
    ],
)
def test_fault_of_an_agent_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str], body: str, fault: str) -> None:
    code, summary = checked(capfd, agent_file(tmp_path, body))
    assert (code, summary["ok"]) == (1, False)
    assert fault in summary["tasks"][0]["faults"][0]


def test_one_bad_answer_costs_that_question_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "def forecast(self, question):\n    return question.even() if question.id == '89' else {}"
    _, summary = checked(capfd, agent_file(tmp_path, body))
    assert [forecast["question_id"] for forecast in summary["tasks"][0]["answer"]["forecasts"]] == ["89"]
    assert len(summary["tasks"][0]["faults"]) == 2


UNUSABLE = {
    "no file": (None, "there is no such file"),
    "no agent": ("x = 1\n", "it must hold one agent, and has none"),
    "two agents": ("from arena_agent import Agent\nclass A(Agent): pass\nclass B(Agent): pass\n", "has A, B"),
    "no name": ("from arena_agent import Agent\nclass A(Agent): pass\n", "A.name must be a text"),
    "another track": (
        "from arena_agent import Agent\nclass A(Agent):\n    name = 'a'\n    track = 'fast'\n",
        "A.track must be 'closed' or 'open'",
    ),
    "no method": ("from arena_agent import Agent\nclass A(Agent):\n    name = 'a'\n", "neither forecast nor trade"),
    "no Python": ("from arena_agent import\n", "line 1: SyntaxError"),
    "half a character": (
        "from arena_agent import Agent\nclass A(Agent):\n    name = '\\ud83d'\n",
        "A.name holds characters",
    ),
    "raises": ("\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_file_without_a_usable_agent_is_refused(tmp_path: Path, name: str) -> None:
    text, message = UNUSABLE[name]
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UnusableAgent) as refused:
        load_agent(str(path))
    assert message in str(refused.value)


def test_command_names_what_makes_a_file_unusable(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, message = UNUSABLE["raises"]
    (tmp_path / "own.py").write_text(text)
    assert main(["check", str(tmp_path / "own.py")]) == 2
    assert message in capfd.readouterr().err


def test_what_an_agent_prints_and_reads_disturbs_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "def forecast(self, question):\n    print('{', __import__('sys').stdin.read())\n    return question.even()"
    code, summary = checked(capfd, agent_file(tmp_path, body))
    assert (code, summary["ok"]) == (0, True)


def test_agent_sees_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = ("ARENA_AGENT_TOKEN", "ARENA_NEXT_SIGNING_KEY", "ARENA_ALERT_WEBHOOK", "DATABASE_URL", "EMAIL_URL")
    for name in secrets:
        monkeypatch.setenv(name, "arena_secret")
    names = "[name for name, value in __import__('os').environ.items() if value == 'arena_secret']"
    body = f"def forecast(self, question): raise ValueError({names})"
    _, summary = checked(capfd, agent_file(tmp_path, body))
    assert "question 88: ValueError: []" in summary["tasks"][0]["faults"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("httpx", "pydantic", "rich", "forecast_rank", "numpy", "polars", "django", "asyncio")
    script = f"import sys, arena_agent\nprint(sorted(set({heavy!r}) & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_importing_the_package_takes_less_than_150_milliseconds() -> None:
    script = "import time; t = time.process_time(); import arena_agent; print(time.process_time() - t)"
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.15


def test_command_runs_as_a_module() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(arena_agent.__file__).parents[1])}
    process = subprocess.run([sys.executable, "-m", "arena_agent"], capture_output=True, text=True, env=environment)
    assert (process.returncode, "COMMAND" in process.stderr) == (2, True)


BLOCKS = {
    # a block that a strange server sends: what is wrong with it
    '["question_id"]\n["1"]': "QUESTIONS: the column question is missing",
    "rubbish": "QUESTIONS: line 1 is not JSON",
    "{}": "QUESTIONS: its first line must name the columns",
    f"{COLUMNS}\n[1, 2]": "QUESTIONS: line 2 must be a list of 7 values",
    f'{COLUMNS}\n["1", "?", "", true, null, null, null]': "QUESTIONS: a value is not of its type: TypeError",
    f'{COLUMNS}\n["1", "?", "", true, ["A"], {{"A": "x"}}, null]': "the price of 'A' is no number",
    f'{COLUMNS}\n["1", "?", "", true, ["A"], 7, null]': "QUESTIONS: a value is not of its type: AttributeError",
}


@pytest.mark.parametrize("block", BLOCKS)
def test_block_that_is_none_is_named(block: str) -> None:
    with pytest.raises(UnreadableBlock) as unreadable:
        read_questions({"QUESTIONS": block})
    assert BLOCKS[block] in str(unreadable.value)


def test_portfolio_with_a_wrong_amount_is_named() -> None:
    blocks = json.loads(sample_lines()[2])["blocks"]
    assert read_portfolio(blocks).positions[0].shares == 1250
    with pytest.raises(UnreadableBlock, match="'cash' is missing"):
        read_portfolio(blocks | {"PORTFOLIO": "{}"})
    with pytest.raises(UnreadableBlock, match="PORTFOLIO: a value is not of its type"):
        read_portfolio(blocks | {"PORTFOLIO": blocks["PORTFOLIO"].replace("10000.00", "much")})
