"""`manage.py demo`: plays a season against the sandbox, and serves the site meanwhile and afterwards."""

import secrets
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from arena_site import conf
from arena_site.kit import renew_kit
from arena_site.management.commands.sandbox_season import external_agents_clock
from arena_site.operations.processes import (
    POLL_S,
    StopRequested,
    manage_command,
    start,
    stop,
    stoppable,
    watch,
    web_server,
)
from foundation.commands import BAD_USAGE
from venue_sandbox.server import running


class Command(BaseCommand):
    help = (
        "Plays a season against the bundled sandbox over HTTP, serves the site from its first day on, and prints the "
        "leaderboard at its end. "
        "No key, no network, no database server."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--weeks", type=int, default=6, help="how many weeks to play (default 6)")
        parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same season, to the cent")
        parser.add_argument(
            "--methodology", metavar="V", help="the cohorts' methodology (default: the newest published)"
        )
        parser.add_argument("--database", metavar="URL", help="play into this database (default: DATABASE_URL)")
        parser.add_argument("--no-serve", action="store_true", help="stop after the table")
        parser.add_argument("--port", type=int, default=8000, help="where to serve the site")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["weeks"] < 1:
            raise CommandError("--weeks must be at least 1", returncode=BAD_USAGE)
        env = {
            "SECRET_KEY": secrets.token_urlsafe(40),
            "ARENA_SPEND_LIMIT_USD": "25",
            "ARENA_HTTPS": "false",
            "ARENA_DEMO": "true",
        }
        if options["database"]:
            try:
                conf.database(options["database"])
            except ValueError as wrong:
                raise CommandError(f"--database: {wrong}", returncode=BAD_USAGE) from None
            env["DATABASE_URL"] = options["database"]
        with stoppable():
            try:
                with running(seed=options["seed"], weeks=options["weeks"]) as sandbox:
                    env |= {
                        "GAMMA_BASE_URL": sandbox.gamma,
                        "CLOB_BASE_URL": sandbox.clob,
                        "KALSHI_BASE_URL": sandbox.kalshi,
                        "ARENA_SOURCES": "polymarket,kalshi",
                        "OPENROUTER_BASE_URL": sandbox.openrouter,
                        "SANDBOX_URL": sandbox.root,
                        "ARENA_SEARCH": "true",
                        "ARENA_EVIDENCE": "exa",
                        "ARENA_EVIDENCE_KEY": "sandbox",
                        "ARENA_EVIDENCE_BASE_URL": sandbox.exa,
                    }
                    self._play_and_serve(env, options)
            except StopRequested:
                self.stdout.write("stopped")

    def _play_and_serve(self, env: dict[str, str], options: dict[str, Any]) -> None:
        """Plays the season in a process whose settings name the sandbox; the site opens with its database."""
        with TemporaryDirectory() as folder:
            prepared = Path(folder) / "prepared"
            arguments = ["--weeks", str(options["weeks"]), "--prepared", str(prepared)]
            if options["methodology"]:
                arguments += ["--methodology", options["methodology"]]
            season = start(manage_command("sandbox_season", *arguments), env)
            processes = {"season": season}
            try:
                if not options["no_serve"]:
                    while not prepared.exists() and season.poll() is None:
                        time.sleep(POLL_S)
                    if season.poll() is None:
                        processes["web"] = self._start_site(env, options)
                self._end_of_season(processes, options["port"])
                if not options["no_serve"]:
                    if failure := renew_kit():
                        self.stdout.write(failure)
                    self._serve(processes["web"], options["port"])
            finally:
                for process in processes.values():
                    stop(process)

    def _start_site(self, env: dict[str, str], options: dict[str, Any]) -> "subprocess.Popen[str]":
        hosts = ",".join(dict.fromkeys([*settings.ALLOWED_HOSTS, "localhost", "127.0.0.1"]))
        clock = external_agents_clock(options["weeks"]).isoformat()
        self.stdout.write(f"playing; follow the season on http://127.0.0.1:{options['port']}/")
        self.stdout.flush()
        return start(web_server(options["port"]), env | {"ALLOWED_HOSTS": hosts, "ARENA_CLOCK": clock})

    def _end_of_season(self, processes: "dict[str, subprocess.Popen[str]]", port: int) -> None:
        if watch(processes) == "web":
            self._refuse_web(processes["web"], port)
        if code := processes["season"].returncode:
            raise CommandError("the season ended early", returncode=code)

    def _serve(self, web: "subprocess.Popen[str]", port: int) -> None:
        self.stdout.write(f"serving http://127.0.0.1:{port}/ and http://127.0.0.1:{port}/admin/ (Ctrl-C stops)")
        self.stdout.flush()
        watch({"web": web})
        self._refuse_web(web, port)

    def _refuse_web(self, web: "subprocess.Popen[str]", port: int) -> None:
        raise CommandError(f"the web server ended with {web.returncode}; is port {port} taken?")
