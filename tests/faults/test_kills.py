"""Death at any instant: a command killed at each step boundary and run again leaves the books of a quiet Sunday."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from markets.failpoints import POINTS
from tests.kills import LINE_UP, Arena, Death, arena_in, differences, random_deaths


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Arena]:
    with arena_in(tmp_path_factory.mktemp("kills"), django_db_blocker.unblock) as arena:
        yield arena


@pytest.fixture(scope="module")
def prepared(arena: Arena) -> str:
    return arena.prepare(LINE_UP)


@pytest.fixture(scope="module")
def undisturbed(arena: Arena, prepared: str) -> dict[str, object]:
    books = arena.play(arena.database.fresh(prepared), lambda index, attempt: None)
    assert books["trades"]
    assert books["settlements"]
    assert books["violations"] == []
    return books


@pytest.mark.parametrize("point", POINTS)
def test_failure_05_killed_at_each_step_boundary_and_run_again_nothing_differs(
    arena: Arena, prepared: str, undisturbed: dict[str, object], point: str
) -> None:
    before = arena.deaths
    name = arena.database.fresh(prepared)
    # The second try of whatever reaches the point dies too, a little later.
    books = arena.play(name, lambda index, attempt: Death(point, count=attempt + 1) if attempt < 2 else None)
    arena.database.drop(name)
    assert arena.deaths > before, f"nothing reaches {point}"
    assert differences(undisturbed, books) == []


def test_killed_at_random_and_run_again_nothing_differs(
    arena: Arena, prepared: str, undisturbed: dict[str, object]
) -> None:
    dice = random.Random(20260308)
    for _ in range(3):
        name = arena.database.fresh(prepared)
        books = arena.play(name, random_deaths(dice, longest_s=0.6))
        arena.database.drop(name)
        assert differences(undisturbed, books) == []
