"""`manage.py arena`: the whole arena, live, in one process tree."""

from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections
from django.utils import timezone

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.services.catalogue_check import check_lineup
from agents.services.lineups import effective_from
from agents.services.release_check import UnusableLineUp, approval_lines, renew_lineup
from arena_site import jobs
from arena_site.kit import renew_kit
from arena_site.operations.host_claims import claim_host, has_claims_table, host_id, host_refusal, take_over
from arena_site.operations.preparation_lock import preparation_lock
from arena_site.operations.supervisor import become_supervisor
from cohorts.models import Cohort
from foundation.commands import BAD_USAGE
from foundation.layout import layout_refusal

FIRST_STEPS = ("sync_markets", "start_cohort", "run_decisions", "run_forecasts")
"""The commands of `--now`, in their order."""

FRONT_NEEDED = "put a front that buffers before it (see docs/deploy.md), since slow clients can hold every thread"


def is_loopback(host: str) -> bool:
    """Whether a port on this host is for this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def site_url(host: str, port: int) -> str:
    """The address of the links in alerts where no setting names one: the one that is served."""
    everywhere = host in ("0.0.0.0", "::")  # noqa: S104 - a comparison
    name = "localhost" if everywhere else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


class Command(BaseCommand):
    help = "Migrates, installs the schedules, and runs the web server and the worker, which it restarts, until Ctrl-C."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="this machine alone by default: an open port needs a front that buffers"
        )
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--web-workers", type=int, default=2)
        parser.add_argument(
            "--current", action="store_true", help="before the first cohort: approve each maker's flagship"
        )
        parser.add_argument(
            "--now", action="store_true", help="sync, start the cohort, ask for decisions and forecasts; then end"
        )
        parser.add_argument(
            "--take-over", action="store_true", help="let this host work on a restored or moved database; then end"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not (settings.SECRET_KEY_IS_SET or settings.DEBUG):
            raise CommandError(
                "SECRET_KEY is not set: put SECRET_KEY=<50 random characters> into .env", returncode=BAD_USAGE
            )
        with preparation_lock():
            if refusal := layout_refusal(connection):
                raise CommandError(refusal)
            if not options["take_over"] and has_claims_table() and (refusal := host_refusal()):
                raise CommandError(refusal)
            call_command("migrate", verbosity=0)
            claim = take_over if options["take_over"] else claim_host
            claim(at=timezone.now())
            schedules = jobs.install()
            is_checked_later = options["now"] or options["take_over"]
            line_up = [] if is_checked_later or Cohort.objects.exists() else self._check_line_up(options["current"])
        if options["take_over"]:
            self.stdout.write(f"host {host_id()} works on the database now; workers that wait begin by themselves")
        if options["now"]:
            self._begin(current=options["current"])
        if options["take_over"] or options["now"]:
            return
        self.stdout.write(f"{len(schedules)} schedules installed: " + ", ".join(str(s.name) for s in schedules))
        if not settings.OPENROUTER_API_KEY:
            self.stdout.write("no OPENROUTER_API_KEY: decisions will fail until it is set")
        for line in [*line_up, *filter(None, [renew_kit()])]:
            self.stdout.write(line)
        if not get_user_model().objects.filter(is_superuser=True).exists():
            self.stdout.write("no admin yet; make the first one with: uv run manage.py createsuperuser")
        host, port = options["host"], options["port"]
        if not is_loopback(host):
            self.stdout.write(f"{host} is open to others: {FRONT_NEEDED}")
        self.stdout.flush()
        connections.close_all()
        url = "" if settings.SITE_URL_IS_SET else site_url(host, port)
        become_supervisor(
            host=host, port=port, web_workers=options["web_workers"], drain_s=settings.ARENA_DRAIN_S, site_url=url
        )

    def _begin(self, *, current: bool) -> None:
        """Does at once what waits for Sunday. Each step does only what is still to be done."""
        failed = []
        for name in FIRST_STEPS:
            self.stdout.write(f"{name}:")
            self.stdout.flush()
            options = {"current": current and not Cohort.objects.exists()} if name == "start_cohort" else {}
            try:
                call_command(name, at=jobs.job_instant(), stdout=self.stdout, stderr=self.stderr, **options)
            except SystemExit:
                failed.append(name)
                if name == "start_cohort":
                    break  # nobody could be asked
        if failed:
            raise CommandError(f"{', '.join(failed)} failed; once that is mended, run it again")

    def _check_line_up(self, current: bool) -> list[str]:
        """Lines on the releases that the first cohort could not use, or that were replaced."""
        at = timezone.now()
        try:
            catalogue = clients.model_catalogue()
            if current:
                _, changes = renew_lineup(
                    catalogue, current=True, week=effective_from(at=at), by="arena --current", at=at
                )
                return list(map(str, changes))
        except GatewayFailure as failure:
            return [f"the line-up could not be checked, and no cohort starts before it is: {failure.reason}"]
        except UnusableLineUp as error:
            return approval_lines(error.unusable, current=error.current)
        unusable = check_lineup(catalogue, at=at).unusable if catalogue else []
        return approval_lines(unusable, automatic=settings.ARENA_LINEUP == "auto")
