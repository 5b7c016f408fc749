from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

from foundation import guards


class FoundationConfig(AppConfig):
    name = "foundation"
    verbose_name = "Runs and alerts"

    def ready(self) -> None:
        pre_migrate.connect(self.remove_triggers, sender=self)
        post_migrate.connect(self.install_triggers, sender=self)

    def remove_triggers(self, *, using: str, plan: Any, **kwargs: Any) -> None:
        """Lets migrations change protected tables and rows."""
        if plan:
            guards.remove(connections[using], guards.declared())

    def install_triggers(self, *, using: str, **kwargs: Any) -> None:
        """Protects the tables of every app, all of which exist by the time the first app hears of the migrate."""
        guards.install(connections[using])
