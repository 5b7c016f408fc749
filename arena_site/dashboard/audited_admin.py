"""A mixin that writes the audit log for ModelAdmin forms."""

from typing import Any

from django.db.models import Model
from django.forms import Form
from django.http import HttpRequest

from arena_site.dashboard.action import row_path
from arena_site.dashboard.audit import write_entry
from arena_site.models import AuditEntry

REASON = "by its form in the admin"
SECRET_FIELDS = ("token_sha256",)


class AuditedAdminMixin:
    """Writes an audit entry, with the row before and after, in the transaction of each admin change."""

    def save_model(self, request: HttpRequest, obj: Any, form: Form, change: bool) -> None:
        before = _stored_values(obj) if change else {}
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        _write_entry(request, "change" if change else "add", obj, before, _stored_values(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = _stored_values(obj)
        super().delete_model(request, obj)  # type: ignore[misc]
        _write_entry(request, "delete", obj, before, {})


def audit_change(request: HttpRequest, loaded: Model) -> None:
    """Writes an audit entry of a row's changes since `loaded` was read."""
    _write_entry(request, "change", loaded, _values(loaded), _stored_values(loaded))


def _stored_values(row: Model) -> dict[str, Any]:
    return _values(type(row)._base_manager.get(pk=row.pk))


def _values(row: Model) -> dict[str, Any]:
    fields = row._meta.concrete_fields
    return {field.name: field.value_from_object(row) for field in fields if field.name not in SECRET_FIELDS}


def _write_entry(request: HttpRequest, verb: str, row: Model, before: dict[str, Any], after: dict[str, Any]) -> None:
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
