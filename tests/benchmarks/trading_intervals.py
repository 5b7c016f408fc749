"""How often the intervals and ties of the trading leaderboard hold, in worlds where the truth is known.

    python -m tests.benchmarks.trading_intervals --worlds 400

Bets: means of values in [0, 1] whose events hold 1 to 5 trades. Returns: cohorts that start weekly, live ten weeks, and
share weeks and markets; every mean return is 0. Ties: seven equal families, so that every claim is false. The arena's
functions beside those that take trades, or cohorts, as independent. One process; 400 worlds take about two minutes.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from arena_verifier.intervals import rank_ranges, return_error, return_pairs
from forecast_rank.metrics.paired_tests import holm
from forecast_rank.metrics.sample_mean import bounded_cluster_interval, cluster_interval, t_interval

LIFE = 10
"""Weeks of a cohort."""
FAMILIES = 7
COHORTS = (6, 12, 26)
EVENTS = (4, 6, 12, 20, 80)
STAKES = 3
"""Bets of a cohort each week."""
TRUTH_EVENTS = 200_000

Generator = np.random.Generator
Table = np.ndarray[Any, np.dtype[np.float64]]


# Bounded means


def skewed(generator: Generator, events: int) -> Table:
    return generator.beta(0.5, 4.0, events)


def u_shaped(generator: Generator, events: int) -> Table:
    return generator.beta(0.2, 0.3, events)


def near_constant(generator: Generator, events: int) -> Table:
    return np.where(generator.random(events) < 0.05, 0.9, 0.1)


def seldom_wrong(generator: Generator, events: int) -> Table:
    return (generator.random(events) < 0.9).astype(float)


BOUNDED = {
    "skewed": skewed, "U-shaped": u_shaped, "near-constant": near_constant, "nine of ten win": seldom_wrong,
}  # fmt: skip


def trades(generator: Generator, draw: Callable[[Generator, int], Table], events: int) -> tuple[Table, Table]:
    """The values of trades and their events: half of the trades of an event have its value, half one of their own."""
    event = np.repeat(np.arange(events), generator.integers(1, 6, events))
    shared, idiosyncratic = draw(generator, events)[event], draw(generator, len(event))
    return np.where(generator.random(len(event)) < 0.5, shared, idiosyncratic), event


def t_of_trades(values: Table, events: Table) -> tuple[float, float] | None:
    interval = t_interval(values).interval
    return interval and (max(0.0, interval[0]), min(1.0, interval[1]))


BOUNDED_METHODS: dict[str, Callable[[Table, Table], tuple[float, float] | None]] = {
    "t over trades, clipped": t_of_trades,
    "studentised bootstrap (`cluster_interval`)": cluster_interval,
    "beta form (`bounded_cluster_interval`)": bounded_cluster_interval,
}


def bounded_rows(worlds: int) -> Iterator[str]:
    """Coverage of each method: the least and the mean over the worlds, and the median length; no interval is a miss."""
    for method, interval_of in BOUNDED_METHODS.items():
        cells = []
        for events in EVENTS:
            coverage, lengths = [], []
            for name, draw in BOUNDED.items():
                generator = np.random.default_rng([events, len(name)])
                truth = float(draw(generator, TRUTH_EVENTS).mean())
                hits = 0
                for _ in range(worlds):
                    interval = interval_of(*trades(generator, draw, events))
                    if interval is not None:
                        hits += interval[0] <= truth <= interval[1]
                        lengths.append(min(1.0, interval[1]) - max(0.0, interval[0]))
                coverage.append(100 * hits / worlds)
            length = f"{np.median(lengths):.2f}" if lengths else "–"
            cells.append(f"{min(coverage):.0f}/{np.mean(coverage):.0f}/{length}")
        yield f"| {method} | {' | '.join(cells)} |"


# Returns


def shared_shocks(generator: Generator, families: int, cohorts: int) -> Table:
    """Heavy-tailed changes, 60 % of whose variance all cohorts of a family share in a week."""
    weeks = cohorts + LIFE - 1
    shared = generator.standard_t(3, (families, 1, weeks))
    return _alive(0.6**0.5 * shared + 0.4**0.5 * generator.standard_t(3, (families, cohorts, weeks)))


def rare_wins(chance: float) -> Callable[[Generator, int, int], Table]:
    """One fair bet a week that seldom wins; 60 % of the bets are the same in all cohorts."""

    def play(generator: Generator, families: int, cohorts: int) -> Table:
        weeks = cohorts + LIFE - 1
        shape = (families, cohorts, weeks)
        agrees = generator.random(shape) < 0.6
        shared, idiosyncratic = generator.random((families, 1, weeks)), generator.random(shape)
        return _alive(np.where(np.where(agrees, shared, idiosyncratic) < chance, 1 / chance - 1, -1.0))

    return play


def _alive(changes: Table) -> Table:
    """The changes in the weeks of each cohort; NaN outside."""
    _, cohorts, weeks = changes.shape
    age = np.arange(weeks) - np.arange(cohorts)[:, None]
    return np.where((age >= 0) & (age < LIFE), changes, np.nan)


def fair_bets(low: float, high: float) -> Callable[[Generator, int, int], Table]:
    """Three fair bets a week at prices in a range, resolved within eight weeks; 40 % are the same in all cohorts."""

    def play(generator: Generator, families: int, cohorts: int) -> Table:
        weeks = cohorts + LIFE - 1
        table = np.zeros((families, cohorts, weeks))
        for _ in range(STAKES):
            shared_price, shared_delay, shared_luck = _market(generator, (families, weeks), low, high)
            for cohort in range(cohorts):
                for week in range(cohort, cohort + LIFE):
                    agrees = generator.random(families) < 0.4
                    price, delay, luck = _market(generator, (families,), low, high)
                    price = np.where(agrees, shared_price[:, week], price)
                    won = np.where(agrees, shared_luck[:, week], luck) < price
                    end = np.minimum(week + np.where(agrees, shared_delay[:, week], delay), cohort + LIFE - 1)
                    table[np.arange(families), cohort, end] += np.where(won, 1 / price - 1, -1.0)
        return _alive(table)

    return play


def _market(generator: Generator, shape: tuple[int, ...], low: float, high: float) -> tuple[Table, Table, Table]:
    """Prices, weeks to the resolution, and luck, which wins below the price."""
    return generator.uniform(low, high, shape), generator.integers(0, 8, shape), generator.random(shape)


RETURNS: dict[str, Callable[[Generator, int, int], Table]] = {
    "shared t₃ shocks": shared_shocks,
    "shared wins, 10 %": rare_wins(0.1),
    "shared wins, 4 %": rare_wins(0.04),
    "bets": fair_bets(0.2, 0.8),
    "long shots": fair_bets(0.03, 0.15),
}


def by_cohort(table: Table) -> tuple[Table, Table]:
    """The mean returns, and the half widths of Student's intervals over cohorts."""
    returns = np.nansum(table, axis=2)
    count = returns.shape[1]
    error = returns.std(axis=1, ddof=1) / count**0.5
    return returns.mean(axis=1), stats.t(count - 1).ppf(0.975) * error


