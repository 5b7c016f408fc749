"""Two weeks of an arena from a seed: the real commands in processes of their own, and faults that the seed chooses.

Two models and a visitor from outside, a dozen markets, a coarse grid. After every step the record is sound, no stored
answer was bought twice, nothing on record has changed, and a command that failed has told somebody.
"""

import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.answers import GEMINI, GPT
from tests.commands import SUNDAY, CommandOutput
from tests.faults.ledger_state import answers_bought_twice
from tests.faults.processes import CommandRunner, Kill, loaded_modules
from tests.sandbox import Venue
from tests.simulation.gateway_ends import ENDS, answer_of
from tests.simulation.venue_faults import VENUE_FAULTS, heal

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MODELS = (GPT, GEMINI)
MARKETS = 12
WAYS = ("", "", "killed", "killed", "twice at once", "beside another", "repeated", "slow clock")
POINTS = {
    "sync_markets": ("sync.walked", "sync.stored", "sync.priced"),
    "start_cohort": ("sync.walked",),
    "run_decisions": (
        *("universe.priced", "universe.frozen", "decision.claimed", "call.sent", "call.answered", "call.stored"),
        *("envelope.stored", "decision.traded", "decision.finished"),
    ),
    "run_forecasts": (
        *("questions.priced", "questions.frozen", "elicitation.claimed", "call.sent", "call.answered", "call.stored"),
        *("envelope.stored", "elicitation.recorded", "elicitation.finished"),
    ),
    "open_envelopes": ("envelope.claimed", "envelope.carried_out", "envelope.opened"),
    "check_resolutions": ("settlement.refreshed", "settlement.paid", "settlement.committed", "settlement.completed"),
    "take_snapshots": ("snapshots.marked", "snapshots.recorded"),
    "compute_scores": ("scores.scored", "scores.ranked"),
}
"""The fail points that a command passes."""
ENDED = (0, 1)
"""Exit codes of a command that ran to its end."""
WEEKS = 2
CLOSE = SUNDAY + 8 * 7 * DAY
"""After the decision weeks of every cohort."""


def schedule() -> Iterator[tuple[datetime, str]]:
    """The commands of two weeks on a coarse grid: Sundays whole, then every other day."""
    for week in range(WEEKS):
        sunday = SUNDAY + week * 7 * DAY
        yield sunday, "sync_markets"
        yield sunday, "start_cohort"
        yield sunday + 5 * MINUTE, "run_decisions"
        yield sunday + 10 * MINUTE, "take_snapshots"
        yield sunday + 65 * MINUTE, "run_decisions"
        yield sunday + 2 * HOUR, "run_forecasts --questions=3"
        yield sunday + 2 * HOUR + 20 * MINUTE, "open_envelopes"
        for day in (1, 3, 5):
            yield sunday + day * DAY, "sync_markets"
            yield sunday + day * DAY + HOUR, "check_resolutions"
            yield sunday + day * DAY + 2 * HOUR, "run_forecasts --questions=3"
            yield sunday + day * DAY + 2 * HOUR + 20 * MINUTE, "open_envelopes"
            yield sunday + day * DAY + 6 * HOUR, "take_snapshots"
        yield sunday + 6 * DAY, "compute_scores"


CLOSING = ("sync_markets", "run_decisions", "check_resolutions", "take_snapshots", "compute_scores")


