"""Requests to venues, added up over all runs."""

from collections import defaultdict

from django.db.models import F

from foundation.http import Traffic, take_traffic
from markets.models import VenueTraffic

VENUE_OF_SERVICE = {"gamma": "polymarket", "clob": "polymarket", "kalshi": "kalshi"}


def store_venue_traffic() -> None:
    """Adds this run's requests to those of the venues."""
    by_venue: defaultdict[str, Traffic] = defaultdict(Traffic)
    for service, traffic in take_traffic().items():
        if venue := VENUE_OF_SERVICE.get(service):
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
