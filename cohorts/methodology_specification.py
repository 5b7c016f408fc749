"""Constraints on the fields of a methodology version, for its form. Imported on use, for pydantic's sake."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[Decimal, Field(gt=0, lt=1)]
Text = Annotated[str, Field(min_length=1)]


class ProviderPin(BaseModel):
    """The providers and quantizations that may serve a model; without fallbacks, so that no other does."""

    model_config = ConfigDict(extra="forbid", strict=True)

    order: list[Text] = Field(default=[], min_length=1)
    quantizations: list[Text] = Field(default=[], min_length=1)
    allow_fallbacks: Literal[False] = False


class MethodologySpecification(BaseModel):
    """Constraints on the fields of a methodology version."""

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
    provider_pins: dict[str, ProviderPin] = {}
    midpoint_tolerance: Share
    maximum_spread: Share
    jump_tolerance: Share
    rulings: list[Text]
    scoring: dict[str, Text]

    @model_validator(mode="after")
    def _a_first_bet_is_legal(self) -> "MethodologySpecification":
        if self.minimum_bet > self.starting_balance * self.maximum_bet_fraction:
            raise ValueError(
                "minimum_bet: no first bet would be legal, it is above the largest share of the starting balance"
            )
        return self
