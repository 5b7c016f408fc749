"""Prices per token, and those that replace them under conditions: the length of the prompt, the hour of the day."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from markets.sources.field_parsers import label, price

COST_UNIT = Decimal("0.000000000001")
MAX_OVERRIDES, MAX_FIELDS = 50, 40
"""Of one model, and of one override; the captured catalogues have two at most, of seven fields."""
MIN_TOKENS = "min_prompt_tokens"
PRICE_FIELDS = {
    "prompt", "completion", "request", "image", "image_token", "image_output", "audio", "audio_output", "web_search",
    "internal_reasoning", "input_audio_cache", "input_cache_read", "input_cache_write", "input_cache_write_1h",
}  # fmt: skip
"""The fields of an override that are prices. Every other field is a condition."""

UNKNOWN_PRICES = {"input", "output", "price", "input_price", "output_price", "input_cost", "output_cost"}
"""Names of prices in other catalogues; of which tokens they are, here nobody knows."""
PRICE = re.compile(r"\d*\.\d+(?:e-?\d+)?|\d+e-\d+", re.IGNORECASE)
LEAST_CONDITION = Decimal("0.01")

Prices = tuple[Decimal, Decimal]
"""US dollars per prompt token and per completion token."""


@dataclass(frozen=True, slots=True)
class PriceOverride:
    """Prices for prompts of so many tokens or more; `uncertain` if another condition decides too."""

    min_prompt_tokens: int
    prompt: Decimal | None
    completion: Decimal | None
    uncertain: bool


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """US dollars per prompt token and per completion token, and the prices that replace them under conditions.

    Of the overrides whose conditions hold, a later one wins. A price that an override does not state stays.
    """

    prompt: Decimal
    completion: Decimal
    overrides: tuple[PriceOverride, ...] = ()

    def dearest(self, prompt_tokens: int | None) -> Prices:
        """The highest prices that can apply to a prompt of at most so many tokens; None for one of any length."""
        prompt, completion = [self.prompt], [self.completion]
        for override in self._reached_by(prompt_tokens):
            prompt += [] if override.prompt is None else [override.prompt]
            completion += [] if override.completion is None else [override.completion]
        return max(prompt), max(completion)

    def of_prompt(self, prompt_tokens: int) -> Prices:
        """The prices of a prompt of exactly so many tokens: its tier's, or higher ones under uncertain conditions."""
        prompt, completion = self.prompt, self.completion
        for override in self._reached_by(prompt_tokens):
            stated_prompt = prompt if override.prompt is None else override.prompt
            stated_completion = completion if override.completion is None else override.completion
            prompt = max(prompt, stated_prompt) if override.uncertain else stated_prompt
            completion = max(completion, stated_completion) if override.uncertain else stated_completion
        return prompt, completion

    def _reached_by(self, prompt_tokens: int | None) -> Iterable[PriceOverride]:
        for override in self.overrides:
            if prompt_tokens is None or prompt_tokens >= override.min_prompt_tokens:
                yield override


def clean_overrides(raw: Any) -> list[dict[str, Any]]:
    """A catalogue's overrides as they are stored: flat fields of bounded length.

    Raises ValueError, naming the place, for what is no list of such fields or holds a price that can not be read.
    """
    if not raw:
        return []
    if not isinstance(raw, list) or len(raw) > MAX_OVERRIDES:
        raise ValueError(f"overrides: not a list of at most {MAX_OVERRIDES} objects")
    overrides = []
    for position, fields in enumerate(raw):
        if not isinstance(fields, dict) or len(fields) > MAX_FIELDS:
            raise ValueError(f"overrides[{position}]: not an object of at most {MAX_FIELDS} fields")
        for name, value in fields.items():
            if _holds_price(value):
                raise ValueError(f"overrides[{position}].{label(name)}: prices inside another field")
            if name not in PRICE_FIELDS and (name.lower() in UNKNOWN_PRICES or _is_price(value)):
                raise ValueError(f"overrides[{position}].{label(name)}: a price of unknown meaning")
        overrides.append({label(name): _plain(value) for name, value in fields.items()})
    parse_overrides(overrides)
    return overrides


def _holds_price(value: Any) -> bool:
    """Whether an object inside a field, or in its list, names a price: of those none would be read."""
    parts = value if isinstance(value, list) else [value]
    names = PRICE_FIELDS | UNKNOWN_PRICES
    return any(isinstance(part, dict) and not names.isdisjoint(part) for part in parts)


def _is_price(value: Any) -> bool:
    """Whether a value is as small a fraction as prices per token are and conditions are not."""
    text = str(value).strip() if isinstance(value, float | Decimal | str) else ""
    return PRICE.fullmatch(text) is not None and 0 < Decimal(text) < LEAST_CONDITION


def parse_overrides(overrides: Iterable[dict[str, Any]]) -> tuple[PriceOverride, ...]:
    """The stored overrides. Raises ValueError for a price that can not be read."""
    return tuple(_parse_override(position, fields) for position, fields in enumerate(overrides))


def _parse_override(position: int, fields: dict[str, Any]) -> PriceOverride:
    conditions = {name for name, value in fields.items() if value is not None} - PRICE_FIELDS
    least = fields.get(MIN_TOKENS)
    if type(least) is int:
        conditions.discard(MIN_TOKENS)
    return PriceOverride(
        min_prompt_tokens=least if type(least) is int else 0,
        prompt=_parse_price(position, fields, "prompt"),
        completion=_parse_price(position, fields, "completion"),
        uncertain=bool(conditions),
    )


def _parse_price(position: int, fields: dict[str, Any], name: str) -> Decimal | None:
    if fields.get(name) is None:
        return None
    try:
        return price(fields[name]).quantize(COST_UNIT, ROUND_CEILING)
    except ValueError as error:
        raise ValueError(f"overrides[{position}].{name}: {error}") from None


def _plain(value: Any) -> Any:
    """A value that JSON and both databases store as it is: texts are cut, fractions and nested values become text."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, str | Decimal):
        return label(str(value))
    try:
        return label(json.dumps(value, default=str))
    except RecursionError:
        return "nested too deeply"
