"""The expected cost of a call: the mean of what such calls of a release cost, else stated tokens at its prices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Count, Sum, Value
from django.db.models.functions import Coalesce

from agents.models import Decision, Elicitation, ModelCall, Release
from agents.services.costs import CHARACTERS_PER_TOKEN, RESULT_CHARACTERS, dearest_cost, search_price, searched_tokens
from cohorts.models import Methodology

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import Condition

PROSE_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English."""
PROMPT_TOKENS = 26_923
"""Tokens of a trading prompt: 70,000 characters with 500 captured markets."""
QUESTION_CHARACTERS = 1_000
"""Characters of a question with its rules: 753 on average in 527 captured markets."""
SNIPPET_CHARACTERS = 250
"""Characters of a snippet's line in EVIDENCE besides its text: title, source, address and day."""
PLAIN_TOKENS, THINKING_TOKENS = 2_000, 8_000
"""Tokens of an answer. At medium effort the gateway allows half of max_tokens, 16,000, for a model to think."""
UNANSWERED = (ModelCall.Result.SENT, ModelCall.Result.FAILED, ModelCall.Result.LOST)

MeanCosts = Mapping[tuple[int, str], tuple[Decimal, int]]
"""The mean cost of calls in US dollars, and their number, by release id and condition; decisions have none ("")."""


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """US dollars for a call: the mean of so many calls on record; of none, what the stated tokens cost."""

    usd: Decimal
    calls: int

    def __str__(self) -> str:
        return f"${self.usd:.4f} a call ({f'the mean of {self.calls} on record' if self.calls else 'assumed'})"


def mean_costs(task: type[Decision | Elicitation], releases: Iterable[Release]) -> MeanCosts:
    """The mean costs of these releases' answered calls of a protocol, without those that are only booked."""
    ids = [release.pk for release in releases if release.pk is not None]
    if not ids:
        return {}
    release, condition = "elicitation__release", Coalesce("elicitation__batch__arm", Value(""))
    if task is Decision:
        release = "decision__agent__release"
    answered = ModelCall.objects.filter(**{f"{release}__in": ids}).exclude(result__in=UNANSWERED).order_by()
    paid = answered.exclude(cost_source=ModelCall.CostSource.BOOKED).annotate(condition=condition)
    sums = paid.values_list(release, "condition").annotate(Sum("cost_usd"), Count("pk"))
    return {(pk, name): (total / number, number) for pk, name, total, number in sums}


def expected_cost(
    release: Release, methodology: Methodology, means: MeanCosts, condition: Condition | None = None
) -> ExpectedCost:
    """The expected cost of a call of a release: for a decision, or for a batch of questions under a condition."""
    mean = means.get((release.pk, condition.name if condition else "")) if release.pk is not None else None
    if mean is not None:
        return ExpectedCost(*mean)
    rules = methodology.forecast_rules
    if condition is None or rules is None:
        return ExpectedCost(_stated_cost(release, methodology, PROMPT_TOKENS), 0)
    prompt, tool = _batch_tokens(condition, rules), condition.tools
    if tool is None:
        return ExpectedCost(_stated_cost(release, methodology, prompt), 0)
    # A release is expected to search as often as it may.
    tokens_of_results = tool.max_results * RESULT_CHARACTERS // PROSE_CHARACTERS_PER_TOKEN
    prompts = searched_tokens(prompt, tool.max_uses, tokens_of_results)
    searches = tool.max_uses * search_price(tool, dearest=False)
    return ExpectedCost(_stated_cost(release, methodology, prompts) + searches, 0)


def _stated_cost(release: Release, methodology: Methodology, tokens_input: int) -> Decimal:
    tokens = THINKING_TOKENS if _thinks(release, methodology) else PLAIN_TOKENS
    return dearest_cost(tokens_input, min(tokens, release.max_completion_tokens or tokens), release.token_prices)


def _thinks(release: Release, methodology: Methodology) -> bool:
    """True if the model thinks; a release whose catalogue row has not been read yet counts as one that does."""
    if not methodology.reasoning:
        return False
    if release.supported_parameters is None:
        return settings.ARENA_LINEUP != "unchecked"
    return "reasoning" in release.supported_parameters


def _batch_tokens(condition: Condition, rules: ForecastRules) -> int:
    """The tokens of a prompt with as many questions as a call holds, and the most evidence."""
    characters, prose = QUESTION_CHARACTERS, len(rules.system_prompt) + len(rules.user_prompt)
    if condition.has_evidence:
        characters += rules.evidence.most * (rules.evidence.characters + SNIPPET_CHARACTERS)
        prose += len(rules.evidence_prompt)
    if condition.tools:
        prose += len(rules.search_prompt)
    block = math.ceil(rules.questions_per_call * characters / CHARACTERS_PER_TOKEN)
    return block + prose // PROSE_CHARACTERS_PER_TOKEN
