"""Plays a season against a running sandbox: the driver behind `demo`."""

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from rich.table import Table

from agents.models import Registration
from agents.models.family import EXTERNAL_WINDOW
from agents.services.registrations import register_external_agent
from arena_site.operations.processes import freeze_loaded_objects
from cohorts.conditions import stored_conditions
from cohorts.models import Cohort
from cohorts.weeks import WEEK
from foundation.commands import BAD_USAGE, ArenaCommand, CommandResult, score_text, table_text
from foundation.models import Run
from markets.services.cache_versions import Scope, renew_versions
from scoring.models import Leaderboard

SEASON_STARTS = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SNAPSHOTS_EVERY = timedelta(hours=12)
FORECASTS_EVERY = timedelta(days=2)
"""The demo's coarser grid: snapshots twice a day, a sync and a resolution pass once, forecasts every other day."""
DECISIONS_AT = timedelta(minutes=5)
RETRY_AT = timedelta(hours=6)
FORECASTS_AT = timedelta(hours=2)
DEMO = "demo"
GUEST = "Your own agent"
"""An external agent that joins with the season's last cohort."""
SUBMISSION_DELAY = timedelta(minutes=1)
"""From a freeze to the answers of external agents, and to the instant of the clock in the open week."""
ASKING = {"run_decisions", "run_forecasts"}
"""The commands that freeze tasks."""


@dataclass(frozen=True, slots=True)
class Step:
    """Commands to run at an instant."""

    at: datetime
    commands: tuple[str, ...]


def season(weeks: int) -> Iterator[Step]:
    """The season's timetable: a sync and a settlement each day; a cohort, decisions and a retry each Sunday.

    Forecasts run on Sundays and every second day after. Envelopes are opened when the external agents' time is over.
    The forecast leaderboards follow on Sundays and at the end.
    """
    instant, end = SEASON_STARTS, SEASON_STARTS + weeks * WEEK
    while instant <= end:
        midnight = (instant - SEASON_STARTS) % DAY == timedelta(0)
        sunday = (instant - SEASON_STARTS) % WEEK == timedelta(0) and instant < end
        daily = ("sync_markets", "check_resolutions") if midnight else ()
        yield Step(instant, (*daily, *(("start_cohort",) if sunday else ()), "take_snapshots"))
        if sunday:
            yield Step(instant + DECISIONS_AT, ("run_decisions",))
            yield Step(instant + DECISIONS_AT + EXTERNAL_WINDOW, ("open_envelopes",))
        if (instant - SEASON_STARTS) % WEEK % FORECASTS_EVERY == timedelta(0) and instant < end:
            yield Step(instant + FORECASTS_AT, ("run_forecasts",))
            yield Step(instant + FORECASTS_AT + EXTERNAL_WINDOW, ("open_envelopes",))
        if sunday:
            yield Step(instant + RETRY_AT, ("run_decisions",))
        instant += SNAPSHOTS_EVERY
    yield Step(end, ("compute_scores",))


def open_week_starts(weeks: int) -> datetime:
    """The Sunday after the season: its universe and questions are frozen for the external agent alone."""
    return SEASON_STARTS + weeks * WEEK


def external_agents_clock(weeks: int) -> datetime:
    """An instant at which the external agent may submit."""
    return open_week_starts(weeks) + DECISIONS_AT + SUBMISSION_DELAY


