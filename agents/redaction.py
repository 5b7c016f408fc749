"""Secrets that texts from outside may hold, and the texts without them."""

import re

from agents.answers import storable

API_KEYS = re.compile(r"\bsk-[\w-]{12,}", re.ASCII)
AGENT_TOKENS = re.compile(r"\barena_[\w-]{20,}", re.ASCII)
USER_IDS = re.compile(r'(\\*"user_id\\*"\s*:\s*\\*")[^"\\]*')
REDACTED = "[redacted]"


def redact(text: str) -> str:
    """The text without API keys, agents' tokens, account ids, NUL and unpaired surrogates."""
    without_keys = AGENT_TOKENS.sub(REDACTED, API_KEYS.sub(REDACTED, text))
    return storable(USER_IDS.sub(rf"\1{REDACTED}", without_keys))
