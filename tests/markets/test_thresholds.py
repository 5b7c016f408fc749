"""Nested thresholds by the names that venues give the options of one event."""

import pytest

from markets.thresholds import nested_chains


@pytest.mark.parametrize(
    ("names", "chains"),
    [
        (["$74,300 or above", "$75,000 or above"], [[0, 1]]),  # Kalshi's
        (["$979.99 or below", "$1,100 or below"], [[1, 0]]),
        (["Over 3.5 maps", "Over 2.5 maps"], [[1, 0]]),
        (["↑ 110,000", "↑ 100,000", "↓ 80,000", "↓ 70,000"], [[1, 0], [2, 3]]),  # Polymarket's
        (["5+", "10+"], [[0, 1]]),
        (["$1,000 to 1,019.99", "$1,020 to 1,039.99"], []),  # ranges
        (["Exactly 5", "Exactly 6"], []),
        (["no more than 3", "no more than 5"], []),
        ([">$500M", ">$1B"], []),  # other units
        (["Liverpool", "Arsenal"], []),
        (["Over 2.5 maps", "Over 2.5 maps"], []),
        (["December 31, 2025", "March 31, 2026"], []),  # no title that says by when
    ],
)
def test_chains_run_from_the_option_that_others_imply(names: list[str], chains: list[list[int]]) -> None:
    assert nested_chains("What will it be?", dict(enumerate(names))) == chains


def test_dates_are_nested_where_the_title_ends_in_by() -> None:
    names = {1: "December 31, 2025", 2: "March 31, 2026", 3: "February 30, 2026", 4: "Never"}
    assert nested_chains("MicroStrategy sells any Bitcoin by ___ ?", names) == [[2, 1]]
    assert nested_chains("Bitcoin sold by…?", names) == [[2, 1]]
