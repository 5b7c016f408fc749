"""`manage.py demo`: plays a season against the sandbox, then serves the site."""

import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from venue_sandbox.server import running

from arena_site import conf
from arena_site.management.commands.sandbox_season import external_agents_clock
from arena_site.processes import StopRequested, manage_command, start, stop, stoppable, watch, web_server
from foundation.commands import BAD_USAGE


class Command(BaseCommand):
    help = (
        "Plays a season against the bundled sandbox over HTTP, prints the leaderboard, then serves the site. "
        "No key, no network, no database server."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--weeks", type=int, default=6, help="how many weeks to play (default 6)")
        parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same season, to the cent")
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
                with running(seed=options["seed"], weeks=options["weeks"], precompute=True) as sandbox:
                    env |= {
                        "GAMMA_BASE_URL": sandbox.gamma,
                        "CLOB_BASE_URL": sandbox.clob,
                        "KALSHI_BASE_URL": sandbox.kalshi,
                        "ARENA_SOURCES": "polymarket,kalshi",
                        "OPENROUTER_BASE_URL": sandbox.openrouter,
                        "SANDBOX_URL": sandbox.root,
                    }
                    self._play(env, options["weeks"])
                if not options["no_serve"]:
                    env["ARENA_CLOCK"] = external_agents_clock(options["weeks"]).isoformat()
                    self._serve(env, options["port"])
            except StopRequested:
                self.stdout.write("stopped")

    def _play(self, env: dict[str, str], weeks: int) -> None:
        """Plays the season in a process of its own, whose settings name the sandbox."""
        season = start(manage_command("sandbox_season", "--weeks", str(weeks)), env)
        try:
            code = season.wait()
        finally:
            stop(season)
        if code:
            raise CommandError("the season ended early", returncode=code)

    def _serve(self, env: dict[str, str], port: int) -> None:
        self.stdout.write(f"serving http://127.0.0.1:{port}/ and http://127.0.0.1:{port}/admin/ (Ctrl-C stops)")
        self.stdout.flush()
        hosts = ",".join(dict.fromkeys([*settings.ALLOWED_HOSTS, "localhost", "127.0.0.1"]))
        web = start(web_server(port), env | {"ALLOWED_HOSTS": hosts})
        try:
            watch({"web": web})
            raise CommandError(f"the web server ended with {web.returncode}; is port {port} taken?")
        finally:
            stop(web)
