"""Forms of the admin on record as acts are."""

from typing import Any

from django.db.models import Model
from django.forms import Form
from django.http import HttpRequest

from arena_site.desk.act import row_path
from arena_site.desk.audit import written
from arena_site.models import AuditEntry

REASON = "by its form in the admin"
SECRET = ("token_sha256",)


class Audited:
    """What its forms and actions change is also in the audit log: who, when, before and after.

    In the form's own transaction, so that there is no change without its entry.
    """

    def save_model(self, request: HttpRequest, obj: Any, form: Form, change: bool) -> None:
        before = _state(obj) if change else {}
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        _enter(request, "change" if change else "add", obj, before, _state(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = _state(obj)
        super().delete_model(request, obj)  # type: ignore[misc]
        _enter(request, "delete", obj, before, {})


def changed(request: HttpRequest, was: Model) -> None:
    """Enters what has become of a row since it was read."""
    _enter(request, "change", was, _fields(was), _state(was))


def _state(row: Model) -> dict[str, Any]:
    """A row as the database has it."""
    return _fields(type(row)._base_manager.get(pk=row.pk))


def _fields(row: Model) -> dict[str, Any]:
    return {field.name: field.value_from_object(row) for field in row._meta.concrete_fields if field.name not in SECRET}


def _enter(request: HttpRequest, verb: str, row: Model, before: dict[str, Any], after: dict[str, Any]) -> None:
    written(
        act=f"{verb}-{row._meta.model_name}",
        by=request.user.get_username(),
        result=AuditEntry.Result.UNCHANGED if before == after else AuditEntry.Result.DONE,
        reason=REASON,
        target=str(row),
        path=row_path(row) if after else "",
        before=before,
        after=after,
    )
