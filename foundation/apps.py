from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db import connections, transaction
from django.db.models.signals import post_migrate, pre_migrate

from foundation import draining, guards
from foundation.migration_operations import limit_lock_waits, surround
from foundation.version import VERSION


class FoundationConfig(AppConfig):
    name = "foundation"
    verbose_name = "Runs and alerts"

    def ready(self) -> None:
        draining.grace_s = settings.ARENA_DRAIN_S
        pre_migrate.connect(self.surround_migrations, sender=self)
        post_migrate.connect(self.install_triggers, sender=self)
        post_migrate.connect(self.record_version, sender=self)

    def surround_migrations(self, *, plan: Any, **kwargs: Any) -> None:
        """Limits how long the migrations of a plan wait for locks, and lets them change protected tables of SQLite."""
        for migration, _ in plan:
            surround(migration)

    def install_triggers(self, *, using: str, **kwargs: Any) -> None:
        """Protects the tables of every app, all of which exist by the time the first app hears of the migrate."""
        with transaction.atomic(using=using):
            limit_lock_waits(connections[using])
            guards.install(connections[using])

    def record_version(self, *, using: str, **kwargs: Any) -> None:
        """Stores which version migrated the database last."""
        layouts = self.get_model("DatabaseLayout")._default_manager.using(using)
        if layouts.model._meta.db_table in connections[using].introspection.table_names():
            layouts.filter(pk=1).update(migrated_by=VERSION)
