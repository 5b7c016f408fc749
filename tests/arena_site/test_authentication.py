"""External agents' tokens: the limit on wrong ones, and their last use."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.services.registrations import register_external_agent

pytestmark = pytest.mark.django_db


def get_open_tasks(token: str, address: str = "203.0.113.1") -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return Client().get("/api/v1/submissions/open/", headers=headers, REMOTE_ADDR=address)


def test_wrong_tokens_are_throttled_by_client_and_valid_ones_never() -> None:
    token = register_external_agent(name="Guest", protocol="both", at=timezone.now()).token
    codes = [get_open_tasks(f"arena_{number}").status_code for number in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert int(get_open_tasks("arena_wrong")["Retry-After"]) > 0
    assert get_open_tasks("arena_wrong", "203.0.113.2").status_code == 401
    assert get_open_tasks(token).status_code == 200


def test_use_is_recorded_at_most_once_a_minute() -> None:
    created = timezone.now()
    row: Any = register_external_agent(name="Guest", protocol="both", at=created)
    last_uses = []
    for seconds in (0, 30, 59, 61, 90, 10):
        with (
            time_machine.travel(created + timedelta(seconds=seconds), tick=False),
            CaptureQueriesContext(connection) as q,
        ):
            get_open_tasks(row.token)
        row.refresh_from_db()
        wrote = any(f'UPDATE "{row._meta.db_table}"' in query["sql"] for query in q)
        last_uses.append((round((row.last_used_at - created).total_seconds()), wrote))
    # A clock that was set back is believed: the last use is not left in the future.
    assert last_uses == [(0, True), (0, False), (0, False), (61, True), (61, False), (10, True)]
