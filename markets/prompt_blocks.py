"""The blocks of prompts: column names, then one JSON line for each market, question or snippet. No database.

Both protocols show the same facts of a market under the same column names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from foundation.json_lines import json_line

if TYPE_CHECKING:
    from markets.models import EvidenceSnippet, QuestionEntry, UniverseEntry
    from markets.selection_rule import Condition, SelectionRule

MARKET_COLUMNS = ("market_id", "question", "category", "prices", "volume_usd", "closes")
"""The columns of MARKETS in versions that do not name theirs."""
EVIDENCE_COLUMNS = ("question_id", "title", "source", "url", "published", "text")
MARKET_FACTS = ("prices", "spread", "volume_24h_usd")
"""The columns that only a condition with prices shows."""
CUT_MARK = " … [cut]"


def market_block(
    entries: Iterable[UniverseEntry],
    spreads: Mapping[int, Decimal | None],
    *,
    columns: Sequence[str] = MARKET_COLUMNS,
    rules_characters: int | None = None,
) -> str:
    """The MARKETS block of the bettable markets; `spreads` (ask - bid) by market id."""
    lines = [json_line(columns)]
    for entry in entries:
        if not entry.bettable:
            continue
        market = entry.market
        facts: dict[str, Any] = {
            "market_id": str(market.pk),
            "event": market.event_title or None,
            "question": market.question,
            "rules": cut_text(market.description, rules_characters) or None,
            "category": market.category,
            "prices": {side: Decimal(price) for side, price in entry.prices.items()},
            "spread": spreads.get(market.pk),
            "volume_usd": int(market.volume),
            "volume_24h_usd": whole_dollars(market.volume_24h),
            "closes": day_text(market.closes_at.date() if market.closes_at else None),
        }
        lines.append(json_line([facts[name] for name in columns]))
    return "\n".join(lines)


def question_block(entries: Iterable[QuestionEntry], condition: Condition, rule: SelectionRule) -> str:
    """The QUESTIONS block under a condition (options prefetched); drafted entries show their place as the id."""
    lines = [json_line(rule.question_columns)]
    for entry in entries:
        question = entry.question
        options = [option.name for option in question.options.all()]
        lines.append(question_line(entry, question.pk, options, condition, rule))
    return "\n".join(lines)


def question_line(
    entry: QuestionEntry, id: int, options: Sequence[str], condition: Condition, rule: SelectionRule
) -> str:
    """One line of QUESTIONS."""
    question, facts = entry.question, entry.facts
    shows_rules = "rules" in condition.blocks
    prices: dict[str, Decimal | None] = {}
    spreads: dict[str, Decimal | None] = {}
    for name in options:
        price, spread = entry.prices[name]["price"], facts.get("spread", {}).get(name)
        prices[name] = None if price is None else Decimal(price)
        spreads[name] = None if spread is None else Decimal(spread)
    columns: dict[str, Any] = {
        "question_id": str(id),
        "event": facts.get("event"),
        "question": question.text,
        "rules": cut_text(question.rules, rule.rules_characters) if shows_rules else None,
        "exclusive": question.exclusive,
        "options": options,
        "prices": prices,
        "spread": spreads,
        "volume_24h_usd": facts.get("volume_24h_usd"),
        "closes": day_text(entry.closes_on),
    }
    if not condition.is_priced:
        columns |= dict.fromkeys(MARKET_FACTS)
    return json_line([columns[name] for name in rule.question_columns])


def evidence_block(snippets: Iterable[tuple[int, EvidenceSnippet]]) -> str:
    """The EVIDENCE block of snippets, each with the id of its question."""
    lines = [json_line(EVIDENCE_COLUMNS)]
    for question, snippet in snippets:
        published = day_text(snippet.published_at.date() if snippet.published_at else None)
        lines.append(json_line([str(question), snippet.title, snippet.source, snippet.url, published, snippet.text]))
    return "\n".join(lines)


def cut_text(text: str, characters: int | None) -> str:
    """A text whole up to so many characters, else cut and marked."""
    if characters is None or len(text) <= characters:
        return text
    return text[:characters].rstrip() + CUT_MARK


def whole_dollars(amount: Decimal | None) -> int | None:
    return None if amount is None else int(amount)


def day_text(day: date | None) -> str | None:
    return f"{day:%Y-%m-%d}" if day else None
