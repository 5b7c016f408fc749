"""Two weeks of an arena from a seed: the real commands in a worker's process, and faults that the seed chooses.

Two models and a visitor from outside, a dozen markets, a coarse grid. After every step the record is sound, no stored
answer was bought twice, nothing on record has changed, and a command that failed has told somebody. Commands that are
killed, cut off or run beside others have processes of their own.
"""

import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections
from django.test import Client

from agents.models import Agent, ChainLink, JournalEntry, ModelCall, Position, Settlement, Trade
from agents.services.registrations import register_external_agent
from arena_verifier.rows import Row
from foundation.models import Alert, AlertItem, Run
from foundation.services.runs import JOB_FAILED
from scoring.exports.verification.database_rows import DatabaseRows
from scoring.exports.verification.ledger_audit import CHECKS, violations_about
from tests.answers import GEMINI, GPT
from tests.commands import SUNDAY, run
from tests.faults.ledger_state import answers_bought_twice
from tests.faults.processes import CommandRunner, Kill, connect, let_leases_expire
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
TOLD_BY_NAME = ("check_resolutions", "compute_scores", "open_envelopes")
"""The commands whose every failure is an alert that names them, unless another run has ended beside the last."""
ENDED = (0, 1)
"""Exit codes of a command that ran to its end."""
WEEKS = 2
CLOSE = SUNDAY + 8 * 7 * DAY
"""After the decision weeks of every cohort."""


def schedule() -> Iterator[tuple[datetime, str]]:
    """The commands of two weeks on a coarse grid: Sundays whole, then Mondays and Thursdays."""
    for week in range(WEEKS):
        sunday = SUNDAY + week * 7 * DAY
        yield sunday, "sync_markets"
        yield sunday, "start_cohort"
        yield sunday + 5 * MINUTE, "run_decisions"
        yield sunday + 10 * MINUTE, "take_snapshots"
        yield sunday + 65 * MINUTE, "run_decisions"
        yield sunday + 2 * HOUR, "run_forecasts --questions=3"
        yield sunday + 2 * HOUR + 20 * MINUTE, "open_envelopes"
        for day in (1, 4):
            yield sunday + day * DAY, "sync_markets"
            yield sunday + day * DAY + HOUR, "check_resolutions"
            yield sunday + day * DAY + 2 * HOUR, "run_forecasts --questions=3"
            yield sunday + day * DAY + 2 * HOUR + 20 * MINUTE, "open_envelopes"
            yield sunday + day * DAY + 6 * HOUR, "take_snapshots"
        yield sunday + 6 * DAY, "compute_scores"


CLOSING = (
    (CLOSE, ("sync_markets", "run_decisions", "check_resolutions")),
    (CLOSE + DAY, ("sync_markets", "check_resolutions", "take_snapshots", "compute_scores")),
)


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
        connect(self.database, self.runner.database, self.runner.addresses)
        self.record: dict[tuple[str, int], tuple[Any, ...]] = {}

    def play(self, folder: Path | None = None) -> None:
        """Plays the two weeks and what follows; raises AssertionError at the first step that breaks a rule.

        With a folder, the archive of the whole is exported there and verified.
        """
        for number in range(MARKETS):
            self.venue.market(f"Will event {number} happen?", events=[{"id": f"e{number // 2}", "title": "Events"}])
        self._token = _register_visitor()
        for at, command in schedule():
            self._disturb()
            self._run(at, command)
            self._visit(at)
            self._check(at)
        self._end(folder)
        connections.close_all()
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
        """Runs commands at once, the first in this process; all must run to their ends."""
        first, *others = commands
        children = [self._start(at, command) for command in others]
        codes = [_run_command(first, at)]
        for child in children:
            child.join()
            codes.append(child.exitcode)
        for command, code in zip(commands, codes, strict=True):
            assert code in ENDED, f"{command} ended with {code}"

    def _start(self, at: datetime, command: str, kill: Kill | None = None) -> ForkProcess:
        """A command in a process of its own."""
        connections.close_all()  # no process may use another's connection
        return self.runner.start(self.database, partial(_run_command, command, at), kill)

    def _kill(self, at: datetime, command: str) -> None:
        """Kills a command once or twice, at a fail point or, one time in five, at any instant."""
        for _ in range(self.dice.randrange(1, 3)):
            point, after_s = self.dice.choice(POINTS[command.split()[0]]), self.dice.uniform(0.005, 0.6)
            if self.dice.random() < 0.2:
                child, place = self._start(at, command), f"after {after_s:.3f} s"
                child.join(after_s)
                child.kill()
            else:
                child, place = self._start(at, command, Kill(point)), f"at {point}"
            child.join()
            self._note(f"  killed {place}" if child.exitcode == -signal.SIGKILL else f"  not killed {place}")
            if self.dice.random() < 0.7:
                let_leases_expire()

    def _cut(self, at: datetime, command: str) -> None:
        """Ends every connection of a running command, at an instant of the seed's choice."""
        child = self._start(at, command)
        child.join(self.dice.uniform(0.05, 0.6))
        with psycopg.connect(self.runner.database.url, autocommit=True) as server:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self.database])
        child.join()
        let_leases_expire()

    def _visit(self, at: datetime) -> None:
        """The visitor answers what is open, sensibly, wrongly or twice."""
        if self.dice.random() < 0.5:
            answers = self.dice.choice([1, 1, 2])
            codes = _submit(self._token, at + 6 * MINUTE, answers, self.dice.random())
            if codes:
                self._note(f"  the visitor's answers: {codes}")

    # rules

    def _check(self, at: datetime) -> None:
        state = _state(at)
        assert state["violations"] == [], state["violations"]
        assert state["bought twice"] == []
        assert state["claims lost"] == [], "these calls were answered after another worker had taken a live claim"
        changed = [key for key, row in self.record.items() if state["record"].get(key) != row]
        assert changed == [], "rows of the record changed or vanished"
        self.record = state["record"]
        assert state["untold"] == [], "nobody was told of these failed commands"

    def _end(self, folder: Path | None) -> None:
        """Everything comes back and resolves; then the books close."""
        heal(self.venue, self.dice)
        self.venue.everyone_holds()
        let_leases_expire()
        for at, commands in CLOSING:
            for command in commands:
                self._note(f"closing: {command}")
                self._results(at, command)
        self._check(CLOSE + 2 * DAY)
        books = _closed_books()
        assert books["open positions"] == []
        assert books["unbalanced"] == []
        if folder is not None:
            for command, code in ((f"export_dataset --out {folder} --format csv", 0), (f"verify_export {folder}", 0)):
                name, *arguments = command.split()
                output = run(name, CLOSE + 3 * DAY, *arguments)
                assert output.code == code, output.stderr + output.stdout[-2000:]

    def _note(self, line: str) -> None:
        self.steps.append(line)


