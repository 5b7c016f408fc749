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

        os.register_at_fork(after_in_child=forget_pools)
        # This app migrates last: by now every other app's permissions are there.
        post_migrate.connect(self.install_roles, sender=self)

    def install_roles(self, *, using: str, apps: Any = registry, **kwargs: Any) -> None:
        """Makes the roles, on a database that has groups and permissions to make them of."""
        from arena_site.desk import roles

        try:
            apps.get_model("auth", "Group")
        except LookupError:
            return  # an earlier state of the project, on the way there or back
        roles.install(using)


def forget_pools() -> None:
    """Leaves a parent's PostgreSQL connections to the parent.

    The cluster forks its workers. A pool that came along would hand the same sockets to all of them, and answers to
    one process's question would reach another. Nothing is closed: that would end the parent's sessions.
    """
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql":
            connection._connection_pools.clear()  # type: ignore[attr-defined]
            connection.connection = None
