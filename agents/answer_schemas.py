"""The JSON schemas of answers, for models that can be held to one."""

from typing import Any


def object_schema(**properties: Any) -> dict[str, Any]:
    """A JSON schema with every property required, as strict modes demand."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
DECISION_SCHEMA: dict[str, Any] = {
    "strict": True,
    "schema": object_schema(
        action={"type": "string", "enum": ["BET", "SELL", "HOLD"]},
        bets={"type": "array", "items": object_schema(market_id=TEXT, side=TEXT, amount=NUMBER)},
        sells={"type": "array", "items": object_schema(position_id=TEXT, percentage=NUMBER)},
        reasoning=TEXT,
    ),
}
"""An unused list stays empty."""
REASONED_DECISION_SCHEMA: dict[str, Any] = {
    "strict": True,
    "schema": object_schema(
        reasoning=TEXT,
        action={"type": "string", "enum": ["BET", "SELL", "HOLD"]},
        bets={"type": "array", "items": object_schema(market_id=TEXT, side=TEXT, reason=TEXT, amount=NUMBER)},
        sells={"type": "array", "items": object_schema(position_id=TEXT, percentage=NUMBER)},
    ),
}
"""Where the reasons come before the numbers."""


def forecast_schema(*, rationale_first: bool) -> dict[str, Any]:
    """The JSON schema of an answer. Strict modes can not describe probabilities by the names of options."""
    probabilities = {"type": "object", "additionalProperties": NUMBER}
    figures = {"probabilities": probabilities, "rationale": TEXT}
    if rationale_first:
        figures = {"rationale": TEXT, "probabilities": probabilities}
    forecast = object_schema(question_id=TEXT, **figures)
    return {"strict": False, "schema": object_schema(forecasts={"type": "array", "items": forecast})}
