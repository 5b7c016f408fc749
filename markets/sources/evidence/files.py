"""A folder of stored texts: `*.jsonl`, rows of `query, title, url, source, published_at, retrieved_at, text`."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from foundation.http import parse_json
from markets.sources.evidence.base import Clock, EvidenceAnswer, EvidenceText, SourceUnavailable, read_text
from markets.sources.field_parsers import moment

ANY_QUERY = "*"
LONGEST_ROW = 32 * 1024 * 1024
"""Bytes; a longer row is read in pieces, none of which is a row."""


class EvidenceFiles:
    """The rows of a folder's files, in the order of the files' names. `*` as the query stands for all of them."""

    is_stored = True

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def texts(self, queries: Sequence[str], clock: Clock, seconds: float) -> EvidenceAnswer:
        """The texts whose query is one of these, or `*`; a row without its date of storage has none."""
        ends = time.monotonic() + seconds
        texts: dict[str, list[EvidenceText]] = {query: [] for query in queries}
        by_key = {_key(query): rows for query, rows in texts.items()}
        unreadable = 0
        for row in self._rows():
            if time.monotonic() > ends:
                raise SourceUnavailable(f"{self.folder} was not read within {seconds:g} s")
            text = read_text(row, moment(row.get("retrieved_at")))
            query = row.get("query")
            if text is None or not isinstance(query, str):
                unreadable += 1
                continue
            is_for_all = query.strip() == ANY_QUERY
            for rows in texts.values() if is_for_all else [by_key.get(_key(query), [])]:
                rows.append(text)
        return EvidenceAnswer(texts, unreadable)

    def _rows(self) -> Iterator[dict[str, Any]]:
        """The rows of all files; an empty one for what is no JSON object. Bytes that are not UTF-8 are replaced."""
        try:
            for path in sorted(self.folder.iterdir()):
                if path.suffix == ".jsonl" and path.is_file():
                    with path.open("rb") as file:
                        for line in iter(partial(file.readline, LONGEST_ROW), b""):
                            if line.strip():
                                yield _parse_row(line)
        except OSError as error:
            raise SourceUnavailable(f"{self.folder} can not be read: {error.strerror}") from None


def _parse_row(line: bytes) -> dict[str, Any]:
    try:
        row = parse_json(line.decode("utf-8-sig", errors="replace"))
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _key(query: str) -> str:
    return " ".join(query.split()).casefold()
