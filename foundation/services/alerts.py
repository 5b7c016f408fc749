"""Raising and clearing alerts: what has one cause is one alert, and each thing in it is cleared by itself."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from foundation.models import Alert, AlertItem, Notice
from foundation.models.alert import NAMES_SHOWN

MESSAGE = 1000
NAME = AlertItem._meta.get_field("name").max_length


def raise_alert(
    *,
    kind: str,
    items: Mapping[str, str],
    message: str,
    at: datetime,
    subject: str = "",
    path: str = "",
    remedy: str = "",
    urgent: bool = True,
    repeated: bool = False,
    escalates: bool = False,
) -> Alert | None:
    """Raises one alert for the `items` (names by subject) that no open alert of the kind holds; None if all are held.

    They join the open alert of the same kind and `subject`, by default the first item's, and its message is renewed;
    `repeated` sends it again then. One that `escalates` becomes urgent when it is raised a second time.
    """
    with transaction.atomic():
        open_items = AlertItem.objects.filter(kind=kind, subject__in=list(items), cleared_at=None)
        new = items.keys() - set(open_items.values_list("subject", flat=True))
        if not new:
            if escalates:
                _escalate(Alert.objects.open().filter(kind=kind, items__in=open_items, urgent=False), at)
            return None
        first = next(name for name in items if name in new)
        fields = {"message": message[:MESSAGE], "remedy": remedy, "path": path, "urgent": urgent}
        alert, created = Alert.objects.get_or_create(
            kind=kind, subject=subject or first, cleared_at=None, defaults={**fields, "raised_at": at}
        )
        if not created:
            Alert.objects.filter(pk=alert.pk).update(**fields)
            if repeated:
                _send_again([alert.pk], at)
        rows = []
        for key, name in items.items():
            if key in new:
                rows.append(AlertItem(alert=alert, kind=kind, subject=key, name=name[:NAME] or key))
        AlertItem.objects.bulk_create(rows, ignore_conflicts=True)  # another process may just have raised them
        if created and not alert.items.exists():
            alert.delete()
            return None
    return alert


def _escalate(alerts: QuerySet[Alert], at: datetime) -> None:
    ids = list(alerts.values_list("pk", flat=True).distinct())
    Alert.objects.filter(pk__in=ids).update(urgent=True)
    _send_again(ids, at)


def _send_again(alerts: list[int], at: datetime) -> None:
    """Lets the notices that were sent of these open alerts be sent once more; others are still to be sent."""
    notices = Notice.objects.filter(alert__in=alerts, status=Notice.Status.OPEN)
    notices.filter(sent_at=None).update(next_try_at=at)
    notices.exclude(sent_at=None).update(sent_at=None, tries=0, next_try_at=at, repeats=F("repeats") + 1)


def clear_alert(kind: str, subjects: Iterable[str], *, at: datetime) -> int:
    """Clears things of a kind; an alert is cleared with its last one. Returns how many alerts that were."""
    return _clear(AlertItem.objects.filter(kind=kind, subject__in=list(subjects)), at)


def clear_others(kind: str, subjects: Iterable[str], *, at: datetime, subject: str | None = None) -> int:
    """Clears the items of a kind, or of its alert of one `subject`, that are not among `subjects`."""
    items = AlertItem.objects.filter(kind=kind).exclude(subject__in=list(subjects))
    return _clear(items if subject is None else items.filter(alert__subject=subject), at)


def acknowledge_alerts(alerts: QuerySet[Alert], *, at: datetime) -> int:
    """Closes alerts that a person has seen; returns how many were open."""
    with transaction.atomic():
        AlertItem.objects.filter(alert__in=alerts.values("pk"), cleared_at=None).update(cleared_at=at)
        return alerts.filter(cleared_at=None).update(cleared_at=at)


def listing(names: Sequence[str]) -> str:
    """The first names, and how many there are besides."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return "; ".join(names[:NAMES_SHOWN]) + more


def _clear(items: QuerySet[AlertItem], at: datetime) -> int:
    with transaction.atomic():
        kinds = set(items.filter(cleared_at=None).values_list("kind", flat=True))
        if not kinds or not items.filter(cleared_at=None).update(cleared_at=at):
            return 0
        still_open = AlertItem.objects.filter(alert=OuterRef("pk"), cleared_at=None)
        return Alert.objects.open().filter(~Exists(still_open), kind__in=kinds).update(cleared_at=at)