def by_week(table: Table) -> tuple[Table, Table]:
    """The mean returns, and the half widths of the CR3 intervals over calendar weeks."""
    halves = [return_error(family)[1] or np.nan for family in families_of(table).values()]
    return np.nansum(table, axis=2).mean(axis=1), np.array(halves)


def families_of(table: Table) -> dict[str, dict[int, dict[int, float]]]:
    """The returns of a table by family, cohort and week."""
    families: dict[str, dict[int, dict[int, float]]] = {}
    for place, returns in enumerate(table):
        families[f"f{place}"] = {}
        for cohort, weeks in enumerate(returns):
            families[f"f{place}"][cohort] = dict(zip(*_seen(weeks), strict=True))
    return families


def _seen(weeks: Table) -> tuple[list[int], list[float]]:
    places = np.flatnonzero(~np.isnan(weeks))
    return places.tolist(), weeks[places].tolist()


def return_rows(worlds: int) -> Iterator[str]:
    """Coverage in percent with each number of cohorts."""
    for method, interval_of in (("t over cohorts", by_cohort), ("calendar weeks, CR3 (`return_error`)", by_week)):
        cells = []
        for play in RETURNS.values():
            coverage = []
            for cohorts in COHORTS:
                mean, half = interval_of(play(np.random.default_rng(cohorts), worlds, cohorts))
                coverage.append(f"{100 * np.mean(np.abs(mean) <= half):.0f}")
            cells.append("/".join(coverage))
        yield f"| {method} | {' | '.join(cells)} |"