class Command(ArenaCommand):
    help = "Plays --weeks of the sandbox's season (SANDBOX_URL names it) and prints the final leaderboard."
    requires_system_checks: list[str] = []  # they load every page and endpoint, and it serves none
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--weeks", type=int, default=6)
        parser.add_argument("--methodology", metavar="V", help="the cohorts' methodology")
        parser.add_argument("--prepared", type=Path, metavar="FILE", help="make this file when the database is ready")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        root = os.environ.get("SANDBOX_URL")
        if not root:
            self.refuse("SANDBOX_URL is not set: start `manage.py sandbox`, or run `manage.py demo`")
        from arena_site.operations.demo_agents import answer_open_tasks, register_demo_agents

        self._prepare()
        agents = register_demo_agents(at=SEASON_STARTS)
        steps = list(season(options["weeks"]))
        with (
            Run.objects.recorded(DEMO, SEASON_STARTS) as run,
            httpx.Client() as clock,
            self.progress("playing") as progress,
        ):
            run.summary = {"weeks": options["weeks"]}
            if options["prepared"]:
                options["prepared"].touch()
            for number, step in enumerate(steps):
                week = (step.at - SEASON_STARTS).days // 7 + 1
                progress(number, len(steps), f"week {week}, {step.at:%a %d %b %H:%M}")
                if not self.stderr.isatty() and "start_cohort" in step.commands:
                    self.stderr.write(f"week {week} of {options['weeks']}: {step.at:%Y-%m-%d}")
                self._set_clock(clock, root, step.at)
                if "start_cohort" in step.commands and step.at == open_week_starts(options["weeks"] - 1):
                    guest = register_external_agent(name=GUEST, protocol=Registration.Protocol.BOTH, at=step.at)
                command_options: dict[str, dict[str, Any]] = {
                    "start_cohort": {"methodology": options["methodology"]} if options["methodology"] else {},
                    "check_resolutions": {"skip_leaderboards": "start_cohort" not in step.commands},
                }
                for command in step.commands:
                    self._run(command, step.at, **command_options.get(command, {}))
                if not ASKING.isdisjoint(step.commands):
                    answer_open_tasks(agents, at=step.at + SUBMISSION_DELAY)
                if not number:
                    freeze_loaded_objects()
            self.stdout.write(table_text(leaderboard_table("Leaderboard", LEADERBOARD, protocol="trading")))
            forecasts = leaderboard_table(
                "Forecasts", FORECASTS, protocol="forecast", arm=stored_conditions().board(), category=""
            )
            self.stdout.write(table_text(forecasts))
            # Before the open week: while its answers are sealed, an archive would hold no boards.
            self._run("publish_archive", open_week_starts(options["weeks"]))
            at = open_week_starts(options["weeks"]) + DECISIONS_AT
            self._set_clock(clock, root, at)
            self._run("run_decisions", at, family=guest.family.slug)  # freezes, and asks no model
            self._run("run_forecasts", at, family=guest.family.slug)
        renew_versions(*Scope)  # cached pages say that the season is being played
        self._admin()
        self.stdout.write(f"token of an external agent ({GUEST}): {guest.token}")
        return CommandResult(
            {"weeks": options["weeks"], "cohorts": Cohort.objects.count(), "database": _database_name()}
        )

    def _set_clock(self, client: httpx.Client, root: str, at: datetime) -> None:
        client.post(f"{root}/sandbox/clock", json={"now": at.isoformat()}).raise_for_status()

    def _run(self, command: str, at: datetime, **options: Any) -> None:
        """Runs a command as an operator would. Failures that it reports belong to the demo."""
        try:
            call_command(command, at=at, json=True, stdout=StringIO(), stderr=StringIO(), **options)
        except SystemExit:
            return

    def _prepare(self) -> None:
        """Creates an empty, migrated database; deletes nothing but an earlier demo."""
        if _holds_a_season():
            if not Run.objects.filter(kind=DEMO).exists():
                raise CommandError(
                    f"{_database_name()} holds a season that is no demo: name another with --database",
                    returncode=BAD_USAGE,
                )
            if connection.vendor == "sqlite":
                path = Path(str(connection.settings_dict["NAME"]))
                connection.close()
                for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                    file.unlink(missing_ok=True)
            else:
                for app in ("arena_site", "scoring", "agents", "cohorts", "markets", "foundation"):
                    call_command("migrate", app, "zero", verbosity=0)
        call_command("migrate", verbosity=0)

    def _admin(self) -> None:
        password = secrets.token_urlsafe(9)
        user, _ = get_user_model().objects.get_or_create(
            username="admin", defaults={"is_staff": True, "is_superuser": True}
        )
        user.set_password(password)
        user.save()
        self.stdout.write(f"admin login: admin / {password}")


Columns = dict[str, Callable[[dict[str, Any]], str]]
LEADERBOARD: Columns = {
    "#": lambda entry: score_text(entry["rank"], ""),
    "family": lambda entry: entry["display_name"],
    "value": lambda entry: f"{float(entry['total_value']):,.2f}",
    "return %": lambda entry: f"{entry['return_percent']:+.2f}",
    "95 % interval": lambda entry: _interval(entry["return_ci"], "+.1f"),
    "Brier": lambda entry: score_text(entry["brier"]),
    "win rate": lambda entry: score_text(entry["win_rate"], ".0%"),
    "resolved bets": lambda entry: str(entry["resolved_bets"]),
}
FORECASTS: Columns = {
    "#": lambda entry: "" if entry["rank"] is None or entry["reference"] else str(entry["rank"]),
    "forecaster": lambda entry: f"({entry['forecaster']})" if entry["reference"] else entry["display_name"],
    "questions": lambda entry: str(entry["n"]),
    "Brier (mean form)": lambda entry: score_text(entry["brier"]),
    "95 % interval": lambda entry: _interval(entry["brier_ci"], ".4f"),
    "alpha": lambda entry: score_text(entry["alpha"], "+.4f"),
    "log": lambda entry: score_text(entry["log"]),
}
"""The columns of the forecast leaderboard; references stand among the families, without a rank."""


def leaderboard_table(title: str, columns: Columns, **selection: str) -> Table:
    """A leaderboard over all methodologies as a table."""
    leaderboard = Leaderboard.objects.filter(methodology="", **selection).first()
    table = Table(title=f"{title}, {leaderboard.computed_at:%Y-%m-%d %H:%M} UTC" if leaderboard else title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 1 else "right")
    for entry in leaderboard.entries if leaderboard else ():
        table.add_row(*(write(entry) for write in columns.values()))
    return table


def _interval(ends: list[float] | None, form: str) -> str:
    return "–" if ends is None else f"{ends[0]:{form}} … {ends[1]:{form}}"


def _holds_a_season() -> bool:
    try:
        return Cohort.objects.exists() or Run.objects.filter(kind=DEMO).exists()
    except DatabaseError:  # no tables yet
        return False


def _database_name() -> str:
    return str(settings.DATABASES["default"]["NAME"])
