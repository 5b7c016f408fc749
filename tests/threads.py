"""Calls that begin at the same moment, as those of several processes may."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")


def all_at_once(*functions: Callable[[], Result]) -> list[Result]:
    """The results of calls that begin together, each in a thread with a database connection of its own."""
    start = Barrier(len(functions), timeout=20)

    def call(function: Callable[[], Result]) -> Result:
        start.wait()
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(functions)) as pool:
        return list(pool.map(call, functions, timeout=20))
