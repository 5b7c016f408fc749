from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets, prices and universes"

    def ready(self) -> None:
        pre_migrate.connect(self.remove_triggers, sender=self)
        post_migrate.connect(self.install_triggers, sender=self)

    def remove_triggers(self, *, using: str, plan: Any, **kwargs: Any) -> None:
        """Lets migrations change tables, and rows that are closed to everybody else."""
        if plan:
            from markets import guards

            guards.remove(connections[using], guards.declared())

    def install_triggers(self, *, using: str, **kwargs: Any) -> None:
        """Guards the tables of every app: all are there by the time the first app is told that migrations are done."""
        from markets import guards

        guards.install(connections[using])
