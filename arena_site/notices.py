"""Alerts on their way out, by mail and by webhook: each sent once, tried until it is, whatever else fails."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx
from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F, QuerySet

from arena_site.models import Notice
from markets.models import Alert

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=6)
"""Between two tries; it doubles."""
TIMEOUT_S = 20
SUBJECT = 120

log = logging.getLogger(__name__)


@dataclass(slots=True)
class NoticeReport:
    sent: int = 0
    failures: list[str] = field(default_factory=list)


def channels() -> list[str]:
    """The ways out that the settings name."""
    named = {Notice.Channel.MAIL: settings.ARENA_ALERT_EMAIL, Notice.Channel.WEBHOOK: settings.ARENA_ALERT_WEBHOOK}
    return [channel for channel, to in named.items() if to]


def notices_wait(*, now: datetime) -> bool:
    """Is there anything to send?"""
    return any(_new(channel).exists() for channel in channels()) or _due(now).exists()


def notices_send(*, now: datetime) -> NoticeReport:
    """Sends each open alert by each channel that has not had it yet."""
    report = NoticeReport()
    for channel in channels():
        new = [Notice(alert=alert, channel=channel, next_try_at=now) for alert in _new(channel)]
        Notice.objects.bulk_create(new, ignore_conflicts=True)
    for notice in _due(now).select_related("alert").order_by("pk"):
        _send(notice, now, report)
    return report


def _new(channel: str) -> QuerySet[Alert]:
    return Alert.objects.filter(cleared_at=None).exclude(notices__channel=channel)


def _due(now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(channel__in=channels(), sent_at=None, next_try_at__lte=now, alert__cleared_at=None)


def _send(notice: Notice, now: datetime, report: NoticeReport) -> None:
    # Taken before it is sent: of two workers one sends, and what dies on the way is tried again after the pause.
    pause = min(FIRST_PAUSE * 2**notice.tries, LONGEST_PAUSE)
    mine = Notice.objects.filter(pk=notice.pk, tries=notice.tries, sent_at=None)
    if not mine.update(tries=F("tries") + 1, next_try_at=now + pause):
        return
    try:
        WAYS[notice.channel](notice.alert)
    except (OSError, httpx.HTTPError) as error:
        why = _why(error)
        Notice.objects.filter(pk=notice.pk).update(error=why)
        report.failures.append(f"{notice.channel}: alert {notice.alert_id} was not sent: {why}")
        return
    Notice.objects.filter(pk=notice.pk).update(sent_at=now, error="")
    report.sent += 1


def _why(error: Exception) -> str:
    """What went wrong, without the address: a webhook's is a secret."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _mail(alert: Alert) -> None:
    subject = f"[arena] {' '.join(alert.message.split())}"[:SUBJECT]
    body = f"{alert.message}\n\n{alert.kind}: {alert.subject}\nraised {alert.raised_at:%Y-%m-%d %H:%M} UTC\n"
    send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, list(settings.ARENA_ALERT_EMAIL))


def _post(alert: Alert) -> None:
    said = {
        "text": alert.message,
        "kind": alert.kind,
        "subject": alert.subject,
        "raised_at": alert.raised_at.isoformat(),
    }
    key = {"Idempotency-Key": f"alert-{alert.pk}"}
    httpx.post(str(settings.ARENA_ALERT_WEBHOOK), json=said, headers=key, timeout=TIMEOUT_S).raise_for_status()


WAYS: dict[str, Callable[[Alert], None]] = {Notice.Channel.MAIL: _mail, Notice.Channel.WEBHOOK: _post}
