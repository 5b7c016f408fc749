"""The line-ups that ship: seven families with stable slugs, their first releases, and each maker's flagship now."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple


class Competitor(NamedTuple):
    """A family with its release."""

    slug: str
    display_name: str
    provider: str
    model_id: str
    color: str
    price_prompt: Decimal
    """US dollars per prompt token."""
    price_completion: Decimal
    canonical_slug: str = ""
    """The gateway's permanent name of the model, where an answer may carry no other."""


EFFECTIVE_FROM = datetime(2020, 1, 1, tzinfo=UTC)
"""Earlier than any week that can be replayed."""


def _competitor(
    slug: str,
    name: str,
    provider: str,
    model_id: str,
    color: str,
    prompt: str,
    completion: str,
    canonical_slug: str = "",
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
        canonical_slug,
    )


# Any two colours differ by 20 or more in CIELAB for every kind of colour-blindness, and each has a contrast of 3 to
# white and to black; a new one must keep both.
LINEUP_2026 = (
    _competitor("gpt-5.1", "GPT-5.2", "OpenAI", "openai/gpt-5.2", "#05a75b", "1.75", "14"),
    _competitor("gemini-2.5-flash", "Gemini 3 Pro", "Google", "google/gemini-3-pro-preview", "#0085ff", "2", "12"),
    _competitor("grok-4", "Grok 4.1", "xAI", "x-ai/grok-4.1-fast", "#729a89", "0.2", "0.5"),
    _competitor("claude-opus-4.5", "Claude Opus 4.5", "Anthropic", "anthropic/claude-opus-4.5", "#a8551e", "5", "25"),
    _competitor("deepseek-v3.1", "DeepSeek V3.2", "DeepSeek", "deepseek/deepseek-v3.2", "#6760b5", "0.252", "0.378"),
    _competitor("kimi-k2", "Kimi K2", "Moonshot AI", "moonshotai/kimi-k2-thinking", "#a686b7", "0.6", "2.5"),
    _competitor(
        "qwen-3-next",
        "Qwen 3",
        "Alibaba",
        "qwen/qwen3-235b-a22b-2507",
        "#bb8900",
        "0.071",
        "0.1",
        "qwen/qwen3-235b-a22b-07-25",
    ),
)

CURRENT_LINEUP = tuple(
    _competitor(first.slug, name, first.provider, model_id, first.color, prompt, completion)
    for first, (name, model_id, prompt, completion) in zip(
        LINEUP_2026,
        (
            ("GPT-5.6 Sol", "openai/gpt-5.6-sol", "5", "30"),
            ("Gemini 3.1 Pro", "google/gemini-3.1-pro-preview", "2", "12"),
            ("Grok 4.5", "x-ai/grok-4.5", "2", "6"),
            ("Claude Opus 5", "anthropic/claude-opus-5", "5", "25"),
            ("DeepSeek V4 Pro", "deepseek/deepseek-v4-pro", "0.435", "0.87"),
            ("Kimi K3", "moonshotai/kimi-k3", "3", "15"),
            ("Qwen 3.7 Max", "qwen/qwen3.7-max", "1.25", "3.75"),
        ),
        strict=True,
    )
)
"""Each maker's flagship in the gateway's catalogue of July 2026; `approve_lineup --current` puts it in force."""
