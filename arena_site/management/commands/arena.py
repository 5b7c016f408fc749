"""`manage.py arena`: the whole arena, live, in one process tree."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from agents import clients
from agents.gateway import GatewayFailure
from agents.services.catalogue_check import check_lineup
from agents.services.release_check import approval_lines
from arena_site import jobs
from arena_site.processes import StopRequested, manage_command, start, stop, stoppable, watch, web_server
from cohorts.models import Cohort

BAD_USAGE = 2


class Command(BaseCommand):
    help = "Migrates, installs the schedules, and runs the web server and the worker until Ctrl-C."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--web-workers", type=int, default=2)

    def handle(self, *args: Any, **options: Any) -> None:
        if not (settings.SECRET_KEY_IS_SET or settings.DEBUG):
            raise CommandError(
                "SECRET_KEY is not set: put SECRET_KEY=<50 random characters> into .env", returncode=BAD_USAGE
            )
        call_command("migrate", verbosity=0)
        schedules = jobs.install()
        self.stdout.write(f"{len(schedules)} schedules installed: " + ", ".join(str(s.name) for s in schedules))
        if not settings.OPENROUTER_API_KEY:
            self.stdout.write("no OPENROUTER_API_KEY: decisions will fail until it is set")
        if not Cohort.objects.exists():
            self._check_line_up()
        if not get_user_model().objects.filter(is_superuser=True).exists():
            self.stdout.write("no admin yet; make the first one with: uv run manage.py createsuperuser")
        address = f"http://{options['host']}:{options['port']}/"
        with stoppable():
            tree = {}
            try:
                tree["worker"] = start(manage_command("qcluster"))
                tree["web"] = start(web_server(options["port"], host=options["host"], workers=options["web_workers"]))
                self.stdout.write(f"serving {address} (Ctrl-C stops)")
                self.stdout.flush()
                name = watch(tree)
                raise CommandError(f"the {name} process ended with {tree[name].returncode}: stopping")
            except StopRequested:
                self.stdout.write("stopping")
            finally:
                for process in tree.values():
                    stop(process)

    def _check_line_up(self) -> None:
        """Says at the first start which releases the first cohort could not use; the dashboard has the proposal."""
        try:
            catalogue = clients.model_catalogue()
        except GatewayFailure as failure:
            self.stdout.write(f"the line-up could not be checked, and no cohort starts before it is: {failure.reason}")
            return
        unusable = check_lineup(catalogue, at=timezone.now()).unusable if catalogue else []
        for line in approval_lines(unusable, automatic=settings.ARENA_LINEUP == "auto"):
            self.stdout.write(line)