# the services


def _run_command(command: str, at: datetime) -> int:
    name, *arguments = command.split()
    return run(name, at, *arguments).code


def _register_visitor() -> str:
    return register_external_agent(name="Visitor", protocol="both", at=SUNDAY - DAY).token


def _submit(token: str, at: datetime, answers: int, seed: float) -> list[int]:
    """The statuses of the visitor's answers to each open task."""
    settings.ARENA_CLOCK = at
    client, header = Client(SERVER_NAME="localhost"), {"Authorization": f"Bearer {token}"}
    tasks = client.get("/api/v1/submissions/open/", headers=header).json()
    chance, codes = Random(seed), []
    for number in range(answers):
        for task in tasks["trading"]:
            query = f"agent={task['agent']}&universe={task['universe']}"
            codes.append(_post(client, header, query, _visitors_decision(task, chance), f"{seed}-{number}"))
        for task in tasks["forecast"]:
            body = _visitors_forecasts(task, chance)
            codes.append(_post(client, header, f"batch={task['batch']}", body, f"{seed}-{number}"))
    return codes


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
    settings.ARENA_CLOCK = at
    tables = TablesReadOnce()
    return {
        "violations": [line for subject in CHECKS for line in violations_about(subject, tables)],
        "bought twice": answers_bought_twice(),
        "claims lost": list(ModelCall.objects.filter(late=True).values_list("pk", flat=True)),
        "record": _record(),
        "untold": _untold(),
    }


def _untold() -> list[str]:
    """The commands that failed at last, and of which no alert tells: of some, none that names the command."""
    named = set(AlertItem.objects.filter(kind=JOB_FAILED, cleared_at=None).values_list("subject", flat=True))
    is_anything_told, untold = Alert.objects.open().exists(), []
    for kind in POINTS:
        runs = list(Run.objects.filter(kind=kind).order_by("-pk")[:2])
        if not runs or runs[0].status != Run.Status.FAILED:
            continue
        is_alone = all(run.finished_at and run.finished_at <= runs[0].started_at for run in runs[1:])
        is_told = kind in named if kind in TOLD_BY_NAME and is_alone else is_anything_told
        if not is_told:
            untold.append(kind)
    return untold


class TablesReadOnce(DatabaseRows):
    """The tables of a database that stands still."""

    def __init__(self) -> None:
        super().__init__()
        self.read: dict[str, list[Row]] = {}

    def rows(self, table: str) -> Iterator[Row]:
        if table not in self.read:
            self.read[table] = list(super().rows(table))
        return iter(self.read[table])


def _record() -> dict[tuple[str, int], tuple[Any, ...]]:
    """Every row that must never change, by its table and key."""
    rows = {}
    for model in (JournalEntry, Trade, Settlement, ChainLink):
        for row in model.objects.values_list("pk", *(column.attname for column in model._meta.concrete_fields)):
            rows[model.__name__, row[0]] = row
    return rows


def _closed_books() -> dict[str, Any]:
    unbalanced = []
    for agent in Agent.objects.select_related("cohort__methodology"):
        profit = sum(position.realized_pnl for position in agent.positions.all())
        if agent.cash != agent.cohort.methodology.starting_balance + profit:
            unbalanced.append(str(agent))
    return {
        "open positions": [str(position) for position in Position.objects.filter(status="open")],
        "unbalanced": unbalanced,
    }
