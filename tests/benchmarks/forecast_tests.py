"""How often equal forecasters are told apart by tests, ranges and the claims of a page: `python -m … --worlds 200`.

Worlds of seven equal, calibrated forecasters whose surprises are correlated by 0.5 within an event, as those of one
event are. Every claim is false. The share of worlds with one is to stay near 5 %.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

import forecast_rank as fr

FORECASTERS, CORRELATION, SIGNIFICANCE = 7, 0.5, 0.05
MIXES = {
    "20 events of 1": (1,) * 20,
    "20, one of 5": (5, *(1,) * 19),
    "60, one of 20": (20, *(1,) * 59),
    "20, one of 20": (20, *(1,) * 19),
    "110, one of 60": (60, *(1,) * 109),
    "60, one of 60": (60, *(1,) * 59),
    "Politics: 5, 2, 2, seven of 1": (5, 2, 2, *(1,) * 7),
}
"""Numbers of questions by event."""


def zipf_sizes(events: int, seed: int) -> tuple[int, ...]:
    """Sizes of events by Zipf's law with exponent 1.8, at most 40."""
    return tuple(np.minimum(np.random.default_rng(seed).zipf(1.8, events), 40).tolist())


def equal_world(sizes: Sequence[int], seed: int, answered: float = 1.0) -> fr.Panel:
    """Forecasts of equal forecasters, whose errors in log odds share half their variance within an event."""
    generator = np.random.default_rng(seed)
    event = np.repeat(np.arange(len(sizes)), sizes)
    truth = generator.normal(0, 1, len(event))
    common = generator.normal(0, 1, (FORECASTERS, len(sizes)))[:, event]
    own = generator.normal(0, 1, (FORECASTERS, len(event)))
    signals = truth + 0.7 * (CORRELATION**0.5 * common + (1 - CORRELATION) ** 0.5 * own)
    surprise = generator.normal(0, 1, len(sizes))[event]
    happened = generator.random(len(event)) < _probability(truth + surprise)
    vectors = np.where(generator.random(signals.shape) < answered, _probability(signals), np.nan)
    price = _probability(truth + generator.normal(0, 0.5, len(event)))
    return fr.from_arrays(
        vectors[:, :, None], happened[:, None].astype(float), odds=np.clip(price, 0.01, 0.99)[:, None],
        exclusive=False, event=event,
    )  # fmt: skip


def _probability(log_odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def false_pairs(panel: fr.Panel) -> bool:
    return bool((fr.paired_tests(panel, fr.brier(panel)).p_holm < SIGNIFICANCE).any())


def false_ranges(panel: fr.Panel) -> bool:
    return bool((fr.simultaneous_rank_ranges(fr.event_sums(panel, fr.brier(panel)))[:, 0] > 1).any())


def false_adjusted(panel: fr.Panel) -> bool:
    report = fr.rank_panel(panel, fr.Settings(metrics=("adjusted_brier",), bootstrap=50))
    ranges = [entry["rank_ranges"]["adjusted_brier"] for entry in report["forecasters"].values()]
    return any(span is not None and span[0] > 1 for span in ranges)


CHECKS = {"pairs": false_pairs, "ranges": false_ranges, "adjusted": false_adjusted}


def shares(sizes: Sequence[int], worlds: int, answered: float = 1.0) -> dict[str, float]:
    """The share of worlds with a false claim, by kind of claim."""
    found = dict.fromkeys(CHECKS, 0)
    for seed in range(worlds):
        panel = equal_world(sizes, seed, answered)
        for name, check in CHECKS.items():
            found[name] += check(panel)
    return {name: count / worlds for name, count in found.items()}


def report(worlds: int) -> Iterator[str]:
    yield f"worlds with a false claim after Holm, of {worlds}, in percent: {', '.join(CHECKS)}"
    mixes = list(zip(MIXES, MIXES.values(), repeat(1.0), strict=False))
    for events in (30, 60, 120):
        mixes.append((f"{events} events, sizes Zipf(1.8)", zipf_sizes(events, events), 1.0))
    mixes.append(("60, one of 20, 60 % answered", MIXES["60, one of 20"], 0.6))
    for name, sizes, answered in mixes:
        found = shares(sizes, worlds, answered)
        yield f"{name:<32} " + "  ".join(f"{100 * share:5.1f}" for share in found.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    for line in report(parser.parse_args().worlds):
        print(line, flush=True)
