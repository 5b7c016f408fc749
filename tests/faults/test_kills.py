"""Death at any instant: a command killed at each step boundary and run again leaves the books of a quiet Sunday."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from markets.failpoints import POINTS
from tests.kills import LINE_UP, Arena, Death, Quiet, arena_in, differences, random_deaths


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any, migrated: str) -> Iterator[Arena]:
    with arena_in(tmp_path_factory.mktemp("kills"), django_db_blocker.unblock, migrated) as arena:
        yield arena


@pytest.fixture(scope="module")
def prepared(arena: Arena) -> str:
    return arena.prepare(LINE_UP)


@pytest.fixture(scope="module")
def undisturbed(arena: Arena, prepared: str) -> Quiet:
    quiet = arena.quiet(prepared)
    assert quiet.books["trades"]
    assert quiet.books["settlements"]
    assert quiet.books["violations"] == []
    return quiet


@pytest.mark.parametrize("point", POINTS)
def test_failure_05_killed_at_each_step_boundary_and_run_again_nothing_differs(
    arena: Arena, undisturbed: Quiet, point: str
) -> None:
    before, first = arena.deaths, undisturbed.first(point)
    name = arena.database.fresh(undisturbed.found[first])
    # The second try of whatever reaches the point dies too, a little later.
    books = arena.play(name, lambda _, attempt: Death(point, count=attempt + 1) if attempt < 2 else None, first=first)
    arena.database.drop(name)
    assert arena.deaths > before, f"nothing reaches {point}"
    assert differences(undisturbed.books, books) == []


def test_killed_at_random_and_run_again_nothing_differs(arena: Arena, prepared: str, undisturbed: Quiet) -> None:
    dice = random.Random(20260308)
    for _ in range(3):
        name = arena.database.fresh(prepared)
        books = arena.play(name, random_deaths(dice, longest_s=0.6))
        arena.database.drop(name)
        assert differences(undisturbed.books, books) == []
