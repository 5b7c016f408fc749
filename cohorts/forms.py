"""Form of a methodology version, with validation of each field."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from string import Formatter
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import TextField

from cohorts.models import Methodology

if TYPE_CHECKING:
    from pydantic import ValidationError

    from cohorts.forecast_rules import ForecastRules

NOTES = {"malformed_note": {"reason"}, "refused_note": {"reasons"}}
PLACEHOLDERS = {"user_prompt": {"portfolio", "positions", "awaiting", "markets"}, **NOTES}
"""The placeholders that each prompt template must contain; others are refused."""
FORECAST_PLACEHOLDERS = {"user_prompt": {"date", "questions"}, **NOTES}
CONDITION_PLACEHOLDERS = {"evidence", "search"}
"""Where the user prompt has the parts of a condition with evidence, with search."""
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
        for field, message in methodology_errors(values):
            if field not in self.errors:
                self.add_error(field, message)
        return values


def methodology_errors(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The invalid fields of a methodology version, each with a message."""
    from pydantic import ValidationError

    from cohorts.forecast_rules import ForecastRules, TradingRules
    from cohorts.methodology_specification import MethodologySpecification

    present_values = {name: value for name, value in values.items() if value is not None}
    try:
        MethodologySpecification.model_validate(present_values)
    except ValidationError as error:
        yield from _field_errors(error)
    routing = present_values.get("provider_routing")
    if isinstance(routing, dict) and routing.get("allow_fallbacks") is not False:
        yield "provider_routing", "allow_fallbacks must be false, or another model could answer"
    for name, places in PLACEHOLDERS.items():
        if name in present_values:
            for message in _template_errors(present_values[name], places):
                yield name, message
    if trading := present_values.get("trading"):
        try:
            TradingRules.model_validate(trading)
        except ValidationError as error:
            yield "trading", _rule_errors(error)
    if forecast := present_values.get("forecast"):
        try:
            rules = ForecastRules.model_validate(forecast)
        except ValidationError as error:
            yield "forecast", _rule_errors(error)
            return
        for message in _forecast_template_errors(rules):
            yield "forecast", message


def _rule_errors(validation: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in validation.errors())


def _forecast_template_errors(rules: ForecastRules) -> Iterator[str]:
    """The faults of the templates, which must show what the conditions need."""
    parts = set()
    if any(condition.has_evidence for condition in rules.conditions):
        parts.add("evidence")
        for message in _template_errors(rules.evidence_prompt, {"evidence"}):
            yield f"evidence_prompt: {message}"
    if any(condition.tools for condition in rules.conditions):
        parts.add("search")
    for name, places in FORECAST_PLACEHOLDERS.items():
        required = places | parts if name == "user_prompt" else places
        optional = CONDITION_PLACEHOLDERS if name == "user_prompt" else set()
        for message in _template_errors(getattr(rules, name), required, optional):
            yield f"{name}: {message}"


def _field_errors(validation: ValidationError) -> Iterator[tuple[str, str]]:
    for error in validation.errors():
        if error["type"] == "missing":
            continue  # the form reports missing fields
        if error["loc"]:
            inside = ".".join(map(str, error["loc"][1:]))
            yield str(error["loc"][0]), f"{inside}: {error['msg']}" if inside else error["msg"]
        else:
            field, _, message = str(error["msg"]).removeprefix("Value error, ").partition(": ")
            yield field, message


def _template_errors(text: str, places: set[str], optional: Set[str] = frozenset()) -> Iterator[str]:
    try:
        names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as broken:
        yield f"can not be filled in: {broken}"
        return
    if missing := places - names:
        yield f"lacks the placeholders {_in_braces(missing)}"
    if unknown := names - places - optional:
        yield f"has unknown placeholders {_in_braces(unknown)}"


def _in_braces(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


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
