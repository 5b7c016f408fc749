"""Settings of a ranking, checked when they are made."""

from dataclasses import dataclass

from forecast_rank.metrics.calibration import BINS
from forecast_rank.metrics.proper_scores import LOG_CLIP
from forecast_rank.metrics.uncertainty import LEVEL, RESAMPLES
from forecast_rank.ranking.scores import METRICS, USUAL_METRICS

MOST_MODELLED = 500
"""With more forecasters nobody waits for fitted models who did not name them: of 2,000 with 30 questions each they take
three quarters of the time."""
PAIRS = 50
"""Every two of 50 forecasters are 1,225 pairs, of 2,000 two million."""
LEAST = {"bootstrap": 0, "seed": 0, "stream": 1, "bins": 1, "min_questions": 0, "pairs": 0}
"""The least value of each whole number."""
PM_RANK, ARENA_EVALUATION = LIKE = ("pm_rank", "arena-evaluation")
"""Packages whose definitions may be used in place of this one's."""
INTERVALS = ("studentised", "percentile", "bca")


class InvalidSetting(ValueError):
    """A setting that is out of range; the message begins with its name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The metrics to compute and their parameters.

    Attributes
    ----------
    metrics : tuple of str
        Some of `METRICS`.
    gammas : tuple of str
        Risk aversions of the averaged return, in [0, 1]. Texts, since they are keys of the report.
    bootstrap : int
        Resamples of the events; 0 for no intervals.
    seed : int
        Of the resamples.
    stream : int
        Questions per step of the return curves.
    log_clip : float
        Lowest probability that the log score charges, in [0, 1).
    bins : int
        Bins of the calibration.
    interval : {"studentised", "percentile", "bca"}
    level : float
        Coverage of intervals and rank ranges, in (0, 1).
    min_questions : int
        Forecasters with fewer questions have scores, but no rank and no rank range.
    pairs : int
        How many forecasters, the first by their score, are compared in pairs; 0 for no pairs.

    Raises
    ------
    InvalidSetting
        For a value out of range.
    """

    metrics: tuple[str, ...] = USUAL_METRICS
    gammas: tuple[str, ...] = ("0", "0.5", "1")
    bootstrap: int = RESAMPLES
    seed: int = 0
    stream: int = 100
    log_clip: float = LOG_CLIP
    bins: int = BINS
    interval: str = "studentised"
    level: float = LEVEL
    min_questions: int = 1
    pairs: int = PAIRS

    def __post_init__(self) -> None:
        if unknown := [name for name in self.metrics if name not in METRICS]:
            raise InvalidSetting(f"metrics: unknown {', '.join(unknown)}; known are {', '.join(METRICS)}")
        if not self.metrics:
            raise InvalidSetting("metrics: at least one")
        for text in self.gammas:
            try:
                inside = 0 <= float(text) <= 1
            except ValueError:
                inside = False
            if not inside:
                raise InvalidSetting(f"gamma: {text!r} is not a number in [0, 1]")
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise InvalidSetting(f"{name}: at least {least}, not {getattr(self, name)}")
        if not 0 <= self.log_clip < 1:
            raise InvalidSetting(f"log_clip: at least 0 and below 1, not {self.log_clip}")
        if not 0 < self.level < 1:
            raise InvalidSetting(f"level: between 0 and 1, not {self.level}")
        if self.interval not in INTERVALS:
            raise InvalidSetting(f"interval: one of {', '.join(INTERVALS)}, not {self.interval}")
