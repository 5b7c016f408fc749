"""arena-evaluation's definitions against the package itself."""

import random
from typing import Any

import pytest

from forecast_rank import InvalidSetting, rank
from tests.lazy_modules import arena_evaluation, pl

FIGURES = ("brier", "skill", "skill_se", "ece", "n_events", "n_cells", "n_pairs", "n_skill_events")


def random_rows(seed: int) -> list[dict[str, Any]]:
    """Forecasts of events with one to four windows and one to four options, some unquoted or unanswered."""
    chance = random.Random(seed)
    rows = []
    for event in range(25):
        category = chance.choice(["Politics", "Sports", ""])
        names = [f"option {n}" for n in range(chance.randint(1, 4))]
        happened = {name: chance.randint(0, 1) for name in names}
        for window in range(chance.randint(1, 4)):
            odds = {name: round(chance.uniform(0.01, 0.99), 2) if chance.random() < 0.7 else None for name in names}
            for forecaster in ("ann", "bob", "cy"):
                if chance.random() < 0.2:
                    continue
                for name in names:
                    p = chance.choice([chance.random(), chance.randint(0, 10) / 10])
                    key = {"forecaster": forecaster, "event": f"e{event}", "question": f"e{event}:{window}"}
                    values = {"probability": p, "outcome": happened[name], "odds": odds[name], "exclusive": 0}
                    rows.append(key | {"option": name, "category": category} | values)
    return rows


def packages_report(rows: list[dict[str, Any]], bins: int) -> Any:
    """The report of the package on the same forecasts."""
    cells: dict[tuple[str, str], arena_evaluation.Cell] = {}
    for row in rows:
        window = int(row["question"].partition(":")[2])
        cell = arena_evaluation.Cell(row["forecaster"], row["event"], window, {}, {}, {}, row["category"] or None)
        cell = cells.setdefault((row["forecaster"], row["question"]), cell)
        cell.probabilities[row["option"]] = row["probability"]
        cell.resolutions[row["option"]] = (
            arena_evaluation.Resolution.YES if row["outcome"] else arena_evaluation.Resolution.NO
        )
        if row["odds"] is not None:
            cell.crowd[row["option"]] = row["odds"]
    return arena_evaluation.evaluate_cells(cells.values(), num_bins=bins)


@pytest.mark.parametrize(("seed", "bins"), [(1, 10), (2, 7)])
def test_figures_slices_and_bins_are_the_packages(seed: int, bins: int) -> None:
    rows = random_rows(seed)
    report = rank(pl.DataFrame(rows), like="arena-evaluation", bins=bins).to_dict()
    expected = packages_report(rows, bins)
    assert {score.slice for score in expected.scores} == {"all", *report["slices"]}
    for score in expected.scores:
        figures = (report["forecasters"] if score.slice == "all" else report["slices"][score.slice])[score.agent]
        for name in FIGURES:
            value = getattr(score, name)
            assert figures[name] == (None if value is None else pytest.approx(value, rel=0, abs=1e-12)), name
        if score.slice == "all":
            curve = report["curves"]["reliability"]["forecasters"][score.agent]
            for ours, theirs in zip(curve, score.reliability, strict=True):
                assert (ours["pairs"], ours["center"]) == (theirs.count, pytest.approx(theirs.center, abs=1e-12))
                means = (theirs.confidence, theirs.accuracy)
                assert (ours["confidence"], ours["accuracy"]) == (means if None in means else pytest.approx(means))
    briers = {score.agent: score.brier for score in expected.scores if score.slice == "all"}
    assert report["rankings"]["brier"] == sorted(briers, key=briers.__getitem__)


def test_a_probability_of_three_tenths_begins_a_bin_and_one_window_has_no_error() -> None:
    rows = [{"forecaster": "ann", "question": "q", "option": "YES", "probability": 0.3, "outcome": 1, "odds": 0.2}]
    report = rank(pl.DataFrame(rows), like="arena-evaluation").to_dict()
    figures = report["forecasters"]["ann"]
    assert [bin["pairs"] for bin in report["curves"]["reliability"]["forecasters"]["ann"]] == [0] * 3 + [1] + [0] * 6
    assert (figures["brier"], figures["skill"], figures["ece"]) == pytest.approx((0.49, 0.15, 0.7))
    assert (figures["skill_se"], report["settings"]["like"]) == (None, "arena-evaluation")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"like": "brier"}, "like: pm_rank or arena-evaluation, not brier"),
    ],
)
def test_other_packages_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        rank(pl.DataFrame(random_rows(1)), **options)
