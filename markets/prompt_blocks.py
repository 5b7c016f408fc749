"""The blocks of prompts: column names, then one JSON line for each market, question or snippet. No database.

Both protocols show the same facts of a market under the same column names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from arena_verifier import texts
from foundation.json_lines import json_line

if TYPE_CHECKING:
    from markets.models import EvidenceSnippet, QuestionEntry, UniverseEntry
    from markets.selection_rule import Condition, SelectionRule

MARKET_COLUMNS = ("market_id", "question", "category", "prices", "volume_usd", "closes")
"""The columns of MARKETS in versions that do not name theirs."""


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
            "rules": texts.cut_text(market.description, rules_characters) or None,
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
    """The QUESTIONS block under a condition (options prefetched), in lines made by the verifier's code.

    Drafted entries show their place as the id.
    """
    lines, rules, shown = [json_line(rule.question_columns)], rule.model_dump(), condition.model_dump()
    for entry in entries:
        question = entry.question
        stated = {"id": question.pk, "text": question.text, "rules": question.rules, "exclusive": question.exclusive}
        options = [{"index": index, "name": option.name} for index, option in enumerate(question.options.all())]
        asked = {"facts": entry.facts, "prices": entry.prices, "closes_on": day_text(entry.closes_on)}
        lines.append(texts.question_line(stated, options, asked, rules, shown))
    return "\n".join(lines)


def evidence_block(snippets: Iterable[tuple[int, EvidenceSnippet]]) -> str:
    """The EVIDENCE block of snippets, each with the id of its question."""
    lines = [json_line(texts.EVIDENCE_COLUMNS)]
    for question, snippet in snippets:
        published = day_text(snippet.published_at.date() if snippet.published_at else None)
        lines.append(json_line([str(question), snippet.title, snippet.source, snippet.url, published, snippet.text]))
    return "\n".join(lines)


def whole_dollars(amount: Decimal | None) -> int | None:
    return None if amount is None else int(amount)


def day_text(day: date | None) -> str | None:
    return f"{day:%Y-%m-%d}" if day else None
