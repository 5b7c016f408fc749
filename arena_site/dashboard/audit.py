"""The audit log: an entry for each action, each change by an admin form, and each attempt that was refused."""

from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest
from django.utils import timezone

from arena_site.dashboard.action import Action, ActionResult, FormData, row_path
from arena_site.models import AuditEntry
from foundation.commands import ArenaCommand, CommandResult

MAX_LENGTH = 200
REASON = "by its form in the admin"
BY = "manage.py"
REASON_LENGTH = 2000
SECRET_FIELDS = ("token_sha256",)


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


class AuditedAdminMixin:
    """Writes an audit entry, with the row before and after, in the transaction of each admin change."""

    def save_model(self, request: HttpRequest, obj: Any, form: Form, change: bool) -> None:
        before = _stored_values(obj) if change else {}
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        audit_form(request, obj, before, verb="change" if change else "add")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = _stored_values(obj)
        super().delete_model(request, obj)  # type: ignore[misc]
        audit_form(request, obj, before, verb="delete")


def audit_form(request: HttpRequest, row: Model, before: dict[str, Any] | None = None, *, verb: str = "change") -> None:
    """Writes an entry for a change of `row`, by default of its values since it was read."""
    before = _values(row) if before is None else before
    after = {} if verb == "delete" else _stored_values(row)
    write_entry(
        action=f"{verb}-{row._meta.model_name}",
        by=request.user.get_username(),
        result=AuditEntry.Result.UNCHANGED if before == after else AuditEntry.Result.DONE,
        reason=REASON,
        target=str(row),
        path=row_path(row) if after else "",
        before=before,
        after=after,
    )


def _stored_values(row: Model) -> dict[str, Any]:
    return _values(type(row)._base_manager.get(pk=row.pk))


def _values(row: Model) -> dict[str, Any]:
    fields = row._meta.concrete_fields
    return {field.name: field.value_from_object(row) for field in fields if field.name not in SECRET_FIELDS}


class ActionCommand(ArenaCommand):
    """Performs an action as its page does, with a reason for the audit log."""

    action: Action

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", required=True, help="for the audit log")

    def form_fields(self, options: dict[str, Any]) -> dict[str, Any]:
        """The action's form, filled in from the command's arguments."""
        raise NotImplementedError

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        reason, form = options["reason"].strip(), self.action.form(self.form_fields(options))
        if not 0 < len(reason) <= REASON_LENGTH:
            self.refuse(f"--reason: must be of 1 to {REASON_LENGTH} characters")
        if not form.is_valid():
            self.refuse(" ".join(map(str, chain.from_iterable(form.errors.values()))))
        self.action.prepare(at=at)
        result = perform_action(self.action, form.cleaned_data, at=at, by=BY, reason=reason)
        self.action.after_commit(form.cleaned_data, result, at=at)
        return CommandResult({"changed": result.changed, "message": result.message})
