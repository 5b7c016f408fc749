"""Django's PostgreSQL, whose statements the server prepares: told how many parameters one of those may have.

What every request pays for is done with less: psycopg's C reads instants, and the pool's connections are looked at
before they are asked.
"""

import select
from collections.abc import Sequence
from datetime import UTC
from typing import Any

from django.db.backends.postgresql import base, features, operations
from psycopg import Connection
from psycopg.types.datetime import TimestamptzLoader
from psycopg_pool import ConnectionPool


class DatabaseFeatures(features.DatabaseFeatures):
    max_query_params = 2**16 - 1  # the protocol counts them in two bytes


class DatabaseOperations(operations.DatabaseOperations):
    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Rows that one statement may write."""
        return DatabaseFeatures.max_query_params // len(fields)


class DatabaseWrapper(base.DatabaseWrapper):
    features_class = DatabaseFeatures
    ops_class = DatabaseOperations

    @property
    def pool(self) -> Any:
        pool = super().pool
        if pool is not None and pool._check is ConnectionPool.check_connection:
            pool._check = _check  # Django takes no other
        return pool

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = super().create_cursor(name)
        if self.timezone is UTC:
            # Django reads every instant in Python, to put it in whatever zone; psycopg's C takes a tenth of the time
            # and puts it in the connection's, which Django sets to this one.
            cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        return cursor


def _check(connection: Connection[Any]) -> None:
    """Is a connection of the pool still there? Raises OperationalError if not.

    A server that ends one says so on its socket: only where there is anything to be heard is it asked, which takes half
    as long as a kept answer.
    """
    heard = select.poll()
    heard.register(connection.fileno(), select.POLLIN)
    if heard.poll(0):
        ConnectionPool.check_connection(connection)
