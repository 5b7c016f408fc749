"""Venues that can not be read, or of which no price was accepted for half an hour: their requests and alerts."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Max

from foundation.http import Traffic, take_traffic
from foundation.services.alerts import clear_alert, clear_others, raise_alert
from markets.models import Market, Outcome, VenueTraffic
from markets.sources.base import base_url_setting
from markets.sources.registry import SOURCES, sources_by_service

VENUE_DOWN, PRICES_STALE = "venue-down", "prices-stale"
STALE_AFTER = timedelta(minutes=30)


def alert_venue_down(service: str, reason: str, *, at: datetime) -> None:
    """Raises the alert of a service that gives no usable answer; its next answer clears it.

    One failure is a warning: a second one in a row makes it urgent, and sends it again.
    """
    venue = SOURCES[sources_by_service()[service]].label
    raise_alert(
        kind=VENUE_DOWN,
        items={service: f"{venue} ({service})"},
        message=f"{venue} can not be read. {reason}",
        at=at,
        path="/admin/#jobs",
        remedy=f"Look at {venue}'s status page, then at this machine's network and {base_url_setting(service)} "
        "(manage.py doctor). Prices stay as they were; the next sync or snapshot that gets an answer resolves this.",
        urgent=False,
        escalates=True,
    )


def clear_venue_down(services: Iterable[str], *, at: datetime) -> None:
    clear_alert(VENUE_DOWN, services, at=at)


def clear_venues_not_asked(services: Iterable[str], *, at: datetime) -> None:
    """Clears the alerts of services that are no longer asked."""
    clear_others(VENUE_DOWN, services, at=at)


def refresh_stale_prices(*, at: datetime) -> None:
    """Raises an alert for each source without an accepted price for half an hour, and clears those that have one.

    A source without open markets needs none.
    """
    open_markets = Outcome.objects.filter(
        market__status=Market.Status.ACTIVE, market__source__in=settings.ARENA_SOURCES, price_at__isnull=False
    )
    newest = dict(open_markets.order_by().values_list("market__source").annotate(newest=Max("price_at")))
    stale = {source: instant for source, instant in newest.items() if at - instant >= STALE_AFTER}
    clear_alert(PRICES_STALE, SOURCES.keys() - stale.keys(), at=at)
    for source, instant in stale.items():
        venue = SOURCES[source].label
        raise_alert(
            kind=PRICES_STALE,
            items={source: venue},
            message=f"No price of {venue} was accepted since {instant:%Y-%m-%d %H:%M} UTC.",
            at=at,
            path="/admin/#jobs",
            remedy="Read the last runs of sync_markets and take_snapshots: they name what fails. Start or resume them "
            "if there are none; the next accepted price resolves this.",
        )


def store_venue_traffic() -> None:
    """Adds this run's requests to those of the venues."""
    sources = sources_by_service()
    by_venue: defaultdict[str, Traffic] = defaultdict(Traffic)
    for service, traffic in take_traffic().items():
        if venue := sources.get(service):
            by_venue[venue].requests += traffic.requests
            by_venue[venue].failures += traffic.failures
            by_venue[venue].seconds += traffic.seconds
    for venue, total in by_venue.items():
        VenueTraffic.objects.bulk_create([VenueTraffic(venue=venue)], ignore_conflicts=True)
        VenueTraffic.objects.filter(venue=venue).update(
            requests=F("requests") + total.requests,
            failures=F("failures") + total.failures,
            latency_s=total.seconds / total.requests,
        )
