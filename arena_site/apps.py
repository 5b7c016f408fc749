import os

from django.apps import AppConfig
from django.db import connections


class ArenaSiteConfig(AppConfig):
    name = "arena_site"
    verbose_name = "The arena"

    def ready(self) -> None:
        from arena_site import checks  # noqa: F401 - registers them

        os.register_at_fork(after_in_child=forget_pools)


def forget_pools() -> None:
    """Leaves a parent's PostgreSQL connections to the parent.

    The cluster forks its workers. A pool that came along would hand the same sockets to all of them, and answers to
    one process's question would reach another. Nothing is closed: that would end the parent's sessions.
    """
    for connection in connections.all(initialized_only=True):
        if connection.vendor == "postgresql":
            connection._connection_pools.clear()  # type: ignore[attr-defined]
            connection.connection = None
