"""How large a made arena is, and its calendar."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cohorts.weeks import GRID, WEEK, week_start

END = datetime(2026, 2, 28, 23, 50, tzinfo=UTC)
"""When a made season ends unless told: before the real one, so that nothing of it lies ahead of any reader."""
DECIDED = timedelta(minutes=5)
"""How long after its start a week's universe is frozen and decisions are made."""
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything; `positions` are those an agent still holds at the end."""

    cohorts: int = 20
    markets: int = 2_000
    positions: int = 40
    trades: int = 30_000
    decisions: int = 5_000
    snapshot_days: int = 30
    forecasts: int = 50_000


SMALL = Size(cohorts=2, markets=60, positions=6, trades=420, decisions=56, snapshot_days=1, forecasts=140)


@dataclass(frozen=True, slots=True)
class Plan:
    """A size with a seed, an end, and how many agents share it."""

    size: Size
    seed: int
    end: datetime
    families: int

    @property
    def agents(self) -> int:
        return self.size.cohorts * self.families

    @property
    def decision_weeks(self) -> int:
        """Weeks in which each cohort decides."""
        return max(1, -(-self.size.decisions // self.agents))

    @property
    def weeks(self) -> int:
        """Weeks from the first cohort's start to the end."""
        return self.size.cohorts - 1 + self.decision_weeks

    @property
    def begin(self) -> datetime:
        """The first cohort's week start."""
        return week_start(self.end) - (self.weeks - 1) * WEEK

    @property
    def snapshots_from(self) -> datetime:
        return self.end - self.size.snapshot_days * DAY + GRID

    def week(self, at: datetime) -> int:
        """The week of an instant, counted from 0 at the first cohort's start."""
        return int((week_start(at) - self.begin) // WEEK)

    def frozen_at(self, week: int) -> datetime:
        """When a week's universe was frozen."""
        return self.begin + week * WEEK + DECIDED

    def share(self, of: int, place: int) -> int:
        """The part of a total that falls to one of the agents, by its place among them."""
        return of // self.agents + (place < of % self.agents)

    def dice(self, *purpose: object) -> random.Random:
        """Chance for one purpose, the same whenever the seed is, whatever else was drawn before."""
        return random.Random(":".join(map(str, (self.seed, *purpose))))
