"""Performance curves: mean values of families over time, for charts and the API."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise

from agents.models import Agent
from scoring.selectors.competition import AgentSummary, started_by
from scoring.selectors.histories import Values, family_values, snapshot_ranges

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MAX_BUCKETS = 168
"""The most points of a curve: a week of hours."""
BUCKETS = (10 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY)
"""Bucket widths, the snapshots' own grid first. Wider ones begin where narrower ones do."""
RANGES: Mapping[str, timedelta | None] = {
    "10M": 10 * MINUTE,
    "1H": HOUR,
    "1D": DAY,
    "1W": 7 * DAY,
    "1M": 30 * DAY,
    "3M": 90 * DAY,
    "ALL": None,
}
"""How far back each range reaches; None is to the first snapshot."""
EPOCH = datetime(1970, 1, 4, tzinfo=UTC)
"""A Sunday, so that buckets of weeks are the arena's weeks."""


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """The change of a family's model from one cohort to the next."""

    family: str
    cohort: int
    at: datetime
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Performance:
    """Mean values of families at the ends of buckets; the last bucket ends with the newest snapshot."""

    as_of: datetime | None
    bucket: timedelta
    instants: Sequence[datetime]
    families: Mapping[str, Values]
    release_changes: Sequence[ReleaseChange]


def performance(agents: Iterable[Agent | AgentSummary], *, span: timedelta | None, at: datetime) -> Performance:
    """The curves of the agents' families over the `span` that ends with the newest snapshot by `at`."""
    return performances(agents, spans={span}, at=at)[span]


def performances(
    agents: Iterable[Agent | AgentSummary], *, spans: Collection[timedelta | None], at: datetime
) -> dict[timedelta | None, Performance]:
    """The curves over each of several spans that end with the newest snapshot by `at`, read together."""
    running = started_by(agents, at)
    ranges = snapshot_ranges(running, at)
    oldest, newest = [], []
    for agent in running:
        if agent_range := ranges[agent.family.pk].get(agent.pk):
            oldest.append(agent_range[0])
            newest.append(agent_range[1])
    curves = {}
    if not newest:
        for span in spans:
            curves[span] = Performance(None, BUCKETS[0] if span is None else _bucket(span), [], {}, [])
        return curves
    last = max(newest)
    begins, grids = {}, {}
    for span in spans:
        begins[span] = min(oldest) if span is None else last - span
        grids[span] = bucket_ends(begins[span], last)
    instants = sorted(set(chain.from_iterable(grids.values())))
    means_of = family_values(running, instants, ranges)
    changes = release_changes(running)
    for span, first in begins.items():
        places = [bisect_left(instants, instant) for instant in grids[span]]
        families = {}
        for family, means in means_of:
            families[family.slug] = [means[place] for place in places]
        changes_since = [change for change in changes if first <= change.at <= last]
        curves[span] = Performance(last, _bucket(last - first), grids[span], families, changes_since)
    return curves


def release_changes(agents: Iterable[Agent | AgentSummary]) -> list[ReleaseChange]:
    """The changes of families' models between cohorts, of agents with family and cohort loaded."""
    by_family: dict[int, list[Agent | AgentSummary]] = defaultdict(list)
    for agent in sorted(agents, key=lambda agent: agent.cohort.number):
        by_family[agent.family.pk].append(agent)
    changes = []
    for successive in by_family.values():
        for before, now in pairwise(successive):
            if before.model_id != now.model_id:
                at = now.cohort.started_at
                changes.append(ReleaseChange(now.family.slug, now.cohort.number, at, before.model_id, now.model_id))
    return changes


def _bucket(span: timedelta) -> timedelta:
    for width in BUCKETS:
        if span <= MAX_BUCKETS * width:
            return width
    return BUCKETS[-1]


def bucket_ends(first: datetime, last: datetime) -> list[datetime]:
    """The ends of at most `MAX_BUCKETS` buckets between two instants; the last end is `last`."""
    bucket = _bucket(last - first)
    steps = range(-((EPOCH - first) // bucket), -((EPOCH - last) // bucket))
    return [*(EPOCH + step * bucket for step in steps), last]
