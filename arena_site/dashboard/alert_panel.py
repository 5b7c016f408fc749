"""The dashboard's open alerts, each with the action that removes its cause."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Self

from django.db.models import Max

from arena_site.dashboard.action import action_path, list_path, row_path
from arena_site.operations.condition import Occurrence
from arena_site.operations.conditions import CONDITIONS_BY_KIND
from arena_site.operations.notices import channels
from foundation.models import Alert, AlertItem, Notice
from foundation.services.runs import JOB_FAILED
from markets.services.venue_health import PRICES_STALE, VENUE_DOWN
from markets.sources.registry import sources_by_service

ALERTS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert with the button against its cause: its text and address, empty where there is none."""

    alert: Alert
    button: str
    path: str

    @classmethod
    def of(cls, alert: Alert) -> Self:
        condition = CONDITIONS_BY_KIND.get(alert.kind)
        path = condition.action_path(alert) if condition else ""
        return cls(alert, condition.button if condition and path else "", path)

    @property
    def finding(self) -> Occurrence:
        """The alert as a problem: with the action against its cause, else that by which a person ends it."""
        alert = self.alert
        return Occurrence(
            alert.message, path=row_path(alert), button=self.button or "Acknowledge", remedy=alert.remedy,
            action_path=self.path or action_path("acknowledge", alert=alert.pk), urgent=alert.urgent,
        )  # fmt: skip

    @property
    def venue(self) -> str:
        """The venue of an alert about one, else empty."""
        if self.alert.kind == VENUE_DOWN:
            return sources_by_service().get(self.alert.subject, self.alert.subject)
        return self.alert.subject if self.alert.kind == PRICES_STALE else ""

    @property
    def items_path(self) -> str:
        """The list of what it is about."""
        return list_path(AlertItem, alert__id__exact=self.alert.pk, cleared_at__isempty=1)


class AlertPanel:
    """The number of open alerts, and the newest of them."""

    def __init__(self) -> None:
        self.deliveries = _last_deliveries()
        self.count = Alert.objects.open().count()
        self.path = list_path(Alert, cleared_at__isempty=1)
        alerts = Alert.objects.open().prefetch_related("items")[:ALERTS_SHOWN]
        self.alerts = list(map(OpenAlert.of, alerts))
        self.failed_jobs = {row.alert.subject for row in self.of_kind(JOB_FAILED)}

    def of_kind(self, kind: str) -> list[OpenAlert]:
        return [row for row in self.alerts if row.alert.kind == kind]

    def of_venues(self) -> list[list[OpenAlert]]:
        """The alerts about each venue, first those that say that a service of it is down."""
        venues: defaultdict[str, list[OpenAlert]] = defaultdict(list)
        for row in [*self.of_kind(VENUE_DOWN), *self.of_kind(PRICES_STALE)]:
            venues[row.venue].append(row)
        return list(venues.values())

    def older(self) -> tuple[int, str]:
        """The number and the list of open alerts besides the newest."""
        if self.count <= len(self.alerts):
            return 0, self.path
        listed_ids = list(map(attrgetter("alert.pk"), self.alerts))
        older = Alert.objects.open().exclude(pk__in=listed_ids).values_list("pk", flat=True)
        return len(older), list_path(Alert, id__in=",".join(map(str, older)))


def _last_deliveries() -> list[tuple[str, datetime | None]]:
    """Each channel of the settings, with the time of its last delivery."""
    deliveries = Notice.objects.exclude(sent_at=None).order_by().values_list("channel").annotate(Max("sent_at"))
    last = dict(deliveries) if channels() else {}
    return [(channel, last.get(channel)) for channel in channels()]