@dataclass
class World:
    """An arena from a seed; `steps` says what happened, a line each, so that a red seed can be read."""

    seed: int
    runner: CommandRunner
    venue: Venue
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.database = self.runner.migrated(MODELS)
        self.record: dict[str, str] = {}
        self.known: set[str] = set()
        """The commands whose modules this process has imported, so that later ones start with them."""

    def play(self, folder: Path | None = None) -> None:
        """Plays the two weeks and what follows; raises AssertionError at the first step that breaks a rule.

        With a folder, the archive of the whole is exported there and verified.
        """
        for number in range(MARKETS):
            self.venue.market(f"Will event {number} happen?", events=[{"id": f"e{number // 2}", "title": "Events"}])
        self._token = self.runner.read(self.database, _register_visitor)
        for at, command in schedule():
            self._disturb()
            self._run(at, command)
            self._visit(at)
            self._check(at)
        self._end(folder)
        self.runner.database.drop(self.database)

    # faults

    def _disturb(self) -> None:
        for fault in self.dice.choices(VENUE_FAULTS, k=self.dice.randrange(3)):
            self._note(fault(self.venue, self.dice))
        for model in MODELS:
            names = self.dice.choices(list(ENDS), k=self.dice.randrange(3))
            self.venue.answers[model].clear()
            for name in names:
                self.venue.says(model, ENDS[name](self.dice))
            self.venue.says(model, *(answer_of(self.dice) for _ in range(4)))
            if names:
                self._note(f"{model} answers {', then '.join(names)}")

    def _run(self, at: datetime, command: str) -> None:
        """A command, disturbed in one of several ways, and once more where it was killed."""
        way = self.dice.choice(WAYS)
        if self.runner.database.is_postgres and self.dice.random() < 0.2:
            way = "database gone"
        self._note(f"{at:%a %d %H:%M} {command} {way}".rstrip())
        if way == "killed":
            self._kill(at, command)
        elif way == "twice at once":
            self._results(at, command, command)
        elif way == "beside another":
            self._results(at, command, self.dice.choice(["take_snapshots", "check_resolutions", "compute_scores"]))
        elif way == "database gone":
            self._cut(at, command)
        elif way == "slow clock":
            self._results(at - self.dice.randrange(90) * MINUTE / 60, command)
        if way in ("", "repeated", "killed", "database gone", "slow clock"):
            self._results(at, command)
        if way == "repeated":
            self._results(at, command)

    def _results(self, at: datetime, *commands: str) -> None:
        """Runs commands at once, each in its process; all must run to their ends."""
        if len(commands) == 1 and (name := commands[0].split()[0]) not in self.known:
            code, modules = self.runner.read(self.database, partial(_first_run, commands[0], at))
            assert code in ENDED, f"{name} ended with {code}"
            self.known.add(name)
            self.runner.import_modules(modules)
            return
        children = [self.runner.start(self.database, partial(_run_command, command, at)) for command in commands]
        for child, command in zip(children, commands, strict=True):
            child.join()
            assert child.exitcode in ENDED, f"{command} ended with {child.exitcode}"

    def _kill(self, at: datetime, command: str) -> None:
        for _ in range(self.dice.randrange(1, 3)):
            point = self.dice.choice(POINTS[command.split()[0]])
            child = self.runner.start(self.database, partial(_run_command, command, at), Kill(point, 1))
            child.join()
            self._note(f"  killed at {point}" if child.exitcode == -signal.SIGKILL else f"  not killed at {point}")
            if self.dice.random() < 0.7:
                self.runner.read(self.database, _let_leases_lapse)

    def _cut(self, at: datetime, command: str) -> None:
        """Ends every connection of a running command, at an instant of the seed's choice."""
        child = self.runner.start(self.database, partial(_run_command, command, at))
        child.join(self.dice.uniform(0.05, 0.6))
        with psycopg.connect(self.runner.database.url, autocommit=True) as server:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self.database])
        child.join()
        self.runner.read(self.database, _let_leases_lapse)

    def _visit(self, at: datetime) -> None:
        """The visitor answers what is open, sensibly, wrongly or twice."""
        if self.dice.random() < 0.5:
            answers = self.dice.choice([1, 1, 2])
            seed = self.dice.random()
            submit = partial(_submit, self._token, at + 6 * MINUTE, answers, seed)
            codes, modules = self.runner.read(self.database, submit)
            self.runner.import_modules(modules)
            if codes:
                self._note(f"  the visitor's answers: {codes}")

    # rules

    def _check(self, at: datetime) -> None:
        state = self.runner.read(self.database, partial(_state, at))
        assert state["violations"] == [], state["violations"]
        assert state["bought twice"] == []
        changed = [key for key, row in self.record.items() if state["record"].get(key) != row]
        assert changed == [], "rows of the record changed or vanished"
        self.record = state["record"]
        assert state["untold"] == [], "nobody was told of these failed commands"

    def _end(self, folder: Path | None) -> None:
        """Everything comes back and resolves; then the books close."""
        heal(self.venue, self.dice)
        self.venue.everyone_holds()
        self.runner.read(self.database, _let_leases_lapse)
        for day in (0, 1):
            for command in CLOSING:
                self._note(f"closing: {command}")
                self._results(CLOSE + day * DAY, command)
        self._check(CLOSE + 2 * DAY)
        books = self.runner.read(self.database, _closed_books)
        assert books["open positions"] == []
        assert books["unbalanced"] == []
        if folder is not None:
            for command, code in ((f"export_dataset --out {folder} --format csv", 0), (f"verify_export {folder}", 0)):
                output = self.runner.call(self.database, command, at=CLOSE + 3 * DAY)
                assert output.code == code, output.stderr + output.stdout[-2000:]

    def _note(self, line: str) -> None:
        self.steps.append(line)


