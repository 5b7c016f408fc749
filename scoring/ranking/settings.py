"""What a ranking is asked for."""

from dataclasses import dataclass

from scoring.metrics.calibration import BINS
from scoring.metrics.proper import LOG_CLIP
from scoring.metrics.uncertainty import LEVEL, RESAMPLES

METRICS = (
    "brier",
    "log",
    "spherical",
    "average_return",
    "alpha",
    "calibration",
    "bradley_terry",
    "irt",
    "weighted_brier",
    "adjusted_brier",
)
INTERVALS = ("percentile", "bca")
LOWER_IS_BETTER = frozenset({"brier", "calibration", "weighted_brier", "adjusted_brier"})


@dataclass(frozen=True, slots=True)
class Settings:
    """The metrics wanted and what they depend on. Raises ValueError, naming the setting, for what can not be meant.

    gammas : risk aversions of the averaged return, as they were written
    bootstrap : resamples of the events, 0 for no intervals
    stream : questions per step of the return curves
    """

    metrics: tuple[str, ...] = METRICS
    gammas: tuple[str, ...] = ("0", "0.5", "1")
    bootstrap: int = RESAMPLES
    seed: int = 0
    stream: int = 100
    log_clip: float = LOG_CLIP
    bins: int = BINS
    interval: str = "percentile"
    level: float = LEVEL

    def __post_init__(self) -> None:
        if unknown := [name for name in self.metrics if name not in METRICS]:
            raise ValueError(f"metrics: no {', '.join(unknown)}; there are {', '.join(METRICS)}")
        if not self.metrics:
            raise ValueError("metrics: at least one")
        for text in self.gammas:
            try:
                inside = 0 <= float(text) <= 1
            except ValueError:
                inside = False
            if not inside:
                raise ValueError(f"gamma: {text!r} is no number in [0, 1]")
        for name, least in (("bootstrap", 0), ("seed", 0), ("stream", 1), ("bins", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: at least {least}, not {getattr(self, name)}")
        if not 0 <= self.log_clip < 1:
            raise ValueError(f"log_clip: at least 0 and below 1, not {self.log_clip}")
        if not 0 < self.level < 1:
            raise ValueError(f"level: between 0 and 1, not {self.level}")
        if self.interval not in INTERVALS:
            raise ValueError(f"interval: one of {', '.join(INTERVALS)}, not {self.interval}")
