"""The dashboard's venues: whether each answers, its last success, and its failures and latency."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from arena_site.dashboard.action import list_path
from arena_site.dashboard.alert_panel import AlertPanel
from arena_site.operations.operational_metrics import venue_traffic
from foundation.bulk import rows_by
from markets.models import Market, VenueTraffic
from markets.services.venue_health import PRICES_STALE, VENUE_DOWN
from markets.sources.registry import SOURCES, sources_by_service

STATES = {VENUE_DOWN: "down", PRICES_STALE: "prices stale"}


@dataclass(frozen=True, slots=True)
class VenueRow:
    """A venue that is asked: its state, the newest answer about a market, and the requests to it."""

    name: str
    state: str
    answered_at: datetime | None
    traffic: VenueTraffic
    path: str

    @property
    def css_class(self) -> str:
        return "bad" if self.state in STATES.values() else "good" if self.answered_at else "now"

    @property
    def latency_ms(self) -> float | None:
        return self.traffic.latency_s * 1000 if self.traffic.requests else None


def venue_rows(alerts: AlertPanel) -> list[VenueRow]:
    """The venues of the settings."""
    traffic = rows_by("venue", venue_traffic())
    sources, troubled = sources_by_service(), dict[str, str]()
    for kind, state in STATES.items():
        for alert_row in alerts.of_kind(kind):
            for item in alert_row.alert.concerned:
                troubled.setdefault(sources.get(item.subject, item.subject), state)
    rows = []
    for source in settings.ARENA_SOURCES:
        markets = Market.objects.filter(source=source, refreshed_at__isnull=False).order_by("-refreshed_at")
        answered_at = markets.values_list("refreshed_at", flat=True).first()
        state = troubled.get(source) or ("answers" if answered_at else "not asked yet")
        rows.append(VenueRow(SOURCES[source].label, state, answered_at, traffic[source], list_path(VenueTraffic)))
    return rows
