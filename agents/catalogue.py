"""The gateway's catalogue of models: what it lists, at which prices, and until when."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

LONGEST_ID = 120
HIGHEST_PRICE = Decimal(1)
"""Dollars for one token, above which a price is a fault."""
NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Listed:
    """One model of the catalogue. Prices are US dollars per token."""

    id: str
    name: str
    created: datetime
    price_prompt: Decimal
    price_completion: Decimal
    expires: date | None

    @property
    def line(self) -> str:
        return line_of(self.id)

    @property
    def display_name(self) -> str:
        """Its name without its vendor's: `OpenAI: GPT-5.5` is GPT-5.5."""
        return self.name.partition(": ")[2] or self.name


def version_of(model: str) -> tuple[tuple[int, ...], ...]:
    """The numbers of an id, to be compared within a line.

    Examples
    --------
    >>> version_of("google/gemini-3.1-pro") > version_of("google/gemini-3-pro")
    True
    """
    return tuple(tuple(map(int, number.split("."))) for number in NUMBERS.findall(model))


@dataclass(frozen=True, slots=True)
class ModelCatalogue:
    """All that could be read, by id, and how many rows could not."""

    models: dict[str, Listed]
    skipped: int


def line_of(model: str) -> str:
    """What the models of one product line share: the id with its numbers left out.

    Examples
    --------
    >>> line_of("openai/gpt-5.2") == line_of("openai/gpt-6"), line_of("x-ai/grok-4.1-fast")
    (True, 'x-ai/grok-#-fast')
    """
    return NUMBERS.sub("#", model.lower())


def catalogue_of(rows: Iterable[Any]) -> ModelCatalogue:
    """The catalogue that these rows make. Routers (priced -1) and rows that can not be read are skipped."""
    models, skipped = {}, 0
    for row in rows:
        listed = _listed(row)
        if listed is None:
            skipped += 1
        else:
            models[listed.id] = listed
    return ModelCatalogue(models, skipped)


def _listed(row: Any) -> Listed | None:
    if not isinstance(row, dict):
        return None
    name, created, pricing = row.get("id"), row.get("created"), row.get("pricing")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID or not isinstance(pricing, dict):
        return None
    prompt, completion = _price(pricing.get("prompt")), _price(pricing.get("completion"))
    if type(created) is not int or not 0 <= created < 2**32 or prompt is None or completion is None:
        return None
    shown = row.get("name")
    return Listed(
        id=name,
        name=shown[:80] if isinstance(shown, str) and shown.strip() else name[:80],
        created=datetime.fromtimestamp(created, UTC),
        price_prompt=prompt,
        price_completion=completion,
        expires=_day(row.get("expiration_date")),
    )


def _price(raw: Any) -> Decimal | None:
    try:
        price = Decimal(raw) if isinstance(raw, str) else None
    except InvalidOperation:
        return None
    return price if price is not None and price.is_finite() and 0 <= price <= HIGHEST_PRICE else None


def _day(raw: Any) -> date | None:
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        return None
