"""The protocol of a source of evidence, and the text that it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from foundation.redaction import redact
from markets.sources.field_parsers import line, moment, prose

LONGEST_TEXT, LONGEST_TITLE, LONGEST_SOURCE, LONGEST_ADDRESS = 100_000, 500, 200, 2_000
"""Characters that are read of a text's parts; a page of 5 MB costs no more than these."""
TEXTS_PER_QUERY = 20
"""The largest number that all services give: more than are shown, since filters drop some."""


class SourceUnavailable(Exception):
    """The source is down, or answers nothing that can be read."""


@dataclass(frozen=True, slots=True)
class EvidenceText:
    """A text about a query, as its source states it.

    published_at : None where the source states none
    retrieved_at : when it was retrieved, or stored; None for a row of a file that does not say
    """

    title: str
    url: str
    source: str
    published_at: datetime | None
    retrieved_at: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """The texts by query, the best first, and how many could not be read."""

    texts: Mapping[str, Sequence[EvidenceText]]
    unreadable: int

    @classmethod
    def of(cls, answers: Iterable[tuple[str, Sequence[EvidenceText | None]]]) -> EvidenceAnswer:
        """The answers to queries, in which None stands for a text that could not be read."""
        texts, unreadable = {}, 0
        for query, rows in answers:
            texts[query] = [row for row in rows if row is not None]
            unreadable += len(rows) - len(texts[query])
        return cls(texts, unreadable)


Clock = Callable[[], datetime]


class EvidenceSource(Protocol):
    """A source of texts.

    is_stored : its texts were stored with their dates, so that it can be asked for a past instant
    """

    is_stored: bool

    def texts(self, queries: Sequence[str], clock: Clock, seconds: float) -> EvidenceAnswer:
        """The texts for queries, dated by the arena's clock, within so many seconds. Raises SourceUnavailable."""
        ...


def read_text(fields: Mapping[str, Any], retrieved_at: datetime | None) -> EvidenceText | None:
    """The text of `title, url, source, published_at, text`, all of them untrusted; None if there is no text."""
    raw = fields.get("text")
    text = redact(prose(raw[:LONGEST_TEXT])) if isinstance(raw, str) else ""
    if not text:
        return None
    url = short_line(fields.get("url"), LONGEST_ADDRESS)
    return EvidenceText(
        title=short_line(fields.get("title"), LONGEST_TITLE),
        url=url,
        source=short_line(fields.get("source"), LONGEST_SOURCE) or host_of(url)[:LONGEST_SOURCE],
        published_at=_published(fields.get("published_at")),
        retrieved_at=retrieved_at,
        text=text,
    )


def host_of(url: str) -> str:
    """The host of an address, also without its scheme; empty if it has none."""
    try:
        host = urlsplit(url if "//" in url else f"//{url}").hostname
    except ValueError:
        return ""
    return (host or "").rstrip(".")


def short_line(raw: object, longest: int) -> str:
    return redact(line(raw[: 4 * longest]))[:longest].strip() if isinstance(raw, str) else ""


def _published(raw: object) -> datetime | None:
    """An instant in ISO-8601 or in the form of mail; None if it is missing or unreadable."""
    if at := moment(raw):
        return at
    try:
        instant = parsedate_to_datetime(raw) if isinstance(raw, str) else None
        return instant and instant.replace(tzinfo=instant.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
