"""The fault matrix: what each command makes of each thing that an upstream may do wrong, at each of its requests.

A cell says what comes of it, and how often the upstream is asked. `tests.faults.entry_points` spells the words out:
beyond them nothing on record may change, and the same command succeeds an hour later, when the fault is gone.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import stamina
from django.db import transaction
from django.test import override_settings
from pytest_httpserver import HTTPServer

from agents.services import model_calls
from agents.services.gone_releases import RELEASE_GONE
from foundation.models import Alert
from foundation.services.alerts import acknowledge_alerts
from tests.commands import run
from tests.faults.entry_points import ENTRY_POINTS, HOUR, EntryPoint, facts
from tests.faults.upstream import FAULTS, TIMEOUT_S, TINY_TIMEOUT_S, faulty
from tests.foundation.test_http import Act
from tests.sandbox import Venue, addresses

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

MATRIX = """
                        catalogue  page two  look-up    winner    jump        midpoints  books       freeze    model
takes no connection     fails      fails     fails      fails     stale       stale      all stale   stale     fails
refuses the connection  fails      fails     fails      fails     stale       stale      all stale   stale     fails
resets the connection   fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
never answers           fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
drips its headers       fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
drips its body          fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
breaks off in the body  fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
sends without end       fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   books 1
sends 40 MiB            fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   books 1
400                     fails 1    part 1    fails 1    fails 1   bookless 3  stale 4    bookless 4  stale 4   fails 1
401                     fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 1
402                     fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 1
403                     fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 1
404                     fails 2    part 1    gone 1     waits 1   bookless 3  stale 4    bookless 4  stale 4   fails 1
408                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
422                     fails 1    part 1    gone 1     fails 1   bookless 3  stale 4    bookless 4  stale 4   fails 1
429                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
429, retry at once      fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
429, retry in 30 years  fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 1
500                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
502                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
503                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
504                     fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
503, retry in 30 years  fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 1
301 to elsewhere        fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 2
HTML with 200           fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
nothing with 200        fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
half a JSON with 200    fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
an error with 200       fails 1    part 1    fails 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 2
a rate limit with 200   fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   fails 2
other JSON with 200     fails 1    part 1    skips 1    fails 1   stale 1     stale 1    stale 1     stale 1   fails 2
bytes that are no text  fails 2    part 2    fails 2    fails 2   stale 2     stale 2    stale 2     stale 2   books 2
"""

TIMEOUTS = {
    "GAMMA_BASE_URL": "ARENA_VENUE_TIMEOUT_S",
    "CLOB_BASE_URL": "ARENA_VENUE_TIMEOUT_S",
    "OPENROUTER_BASE_URL": "ARENA_LLM_TIMEOUT_S",
}


def _cells() -> dict[tuple[str, str], tuple[str, int | None]]:
    """The matrix: what (entry point, fault) comes to, and in how many requests where any arrives."""
    heading, *lines = MATRIX.strip("\n").splitlines()
    starts = [match.start() for match in re.finditer(r"(?<=  )\S", heading)]
    columns = [slice(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]
    cells = {}
    for line in lines:
        for column in columns:
            word, requests = re.fullmatch(r"(\D+?)(?: (\d+))?", line[column].strip()).groups()
            cells[heading[column].strip(), line[: starts[0]].strip()] = word, requests and int(requests)
    return cells


CELLS = _cells()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """One retry of what may pass, at venues and at the gateway alike, and no wait before it."""
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


@pytest.fixture(scope="module")
def entered(
    request: pytest.FixtureRequest, venue_server: HTTPServer, django_db_setup: None, django_db_blocker: Any
) -> Iterator[tuple[EntryPoint, list[Act]]]:
    """An entry point, its state built once: what a test does to it is undone with the test's own transaction."""
    entry_point: EntryPoint = request.param
    venue_server.clear()
    with django_db_blocker.unblock(), override_settings(**addresses(venue_server)), transaction.atomic():
        venue = Venue(venue_server)
        entry_point.prepare(venue)
        yield entry_point, [entry_point.before(venue)] if entry_point.before else []
        transaction.set_rollback(True)


@pytest.mark.django_db
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("entered", ENTRY_POINTS, indirect=True, ids=lambda point: point.name)
def test_fault_of_an_upstream(entered: tuple[EntryPoint, list[Act]], fault: str, settings: Any) -> None:
    entry_point, before = entered
    behaviour, (word, requests) = FAULTS[fault], CELLS[entry_point.name, fault]
    tiny = (
        8 * TINY_TIMEOUT_S if before else TINY_TIMEOUT_S
    )  # so that a busy machine answers the requests before the fault
    with faulty(behaviour, *before) as upstream:
        setattr(settings, entry_point.setting, upstream.url)
        setattr(settings, TIMEOUTS[entry_point.setting], tiny if behaviour.hangs else TIMEOUT_S)
        assert facts(entry_point, entry_point.at, entry_point.results[word]) == entry_point.results[word]
    assert requests is None or upstream.requests == len(before) + requests


@pytest.mark.django_db
@pytest.mark.parametrize("fault", ["resets the connection", "401", "404", "429", "503", "other JSON with 200"])
@pytest.mark.parametrize("entered", ENTRY_POINTS, indirect=True, ids=lambda point: point.name)
def test_command_succeeds_once_the_fault_is_gone(
    entered: tuple[EntryPoint, list[Act]], fault: str, settings: Any
) -> None:
    entry_point, before = entered
    address = getattr(settings, entry_point.setting)
    with faulty(FAULTS[fault], *before) as upstream:
        setattr(settings, entry_point.setting, upstream.url)
        run(entry_point.command, entry_point.at, **entry_point.options)
    setattr(settings, entry_point.setting, address)
    acknowledge_alerts(Alert.objects.filter(kind=RELEASE_GONE), at=entry_point.at)  # so that the release is asked again
    assert facts(entry_point, entry_point.at + HOUR, entry_point.an_hour_later) == entry_point.an_hour_later


def test_matrix_holds_every_fault_and_every_word_of_every_door() -> None:
    assert CELLS.keys() == {(entry_point.name, fault) for entry_point in ENTRY_POINTS for fault in FAULTS}
    cells = {(entry_point, word) for (entry_point, _), (word, _) in CELLS.items()}
    assert cells == {(entry_point.name, word) for entry_point in ENTRY_POINTS for word in entry_point.results}
