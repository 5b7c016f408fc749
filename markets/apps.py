from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

from markets.foundation import guards


class MarketsConfig(AppConfig):
    name = "markets"
    verbose_name = "Markets, prices and universes"

    def ready(self) -> None:
        pre_migrate.connect(self.remove_triggers, sender=self)
        post_migrate.connect(self.install_triggers, sender=self)
        post_migrate.connect(self.renew_cache_versions, sender=self)

    def remove_triggers(self, *, using: str, plan: Any, **kwargs: Any) -> None:
        """Lets migrations change protected tables and rows."""
        if plan:
            guards.remove(connections[using], guards.declared())

    def install_triggers(self, *, using: str, **kwargs: Any) -> None:
        """Protects the tables of every app, all of which exist by the time the first app hears of the migrate."""
        guards.install(connections[using])

    def renew_cache_versions(self, *, using: str, **kwargs: Any) -> None:
        """Gives every scope a version, and responses cached by older code no chance: they may have another form."""
        from markets.models import CacheVersion
        from markets.services.cache_versions import Scope, renew_versions

        if CacheVersion._meta.db_table in connections[using].introspection.table_names():
            renew_versions(*Scope)
