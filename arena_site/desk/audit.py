"""The audit log: one entry for each act of an operator, and for each that was refused."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from arena_site.desk.act import Act, Asked, Done
from arena_site.models import AuditEntry

LONGEST = 200
SECRET = ("csrfmiddlewaretoken", "password")


def performed(act: Act, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
    """The act, done and on record: both or neither."""
    with transaction.atomic():
        before = act.state(asked)
        target, path = act.target(asked), act.target_path(asked)
        done = act.perform(asked, at=at, by=by, reason=reason)
        written(
            act=act.name,
            by=by,
            result=AuditEntry.Result.DONE if done.changed else AuditEntry.Result.UNCHANGED,
            reason=reason,
            message=done.says,
            target=target,
            path=path,
            asked=asked,
            before=before,
            after=act.state(asked),
        )
    return done


def written(
    *,
    act: str,
    by: str,
    result: str,
    reason: str = "",
    message: str = "",
    target: str = "",
    path: str = "",
    asked: dict[str, Any] | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    at: datetime | None = None,
) -> AuditEntry:
    """The entry, on record. It is dated by the real clock, whatever instant the act was for."""
    return AuditEntry.objects.create(
        at=at or timezone.now(),
        by=by,
        act=act,
        target=target[:LONGEST],
        path=path[:LONGEST],
        reason=reason,
        result=result,
        message=message,
        asked=plain({name: value for name, value in (asked or {}).items() if name not in SECRET}),
        before=plain(before or {}),
        after=plain(after or {}),
    )


def plain(value: Any) -> Any:
    """A value as JSON holds it: rows by their id, amounts and instants as text."""
    if isinstance(value, dict):
        return {str(name): plain(of) for name, of in value.items()}
    if isinstance(value, QuerySet | list | tuple | set):
        return [plain(one) for one in value]
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value
