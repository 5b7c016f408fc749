"""An operator's action: its form, a preview of its effect, and the effect itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Model, QuerySet
from django.urls import reverse

FormData = dict[str, Any]
"""The cleaned data of an action's form."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect that an action would have now, or why it can not be performed."""

    summary: str
    details: Sequence[str] = ()
    warning: str = ""
    possible: bool = True


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The effect that an action had, and the page that shows it if that is not its target's."""

    message: str
    changed: bool = True
    path: str = ""


class RowChoiceField(forms.ModelChoiceField):
    """A row, chosen from the candidates: those for which there is something to do. A link may name any by its id."""

    OFFERED = 200
    LONGEST_LABEL = 110

    def __init__(
        self,
        rows: QuerySet[Any],
        noun: str,
        candidates: Callable[[QuerySet[Any]], QuerySet[Any]],
        *,
        required: bool = True,
    ) -> None:
        unknown = {"invalid_choice": f"There is no {noun} with this id."}
        super().__init__(rows, label=noun.capitalize(), required=required, error_messages=unknown)
        self.noun, self.candidates = noun, candidates

    def label_from_instance(self, obj: Model) -> str:
        text = str(obj)
        return text if len(text) <= self.LONGEST_LABEL else f"{text[: self.LONGEST_LABEL]}…"

    def offer(self, linked_id: str) -> None:
        """Fills the list with the candidates, and the row that a link names."""
        assert self.queryset is not None
        rows = list(self.candidates(self.queryset)[: self.OFFERED])
        if RowIdsField.is_id(linked_id) and int(linked_id) not in [row.pk for row in rows]:
            rows += self.queryset.filter(pk=linked_id)
        empty = f"Choose a {self.noun}" if rows else f"There is no {self.noun} to act on"
        self.widget.choices = [("", empty), *((row.pk, self.label_from_instance(row)) for row in rows)]


class ChoiceForm(forms.Form):
    """A form whose lists of rows offer what there is to act on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, field in self.fields.items():
            if isinstance(field, RowChoiceField):
                field.offer(str(self.data.get(name) or self.initial.get(name) or ""))


class RowIdsField(forms.ModelMultipleChoiceField):
    """Some rows, chosen from a list or named by a link."""

    LONGEST_ID = 18
    """The digits of the largest id that both databases can compare."""

    widget = forms.CheckboxSelectMultiple

    @classmethod
    def is_id(cls, text: str) -> bool:
        return text.isdecimal() and len(text) <= cls.LONGEST_ID

    def clean(self, value: Any) -> Any:
        if not all(self.is_id(str(key)) for key in value or ()):
            raise forms.ValidationError("There is no row with this id.")
        return super().clean(value)


class Action:
    """An operation of the dashboard, performed through the same services as the jobs."""

    name: str
    title: str
    description: str
    permission: str
    form: type[forms.Form] = forms.Form
    confirm_label: str
    row_field: str = ""
    """The form's field with the row that the action concerns, if it concerns one."""
    listed: type[Model] | None = None
    """The model whose list shows the effect, where the action does not concern one row."""
    default_reason: str = ""
    """Filled in for actions that harm nothing, so that nobody has to type at night."""
    reason_help: str = "For the audit log."

    def path(self, **initial: Any) -> str:
        """The action's page, with its form filled in."""
        return action_path(self.name, **initial)

    def row(self, data: FormData) -> Model | None:
        """The row that the action concerns, if it concerns one."""
        return data[self.row_field] if self.row_field else None

    def target(self, data: FormData) -> str:
        """A description of the rows that the action concerns."""
        return str(self.row(data) or "")

    def target_path(self, data: FormData) -> str:
        """The admin page of the target."""
        if row := self.row(data):
            return row_path(row)
        return list_path(self.listed) if self.listed else ""

    def state(self, data: FormData) -> dict[str, Any]:
        """The values that the action may change, which the audit log stores before and after."""
        return {}

    def obstacle(self, data: FormData, at: datetime) -> str:
        """The reason why it can not be performed, empty if it can."""
        return ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        """The effect it would have where there is no obstacle. Changes nothing."""
        raise NotImplementedError

    def prepare(self, *, at: datetime) -> None:
        """Brings up to date what it rests on, before its transaction begins."""

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        """Performs it where there is no obstacle; None where somebody else has done so in the meantime."""
        raise NotImplementedError

    def preview(self, data: FormData, *, at: datetime) -> Preview:
        obstacle = self.obstacle(data, at)
        return Preview(obstacle, possible=False) if obstacle else self.effect(data, at)

    def perform(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        """Performs it, in one transaction with its audit entry. A repeat changes nothing and says so."""
        if obstacle := self.obstacle(data, at):
            return ActionResult(f"Nothing was changed. {obstacle}", changed=False)
        result = self.execute(data, at=at, by=by, reason=reason)
        return result or ActionResult("Nothing was changed: somebody else was faster.", changed=False)

    def after_commit(self, data: FormData, result: ActionResult, *, at: datetime) -> None:
        """Slow follow-up work, run once the action is committed."""


def action_path(name: str, **initial: Any) -> str:
    """An action's page, with its form filled in."""
    return reverse("admin:action", args=[name], query=initial or None)


def row_path(row: Model) -> str:
    """A row's page in the admin."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def list_path(model: type[Model], **lookup: Any) -> str:
    """A model's list in the admin, filtered by lookups."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist", query=lookup or None)
