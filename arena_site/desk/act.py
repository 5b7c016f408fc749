"""What an act of the operator is: a form, what it would do, and doing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import Model, QuerySet
from django.urls import reverse

Asked = dict[str, Any]
"""An act's form, cleaned."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What an act would do as things stand; where it can not be done, why."""

    says: str
    lines: Sequence[str] = ()
    warning: str = ""
    possible: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an act, and where that is to be seen."""

    says: str
    changed: bool = True
    path: str = ""
    secret: str = ""
    """Shown on the page that answers and nowhere else: not in the log, nor in a session's messages."""


def nothing(says: str) -> Preview:
    """The preview of what can not, or need not, be done."""
    return Preview(says, possible=False)


def unchanged(says: str, path: str = "") -> Done:
    return Done(says, changed=False, path=path)


class Nothing(forms.Form):
    """The form of an act that needs to be told nothing."""


class RowField(forms.ModelChoiceField):
    """A row by its id. No list to choose from: acts are reached from the rows they are done to."""

    widget = forms.NumberInput

    def __init__(self, rows: QuerySet[Any], label: str, *, required: bool = True) -> None:
        unknown = {"invalid_choice": f"There is no {label} of this id."}
        super().__init__(rows, label=f"{label.capitalize()} (id)", required=required, error_messages=unknown)


class Act:
    """Something an operator may do, through the services that the jobs use."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    permission: ClassVar[str]
    form: ClassVar[type[forms.Form]] = Nothing
    confirm: ClassVar[str] = "Yes, do it"
    usual_reason: ClassVar[str] = ""
    """Proposed where an act harms nothing, so that nobody has to type at night."""
    reason_is_for: ClassVar[str] = "For the audit log."

    @classmethod
    def path(cls, **asked: Any) -> str:
        """Its page, with the form filled in as told."""
        return reverse("admin:act", args=[cls.name], query=asked or None)

    def target(self, asked: Asked) -> str:
        """What it is done to, in words."""
        return ""

    def target_path(self, asked: Asked) -> str:
        """Where in the admin that is."""
        return ""

    def state(self, asked: Asked) -> dict[str, Any]:
        """What it may change, as it stands: for the audit log, before and after."""
        return {}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        """What it would do. Changes nothing."""
        raise NotImplementedError

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        """Does it, inside a transaction that the audit entry shares. Done already: changes nothing and says so."""
        raise NotImplementedError

    def follow_up(self, asked: Asked, done: Done, *, at: datetime) -> None:
        """What rests on it and may take a while; once it is committed."""


def row_path(row: Model) -> str:
    """A row's page in the admin."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def list_path(model: type[Model], **lookup: Any) -> str:
    """A model's list in the admin, narrowed by lookups."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist", query=lookup or None)
