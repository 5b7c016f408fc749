"""Rows made once for a module's tests, each of which sees them as they were made."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction


def once(make: Callable[[], Any]) -> Any:
    """A fixture of a module: what `make` returns, made in a transaction around all tests' own, and taken back."""

    @pytest.fixture(scope="module")
    def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
        with django_db_blocker.unblock(), transaction.atomic():
            yield make()
            transaction.set_rollback(True)

    return made
