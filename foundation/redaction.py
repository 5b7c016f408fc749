"""Redaction of secrets in texts from outside, before anything stores, hashes or shows them."""

import re
from bisect import bisect_right
from collections.abc import Callable

from arena_verifier.answer_texts import storable

REDACTED = "[redacted]"
_SECRETS = r'\bsk-[\w-]{12,}|\barena_[\w-]{20,}|"user_id"\s*:\s*"(?P<user_id>[^"\\]*)'
"""API keys, agents' tokens, and the values of account ids."""
# A JSON escape, however often it was escaped again, and a percent-encoded character. A run of backslashes is matched
# as a whole, with or without a character behind it, so that matching takes linear time.
_ESCAPE = re.compile(
    r'\\(?:\\|u005[cC])*+(?:u(?P<code>[0-9a-fA-F]{4})|(?P<blank>[bfnrt])|(?P<quote>"))?'
    r"|%(?:25)*+(?P<percent>[0-9a-fA-F]{2})"
)


def redact(text: str, *keys: str) -> str:
    """The text without API keys, agents' tokens, account ids, these keys, NUL and unpaired surrogates.

    A secret is found in JSON escapes of any depth and in percent-encoding too. All other characters stay as they are.
    """
    plain, position_in_text = _unescape(text)
    pieces, end = [], 0
    for secret in re.finditer("|".join([_SECRETS, *map(re.escape, keys)]), plain, re.ASCII):
        start, stop = secret.span(0 if secret["user_id"] is None else "user_id")
        pieces += [text[end : position_in_text(start)], REDACTED]
        end = position_in_text(stop)
    return storable("".join([*pieces, text[end:]]))


def _unescape(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with each escape replaced by its character, and the function from places in it to places in `text`."""
    pieces, length, end = [], 0, 0
    plain_places, places = [0], [0]
    for escape in _ESCAPE.finditer(text):
        code = escape["code"] or escape["percent"]
        character = chr(int(code, 16)) if code else " " if escape["blank"] else escape["quote"]
        if character is None:
            continue
        pieces += [text[end : escape.start()], character]
        length += escape.start() - end
        plain_places += [length, length + 1]
        places += [escape.start(), escape.end()]
        length, end = length + 1, escape.end()

    def position_in_text(place: int) -> int:
        nearest = bisect_right(plain_places, place) - 1
        return places[nearest] + place - plain_places[nearest]

    return "".join([*pieces, text[end:]]), position_in_text
