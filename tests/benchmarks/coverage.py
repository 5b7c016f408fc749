"""How often intervals and rank ranges hold the truth, and which metric finds skill, in worlds where both are known.

    python -m tests.benchmarks.coverage --worlds 100 --events 10 50

The truth is the same forecasters' figures in a run of 10,000 events (8,000 for item response theory). Each world plays
the ranking that a user gets, by `rank_panel`. One process; `--only irt` is the slow part.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forecast_rank.metrics.agreement import spearman
from forecast_rank.metrics.panel import references
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.settings import Settings
from tests.forecast_rank.simulated_worlds import WORLDS, Simulation, simulate

FORECASTERS = 10
LONG_RUN, LONG_RUN_IRT = 10_000, 8_000
TRUTH_SEED = 1_000_000
QUICK = (
    *("brier", "log", "spherical", "average_return", "alpha", "calibration", "adjusted_brier"),
    *("thurstone_mosteller", "bradley_terry"),
)


class Measure(NamedTuple):
    """A figure of the report with an interval and a ranking."""

    ranking: str
    key: str
    lower: bool
    gamma: str | None = None

    def of(self, entry: dict[str, Any], suffix: str = "") -> Any:
        value = entry.get(self.key.replace("ece_unbiased", "ece") + suffix if suffix else self.key)
        return value.get(self.gamma) if self.gamma is not None and isinstance(value, dict) else value


MEASURES = (
    Measure("brier", "brier", True), Measure("log", "log", False), Measure("spherical", "spherical", False),
    Measure("accuracy", "accuracy", False), Measure("alpha", "alpha", False),
    Measure("average_return:0", "average_return", False, "0"),
    Measure("average_return:1", "average_return", False, "1"), Measure("log_wealth:1", "log_wealth", False, "1"),
    Measure("calibration", "ece_unbiased", True), Measure("adjusted_brier", "adjusted_brier", True),
    Measure("thurstone_mosteller", "tm_ability", False), Measure("bradley_terry", "bt_ability", False),
    Measure("irt", "irt_ability", False), Measure("weighted_brier", "weighted_brier", True),
)  # fmt: skip


class Result(NamedTuple):
    """What a metric did over all worlds of a kind; arrays by forecaster, from the most to the least skilled."""

    covered: np.ndarray
    missing: float
    rank_covered: np.ndarray
    together: float
    width: float
    recovery: float


def report_of(simulation: Simulation, settings: Settings) -> dict[str, Any]:
    """The report, without references, which would be fitted a second time."""
    nobody = references(simulation.panel).take(np.zeros(len(references(simulation.panel)), dtype=bool))
    return rank_panel(simulation.panel, settings, reference_panel=nobody, agreement_of_rankings=False)


def truths(world: str, metrics: Sequence[str]) -> dict[str, np.ndarray]:
    """The true figures by ranking, each of shape (N,)."""
    events = LONG_RUN_IRT if set(metrics) & {"irt", "weighted_brier"} else LONG_RUN
    settings = Settings(metrics=tuple(metrics), gammas=("0", "1"), bootstrap=0)
    report = report_of(simulate(world, forecasters=FORECASTERS, events=events, seed=TRUTH_SEED), settings)
    truth = {}
    for measure in MEASURES:
        if measure.ranking in report["rankings"]:
            values = [measure.of(entry) for entry in report["forecasters"].values()]
            truth_values = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            equal = WORLDS[world].errors[0] == WORLDS[world].errors[1]
            truth[measure.ranking] = np.full(len(truth_values), truth_values.mean()) if equal else truth_values
    return truth


def play(world: str, events: int, worlds: int, metrics: Sequence[str]) -> Iterator[tuple[str, Result]]:
    """The results of each ranking over so many worlds."""
    truth = truths(world, metrics)
    settings = Settings(metrics=tuple(metrics), gammas=("0", "1"))
    tables: dict[str, list[tuple[np.ndarray, ...]]] = {}
    for seed in range(worlds):
        simulation = simulate(world, forecasters=FORECASTERS, events=events, seed=seed)
        report = report_of(simulation, replace(settings, seed=seed))
        entries = list(report["forecasters"].values())
        for measure in MEASURES:
            if measure.ranking in truth and measure.ranking in report["rankings"]:
                tables.setdefault(measure.ranking, []).append(
                    _held(measure, entries, truth[measure.ranking], simulation.skill)
                )
    for ranking, rows in tables.items():
        coverage, ranks, width, recovery = (np.array(column) for column in zip(*rows, strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of means over nothing
            yield (
                ranking,
                Result(
                    np.nanmean(coverage, axis=0), float(np.isnan(coverage).mean()), np.nanmean(ranks, axis=0),
                    float((np.nan_to_num(ranks, nan=1.0) == 1).all(axis=1).mean()), float(np.nanmedian(width)),
                    float(np.nanmean(recovery)),
                ),
            )  # fmt: skip


def _held(measure: Measure, entries: list[dict[str, Any]], truth: np.ndarray, skill: np.ndarray) -> tuple[Any, ...]:
    """Whether intervals and rank ranges hold the truth, (N,) each, NaN for none; widths, and correlation with skill."""
    missing_interval = [np.nan, np.nan]
    ends = np.array([measure.of(entry, "_ci") or missing_interval for entry in entries], dtype=np.float64)
    ranges = [entry["rank_ranges"].get(measure.ranking) or missing_interval for entry in entries]
    low, high = np.array(ranges, dtype=np.float64).T
    better = truth[None, :] < truth[:, None] if measure.lower else truth[None, :] > truth[:, None]
    rank = 1 + better.sum(axis=1)
    inside = np.where(np.isnan(ends[:, 0]), np.nan, (ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    ranked = np.where(np.isnan(low), np.nan, (low <= rank) & (rank <= high))
    values = [measure.of(entry) for entry in entries]
    figures = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    is_known = ~np.isnan(figures)
    varies = is_known.sum() > 2 and np.ptp(skill[is_known]) > 0 and np.ptp(figures[is_known]) > 0
    recovery = spearman(skill[is_known], figures[is_known]) * (-1 if measure.lower else 1) if varies else np.nan
    return inside, ranked, ends[:, 1] - ends[:, 0], recovery


def table(world: str, events: int, results: Iterator[tuple[str, Result]]) -> Iterator[str]:
    """The rows of the Markdown table."""
    for ranking, result in results:
        has_truth = not np.isnan(result.covered).all()
        yield (
            f"| {world} | {events} | {ranking} | "
            + (f"{np.nanmean(result.covered):.3f} | {np.nanmin(result.covered):.2f}" if has_truth else "– | –")
            + f" | {result.missing:.0%} | {result.rank_covered.min():.2f} | {result.together:.2f} | "
            + (f"{result.width:.3f}" if has_truth else "–")
            + f" | {'–' if np.isnan(result.recovery) else f'{result.recovery:.2f}'} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--events", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--world", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--only", nargs="+", default=list(QUICK), metavar="METRIC")
    options = parser.parse_args()
    print(
        "| world | events | ranking | 95 % intervals hold | least forecaster | no interval | rank ranges hold, least "
        "forecaster | all ranges together | median width | ρ with skill |\n|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    for world in options.world:
        for events in options.events:
            for row in table(world, events, play(world, events, options.worlds, options.only)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
