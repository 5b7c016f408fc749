"""`manage.py sandbox`: a local stand-in for the exchange and the model gateway."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from venue_sandbox.server import serve


class Command(BaseCommand):
    help = "Serve the sandbox until it is told to stop; the first line printed holds its addresses as JSON."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
        parser.add_argument("--seed", type=int, default=0, help="the same seed plays the same season")
        parser.add_argument("--weeks", type=int, default=0, help="has markets for so many weeks, at least for nine")

    def handle(self, *args: Any, port: int, seed: int, weeks: int, **options: Any) -> None:
        serve(port=port, seed=seed, weeks=weeks)
