"""A methodology version as one document, and what makes it valid. Imported on use, for pydantic's sake."""

from __future__ import annotations

from collections.abc import Set
from datetime import timedelta
from decimal import Decimal
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from cohorts.forecast_rules import ForecastRules, TradingRules


def template_faults(text: str, required: Set[str], optional: Set[str] = frozenset()) -> list[str]:
    """The faults of a template's placeholders: a broken brace, missing names, unknown names."""
    try:
        names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as broken:
        return [f"can not be filled in: {broken}"]
    faults = []
    if missing := required - names:
        faults.append(f"lacks the placeholders {_in_braces(missing)}")
    if unknown := names - required - optional:
        faults.append(f"has unknown placeholders {_in_braces(unknown)}")
    return faults


def _in_braces(names: Set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def _template(*places: str) -> AfterValidator:
    """A template that must contain each of these placeholders, and no other."""

    def check(text: str) -> str:
        if faults := template_faults(text, set(places)):
            raise ValueError("; ".join(faults))
        return text

    return AfterValidator(check)


def _without_fallbacks(routing: dict[str, Any]) -> dict[str, Any]:
    if routing.get("allow_fallbacks") is not False:
        raise ValueError("allow_fallbacks must be false, or another model could answer")
    return routing


def _none_if_empty(rules: Any) -> Any:
    return rules or None


def _with_templates(rules: ForecastRules | None) -> ForecastRules | None:
    """The forecast rules, whose templates must show what the conditions need."""
    if rules is None:
        return None
    parts, faults = set(), []
    if any(condition.has_evidence for condition in rules.conditions):
        parts.add("evidence")
        faults += _of_template(rules, "evidence_prompt", {"evidence"})
    if any(condition.tools for condition in rules.conditions):
        parts.add("search")
    faults += _of_template(rules, "user_prompt", {"date", "questions"} | parts, {"evidence", "search"})
    faults += _of_template(rules, "malformed_note", {"reason"})
    faults += _of_template(rules, "refused_note", {"reasons"})
    if faults:
        raise ValueError("; ".join(faults))
    return rules


def _of_template(rules: ForecastRules, name: str, required: Set[str], optional: Set[str] = frozenset()) -> list[str]:
    return [f"{name}: {fault}" for fault in template_faults(getattr(rules, name), required, optional)]


Share = Annotated[Decimal, Field(gt=0, lt=1)]
Text = Annotated[str, Field(min_length=1)]


class ProviderPin(BaseModel):
    """The providers and quantizations that may serve a model; without fallbacks, so that no other does."""

    model_config = ConfigDict(extra="forbid", strict=True)

    order: list[Text] = Field(default=[], min_length=1)
    quantizations: list[Text] = Field(default=[], min_length=1)
    allow_fallbacks: Literal[False] = False


class MethodologyDocument(BaseModel):
    """Every field of a methodology version that a result depends on.

    forecast : None in versions without the protocol, where the stored field is empty
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    version: Text
    starting_balance: Decimal = Field(gt=0)
    minimum_bet: Decimal = Field(gt=0)
    maximum_bet_fraction: Decimal = Field(gt=0, le=1)
    universe_size: int = Field(ge=1, le=5000)
    universe_rule: Text
    actions: list[Literal["BET", "SELL", "HOLD"]] = Field(min_length=1)
    decision_weeks: int = Field(ge=1, le=52)
    retry_window: timedelta = Field(gt=timedelta(0), le=timedelta(days=7))
    malformed_retries: int = Field(ge=0, le=10)
    refused_retries: int = Field(ge=0, le=10)
    temperature: float = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1, le=1_000_000)
    reasoning: dict[str, Any]
    provider_routing: Annotated[dict[str, Any], AfterValidator(_without_fallbacks)]
    provider_pins: dict[str, ProviderPin] = {}
    free_form_answers: bool = False
    system_prompt: Text
    user_prompt: Annotated[str, _template("portfolio", "positions", "awaiting", "markets")]
    malformed_note: Annotated[str, _template("reason")]
    refused_note: Annotated[str, _template("reasons")]
    midpoint_tolerance: Share
    maximum_spread: Share
    jump_tolerance: Share
    rulings: list[Text]
    scoring: dict[str, Text]
    forecast: Annotated[ForecastRules | None, BeforeValidator(_none_if_empty), AfterValidator(_with_templates)] = None
    trading: TradingRules = TradingRules()

    @model_validator(mode="after")
    def _a_first_bet_is_legal(self) -> MethodologyDocument:
        if self.minimum_bet > self.starting_balance * self.maximum_bet_fraction:
            raise ValueError(
                "minimum_bet: no first bet would be legal, it is above the largest share of the starting balance"
            )
        return self
