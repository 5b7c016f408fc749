import os
from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.db import connections
from django.db.models.signals import post_migrate


class ArenaSiteConfig(AppConfig):
    name = "arena_site"
    verbose_name = "The arena"

    def ready(self) -> None:
        from arena_site import checks  # noqa: F401 - registers them

        os.register_at_fork(after_in_child=drop_pools)
        # This app migrates last: by now every other app's permissions are there.
        post_migrate.connect(self.install_roles, sender=self)

    def install_roles(self, *, using: str, apps: Any = registry, **kwargs: Any) -> None:
        """Creates the roles, once the database has groups and permissions."""
        from arena_site.dashboard import roles

        try:
            apps.get_model("auth", "Group")
        except LookupError:
            return  # a historical state without auth, while migrating
        roles.install(using)


def drop_pools() -> None:
    """Drops inherited PostgreSQL connection pools in a forked worker.

    A shared pool would give several workers the same socket, and one the results of another's query. Nothing is closed,
    since that would end the parent's sessions.
    """
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql":
            connection._connection_pools.clear()  # type: ignore[attr-defined]
            connection.connection = None
