"""Forecasts of several samples: medians, the mean of log odds, and the spread."""

import math
from statistics import fmean, median, stdev

from arena_verifier.rows import Row, Tables, Violations

SMALLEST_PROBABILITY = 0.001
"""Log odds are of probabilities clipped to [.001, .999]."""


def check_samples(tables: Tables, violations: Violations) -> None:
    """A forecast of several samples follows from those that were read, at least half of those asked."""
    questions, tasks = tables.by("questions"), tables.by("elicitations")
    for task in tasks.values():
        if not 1 <= task["sample"] <= task["samples"]:
            violations.note("elicitations", task, f"is sample {task['sample']} of {task['samples']}")
    for forecast in tables.rows("forecasts"):
        elicitation: Row | None = tasks.get(forecast["elicitation"])
        samples_asked, samples = forecast["samples_asked"], forecast["samples"]
        if elicitation is not None and samples_asked != elicitation["samples"]:
            violations.note(
                "forecasts", forecast, f"says that {samples_asked} samples were asked, not {elicitation['samples']}"
            )
        if samples is None:
            figures = {"samples_asked": 1, "samples_read": 1, "log_odds_mean": None, "spread": None}
            violations.differ("forecasts", forecast, figures)
        elif 2 * len(samples) < samples_asked or samples_asked < 2:
            violations.note("forecasts", forecast, f"rests on {len(samples)} of {samples_asked} samples")
        else:
            figures = sample_figures(list(samples.values()), exclusive=questions[forecast["question"]]["exclusive"])
            violations.differ("forecasts", forecast, figures | {"samples_read": len(samples)})


def sample_figures(samples: list[dict[str, float]], *, exclusive: bool) -> Row:
    """What the samples say together, as the columns of `forecasts`."""
    medians, log_odds_mean, deviations = {}, {}, []
    for option in samples[0]:
        odds = [log_odds(sample[option]) for sample in samples]
        medians[option] = median(sample[option] for sample in samples)
        log_odds_mean[option] = 1 / (1 + math.exp(-fmean(odds)))
        if len(odds) > 1:
            deviations.append(stdev(odds))
    total = math.fsum(medians.values())
    probabilities = dict(medians)
    if exclusive and total == 0:
        probabilities = dict.fromkeys(medians, 1 / len(medians))
    elif exclusive and abs(total - 1) > 1e-12:
        probabilities = {option: value / total for option, value in medians.items()}
    return {
        "probabilities": probabilities, "normalised": probabilities != medians, "log_odds_mean": log_odds_mean,
        "stated": {option: repr(value) for option, value in medians.items()},
        "spread": fmean(deviations) if deviations else None,
    }  # fmt: skip


def log_odds(probability: float) -> float:
    clipped = min(max(probability, SMALLEST_PROBABILITY), 1 - SMALLEST_PROBABILITY)
    return math.log(clipped / (1 - clipped))
