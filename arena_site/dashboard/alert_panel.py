"""The dashboard's open alerts, each with the action that removes its cause."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from django.db.models import Max

from agents.services.credit_alerts import CREDITS_LOW
from agents.services.lineups import PROPOSED_ALERT
from agents.services.release_check import UNUSABLE_ALERT
from agents.services.settled_results import RESULT_CHANGED
from agents.services.settlement import OVERDUE_ALERT
from agents.services.task_alerts import FAILED
from arena_site.dashboard.action import list_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.operations.conditions import CONDITIONS
from arena_site.operations.notices import channels
from foundation.models import Alert, AlertItem, Notice
from foundation.services.runs import JOB_FAILED
from markets.models import Market
from markets.services.venue_health import PRICES_STALE, VENUE_DOWN
from markets.sources.registry import sources_by_service

ALERTS_SHOWN = 12
BUTTONS = {
    VENUE_DOWN: ("Sync now", "sync_markets"),
    PRICES_STALE: ("Sync now", "sync_markets"),
    UNUSABLE_ALERT: ("Propose a line-up", "propose-line-up"),
    CREDITS_LOW: ("Reconcile", "reconcile_costs"),
    **{condition.kind: (condition.button, condition.action) for condition in CONDITIONS if condition.action},
}
"""The action against the cause of an alert by its kind, and its name, where it does not depend on the alert's items."""


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert with the button against its cause: its text and address, empty where there is none."""

    alert: Alert
    button: str
    path: str

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
        alerts = list(Alert.objects.open().prefetch_related("items")[:ALERTS_SHOWN])
        overdue: list[str] = []
        self.failed_jobs = set()
        for alert in alerts:
            if alert.kind == OVERDUE_ALERT:
                overdue += map(attrgetter("subject"), alert.concerned)
            elif alert.kind == JOB_FAILED:
                self.failed_jobs.add(alert.subject)
        markets = dict(Market.objects.filter(external_id__in=overdue).values_list("external_id", "pk"))
        self.alerts = [OpenAlert(alert, *_remedy(alert, markets)) for alert in alerts]

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


def _remedy(alert: Alert, markets: dict[str, int]) -> tuple[str, str]:
    subjects = list(map(attrgetter("subject"), alert.concerned))
    if alert.kind == OVERDUE_ALERT:
        market = next(filter(None, map(markets.get, subjects)), None)
        return ("Settle", ACTIONS["settle"].path(market=market)) if market else ("", "")
    if alert.kind == RESULT_CHANGED:
        source, _, external_id = subjects[0].partition(": ")[0].partition(" ") if subjects else ("", "", "")
        settled = Market.objects.filter(source=source, external_id=external_id).values_list("pk", flat=True).first()
        return ("Reverse", ACTIONS["reverse"].path(market=settled)) if settled else ("", "")
    if alert.kind == FAILED:
        tasks: defaultdict[str, list[str]] = defaultdict(list)
        for subject in subjects:
            kind, _, key = subject.partition(" ")
            tasks[kind].append(key)
        return "Retry", ACTIONS["retry"].path(**tasks)
    if alert.kind == JOB_FAILED and alert.subject in ACTIONS:
        return "Run again", ACTIONS[alert.subject].path()
    if alert.kind == PROPOSED_ALERT:
        return "Approve", ACTIONS["approve-line-up"].path(line_up=alert.subject)
    if alert.kind in BUTTONS:
        button, action = BUTTONS[alert.kind]
        return button, ACTIONS[action].path()
    return "", ""
