"""Form of a methodology version, with validation of each field."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.db.models import TextField

from cohorts.models import Methodology

TEXTS = {field.name for field in Methodology._meta.concrete_fields if isinstance(field, TextField)}


class MethodologyForm(forms.ModelForm):
    class Meta:
        model = Methodology
        fields = [field.name for field in Methodology._meta.concrete_fields if field.editable and field.name != "id"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in TEXTS & self.fields.keys():
            self.fields[name].strip = False  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        # Browsers send line breaks as CR LF; prompts are stored byte for byte.
        for name in TEXTS & values.keys():
            if values[name]:
                values[name] = values[name].replace("\r\n", "\n")
        for field, message in methodology_errors(values).items():
            if field in values:  # the form reports the others
                self.add_error(field, message)
        return values


def methodology_errors(values: Mapping[str, Any]) -> dict[str, str]:
    """The message on each field of a methodology version that is invalid or missing."""
    from pydantic import ValidationError

    from cohorts.methodology_document import MethodologyDocument

    faults: dict[str, list[str]] = {}
    try:
        MethodologyDocument.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        for fault in error.errors():
            place, message = list(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
            if not place:
                field, _, message = message.partition(": ")
                place = [field]
            inside = ".".join(place[1:])
            faults.setdefault(place[0], []).append(f"{inside}: {message}" if inside else message)
    return {field: "; ".join(messages) for field, messages in faults.items()}


def differences(before: Methodology, after: Methodology) -> list[tuple[str, str]]:
    """The fields in which two versions differ, each with a diff of its lines."""
    diffs = []
    for field in Methodology._meta.concrete_fields:
        if field.name == "id" or not field.editable:
            continue
        old, new = _lines(getattr(before, field.name)), _lines(getattr(after, field.name))
        if old != new:
            changed = difflib.unified_diff(old, new, lineterm="", n=1)
            diffs.append((field.name, "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))))
    return diffs


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()
    if isinstance(value, Decimal):
        return [f"{value.normalize():f}"]
    return str(value).splitlines() or [""]
