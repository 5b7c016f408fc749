"""`manage.py rehearse`: an agent plays a span of the past in a scratch database."""

import argparse
import json
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.core.serializers.json import DjangoJSONEncoder
from rich.table import Table

from agents.models import Registration
from agents.models.family import EXTERNAL_WINDOW
from agents.services.registrations import register_external_agent
from arena_agent.loading import UnusableAgent
from arena_agent.worker import AgentProcess
from arena_site.operations.processes import StopRequested, manage_command, start, stop, stoppable
from cohorts.conditions import stored_conditions
from forecast_rank.files.archives import unpacked
from foundation.commands import ArenaCommand, CommandResult, score_text, table_text
from markets.sources.base import base_url_setting
from markets.sources.registry import sources_by_service
from scoring.exports.public_archives import published_days, published_file
from scoring.exports.sound_archives import UnsoundArchive, check_archive, open_archive
from scoring.exports.verification.archive_reader import Archive
from scoring.management.commands.export_dataset import window_bound
from scoring.rehearsals.board import forecast_boards, trading_board
from scoring.rehearsals.past import UnplayableArchive, load_past, read_timeline
from scoring.rehearsals.players import FilePlayer, Player, UrlPlayer
from scoring.rehearsals.season import NOWHERE, Rehearsal

RESULT = "result.json"
CAVEAT = (
    "This is the past, which the agent's model may know from its training. "
    "A rehearsal shows that an agent works, not that it foresees; its results are never part of the arena."
)
SETTINGS_OF_THE_ARENA = (
    "ARENA_ALERT_EMAIL", "ARENA_ALERT_WEBHOOK", "ARENA_CLOCK", "ARENA_HEARTBEAT_URL", "ARENA_SIGNING_KEY", "CACHE_URL",
    "DATABASE_REPLICA_URL",
)  # fmt: skip
"""Left empty in the scratch arena, which shares nothing with the one that starts it."""


class Command(ArenaCommand):
    help = (
        "Plays the weeks of an archive from --from to before --to with the agent of FILE (of the package arena_agent), "
        "or with a URL that answers a task posted to it, by the services of live weeks in a scratch database. Prints "
        "its results and the models' own. It is the past, which the agent's model may know. Writes nothing into the "
        "arena's database."
    )
    requires_system_checks: list[str] = []
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent", metavar="FILE_OR_URL", help="FILE, FILE:CLASS, or an http(s) address")
        parser.add_argument("--from", dest="start", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--to", dest="end", type=window_bound, required=True, metavar="TIME")
        parser.add_argument("--archive", type=Path, metavar="DIR", help="default: the newest published one")
        parser.add_argument(
            "--timeout", type=float, default=EXTERNAL_WINDOW.total_seconds(), metavar="SECONDS",
            help="the seconds that the agent has for a task (default: the window of live agents)",
        )  # fmt: skip
        parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)  # the folder of the process that plays

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        if options["start"] >= options["end"]:
            self.refuse(f"--to: {options['end']:%Y-%m-%dT%H:%M:%SZ} is not after --from")
        if not options["timeout"] > 0:
            self.refuse("--timeout: must be above 0 seconds")
        archive = options["archive"] or self._newest_archive()
        if options["scratch"]:
            return self._play_in_scratch(archive, options)
        self._verify(archive)
        result = self._play_apart(archive, options)
        if "refused" in result:
            self.refuse(result["refused"])
        summary = result["summary"]
        if not options["json"]:
            self._print(summary)
            for name in ("board", "cohorts", "conditions", "reasons", "note"):
                summary.pop(name)
        return CommandResult(summary, failed=not summary["decisions"] + summary["forecasts"])

    def _newest_archive(self) -> Path:
        days = published_days()
        if not days:
            self.refuse("no archive is published: run publish_archive, or name one with --archive")
        return published_file(days[0])

    def _verify(self, archive: Path) -> None:
        with self.progress("verifying the archive") as progress:
            try:
                check_archive(archive, progress)
            except UnsoundArchive as error:
                self.refuse(str(error))

    def _play_apart(self, archive: Path, options: dict[str, Any]) -> dict[str, Any]:
        """The result of a process of its own, whose settings name a scratch database."""
        with tempfile.TemporaryDirectory(prefix="arena-rehearsal-") as name:
            folder = Path(name)
            environment = dict.fromkeys(SETTINGS_OF_THE_ARENA, "") | {
                "DJANGO_SETTINGS_MODULE": "arena_site.settings",
                "DATABASE_URL": f"sqlite:///{folder / 'scratch.sqlite3'}",
                "SECRET_KEY": secrets.token_urlsafe(40),
                **{f"ARENA_{kind}_DIR": str(folder / kind) for kind in ("BACKUP", "EXPORT", "SPOOL")},
                **{base_url_setting(service): NOWHERE for service in sources_by_service()},
            }
            command = manage_command(
                "rehearse", _absolute(options["agent"]), "--scratch", str(folder), "--archive", str(archive.resolve()),
                "--from", options["start"].isoformat(), "--to", options["end"].isoformat(),
                "--timeout", str(options["timeout"]), "--json",
            )  # fmt: skip
            with stoppable():
                process = start(command, environment, stdout=subprocess.DEVNULL)
                try:
                    process.wait()
                except StopRequested:
                    raise CommandError("stopped") from None
                finally:
                    stop(process)
            try:
                return dict(json.loads((folder / RESULT).read_text(encoding="utf-8")))
            except FileNotFoundError:
                raise CommandError(f"the rehearsal ended early, with code {process.returncode}") from None

    def _play_in_scratch(self, archive: Path, options: dict[str, Any]) -> CommandResult:
        """Plays in this process, whose database is the scratch one; the result goes into a file."""
        folder = options["scratch"]
        if str(settings.DATABASES["default"]["NAME"]) != str(folder / "scratch.sqlite3"):
            self.refuse("--scratch: this process has another database")
        try:
            with _player(options["agent"]) as player, unpacked(archive) as tables_folder:
                result: dict[str, Any] = {"summary": self._rehearse(open_archive(tables_folder), player, options)}
        except (UnplayableArchive, UnusableAgent) as error:
            result = {"refused": str(error)}
        (folder / RESULT).write_text(json.dumps(result, cls=DjangoJSONEncoder), encoding="utf-8")
        return CommandResult({})

    def _rehearse(self, tables: Archive, player: Player, options: dict[str, Any]) -> dict[str, Any]:
        timeline = read_timeline(tables, start=options["start"], end=options["end"])
        call_command("migrate", verbosity=0)
        with self.progress("playing") as progress:
            load_past(tables, timeline)
            registration = register_external_agent(
                name=f"Rehearsal of {player.name}"[:100], protocol=Registration.Protocol.BOTH, at=options["start"]
            )
            rehearsal = Rehearsal(timeline, player, registration, options["timeout"])
            report = rehearsal.play(progress)
        family = registration.family
        trading = trading_board(tables, timeline, family) if player.trades and timeline.cohorts else []
        forecasts = forecast_boards(tables, timeline, family) if player.forecasts else {}
        agent = next((row for row in trading if row["rehearsed"]), None)
        brier = [row["brier"] for row in forecasts.get(stored_conditions().board(), ()) if row["rehearsed"]]
        return asdict(report) | {
            "total_value": agent and agent["total_value"],
            "brier": brier[0] if brier else None,
            "cohorts": agent["cohorts"] if agent else [],
            "board": {"trading": trading, "forecasts": forecasts},
            "conditions": {arm: stored_conditions().label(arm) for arm in forecasts},
            "note": CAVEAT,
        }

    def _print(self, summary: dict[str, Any]) -> None:
        board = summary["board"]
        if board["trading"]:
            self.stdout.write(table_text(_trading_table(board["trading"])))
        for arm, rows in board["forecasts"].items():
            title = f"Forecasts {summary['conditions'][arm]}"
            self.stdout.write(table_text(_forecast_table(title, rows)))
        for reason in summary["reasons"]:
            self.stdout.write(ascii(reason)[1:-1] if not reason.isprintable() else reason)
        self.stdout.write(summary["note"])


