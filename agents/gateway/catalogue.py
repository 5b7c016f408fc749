"""Parses the gateway's catalogue of models: ids, prices, expiration dates."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from agents.model_ids import ALIAS_MARK, product_line
from agents.prices import clean_overrides
from markets.sources.field_parsers import moment, price_or_none

MAX_ID = 120


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One model of the catalogue. Prices are in US dollars per token; `created` is 1970 where it is not said."""

    id: str
    name: str
    created: datetime
    price_prompt: Decimal
    price_completion: Decimal
    expires: date | None
    canonical_slug: str = ""
    supported_parameters: list[str] | None = None
    """None where the catalogue does not say."""
    context_length: int | None = None
    max_completion_tokens: int | None = None
    knowledge_cutoff: date | None = None
    alias_target: str | None = None
    """The model that a moving alias stands for at present; empty where the catalogue names none, None for a model."""
    price_overrides: list[dict[str, Any]] = field(default_factory=list)
    """The prices that replace these under conditions."""
    price_fault: str = ""
    """Why the prices under conditions can not be read."""

    @property
    def listed_on(self) -> date | None:
        """The day on which the gateway listed it; None where that is not said."""
        return self.created.date() if self.created.timestamp() > 0 else None

    @property
    def product_line(self) -> str:
        return product_line(self.id)

    @property
    def display_name(self) -> str:
        """The name without the vendor: `OpenAI: GPT-5.5` becomes GPT-5.5."""
        return self.name.partition(": ")[2] or self.name

    @property
    def maker(self) -> str:
        """The vendor of its name; empty where the name says none."""
        maker, colon, _ = self.name.partition(": ")
        return maker if colon else ""


@dataclass(frozen=True, slots=True)
class ModelCatalogue:
    """The readable models by id, the number of skipped rows, and the moving aliases, also those without a price."""

    models: dict[str, CatalogueModel]
    skipped: int
    aliases: dict[str, str] = field(default_factory=dict)
    """The model that each alias stands for at present; empty where the catalogue names none."""


def parse_catalogue(rows: Iterable[Any]) -> ModelCatalogue:
    """The catalogue of these rows. Routers (priced -1) and unreadable rows are skipped."""
    models, skipped, aliases = {}, 0, {}
    for row in rows:
        if isinstance(row, dict) and (target := _parse_alias(row)) is not None:
            aliases[row["id"]] = target
        model = _parse_model(row)
        if model is None:
            skipped += 1
        else:
            models[model.id] = model
    return ModelCatalogue(models, skipped, aliases)


def _parse_model(row: Any) -> CatalogueModel | None:
    if not isinstance(row, dict):
        return None
    name, created, pricing = row.get("id"), row.get("created", 0), row.get("pricing")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ID or not isinstance(pricing, dict):
        return None
    # US dollars per token, so that a price above 1 is an error here too.
    prompt, completion = price_or_none(pricing.get("prompt")), price_or_none(pricing.get("completion"))
    if type(created) is not int or not 0 <= created < 2**32 or prompt is None or completion is None:
        return None
    display_name, slug, provider = row.get("name"), row.get("canonical_slug"), row.get("top_provider")
    parameters, expires = row.get("supported_parameters"), moment(str(row.get("expiration_date"))[:10])
    cutoff = moment(str(row.get("knowledge_cutoff"))[:10])
    overrides, price_fault = _parse_overrides(pricing.get("overrides"))
    return CatalogueModel(
        id=name,
        name=(display_name if isinstance(display_name, str) and display_name.strip() else name.rpartition("/")[2])[:80],
        created=datetime.fromtimestamp(created, UTC),
        price_prompt=prompt,
        price_completion=completion,
        expires=expires and expires.date(),
        canonical_slug=slug[:MAX_ID] if isinstance(slug, str) else "",
        supported_parameters=[p for p in parameters if isinstance(p, str)] if isinstance(parameters, list) else None,
        context_length=_parse_tokens(row.get("context_length")),
        max_completion_tokens=_parse_tokens(
            provider.get("max_completion_tokens") if isinstance(provider, dict) else None
        ),
        knowledge_cutoff=cutoff and cutoff.date(),
        alias_target=_parse_alias(row),
        price_overrides=overrides,
        price_fault=price_fault,
    )


def _parse_overrides(raw: Any) -> tuple[list[dict[str, Any]], str]:
    try:
        return clean_overrides(raw), ""
    except ValueError as error:
        return [], str(error)


def _parse_alias(row: dict[str, Any]) -> str | None:
    """The model that a row's alias stands for, empty where it names none; None for a row that is no alias."""
    names, target = (row.get("id"), row.get("canonical_slug")), row.get("alias_target")
    if not isinstance(names[0], str) or not 0 < len(names[0]) <= MAX_ID:
        return None
    if not target and not any(isinstance(name, str) and name.startswith(ALIAS_MARK) for name in names):
        return None
    slug = target.get("slug") if isinstance(target, dict) else target
    return slug[:MAX_ID] if isinstance(slug, str) else ""


def _parse_tokens(raw: Any) -> int | None:
    return raw if type(raw) is int and 0 < raw < 2**31 else None
