"""A PostgreSQL backend for server-side prepared statements, with cheaper instants."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from django.db.backends.postgresql import base, features, operations
from psycopg.types.datetime import TimestamptzLoader


class DatabaseFeatures(features.DatabaseFeatures):
    max_query_params = 2**16 - 1  # the protocol counts them in two bytes


class DatabaseOperations(operations.DatabaseOperations):
    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Rows that one statement may write."""
        return DatabaseFeatures.max_query_params // len(fields)


class DatabaseWrapper(base.DatabaseWrapper):
    features_class = DatabaseFeatures
    ops_class = DatabaseOperations

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = super().create_cursor(name)
        if self.timezone is UTC:
            # Django parses instants in Python to convert their zone, 11 µs each on a busy core; psycopg's C loader
            # takes 0.2 µs, so that 300 of a page's save 3 ms. The connection's zone is UTC already.
            cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        return cursor
