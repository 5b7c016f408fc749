"""The form of a methodology's version: it refuses nonsense, naming the field that holds it."""

import difflib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from string import Formatter
from typing import Annotated, Any, Literal

from django import forms
from django.db.models import TextField
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cohorts.forecasting import ForecastRules
from cohorts.models import Methodology

Share = Annotated[Decimal, Field(gt=0, lt=1)]
Text = Annotated[str, Field(min_length=1)]
PLACES = {
    "user_prompt": {"portfolio", "positions", "awaiting", "markets"},
    "malformed_note": {"reason"},
    "refused_note": {"reasons"},
}
"""What each template must leave room for, and nothing else."""
TEXTS = {field.name for field in Methodology._meta.concrete_fields if isinstance(field, TextField)}
FORECAST_PLACES = {"user_prompt": {"date", "questions"}, "malformed_note": {"reason"}, "refused_note": {"reasons"}}


class Specification(BaseModel):
    """What a version must be to be played by; what is not named here is free."""

    model_config = ConfigDict(extra="ignore", strict=True)

    starting_balance: Decimal = Field(gt=0)
    minimum_bet: Decimal = Field(gt=0)
    maximum_bet_fraction: Decimal = Field(gt=0, le=1)
    universe_size: int = Field(ge=1, le=5000)
    actions: list[Literal["BET", "SELL", "HOLD"]] = Field(min_length=1)
    decision_weeks: int = Field(ge=1, le=52)
    retry_window: timedelta = Field(gt=timedelta(0), le=timedelta(days=7))
    malformed_retries: int = Field(ge=0, le=10)
    refused_retries: int = Field(ge=0, le=10)
    temperature: float = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1, le=1_000_000)
    reasoning: dict[str, Any]
    provider_routing: dict[str, Any]
    midpoint_tolerance: Share
    maximum_spread: Share
    gamma_tolerance: Share
    rulings: list[Text]
    scoring: dict[str, Text]

    @model_validator(mode="after")
    def _a_first_bet_is_legal(self) -> "Specification":
        if self.minimum_bet > self.starting_balance * self.maximum_bet_fraction:
            raise ValueError(
                "minimum_bet: no first bet is legal: it is above the largest share of the starting balance"
            )
        return self


class MethodologyForm(forms.ModelForm):
    class Meta:
        model = Methodology
        fields = [field.name for field in Methodology._meta.concrete_fields if field.name != "id"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in TEXTS & self.fields.keys():
            self.fields[name].strip = False  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        # Browsers send a line break as two characters; a prompt is what it is, byte for byte.
        said |= {name: said[name].replace("\r\n", "\n") for name in TEXTS & said.keys() if said[name]}
        for field, why in complaints(said):
            if field not in self.errors:
                self.add_error(field, why)
        return said


def complaints(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each field that can not be played by, and why."""
    known = {name: value for name, value in said.items() if value is not None}
    try:
        Specification.model_validate(known)
    except ValidationError as wrong:
        yield from _fields(wrong)
    routing = known.get("provider_routing")
    if isinstance(routing, dict) and routing.get("allow_fallbacks") is not False:
        yield "provider_routing", "allow_fallbacks must be false: no other model may answer silently"
    for name, places in PLACES.items():
        if name in known:
            yield from ((name, why) for why in _template(known[name], places))
    if forecast := known.get("forecast"):
        try:
            rules = ForecastRules.from_json(forecast)
        except (ValidationError, TypeError) as wrong:
            errors = wrong.errors() if isinstance(wrong, ValidationError) else [{"loc": (), "msg": str(wrong)}]
            yield "forecast", "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in errors)
            return
        for name, places in FORECAST_PLACES.items():
            yield from (("forecast", f"{name}: {why}") for why in _template(getattr(rules, name), places))


def _fields(wrong: ValidationError) -> Iterator[tuple[str, str]]:
    for error in wrong.errors():
        if error["type"] == "missing":
            continue  # the form says so itself
        if error["loc"]:
            inside = ".".join(map(str, error["loc"][1:]))
            yield str(error["loc"][0]), f"{inside}: {error['msg']}" if inside else error["msg"]
        else:
            field, _, why = str(error["msg"]).removeprefix("Value error, ").partition(": ")
            yield field, why


def _template(text: str, places: set[str]) -> Iterator[str]:
    try:
        named = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as broken:
        yield f"can not be filled in: {broken}"
        return
    if missing := places - named:
        yield f"leaves no room for {', '.join(f'{{{name}}}' for name in sorted(missing))}"
    if unknown := named - places:
        yield f"asks for {', '.join(f'{{{name}}}' for name in sorted(unknown))}, which nobody fills in"


def differences(before: Methodology, after: Methodology) -> list[tuple[str, str]]:
    """Each field in which two versions differ, with the lines that went and came."""
    shown = []
    for field in Methodology._meta.concrete_fields:
        if field.name == "id":
            continue
        old, new = _lines(getattr(before, field.name)), _lines(getattr(after, field.name))
        if old != new:
            changed = difflib.unified_diff(old, new, lineterm="", n=1)
            shown.append((field.name, "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))))
    return shown


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()
    if isinstance(value, Decimal):
        return [f"{value.normalize():f}"]
    return str(value).splitlines() or [""]
