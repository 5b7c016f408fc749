"""A completion as the gateway streams it: chunks with comments between them, and the ways in which a stream fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arena_site.sandbox.http_messages import Reply, encode_json

COMMENT = b": OPENROUTER PROCESSING\n\n"
CHARACTERS_PER_CHUNK = 100
FAULTS = ("cut", "error", "length", "provider", "stall")
"""What may be wrong with an answer: its connection closes or stalls in the middle, an error ends it, its tokens are
used up by reasoning, or another provider gives it."""


@dataclass(frozen=True, slots=True)
class EventStream(Reply):
    """A completion as server-sent events. After a fault they do not end: the connection closes or stays silent."""

    fault: str = ""

    def events(self) -> Iterator[bytes]:
        completion = self.body | {"object": "chat.completion.chunk"}
        (choice,), usage = completion.pop("choices"), completion.pop("usage")
        text = choice["message"]["content"] or ""

        def event(content: str = "", finish: str | None = None, **more: Any) -> bytes:
            delta = {"role": "assistant", "content": content}
            chunk = {"choices": [choice | {"message": None, "delta": delta, "finish_reason": finish}]}
            return b"data: " + encode_json(completion | chunk | more) + b"\n\n"

        yield COMMENT * 2
        pieces = [text[i : i + CHARACTERS_PER_CHUNK] for i in range(0, len(text), CHARACTERS_PER_CHUNK)]
        for piece in pieces[: len(pieces) // 2] if self.fault else pieces:
            yield event(piece)
        yield COMMENT
        if self.fault == "error":
            yield event("", "error", error={"code": 502, "message": "Provider disconnected unexpectedly"})
        elif not self.fault:
            yield event("", choice["finish_reason"])
            yield event(usage=usage)
            yield b"data: [DONE]\n\n"
