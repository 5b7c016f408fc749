"""A season of any length: what the fixture lists is listed again, edition after edition."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile

from venue_sandbox.catalogue import Event, Market, Race, Season

FIXTURE_WEEKS = 9
"""So long the fixture alone has open markets."""
EDITION = timedelta(weeks=6)
"""An edition starts so long after the one before it, which keeps between 110 and 170 markets open at all times."""
FOREVER = datetime.max.replace(tzinfo=UTC)


def extend_season(season: Season, weeks: int) -> Season:
    """A season with open markets in each of so many weeks; the same one as far as it lasts by itself.

    Each edition has ids, questions, tokens and races of its own, so that its outcomes differ; special resolutions
    and the weeks in which a model is down recur. A pure function of its arguments: chance enters with the seed of the
    exchange.
    """
    if weeks <= FIXTURE_WEEKS:
        return season
    first_listing = min(market.lists for market in season.markets) - season.starts
    numbers = takewhile(lambda n: (n - 1) * EDITION + first_listing < timedelta(weeks=weeks), count(1))
    events = tuple(event for number in numbers for event in _edition(season, number))
    return Season(season.starts, events, recurs=EDITION)


def _edition(season: Season, number: int) -> tuple[Event, ...]:
    """The season's events as the edition of that number has them; the first one has them as they are."""
    if number == 1:
        return season.events
    later = (number - 1) * EDITION
    events, markets = len(season.events), len(season.markets)

    def add_edition(text: str) -> str:
        return f"{text} (edition {number})"

    def copy_event(event: Event) -> Event:
        event_id = str(int(event.id) + (number - 1) * events)
        copies = tuple(copy_market(market, event_id) for market in event.markets)
        return replace(event, id=event_id, title=add_edition(event.title), markets=copies)

    def copy_market(market: Market, event_id: str) -> Market:
        race = market.race
        return replace(
            market,
            id=str(int(market.id) + (number - 1) * markets),
            event_id=event_id,
            question=add_edition(market.question),
            race=Race(add_edition(race.name), race.runners, race.starts + later, race.ends + later),
            absent=_shifted(market.absent, later),
            one_sided=_shifted(market.one_sided, later),
        )

    return tuple(map(copy_event, season.events))


def _shifted(window: tuple[datetime, datetime] | None, later: timedelta) -> tuple[datetime, datetime] | None:
    if window is None:
        return None
    start, end = window
    return start + later, end if end == FOREVER else end + later
