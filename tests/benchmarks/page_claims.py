"""How often the page of findings claims what is not so, in worlds where all are equal.

    DJANGO_SETTINGS_MODULE=tests.settings python -m tests.benchmarks.page_claims --worlds 200

Seven models and the market state the truth with errors of the same size, prices in the prompt change nothing, and no
portfolio earns. Each world goes through the functions of the pipeline: entries, leaderboard, tests, claims, correction.
The mean of the models is better than each in truth: its claim is none that is false.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import django
import numpy as np

django.setup()

# ruff: noqa: E402 - models are loaded by the functions of the pipeline

from scoring.selectors.event_tests import difference_test
from scoring.selectors.findings import Finding, board_claims, corrected_claims, earning_claim
from scoring.selectors.forecast_panels import ResolvedEntry
from scoring.selectors.return_pairs import return_test
from scoring.services.forecast_ranking import forecast_leaderboard
from tests.benchmarks.forecast_tests import MIXES, zipf_sizes

MODELS = {f"m{number}": f"M{number}" for number in range(7)}
ERROR, CORRELATION = 0.7, 0.5
AT = datetime(2026, 3, 15, tzinfo=UTC)
METRICS = ("brier", "adjusted_brier", "alpha")
SIZES = {
    "30 events": (1,) * 30,
    "60 events, 60 % answered": (1,) * 60,
    "110 events, Zipf(1.8)": zipf_sizes(110, 110),
    "20 events, one of 20": MIXES["20, one of 20"],
}


class World:
    """The questions of a world, each with its truth, and the forecasts that equal forecasters state of them."""

    def __init__(self, sizes: Sequence[int], seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.event = np.repeat(np.arange(len(sizes)), sizes)
        self.truth = self.generator.normal(0, 1, len(self.event))
        surprise = self.generator.normal(0, 1, len(sizes))[self.event]
        self.happened = self.generator.random(len(self.event)) < _probability(self.truth + surprise)

    def forecasts(self) -> np.ndarray[Any, Any]:
        """A forecaster's probabilities: half of the error's variance is common to the questions of an event."""
        common = self.generator.normal(0, 1, int(self.event.max()) + 1)[self.event]
        own = self.generator.normal(0, 1, len(self.event))
        return _probability(self.truth + ERROR * (CORRELATION**0.5 * common + (1 - CORRELATION) ** 0.5 * own))

    def entries(self, answered: float) -> list[ResolvedEntry]:
        """The entries with the market's prices and the forecasts of all models, some left out at random."""
        vectors, prices = {slug: self.forecasts() for slug in MODELS}, self.forecasts()
        found = []
        for place, event in enumerate(self.event.tolist()):
            price, happened = float(prices[place]), float(self.happened[place])
            stated = {}
            for slug, vector in vectors.items():
                if self.generator.random() < answered:
                    stated[slug] = (float(vector[place]), 1 - float(vector[place]))
            pair = (price, 1 - price)
            found.append(ResolvedEntry(
                place, place, f"e{event}", "", True, float(place), ("YES", "NO"), (happened, 1 - happened), pair, pair,
                pair[::-1], forecasts=stated,
            ))  # fmt: skip
        return found

    def price_effect(self) -> dict[str, Any] | None:
        """What prices bring: nothing, the mean over models of two forecasts that are equally good."""
        gains = np.zeros(len(self.event))
        for _ in MODELS:
            with_prices, without = (np.square(self.forecasts() - self.happened) for _ in range(2))
            gains += (without - with_prices) / len(MODELS)
        test = difference_test(gains, self.event.astype(str).tolist())
        return test and {"gain": float(gains.mean()), "questions": len(gains), **test}

    def returns(self, cohorts: int) -> dict[str, dict[int, dict[int, float]]]:
        """Weekly returns of cohorts that share weeks; none earns."""
        families: dict[str, dict[int, dict[int, float]]] = {}
        for slug in MODELS:
            common = self.generator.standard_t(3, cohorts + 10)
            families[slug] = {}
            for cohort in range(cohorts):
                values = 0.6 * common[cohort : cohort + 10] + 0.4 * self.generator.standard_t(3, 10)
                families[slug][cohort] = dict(zip(range(cohort, cohort + 10), values.tolist(), strict=True))
        return families


def _probability(log_odds: Any) -> np.ndarray[Any, Any]:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def page(sizes: Sequence[int], seed: int, *, answered: float = 1.0, cohorts: int = 8) -> list[Finding]:
    """The findings of a world's page, without that of the mean of the models."""
    world = World(sizes, seed)
    board = forecast_leaderboard(world.entries(answered), MODELS, {}, metrics=METRICS)
    report = board.report | {"conditions": {"prices": world.price_effect()}}
    claims = [claim for claim in board_claims(board.entries, report, {}) if claim.topic != "ensemble"]
    ranked, tests = [], {}
    for slug, weeks in world.returns(cohorts).items():
        mean = float(np.mean([sum(returns.values()) for returns in weeks.values()]))
        ranked.append({"family": slug, "display_name": slug, "return_percent": mean, "cohorts": cohorts})
        tests[slug] = return_test({str(cohort): returns for cohort, returns in weeks.items()})  # type: ignore[misc]
    earning = earning_claim(ranked, tests, {"ages": []}, AT)
    return corrected_claims([*claims, *([earning] if earning else [])])


def share_of_false_pages(sizes: Sequence[int], worlds: int, answered: float = 1.0) -> float:
    """The share of worlds whose page supports any claim."""
    return float(np.mean([any(f.supported for f in page(sizes, seed, answered=answered)) for seed in range(worlds)]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    worlds = parser.parse_args().worlds
    for name, sizes in SIZES.items():
        share = share_of_false_pages(sizes, worlds, 0.6 if "answered" in name else 1.0)
        print(f"{name:<28} {100 * share:5.1f} % of {worlds} pages with a false claim", flush=True)
