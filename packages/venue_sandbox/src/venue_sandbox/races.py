"""The course of a race: each runner's true chance at every instant, and the winner.

Each runner's form is a Brownian motion X over the life of the race, and the winner is who stands highest at
the end. A runner's true chance at time t is the chance of that given X(t), hence a martingale: no one who
sees only the chances can foretell how they will move. With two runners it is Φ(X(t) / √(1 − t)), X being
the lead of the first; with more, ∫ φ(z) Π Φ(z + lead / √(1 − t)) dz, summed here on a fixed grid.
"""

from array import array
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate, chain, repeat
from math import exp, sqrt
from statistics import NormalDist

from venue_sandbox.catalogue import Race
from venue_sandbox.seeded_random import seeded_random

STEP = timedelta(minutes=10)  # chances move on this grid
SPREAD = 0.9  # standard deviation of the runners' form at the start: how clear the favourites are
NODES = tuple(i / 4 for i in range(-20, 21))  # where the integral over z is summed

NORMAL = NormalDist()


def chances(race: Race, at: datetime, seed: int) -> tuple[float, ...]:
    """Each runner's true chance at that instant; one-hot once the race has ended."""
    step = (min(max(at, race.starts), race.ends) - race.starts) // STEP
    return _chances(race, step if at < race.ends else _steps(race), seed)


def _steps(race: Race) -> int:
    return -((race.starts - race.ends) // STEP)


@lru_cache(maxsize=1024)
def _forms(race: Race, seed: int) -> tuple["array[float]", ...]:
    """Every runner's form at every step of the grid; of two runners, the first one's lead alone."""
    steps = _steps(race)
    pace = 1 / sqrt(steps)

    def form(runner: int) -> "array[float]":
        gauss = seeded_random(seed, "race", race.name, runner).gauss
        strides = (gauss(0, pace) for _ in repeat(None, steps))
        return array("d", accumulate(chain((gauss(0, SPREAD),), strides)))

    return tuple(form(runner) for runner in range(race.runners if race.runners > 2 else 1))


@lru_cache(maxsize=16384)
def _chances(race: Race, step: int, seed: int) -> tuple[float, ...]:
    forms = [form[step] for form in _forms(race, seed)]
    steps = _steps(race)
    if step >= steps:
        first = forms.index(max(forms)) if race.runners > 2 else int(forms[0] <= 0)
        return tuple(float(runner == first) for runner in range(race.runners))
    horizon = sqrt(1 - step / steps)
    if race.runners == 2:
        lead = NORMAL.cdf(forms[0] / horizon)
        return lead, 1 - lead
    shares = [_lead(i, forms, horizon) for i in range(len(forms))]
    total = sum(shares)
    return tuple(share / total for share in shares)


def _lead(runner: int, forms: list[float], horizon: float) -> float:
    """The chance, up to a constant, that this runner ends above all others."""
    leads = [(forms[runner] - form) / horizon for i, form in enumerate(forms) if i != runner]
    total = 0.0
    for z in NODES:
        density = exp(-z * z / 2)
        for lead in leads:
            density *= NORMAL.cdf(z + lead)
        total += density
    return total
