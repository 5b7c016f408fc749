"""Reads a streamed response (server-sent events) into the body that the same response would have unstreamed."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any

from agents.gateway.finish_reasons import NORMAL

STREAM_START = re.compile(rb"\s*(?::|(?:data|event|id|retry):)")
LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also split at characters that JSON texts may hold


MESSAGE_FIELDS = frozenset(
    {"role", "name", "content", "refusal", "reasoning", "reasoning_content", "reasoning_details", "thinking", "thought",
     "tool_calls", "function_call", "annotations", "audio", "images", "citations"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """The chunks of a stream as one body.

    complete : whether its end, or an error, was stated, and no event was unreadable
    contiguous : whether every event between two pieces of the content could be read, so that none is missing
    """

    body: dict[str, Any]
    complete: bool
    contiguous: bool

    @property
    def encoded(self) -> bytes:
        return json.dumps(self.body).encode()


def parse_stream(raw: bytes) -> StreamedBody | None:
    """The body of a stream, of which the end may be missing; None if the response is no stream."""
    if not STREAM_START.match(raw):
        return None
    events = list(_events(raw.decode(errors="replace")))
    has_end = "[DONE]" in events
    chunks = [_parse_chunk(data) for data in events if data != "[DONE]"]
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    contiguous, after_gap = True, False
    for chunk in chunks:
        if chunk is None:
            after_gap = bool(message.get("content") or any(texts["content"]))
            continue
        choices = chunk.pop("choices", None)
        body |= {name: value for name, value in chunk.items() if value is not None}
        for part in choices or ():
            if part.get("index") in (None, 0):
                full_message, delta = part.pop("message", None), part.pop("delta", None)
                contiguous = contiguous and not (after_gap and bool(delta and delta.get("content")))
                _add_delta(delta, message, texts)
                _add_message(full_message, message, texts)
                for name, value in part.items():
                    if not _takes_back(value, choice.get(name)):
                        choice[name] = value
    message |= {name: "".join(parts) for name, parts in texts.items() if parts}
    if choice or message:
        body["choices"] = [choice | {"message": message}]
    # The last event may be cut in the middle, after the one that ended the answer.
    readable = None not in (chunks if has_end else chunks[:-1])
    complete = readable and (has_end or bool(choice.get("finish_reason")))
    return StreamedBody(body, complete or bool(body.get("error") or choice.get("error")), contiguous)


def _events(text: str) -> Iterator[str]:
    """The data of each event; comments have none."""
    data: list[str] = []
    for line in [*LINE_END.split(text), ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _parse_chunk(data: str) -> dict[str, Any] | None:
    """The object of an event; None for an event that can not be read, in whole or in a part that may hold content."""
    try:
        chunk = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    if not isinstance(chunk, dict):
        return None
    choices = chunk.get("choices")
    if choices is None:  # an error, a bill or a notice
        is_chunk = str(chunk.get("object", "")).startswith("chat.completion")
        return None if is_chunk and not (chunk.get("error") or chunk.get("usage")) else chunk
    return chunk if isinstance(choices, list) and all(map(_is_readable, choices)) else None


def _is_readable(choice: Any) -> bool:
    """Whether a choice is one as documented, with a known field of a message in what it adds."""
    if not isinstance(choice, dict) or type(choice.get("index")) not in (int, NoneType):
        return False
    messages = [choice[name] for name in ("delta", "message") if choice.get(name) is not None]
    if not messages:  # a last event that only names the end
        others = [value for name, value in choice.items() if name not in ("error", "logprobs")]
        states_end = any(map(choice.get, ("finish_reason", "native_finish_reason", "error")))
        return states_end and not any(isinstance(value, dict) for value in others)
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str | list | NoneType):
            return False
        fields = message.keys() - {"role"}
        if fields and not fields & MESSAGE_FIELDS:
            return False
    return True


def _takes_back(value: Any, earlier: Any) -> bool:
    """Whether a later chunk's value is empty, or a normal end, where an earlier chunk stated another."""
    return bool(earlier) and (not value or (isinstance(value, str) and value.casefold() in NORMAL))


def _add_message(full: Any, message: dict[str, Any], texts: dict[str, list[str]]) -> None:
    """Adds those fields of a whole message that did not come in pieces before."""
    if isinstance(full, dict):
        remaining_fields = {
            name: value for name, value in full.items() if not (any(texts.get(name, ())) or message.get(name))
        }
        _add_delta(remaining_fields, message, texts)


def _add_delta(delta: Any, message: dict[str, Any], texts: dict[str, list[str]]) -> None:
    """Adds to the message: texts and lists are continued. `reasoning_details` only repeat the reasoning."""
    for name, value in delta.items() if isinstance(delta, dict) else ():
        if value is None or name == "reasoning_details":
            continue
        if isinstance(value, str) and name != "role":
            texts[name].append(value)
        elif isinstance(value, list) and isinstance(message.get(name), list):
            message[name] += value
        else:
            message[name] = value
