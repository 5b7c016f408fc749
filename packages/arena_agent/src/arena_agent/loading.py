"""Loads the agent of a file, and makes new files."""

import importlib.util
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from arena_agent.agent import TRACKS, Agent
from arena_agent.prophet import adapted, is_prophet_agent
from arena_verifier.answer_texts import storable

TEMPLATE = '''\
"""An agent for Forecaster Arena: `arena-agent check {file}` runs it on a sample."""

from collections.abc import Sequence

from arena_agent import Agent, Bet, Market, Portfolio, Question, Sell


class {class_name}(Agent):
    name = "{name}"
    track = "closed"  # uses only what the task shows; "open" may use anything

    def forecast(self, question: Question) -> dict[str, float]:  # or: async def forecast
        return question.market() or question.even()  # {{option: probability}}, or Forecast(…, rationale="…")

    def trade(self, portfolio: Portfolio, markets: Sequence[Market]) -> list[Bet | Sell]:  # optional; [] holds
        return []
'''
TEMPLATE_NAMES = ("Agent", "Bet", "Market", "Portfolio", "Question", "Sell", "Sequence")
"""Names that the template imports."""
MAX_NAME = 100


class UnusableAgent(ValueError):
    """A file that holds no agent that can play; the message says why."""


def load_agent(file: str) -> Agent:
    """The agent of FILE, or of FILE:CLASS where the file has several. Raises UnusableAgent."""
    path, _, class_name = file.partition(".py:")
    module = _load_module(Path(f"{path}.py" if class_name else path))
    agents = list(_agents_of(module))
    names = ", ".join(agent.__name__ for agent in agents) or "none"
    if class_name:
        agents = [agent for agent in agents if agent.__name__ == class_name]
        if not agents:
            raise UnusableAgent(f"{file}: there is no such agent; the file has {names}")
    if len(agents) != 1:
        hint = f"; name one as {file}:CLASS" if agents else ": it needs a class that inherits from arena_agent.Agent"
        raise UnusableAgent(f"{file}: it must hold one agent, and has {names}{hint}")
    check_class(agents[0], file)
    try:
        return agents[0]()
    except Exception as error:
        raise UnusableAgent(f"{file}: {agents[0].__name__}() failed: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__


def write_template(name: str, folder: Path, *, exists_ok: bool = False) -> Path:
    """Writes a first agent named `name`, or leaves one that may be there as it is.

    Raises UnusableAgent if the name makes no file, or if the file exists and must not.
    """
    words = re.findall(r"[A-Za-z0-9]+", name)
    class_name = "".join(word[0].upper() + word[1:] for word in words)
    if not class_name.isidentifier() or len(name) > MAX_NAME:
        raise UnusableAgent(
            f"{name!r} is no name for an agent: use up to {MAX_NAME} letters and digits, a letter first"
        )
    if keyword.iskeyword(class_name) or class_name in TEMPLATE_NAMES:
        class_name += "_"
    stem = "_".join(word.lower() for word in words)
    path = folder / f"{stem}{'_' if keyword.iskeyword(stem) else ''}.py"
    if exists_ok and path.is_file():
        return path
    text = TEMPLATE.format(file=path.name, class_name=class_name, name="-".join(word.lower() for word in words))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UnusableAgent(f"{path}: {error.strerror}") from None
    return path


def _agents_of(module: ModuleType) -> Iterator[type[Agent]]:
    """The agents that a module defines; those of Prophet Arena's SDK adapted."""
    for value in list(vars(module).values()):
        if not isinstance(value, type) or value.__module__ != module.__name__:
            continue
        if issubclass(value, Agent):
            yield value
        elif is_prophet_agent(value):
            yield adapted(value)


def _load_module(path: Path) -> ModuleType:
    try:
        exists = path.is_file()
    except OSError as error:
        raise UnusableAgent(f"{path.name[:40]}…: {error.strerror}") from None
    if not exists:
        raise UnusableAgent(f"{path}: there is no such file")
    name = f"arena_agent_file_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise UnusableAgent(f"{path}: it is no Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    sys.path.insert(0, str(path.resolve().parent))
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        line = error.lineno if isinstance(error, SyntaxError) else _line(error, path)
        raise UnusableAgent(f"{path}{f', line {line}' if line else ''}: {describe(error)}") from error
    return module


def _line(error: BaseException, path: Path) -> int | None:
    """The line of the file at which an error arose."""
    traceback, line = error.__traceback__, None
    while traceback:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def check_class(agent: type[Agent], file: str) -> None:
    """Checks what an agent declares. Raises UnusableAgent."""
    if not isinstance(agent.name, str) or not agent.name.strip() or len(agent.name) > MAX_NAME:
        raise UnusableAgent(f"{file}: {agent.__name__}.name must be a text of 1 to {MAX_NAME} characters")
    if storable(agent.name) != agent.name:
        raise UnusableAgent(f"{file}: {agent.__name__}.name holds characters that are no text")
    if agent.track not in TRACKS:
        raise UnusableAgent(f"{file}: {agent.__name__}.track must be {' or '.join(map(repr, TRACKS))}")
    if agent.version is not None and not (isinstance(agent.version, int) and agent.version >= 1):
        raise UnusableAgent(f"{file}: {agent.__name__}.version must be a number from 1 on, or None")
    if not any(agent.overrides(method) for method in ("forecast", "trade", "answer")):
        raise UnusableAgent(f"{file}: {agent.__name__} defines neither forecast nor trade")
