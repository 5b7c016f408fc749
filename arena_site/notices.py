"""Delivery of alerts by mail and webhook: each is retried until it is sent, and sent once."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F, QuerySet

from arena_site.models import Notice
from markets.models import Alert

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
    """Whether any alert is due on any channel."""
    return any(_new(channel).exists() for channel in channels()) or _due(now).exists()


def send_notices(*, now: datetime) -> tuple[int, list[str]]:
    """Sends each open alert by each channel that has not delivered it. Returns how many were sent, and the faults."""
    for channel in channels():
        new = [Notice(alert=alert, channel=channel, next_try_at=now) for alert in _new(channel)]
        Notice.objects.bulk_create(new, ignore_conflicts=True)
    faults = [_send(notice, now) for notice in _due(now).select_related("alert").order_by("pk")]
    return faults.count(""), [fault for fault in faults if fault]


def _new(channel: str) -> QuerySet[Alert]:
    return Alert.objects.filter(cleared_at=None).exclude(notices__channel=channel)


def _due(now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(channel__in=channels(), sent_at=None, next_try_at__lte=now, alert__cleared_at=None)


def _send(notice: Notice, now: datetime) -> str | None:
    """Sends a notice: the error, empty on success; None if another worker has claimed it."""
    # Claimed before it is sent, so that one of two workers sends; after a crash it is retried when the pause ends.
    pause = min(FIRST_PAUSE * 2**notice.tries, LONGEST_PAUSE)
    claim = Notice.objects.filter(pk=notice.pk, tries=notice.tries, sent_at=None)
    if not claim.update(tries=F("tries") + 1, next_try_at=now + pause):
        return None
    import httpx  # loads rich and click

    try:
        SENDERS[notice.channel](notice.alert)
    except (OSError, httpx.HTTPError) as error:
        reason = _describe(error)
        Notice.objects.filter(pk=notice.pk).update(error=reason)
        return f"{notice.channel}: alert {notice.alert_id} was not sent: {reason}"
    Notice.objects.filter(pk=notice.pk).update(sent_at=now, error="")
    return ""


def _describe(error: Exception) -> str:
    """The fault without the address, which for a webhook is a secret."""
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _mail(alert: Alert) -> None:
    subject = f"[arena] {' '.join(alert.message.split())}"[:SUBJECT]
    body = f"{alert.message}\n\n{alert.kind}: {alert.subject}\nraised {alert.raised_at:%Y-%m-%d %H:%M} UTC\n"
    send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, list(settings.ARENA_ALERT_EMAIL))


def _post(alert: Alert) -> None:
    import httpx

    payload = {
        "text": alert.message,
        "kind": alert.kind,
        "subject": alert.subject,
        "raised_at": alert.raised_at.isoformat(),
    }
    key = {"Idempotency-Key": f"alert-{alert.pk}"}
    httpx.post(str(settings.ARENA_ALERT_WEBHOOK), json=payload, headers=key, timeout=TIMEOUT_S).raise_for_status()


SENDERS: dict[str, Callable[[Alert], None]] = {Notice.Channel.MAIL: _mail, Notice.Channel.WEBHOOK: _post}
