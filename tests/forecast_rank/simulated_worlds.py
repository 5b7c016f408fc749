"""Worlds of forecasters whose skill is known: made forecasts, to see how often an interval holds the truth.

A world has binary questions in events, a market, and forecasters of evenly spaced skill. The same forecasters can play
any number of questions, so that the figures of a very long run are the truth about those of a short one.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays

SPREAD_OF_QUESTIONS = 1.5
"""Standard deviation of the questions' true log odds."""
MARKET_ERROR = 0.5
"""Standard deviation of the market's error in log odds."""
HALF_SPREAD = 0.02
"""An ask lies so much above the market's probability."""
LEAST_PRICE = 0.01

Skill = Literal["error", "knowledge"]


@dataclass(frozen=True, slots=True)
class World:
    """The rules of a world.

    Attributes
    ----------
    skill : {"error", "knowledge"}
        "error": a forecaster states the true log odds with a symmetric error of their own size. "knowledge": a
        forecaster sees the true log odds with that error and states the expected probability given what they saw, so
        that everybody is calibrated and the skilled are more confident.
    event_size : int
        Questions per event.
    surprise : float
        Standard deviation of a shift in log odds that nobody foresees, common to the questions of an event.
    answered : float
        Share of the questions that a forecaster answers.
    hard_for_the_skilled : float
        How much more of the hard questions the skilled answer, and of the easy ones the others; 0 for answers missing
        at random.
    long_shots : bool
        Whether most questions are unlikely, so that a won bet pays up to 100 times its stake.
    errors : tuple of float
        Error of the best and of the worst forecaster in log odds; the others lie evenly between.
    """

    skill: Skill = "error"
    event_size: int = 3
    surprise: float = 1.0
    answered: float = 1.0
    hard_for_the_skilled: float = 0.0
    long_shots: bool = False
    errors: tuple[float, float] = (0.2, 1.5)


WORLDS = {
    "independent": World(event_size=1, surprise=0.0),
    "clustered": World(),
    "knowledge": World(skill="knowledge"),
    "missing at random": World(answered=0.6),
    "missing with skill": World(answered=0.6, hard_for_the_skilled=0.7),
    "heavy tails": World(long_shots=True),
    "equal": World(errors=(0.8, 0.8)),
}
"""The worlds in which intervals are measured."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Made forecasts with the skill behind them.

    Attributes
    ----------
    panel : Panel
        Forecasters f0, f1, … from the most to the least skilled.
    skill : array, shape (N,)
        Higher is better: less the forecaster's error.
    """

    panel: Panel
    skill: Floats


def simulate(world: World | str = "clustered", *, forecasters: int = 10, events: int = 50, seed: int = 0) -> Simulation:
    """Forecasts in a world; the same for the same arguments.

    A question's true log odds are normal. The outcome is drawn from them, shifted by the surprise of its event. The
    market sees the log odds with an error; its asks, for YES and for NO, lie above its probability.

    Parameters
    ----------
    world : World or str
        Rules, or a name in `WORLDS`.
    forecasters, events : int
    seed : int

    Returns
    -------
    Simulation

    Raises
    ------
    ValueError
        For an unknown world, or fewer than one forecaster or event.

    References
    ----------
    Morris, T. P., White, I. R. and Crowther, M. J. (2019). Using simulation studies to evaluate statistical methods.
    Statistics in Medicine 38, 2074-2102.

    Examples
    --------
    >>> made = simulate("clustered", forecasters=3, events=20, seed=1)
    >>> len(made.panel), made.skill.round(2).tolist()
    (180, [-0.2, -0.85, -1.5])
    """
    if isinstance(world, str):
        if world not in WORLDS:
            raise ValueError(f"world: one of {', '.join(WORLDS)}, not {world}")
        world = WORLDS[world]
    for name, number in (("forecasters", forecasters), ("events", events)):
        if number < 1:
            raise ValueError(f"{name}: at least 1, not {number}")
    generator = np.random.default_rng(seed)
    questions = events * world.event_size
    centre = -2.5 if world.long_shots else 0.0
    log_odds = generator.normal(centre, SPREAD_OF_QUESTIONS, questions)
    surprise = np.repeat(generator.normal(0, world.surprise, events), world.event_size)
    happened = generator.random(questions) < _probability(log_odds + surprise)

    errors = np.linspace(*world.errors, forecasters)
    signals = log_odds + errors[:, None] * generator.normal(size=(forecasters, questions))
    forecast = _expected(signals, errors, centre) if world.skill == "knowledge" else _probability(signals)
    market = _probability(log_odds + generator.normal(0, MARKET_ERROR, questions))
    asks = [np.clip(side + HALF_SPREAD, LEAST_PRICE, 1 - LEAST_PRICE) for side in (market, 1 - market)]

    answers = generator.random((forecasters, questions)) < _chances_to_answer(world, errors, log_odds - centre)
    probability = np.where(answers, forecast, np.nan)
    panel = from_arrays(
        probability[:, :, None],
        happened[:, None].astype(np.float64),
        odds=asks[0][:, None],
        no_odds=asks[1][:, None],
        exclusive=False,
        event=np.repeat(np.arange(events), world.event_size),
        closed_at=np.arange(questions, dtype=np.float64),
    )
    return Simulation(panel, -errors)


def _probability(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)


def _expected(signals: Floats, errors: Floats, centre: float) -> Floats:
    """The expected probability given log odds seen with an error, in MacKay's approximation."""
    prior = SPREAD_OF_QUESTIONS**2
    trust = (prior / (prior + np.square(errors)))[:, None]
    variance = prior * (1 - trust)
    return _probability((centre + trust * (signals - centre)) / np.sqrt(1 + np.pi / 8 * variance))


def _chances_to_answer(world: World, errors: Floats, log_odds: Floats) -> Floats:
    """The chance that each forecaster answers each question, (N, Q)."""
    if not world.hard_for_the_skilled or errors[0] == errors[-1]:
        return np.full((len(errors), len(log_odds)), world.answered)
    skill = np.linspace(1, -1, len(errors))[:, None]
    hardness = 1 - np.abs(log_odds) / SPREAD_OF_QUESTIONS
    return np.clip(world.answered + 0.35 * world.hard_for_the_skilled * skill * hardness, 0.05, 1.0)
