"""Delivery of alerts by mail and webhook: each is sent once when it is raised and once when it is resolved."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F, Q, QuerySet

from foundation.models import Alert, Notice

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=6)
"""The pause between two tries doubles from the first to the longest."""
TIMEOUT_S = 20
SUBJECT = 120

log = logging.getLogger(__name__)


def channels() -> list[str]:
    """The channels that the settings configure."""
    targets = {Notice.Channel.MAIL: settings.ARENA_ALERT_EMAIL, Notice.Channel.WEBHOOK: settings.ARENA_ALERT_WEBHOOK}
    return [channel for channel, target in targets.items() if target]


def has_unsent_notices(*, now: datetime) -> bool:
    """True while anything is due on any channel."""
    for channel, status in product(channels(), Notice.Status):
        if _unnoticed(channel, status).exists():
            return True
    return _due(now).exists()


def unsent_notices() -> QuerySet[Notice]:
    """Notices that are still to be delivered by a channel that is configured."""
    return Notice.objects.filter(_is_current(), channel__in=channels(), sent_at=None)


def send_notices(*, now: datetime, kinds: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Sends what is due on each channel, of some kinds of alerts only if named. Returns how many, and the faults."""
    for channel in channels():
        for status in Notice.Status:
            alerts = _unnoticed(channel, status)
            notices = []
            for alert in alerts.filter(kind__in=kinds) if kinds else alerts:
                notices.append(Notice(alert=alert, channel=channel, status=status, next_try_at=now))
            Notice.objects.bulk_create(notices, ignore_conflicts=True)
    pending = _due(now).select_related("alert").prefetch_related("alert__items").order_by("pk")
    number, faults = 0, []
    for notice in pending.filter(alert__kind__in=kinds) if kinds else pending:
        if not _claim(notice, now):
            continue
        if fault := _send(notice, now):
            faults.append(fault)
        else:
            number += 1
    return number, faults


def _is_current() -> Q:
    """A notice of an alert's state; an alert that ended before its notice was sent has none."""
    is_open = Q(alert__cleared_at=None)
    return Q(status=Notice.Status.OPEN) & is_open | Q(status=Notice.Status.RESOLVED) & ~is_open


def _unnoticed(channel: str, status: str) -> QuerySet[Alert]:
    """Alerts that lack their notice: open ones, and cleared ones whose beginning was sent."""
    opening_notices = Notice.objects.filter(channel=channel, status=Notice.Status.OPEN).exclude(sent_at=None)
    alerts = Alert.objects.open() if status == Notice.Status.OPEN else (
        Alert.objects.exclude(cleared_at=None).filter(pk__in=opening_notices.values("alert"))
    )  # fmt: skip
    return alerts.exclude(pk__in=Notice.objects.filter(channel=channel, status=status).values("alert"))


def _due(now: datetime) -> QuerySet[Notice]:
    return unsent_notices().filter(next_try_at__lte=now)


def _claim(notice: Notice, now: datetime) -> bool:
    """Claims a notice before it is sent: one of two workers sends it; after a crash it is retried after the pause."""
    pause = min(FIRST_PAUSE * 2**notice.tries, LONGEST_PAUSE)
    unclaimed = Notice.objects.filter(pk=notice.pk, tries=notice.tries, sent_at=None)
    return bool(unclaimed.update(tries=F("tries") + 1, next_try_at=now + pause))


def _send(notice: Notice, now: datetime) -> str:
    """Sends a notice; the fault if it could not be sent, else empty."""
    import httpx  # loads rich and click

    row = Notice.objects.filter(pk=notice.pk)
    try:
        SENDERS[notice.channel](notice)
    except (OSError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: an address of no host
        reason = _describe(error)
        row.update(error=reason)
        return f"{notice.channel}: alert {notice.alert_id} was not sent: {reason}"
    row.update(sent_at=now, error="")
    return ""


def _describe(error: Exception) -> str:
    """The fault without the address, which for a webhook is a secret."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _mail(notice: Notice) -> None:
    resolved = "resolved: " if notice.status == Notice.Status.RESOLVED else ""
    subject = f"[arena] {resolved}{' '.join(notice.alert.message.split())}"[:SUBJECT]
    send_mail(subject, _text(notice), settings.DEFAULT_FROM_EMAIL, list(settings.ARENA_ALERT_EMAIL))


def _text(notice: Notice) -> str:
    """The text of a mail."""
    alert = notice.alert
    names = f"{alert.count} affected: {'; '.join(alert.names)}" if alert.count > 1 else ""
    resolved = f"resolved {alert.cleared_at:%Y-%m-%d %H:%M} UTC" if notice.status == Notice.Status.RESOLVED else ""
    raised = f"{alert.kind}: {alert.subject}, raised {alert.raised_at:%Y-%m-%d %H:%M} UTC"
    what_to_do = "" if resolved else alert.remedy
    return "\n".join(filter(None, [alert.message, names, what_to_do, _url(alert), raised, resolved])) + "\n"


def payload(notice: Notice) -> dict[str, Any]:
    """The body of a webhook's request."""
    alert = notice.alert
    return {
        "id": alert.pk,
        "status": notice.status,
        "kind": alert.kind,
        "subject": alert.subject,
        "count": alert.count,
        "names": alert.names,
        "text": alert.message,
        "url": _url(alert),
        "remedy": alert.remedy,
        "severity": "critical" if alert.urgent else "warning",
        "instance": settings.ARENA_INSTANCE,
        "raised_at": alert.raised_at.isoformat().replace("+00:00", "Z"),
    }


def _url(alert: Alert) -> str:
    return f"{settings.ARENA_SITE_URL}{alert.path or f'/admin/foundation/alert/{alert.pk}/change/'}"


def _post(notice: Notice) -> None:
    import httpx

    repeat = f"-{notice.repeats}" if notice.repeats else ""
    key = {"Idempotency-Key": f"alert-{notice.alert_id}-{notice.status}{repeat}"}
    address = str(settings.ARENA_ALERT_WEBHOOK)
    httpx.post(address, json=payload(notice), headers=key, timeout=TIMEOUT_S).raise_for_status()


SENDERS: dict[str, Callable[[Notice], None]] = {Notice.Channel.MAIL: _mail, Notice.Channel.WEBHOOK: _post}
