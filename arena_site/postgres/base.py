"""Django's PostgreSQL, whose statements the server prepares: told how many parameters one of those may have."""

from collections.abc import Sequence
from typing import Any

from django.db.backends.postgresql import base, features, operations


class DatabaseFeatures(features.DatabaseFeatures):
    max_query_params = 2**16 - 1  # the protocol counts them in two bytes


class DatabaseOperations(operations.DatabaseOperations):
    def bulk_batch_size(self, fields: Sequence[Any], objs: Sequence[Any]) -> int:
        """Rows that one statement may write."""
        return DatabaseFeatures.max_query_params // len(fields)


class DatabaseWrapper(base.DatabaseWrapper):
    features_class = DatabaseFeatures
    ops_class = DatabaseOperations
