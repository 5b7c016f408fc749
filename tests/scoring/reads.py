"""Statements that a read executes."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def statements(read: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    """The number of statements that a call executes."""
    with CaptureQueriesContext(connection) as captured:
        read(*arguments, **options)
    return len(captured)
