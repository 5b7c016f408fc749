"""The expected length and cost of a model's answers: the mean of those on record, else assumed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal

from django.conf import settings
from django.db.models import Avg, Count

from agents.models import Decision, Elicitation, ModelCall, Release
from agents.services.costs import CHARACTERS_PER_TOKEN, dearest_cost
from cohorts.models import Methodology

PROSE_CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English."""
EXPECTED_COMPLETION_TOKENS = 2_000
"""For a model without an answer on record that does not think, or of a gateway that does not say."""
EXPECTED_THINKING_TOKENS = 8_000
"""For one that thinks: at medium effort the gateway allows for it half of max_tokens, which is 16,000."""

Answers = Mapping[str, tuple[int, int]]
"""The mean tokens of a model's answers on record, and their number, by its id."""


def text_tokens(characters: int, *prose: str) -> int:
    """The tokens of a prompt with so many characters of JSON Lines."""
    return math.ceil(characters / CHARACTERS_PER_TOKEN) + sum(map(len, prose)) // PROSE_CHARACTERS_PER_TOKEN


def answers_on_record(task: type[Decision | Elicitation], releases: Iterable[Release]) -> Answers:
    """The mean tokens of each model's answers to tasks of this kind, and their number."""
    models = {release.model_id for release in releases}
    calls = ModelCall.objects.filter(model__in=models, tokens_output__isnull=False).order_by()
    of_task = calls.filter(decision__isnull=task is not Decision)
    means = of_task.values_list("model").annotate(Avg("tokens_output"), Count("pk"))
    return {model: (int(mean), number) for model, mean, number in means}


def expected_answer(release: Release, answers: Answers, methodology: Methodology) -> tuple[int, int]:
    """The expected tokens of an answer, and the number of answers that they are the mean of; 0 if assumed."""
    if release.model_id in answers:
        return answers[release.model_id]
    expected = EXPECTED_THINKING_TOKENS if _thinks(release, methodology) else EXPECTED_COMPLETION_TOKENS
    return min(expected, release.max_completion_tokens or expected), 0


def _thinks(release: Release, methodology: Methodology) -> bool:
    """Will the model think? One of which a catalogue has not been read yet counts as one that does."""
    if not methodology.reasoning:
        return False
    if release.supported_parameters is None:
        return settings.ARENA_LINEUP != "unchecked"
    return "reasoning" in release.supported_parameters


def answer_cost(release: Release, tokens_input: int, answers: Answers, methodology: Methodology) -> Decimal:
    tokens_output, _ = expected_answer(release, answers, methodology)
    return dearest_cost(tokens_input, tokens_output, release.token_prices)