# Ties


def claims_by_cohort(table: Table) -> bool:
    """Whether paired t tests over cohorts, with Holm's correction, claim any difference."""
    returns = np.nansum(table, axis=2)
    pairs = zip(*np.triu_indices(len(returns), 1), strict=True)
    return bool((holm([stats.ttest_rel(returns[one], returns[second]).pvalue for one, second in pairs]) < 0.05).any())


def claims_by_week(table: Table) -> bool:
    return any((pair.p_holm or 1.0) < 0.05 for pair in return_pairs(families_of(table)))


def ranges_deny_a_tie(table: Table) -> bool:
    return any(low > 1 for low, _ in rank_ranges(families_of(table)).values())


def better_is_found(table: Table) -> bool:
    """Whether a family that is better by one standard deviation of a cohort's return is told from any other."""
    lead = np.nansum(table, axis=2).std() / LIFE
    pairs = return_pairs(families_of(np.concatenate([table[:1] + lead, table[1:]])))
    return any((pair.p_holm or 1.0) < 0.05 for pair in pairs if pair.first == "f0")


TIE_METHODS = {
    "false claim, paired t over cohorts": claims_by_cohort,
    "false claim, by calendar week (`return_pairs`)": claims_by_week,
    "rank range without a first place (`rank_ranges`)": ranges_deny_a_tie,
    "power: one family better by one standard deviation of a cohort": better_is_found,
}


def tie_rows(worlds: int) -> Iterator[str]:
    """Share of worlds in percent with each number of cohorts."""
    shares: dict[tuple[str, str], list[str]] = defaultdict(list)
    for world, play in RETURNS.items():
        for cohorts in COHORTS:
            tables = np.split(play(np.random.default_rng(1_000 + cohorts), worlds * FAMILIES, cohorts), worlds)
            for method, happens in TIE_METHODS.items():
                ties = [happens(table) for table in tables]
                shares[method, world].append(f"{100 * np.mean(ties):.0f}")
    for method in TIE_METHODS:
        yield f"| {method} | {' | '.join('/'.join(shares[method, world]) for world in RETURNS)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=400)
    worlds = parser.parse_args().worlds
    warnings.simplefilter("ignore", RuntimeWarning)  # of SciPy's paired test where two families lost alike
    numbers = "/".join(map(str, COHORTS))
    returns = f"{' | '.join(RETURNS)} |\n|---|{'--:|' * len(RETURNS)}"
    print(f"| coverage least/mean, length | {' | '.join(f'{events} events' for events in EVENTS)} |")
    print(f"|---|{'--:|' * len(EVENTS)}")
    print(*bounded_rows(worlds), sep="\n", flush=True)
    print(f"\n| coverage with {numbers} cohorts | {returns}")
    print(*return_rows(worlds), sep="\n", flush=True)
    print(f"\n| worlds in percent, {numbers} cohorts | {returns}")
    print(*tie_rows(worlds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
