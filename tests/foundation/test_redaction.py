"""Redaction: secrets are found however they are escaped, and everything else stays byte for byte."""

import json
import time
from collections.abc import Callable
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.redaction import redact

KEY, TOKEN = "sk-or-v1-0123456789abcdef", "arena_0123456789abcdefghijklmn"


def escaped(text: str) -> str:
    """Every character as a JSON escape."""
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (KEY, "[redacted]"),
        (f"use {KEY}, or {TOKEN}.", "use [redacted], or [redacted]."),
        (KEY.replace("-", "\\u002d"), "[redacted]"),
        (KEY.replace("-", "\\u002D"), "[redacted]"),
        (KEY.replace("s", "\\u0073", 1), "[redacted]"),
        (KEY.replace("s", "\\u0073", 1).replace("\\", "\\\\\\"), "[redacted]"),
        (KEY.replace("-", "\\u005cu002d"), "[redacted]"),
        (KEY.replace("-", "\\\\u005Cu005cu002d"), "[redacted]"),
        (f"a {escaped(TOKEN)} b", "a [redacted] b"),
        (f'"first line\\n{KEY}\\nlast line"', '"first line\\n[redacted]\\nlast line"'),
        (f'"first\\\\t{TOKEN}"', '"first\\\\t[redacted]"'),
        (f"https://n.example/?k={quote(KEY)}&q=1", "https://n.example/?k=[redacted]&q=1"),
        (f"https://n.example/?k={KEY.replace('-', '%2d')}&q=%20", "https://n.example/?k=[redacted]&q=%20"),
        (f"https://n.example/?u=%3Fk%3D{KEY.replace('-', '%252D')}", "https://n.example/?u=%3Fk%3D[redacted]"),
        ('{"user_id": "me@example.com", "a": 1}', '{"user_id": "[redacted]", "a": 1}'),
        ('{\\"user_id\\": \\"me@example.com\\"}', '{\\"user_id\\": \\"[redacted]\\"}'),
        ('{"user\\u005fid": "me\\u0040example.com"}', '{"user\\u005fid": "[redacted]"}'),
        ('{"user_id": ""}', '{"user_id": "[redacted]"}'),
        ("half \ud800 and \0", "half \ufffd and \ufffd"),
    ],
)
def test_secrets_are_redacted_in_every_form(text: str, clean: str) -> None:
    assert redact(text) == clean
    assert redact(clean) == clean


def test_own_key_of_any_form_is_redacted_in_escapes_too() -> None:
    assert redact("a tvly.+key b tvly\\u002e+key", "tvly.+key") == "a [redacted] b [redacted]"
    assert redact("a tvlyx+key", "tvly.+key") == "a tvlyx+key"


PLAIN = [
    "The task-force and risk-free-portfolios, sk-short, arena_short, 100% of it, 5%25 and \\u00e9 \\\\ \\n \\q %zz %",
    "C:\\temp\\sk and \\u12 \\", '{"user": "me", "note": "\\u0041 \\"x\\" \\ud83d\\ude00"}', "Zoë\u2028 ½ \ufeff", "",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_texts_stay_byte_for_byte(text: str) -> None:
    assert redact(text) == text


@given(st.text(alphabet=st.sampled_from('aé0/ "\\u{}:,%25nrt')))
def test_texts_without_secrets_stay_byte_for_byte(text: str) -> None:
    assert redact(text) == text


FORMS: list[Callable[[str], str]] = ["{}".format, escaped, lambda character: f"\\u{ord(character):04X}"]


@given(st.lists(st.sampled_from(FORMS), min_size=len(KEY), max_size=len(KEY)), st.integers(0, 3))
def test_no_number_of_decodings_brings_a_key_back(forms: list[Callable[[str], str]], depth: int) -> None:
    key = "".join(form(character) for form, character in zip(forms, KEY, strict=True))
    text = f'{{"reasoning": "before\\n{key} after"}}'
    for _ in range(depth):
        text = json.dumps({"content": text})
    clean = redact(text)
    for _ in range(depth):
        clean = json.loads(clean)["content"]
    assert json.loads(clean) == {"reasoning": "before\n[redacted] after"}


@given(st.lists(st.booleans(), min_size=len(KEY), max_size=len(KEY)))
def test_no_address_brings_a_key_back(is_encoded: list[bool]) -> None:
    pairs = zip(KEY, is_encoded, strict=True)
    path = "".join(f"%{ord(character):02x}" if encoded else character for character, encoded in pairs)
    assert unquote(redact(f"https://n.example/{path}/page")) == "https://n.example/[redacted]/page"


@pytest.mark.parametrize("unit", ["\\", "\\u005c", "u005c\\", "%25", "%", '\\"', "sk-", '"user_id":"'])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    started_at = time.monotonic()
    redact(unit * (300_000 // len(unit)))
    assert time.monotonic() - started_at < 3
