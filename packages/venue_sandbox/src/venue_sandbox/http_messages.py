"""HTTP requests and replies, whole or streamed, and the text form of numbers and instants in them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMMENT = b": OPENROUTER PROCESSING\n\n"
CHARACTERS_PER_CHUNK = 100


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with the instant of the sandbox's clock at which it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Message
    body: bytes
    at: datetime

    @classmethod
    def parse(cls, method: str, target: str, headers: Message, body: bytes, at: datetime) -> "Request":
        parts = urlsplit(target)
        return cls(method, parts.path, parse_qs(parts.query, keep_blank_values=True), headers, body, at)

    def parameter(self, name: str) -> str | None:
        """The last value given for a parameter."""
        return self.query[name][-1] if name in self.query else None

    def count(self, name: str, default: int, invalid: Callable[[str], "Refusal"]) -> int:
        """A parameter that is a positive whole number. Raises the Refusal that `invalid` makes for any other text."""
        text = self.parameter(name) or str(default)
        if not (text.isascii() and text.isdigit() and int(text)):
            raise invalid(f"{name} is invalid")
        return int(text)

    def json(self) -> Any:
        """The body as JSON; a ValueError where it is none."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, a body (bytes as they are, anything else as JSON) and any further headers."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else encode_json(self.body)


@dataclass(frozen=True, slots=True)
class EventStream(Reply):
    """A completion as server-sent events; with a fault (`cut`, `error`, `stall`) only the first half of them."""

    fault: str = ""

    def events(self) -> Iterator[bytes]:
        completion = self.body | {"object": "chat.completion.chunk"}
        (choice,), usage = completion.pop("choices"), completion.pop("usage", None)
        text = choice["message"]["content"] or ""

        def event(content: str = "", finish: str | None = None, *annotations: Any, **more: Any) -> bytes:
            delta: dict[str, Any] = {"role": "assistant", "content": content}
            delta |= {"annotations": annotations} if annotations else {}
            chunk = {"choices": [choice | {"message": None, "delta": delta, "finish_reason": finish}]}
            return b"data: " + encode_json(completion | chunk | more) + b"\n\n"

        yield COMMENT * 2
        for annotation in choice["message"].get("annotations", ()):  # each in an event of its own, before the text
            yield event("", None, annotation)
        pieces = [text[i : i + CHARACTERS_PER_CHUNK] for i in range(0, len(text), CHARACTERS_PER_CHUNK)]
        for piece in pieces[: len(pieces) // 2] if self.fault else pieces:
            yield event(piece)
        yield COMMENT
        if self.fault == "error":
            yield event("", "error", error={"code": 502, "message": "Provider disconnected unexpectedly"})
        elif not self.fault:
            yield event("", choice["finish_reason"])
            if usage is not None:
                yield event(usage=usage)
            yield b"data: [DONE]\n\n"


class Refusal(Exception):
    """A request that is answered with an error, whose reply it carries."""

    def __init__(self, reply: Reply):
        super().__init__(reply.body)
        self.reply = reply


def encode_json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, default=_number).encode()
    except UnicodeEncodeError:  # half a character can only be sent escaped
        return json.dumps(body, default=_number).encode()


def plain(number: Decimal) -> str:
    """The number in plain digits without idle zeros: `0.5`, never `0.50` or `5E-1`."""
    return format(number.normalize(), "f")


def zulu(at: datetime) -> str:
    """The instant as RFC 3339: `2026-03-01T00:05:00Z`."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _number(value: object) -> float | int:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