# what children do


def _run_command(command: str, at: datetime) -> int:
    from tests.commands import run

    name, *arguments = command.split()
    output: CommandOutput = run(name, at, *arguments)
    return output.code


def _register_visitor() -> str:
    from agents.services.registrations import register_external_agent

    return register_external_agent(name="Visitor", protocol="both", at=SUNDAY - DAY).token


def _let_leases_lapse() -> None:
    from tests.faults.processes import _let_leases_expire

    _let_leases_expire()


def _first_run(command: str, at: datetime) -> tuple[int, list[str]]:
    """A command's exit code, and the modules that it loaded."""
    return _run_command(command, at), loaded_modules()


def _submit(token: str, at: datetime, answers: int, seed: float) -> tuple[list[int], list[str]]:
    """The statuses of the visitor's answers to each open task, and the modules that this loaded."""
    from django.conf import settings
    from django.test import Client

    settings.ARENA_CLOCK = at
    client, header = Client(), {"Authorization": f"Bearer {token}"}
    tasks = client.get("/api/v1/submissions/open/", headers=header).json()
    chance, codes = Random(seed), []
    for number in range(answers):
        for task in tasks["trading"]:
            query = f"agent={task['agent']}&universe={task['universe']}"
            codes.append(_post(client, header, query, _visitors_decision(task, chance), f"{seed}-{number}"))
        for task in tasks["forecast"]:
            body = _visitors_forecasts(task, chance)
            codes.append(_post(client, header, f"batch={task['batch']}", body, f"{seed}-{number}"))
    return codes, loaded_modules()


def _visitors_forecasts(task: Mapping[str, Any], chance: Random) -> Any:
    _, *rows = [json.loads(line) for line in task["blocks"]["QUESTIONS"].splitlines()]
    forecasts = []
    for row in rows:
        yes = chance.choice([0.2, 0.9, 1.2])
        forecasts.append({"question_id": row[0], "probabilities": {"YES": yes, "NO": 1 - yes}})
    return {"forecasts": forecasts}


def _visitors_decision(task: Mapping[str, Any], chance: Random) -> Any:
    if chance.random() < 0.3:
        return {"action": "HOLD", "reasoning": "waiting"}
    bet = {"market_id": str(chance.randrange(1, MARKETS + 1)), "side": "YES", "amount": chance.choice([60, 700, 20])}
    return {"action": "BET", "bets": [bet], "reasoning": "a guess"}


def _post(client: Any, header: Mapping[str, str], query: str, body: Any, key: str) -> int:
    path = f"/api/v1/submissions/?{query}"
    headers = {**header, "Idempotency-Key": key}
    response = client.post(path, json.dumps(body), content_type="application/json", headers=headers)
    return int(response.status_code)


def _state(at: datetime) -> dict[str, Any]:
    """What the rules of a step are about."""
    from django.conf import settings

    from foundation.models import Alert, Run
    from scoring.exports.verification.ledger_audit import CHECKS, violations_about

    settings.ARENA_CLOCK = at
    last_run = {run.kind: run for run in Run.objects.order_by("pk")}
    failed = sorted(kind for kind, run in last_run.items() if run.status == Run.Status.FAILED)
    return {
        "violations": [line for subject in CHECKS for line in violations_about(subject)],
        "bought twice": answers_bought_twice(),
        "record": _record(),
        "untold": failed if failed and not Alert.objects.open().exists() else [],
    }


def _record() -> dict[str, str]:
    """Every row that must never change, by its table and key."""
    from agents.models import ChainLink, JournalEntry, Settlement, Trade

    rows = {}
    for model in (JournalEntry, Trade, Settlement, ChainLink):
        for row in model.objects.values():
            rows[f"{model.__name__} {row['id']}"] = repr(sorted(row.items()))
    return rows


def _closed_books() -> dict[str, Any]:
    from agents.models import Agent, Position

    unbalanced = []
    for agent in Agent.objects.select_related("cohort__methodology"):
        profit = sum(position.realized_pnl for position in agent.positions.all())
        if agent.cash != agent.cohort.methodology.starting_balance + profit:
            unbalanced.append(str(agent))
    return {
        "open positions": [str(position) for position in Position.objects.filter(status="open")],
        "unbalanced": unbalanced,
    }
