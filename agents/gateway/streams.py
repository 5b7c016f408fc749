"""Reads a streamed response (server-sent events) into the body that the same response would have unstreamed."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agents.gateway.finish_reasons import NORMAL

STREAM_START = re.compile(rb"\s*(?::|(?:data|event|id|retry):)")
LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also split at characters that JSON texts may hold


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """The chunks of a stream as one body. `complete` is false if it broke off before the answer's end or an error."""

    body: dict[str, Any]
    complete: bool

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
    for chunk in filter(None, chunks):
        choices = chunk.pop("choices", None)
        body |= {name: value for name, value in chunk.items() if value is not None}
        for part in choices if isinstance(choices, list) else ():
            if isinstance(part, dict) and part.get("index") in (None, 0):
                full_message = part.pop("message", None)
                _add_delta(part.pop("delta", None), message, texts)
                _add_message(full_message, message, texts)
                for name, value in part.items():
                    if not _takes_back(value, choice.get(name)):
                        choice[name] = value
    message |= {name: "".join(parts) for name, parts in texts.items()}
    if choice:
        body["choices"] = [choice | {"message": message}]
    # The last event may be cut in the middle, after the one that ended the answer.
    readable = None not in (chunks if has_end else chunks[:-1])
    complete = readable and (has_end or bool(choice.get("finish_reason")))
    return StreamedBody(body, complete or bool(body.get("error") or choice.get("error")))


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
    try:
        chunk = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


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
