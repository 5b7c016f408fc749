"""The line-ups that ship: seven families with stable slugs, their first releases, and each maker's flagship now."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple


class Competitor(NamedTuple):
    """A family with its release."""

    slug: str
    display_name: str
    provider: str
    color: str
    model_id: str
    dollars_prompt: str
    """US dollars per million prompt tokens."""
    dollars_completion: str
    canonical_slug: str = ""
    """The gateway's permanent name of the model, where an answer may carry no other."""

    @property
    def family_fields(self) -> dict[str, Any]:
        """The fields of the family beside its slug."""
        return {"display_name": self.display_name, "provider": self.provider, "color": self.color}

    @property
    def release_fields(self) -> dict[str, Any]:
        """The fields of its release, with prices in US dollars per token."""
        return {
            "model_id": self.model_id,
            "display_name": self.display_name,
            "price_prompt": Decimal(self.dollars_prompt) / 10**6,
            "price_completion": Decimal(self.dollars_completion) / 10**6,
            "canonical_slug": self.canonical_slug,
        }


EFFECTIVE_FROM = datetime(2020, 1, 1, tzinfo=UTC)
"""Earlier than any week that can be replayed."""

# Any two colours differ by 20 or more in CIELAB for every kind of colour-blindness, and each has a contrast of 3 to
# white and to black; a new one must keep both.
LINEUP_2026 = (
    Competitor("gpt-5.1", "GPT-5.2", "OpenAI", "#05a75b", "openai/gpt-5.2", "1.75", "14"),
    Competitor("gemini-2.5-flash", "Gemini 3 Pro", "Google", "#0085ff", "google/gemini-3-pro-preview", "2", "12"),
    Competitor("grok-4", "Grok 4.1", "xAI", "#729a89", "x-ai/grok-4.1-fast", "0.2", "0.5"),
    Competitor("claude-opus-4.5", "Claude Opus 4.5", "Anthropic", "#a8551e", "anthropic/claude-opus-4.5", "5", "25"),
    Competitor("deepseek-v3.1", "DeepSeek V3.2", "DeepSeek", "#6760b5", "deepseek/deepseek-v3.2", "0.252", "0.378"),
    Competitor("kimi-k2", "Kimi K2", "Moonshot AI", "#a686b7", "moonshotai/kimi-k2-thinking", "0.6", "2.5"),
    Competitor(
        "qwen-3-next", "Qwen 3", "Alibaba", "#bb8900", "qwen/qwen3-235b-a22b-2507", "0.071", "0.1",
        canonical_slug="qwen/qwen3-235b-a22b-07-25",
    ),
)  # fmt: skip
CURRENT_LINEUP = tuple(
    Competitor(family.slug, name, family.provider, family.color, *release)
    for family, (name, *release) in zip(
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
"""Each maker's flagship in the gateway's catalogue of July 2026; `--current` of three commands puts it in force."""
