"""The audit log: one entry for each action of an operator, and for each attempt that was refused."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from arena_site.dashboard.action import Action, ActionResult, FormData
from arena_site.models import AuditEntry

MAX_LENGTH = 200


def perform_action(action: Action, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
    """Performs an action and writes its audit entry, both or neither."""
    with transaction.atomic():
        before = action.state(data)
        target, path = action.target(data), action.target_path(data)
        result = action.perform(data, at=at, by=by, reason=reason)
        write_entry(
            action=action.name,
            by=by,
            result=AuditEntry.Result.DONE if result.changed else AuditEntry.Result.UNCHANGED,
            reason=reason,
            message=result.message,
            target=target,
            path=path,
            form_data=data,
            before=before,
            after=action.state(data),
        )
    return result


def write_entry(*, action: str, by: str, result: str, target: str = "", path: str = "", **fields: Any) -> AuditEntry:
    """Writes an entry, dated by the real clock whatever instant the action was for."""
    return AuditEntry.objects.create(
        at=timezone.now(),
        by=by,
        action=action,
        result=result,
        target=target[:MAX_LENGTH],
        path=path[:MAX_LENGTH],
        **{name: to_json(value) for name, value in fields.items()},
    )


def to_json(value: Any) -> Any:
    """A value for a JSON field: rows as their ids, amounts and instants as text."""
    if isinstance(value, dict):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, QuerySet | list | tuple | set):
        return [to_json(item) for item in value]
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value
