"""The 2026 line-up: seven families with stable slugs, and the release behind each."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple


class Competitor(NamedTuple):
    slug: str
    display_name: str
    provider: str
    model_id: str
    color: str
    price_prompt: Decimal
    """US dollars per prompt token."""
    price_completion: Decimal


EFFECTIVE_FROM = datetime(2020, 1, 1, tzinfo=UTC)
"""Before any week that can be replayed."""


def _competitor(
    slug: str, name: str, provider: str, model_id: str, color: str, prompt: str, completion: str
) -> Competitor:
    per_million = Decimal(1_000_000)
    return Competitor(
        slug,
        name,
        provider,
        model_id,
        color,
        Decimal(prompt) / per_million,
        Decimal(completion) / per_million,
    )


# Colours: the Okabe-Ito palette, which the colour-blind can tell apart.
LINEUP_2026 = (
    _competitor("gpt-5.1", "GPT-5.2", "OpenAI", "openai/gpt-5.2", "#009e73", "1.75", "14"),
    _competitor("gemini-2.5-flash", "Gemini 3 Pro", "Google", "google/gemini-3-pro-preview", "#0072b2", "2", "12"),
    _competitor("grok-4", "Grok 4.1", "xAI", "x-ai/grok-4.1-fast", "#6b7280", "0.2", "0.5"),
    _competitor("claude-opus-4.5", "Claude Opus 4.5", "Anthropic", "anthropic/claude-opus-4.5", "#d55e00", "5", "25"),
    _competitor("deepseek-v3.1", "DeepSeek V3.2", "DeepSeek", "deepseek/deepseek-v3.2", "#56b4e9", "0.252", "0.378"),
    _competitor("kimi-k2", "Kimi K2", "Moonshot AI", "moonshotai/kimi-k2-thinking", "#cc79a7", "0.6", "2.5"),
    _competitor("qwen-3-next", "Qwen 3", "Alibaba", "qwen/qwen3-235b-a22b-2507", "#e69f00", "0.071", "0.1"),
)
