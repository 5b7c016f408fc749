"""Django's PostgreSQL, whose statements the server prepares: told how many parameters one of those may have."""

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
            # Django reads every instant in Python, to put it in whatever zone; psycopg's C takes a tenth of the time
            # and puts it in the connection's, which Django sets to this one.
            cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        return cursor
