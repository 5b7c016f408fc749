"""Questions and their options, stored from candidates."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from markets.models import Market, Outcome, Question, QuestionOption
from markets.question_selection import QuestionCandidate, market_ids

STATED_FIELDS = ("source", "event_key", "text", "rules", "category", "exclusive", "closes_at")
"""Fields that a question takes over from its candidate."""


def _question_fields(candidate: QuestionCandidate, at: datetime) -> dict[str, Any]:
    fields = {name: getattr(candidate, name) for name in STATED_FIELDS}
    return fields | {"market_id": candidate.only_market_id, "first_asked_at": at}


def store_questions(candidates: Sequence[QuestionCandidate], at: datetime) -> dict[str, Question]:
    """The stored or newly created question of each candidate, by the candidate's key."""
    markets = Market.objects.filter(pk__in=market_ids(candidates))
    external_ids = dict(markets.order_by().values_list("pk", "external_id"))
    hashes = {candidate.key: _options_sha256(candidate, external_ids) for candidate in candidates}
    stored = Question.objects.in_bulk(set(hashes.values()), field_name="options_sha256")
    new: list[tuple[Question, QuestionCandidate]] = []
    for candidate in candidates:
        sha256 = hashes[candidate.key]
        if sha256 not in stored:
            fields = _question_fields(candidate, at)
            stored[sha256], created = Question.objects.get_or_create(options_sha256=sha256, defaults=fields)
            if created:
                new.append((stored[sha256], candidate))
    _create_options(new)
    return {key: stored[sha256] for key, sha256 in hashes.items()}


def _options_sha256(candidate: QuestionCandidate, external_ids: Mapping[int, str]) -> str:
    """The hash that identifies a candidate's question; `external_ids` are the venue's ids of its markets."""
    options, venue_ids = [], []
    for option in candidate.options:
        options.append([option.name, option.side])
        venue_ids.append(external_ids.get(option.market or 0, ""))
    identity = [candidate.source, candidate.key, candidate.exclusive, options, venue_ids]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def _create_options(new: Sequence[tuple[Question, QuestionCandidate]]) -> None:
    """Creates the options of new questions, and marks their markets as having questions."""
    if not new:
        return
    markets = market_ids(candidate for _, candidate in new)
    outcomes: dict[tuple[int | None, str], Outcome] = {}
    for outcome in Outcome.objects.filter(market__in=markets):
        outcomes[outcome.market_id, outcome.side] = outcome
    rows = []
    for question, candidate in new:
        for i, option in enumerate(candidate.options):
            side = outcomes.get((option.market, option.side))
            rows.append(QuestionOption(question=question, index=i, name=option.name, outcome=side))
    QuestionOption.objects.bulk_create(rows)
    Market.objects.filter(pk__in=markets, has_questions=False).update(has_questions=True)