def _absolute(agent: str) -> str:
    """The agent as the process names it, whose working directory is another."""
    return agent if _url(agent) else str(Path(agent).absolute())


def _url(agent: str) -> httpx.URL | None:
    try:
        url = httpx.URL(agent)
    except (httpx.InvalidURL, TypeError):
        return None
    return url if url.scheme in ("http", "https") and url.host else None


@contextmanager
def _player(agent: str) -> Iterator[Player]:
    """The player of a file or a URL. Raises UnusableAgent."""
    if url := _url(agent):
        with httpx.Client(follow_redirects=False) as client:
            yield UrlPlayer(url, client)
    else:
        with AgentProcess(agent, withheld=["OPENROUTER_API_KEY"]) as process:
            yield FilePlayer(process)


def _table(title: str, names: tuple[str, ...]) -> Table:
    table = Table(title=title)
    for name in names:
        table.add_column(name, justify="left" if name == "forecaster" else "right")
    return table


def _trading_table(rows: list[dict[str, Any]]) -> Table:
    table = _table("Trading", ("forecaster", "value (mean)", "cohorts", "bet-implied Brier", "resolved bets"))
    for row in rows:
        figures = (str(len(row["cohorts"])), score_text(row["bet_brier"]), str(row["resolved_bets"]))
        table.add_row(_name(row), f"{float(row['total_value']):,.2f}", *figures)
    return table


def _forecast_table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = _table(title, ("forecaster", "questions", "Brier (mean form)", "adjusted", "log", "alpha"))
    for row in rows:
        figures = (score_text(row[name]) for name in ("brier", "adjusted_brier", "log", "alpha"))
        table.add_row(_name(row), str(row["n"]), *figures)
    return table


def _name(row: dict[str, Any]) -> str:
    from rich.markup import escape

    name = escape(row["display_name"])
    return f"→ {name}" if row["rehearsed"] else f"({name})" if row.get("reference") else name
