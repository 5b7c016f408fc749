"""A folder of stored texts: `*.jsonl`, rows of `query, title, url, source, published_at, retrieved_at, text`."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foundation.http import parse_json
from markets.sources.evidence.base import Clock, EvidenceAnswer, EvidenceText, SourceUnavailable, read_text
from markets.sources.field_parsers import moment

ANY_QUERY = "*"
LONGEST_ROW = 32 * 1024 * 1024
"""Bytes; a longer row is skipped without being held in memory."""


class EvidenceFiles:
    """The rows of a folder's files, in the order of the files' names. `*` as the query stands for all of them."""

    is_stored = True

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def texts(self, queries: Sequence[str], clock: Clock, seconds: float) -> EvidenceAnswer:
        """The texts whose query is one of these, or `*`; a row without its date of storage has none."""
        ends = time.monotonic() + seconds
        texts: dict[str, list[EvidenceText]] = {query: [] for query in queries}
        by_key = {_key(query): texts[query] for query in queries}
        unreadable = 0
        for row in self._rows():
            if time.monotonic() > ends:
                raise SourceUnavailable(f"{self.folder} was not read within {seconds:g} s")
            fields: dict[str, Any] = row if isinstance(row, dict) else {}
            text = read_text(fields, moment(fields.get("retrieved_at")))
            query = fields.get("query")
            if text is None or not isinstance(query, str):
                unreadable += 1
                continue
            is_for_all = query.strip() == ANY_QUERY
            for rows in texts.values() if is_for_all else [by_key.get(_key(query), [])]:
                rows.append(text)
        return EvidenceAnswer(texts, unreadable)

    def _rows(self) -> Iterator[Any]:
        """The rows of all files; None for one that is no JSON. Bytes that are not UTF-8 are replaced."""
        try:
            files = sorted(self.folder.iterdir())
            for path in files:
                if path.suffix == ".jsonl" and path.is_file():
                    with path.open("rb") as file:
                        yield from map(_parse_row, _lines(file))
        except OSError as error:
            raise SourceUnavailable(f"{self.folder} can not be read: {error.strerror}") from None


def _lines(file: Any) -> Iterator[bytes]:
    """The lines that hold anything; b"" stands for one that is too long."""
    while line := file.readline(LONGEST_ROW):
        if line.endswith(b"\n") or len(line) < LONGEST_ROW:
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_ROW)
        yield b""


def _parse_row(line: bytes) -> Any:
    try:
        return parse_json(line.decode("utf-8-sig", errors="replace"))
    except ValueError:
        return None


def _key(query: str) -> str:
    return " ".join(query.split()).casefold()
