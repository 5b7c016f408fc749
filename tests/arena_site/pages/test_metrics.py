"""Where the metrics of a leaderboard disagree, in sentences."""

from typing import Any

import pytest

from arena_site.pages.metrics import METRICS, disagreements, ordinal


def entry(name: str, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(key.partition(":")[0] for key in METRICS)
    return {**empty, "forecaster": name, "display_name": name, "reference": False, "external": False, **values}


ENTRIES = [
    entry("Ann", brier=0.10, ece=0.05, log=-0.30, bt_ability=0.1),
    entry("Bob", brier=0.11, ece=0.04, log=-0.31, bt_ability=0.2),
    entry("Cat", brier=0.12, ece=0.01, log=-0.32, bt_ability=0.9),
    entry("Market", brier=0.01, ece=0.5, log=-9.0, reference=True),
    entry("Guest", brier=0.01, ece=0.5, log=-9.0, external=True),
]


def test_largest_disagreements_are_named_with_both_ranks_and_the_reason() -> None:
    agreement = {"brier": {"ece": -1.0, "bt_ability": 0.5, "log": 1.0}}
    assert disagreements(ENTRIES, agreement) == [
        "Cat is 3rd by Brier score (0.120) and 1st by calibration error (0.010): calibration does not reward telling"
        " likely from unlikely events, which the Brier score does.",
        "Cat is 3rd by Brier score (0.120) and 1st by Bradley–Terry (+0.900): it counts on how many questions a model"
        " is better, not by how much.",
    ]


def test_metrics_that_agree_or_rank_nobody_are_not_named() -> None:
    alike = [entry | {"ece": entry["brier"], "bt_ability": None} for entry in ENTRIES]
    assert disagreements(alike, {}) == []
    assert disagreements([], {}) == []


@pytest.mark.parametrize(("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd")])
def test_ordinals(number: int, word: str) -> None:
    assert ordinal(number) == word
