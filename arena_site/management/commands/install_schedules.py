"""Installs the schedules of the live jobs, as `manage.py arena` does at each start."""

from operator import attrgetter
from typing import Any

from django.core.management.base import BaseCommand

from arena_site import jobs


class Command(BaseCommand):
    help = "Makes the schedules in the database exactly those of the code; paused ones stay paused."

    def handle(self, *args: Any, **options: Any) -> None:
        names = sorted(map(attrgetter("name"), jobs.install()))
        self.stdout.write(f"{len(names)} schedules installed: {', '.join(names)}")
