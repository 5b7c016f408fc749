"""The expected cost of what is still to be asked in a week, by protocol: planned calls × the expected cost of each."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from agents.models import Decision, Elicitation
from agents.services.cost_estimate import estimate_day, estimate_forecasts, estimate_run
from agents.services.forecasts import releases_to_ask
from agents.services.run_settings import paused_families
from cohorts.models import Methodology
from cohorts.weeks import FIRST_FORECASTS, WEEK, week_start
from markets.models.question import day_of
from markets.services.universes import NoMarkets


class PlannedCost(NamedTuple):
    """The calls of a run: its instant, and their expected cost in US dollars."""

    at: datetime
    cost_usd: Decimal


def planned_costs(protocol: str, *, at: datetime) -> list[PlannedCost]:
    """The runs that a protocol still has in the week of `at`, oldest first. Reads only."""
    if protocol == Decision.PROTOCOL:
        return [PlannedCost(at, _decisions_left(at))]
    return list(_forecasts_left(at))


def cap_reached_at(planned: list[PlannedCost], *, spent: Decimal, cap: Decimal) -> datetime | None:
    """The instant of the run in which the planned costs reach the cap; None if they do not."""
    for run in planned:
        spent += run.cost_usd
        if spent >= cap:
            return run.at
    return None


def _decisions_left(at: datetime) -> Decimal:
    try:
        return estimate_run(at=at).cost_usd
    except NoMarkets:
        return Decimal(0)


def _forecasts_left(at: datetime) -> Iterator[PlannedCost]:
    today = day_of(at)
    yield PlannedCost(max(at, today + FIRST_FORECASTS), estimate_forecasts(at=at).cost_usd)
    methodology = Methodology.objects.forecasting()
    day = today + timedelta(days=1)
    if methodology is None or day == week_start(at) + WEEK:
        return
    paused = paused_families(Elicitation.PROTOCOL)
    releases = [release for release in releases_to_ask(methodology, day) if release.family_id not in paused]
    daily = estimate_day(methodology, releases, at=at).cost_usd
    while day < week_start(at) + WEEK:
        yield PlannedCost(day + FIRST_FORECASTS, daily)
        day += timedelta(days=1)
