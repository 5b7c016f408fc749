"""JSON files as importers read them: whole documents, or one record to a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scoring.imports.rows import Unread
from scoring.ranking.files import UnreadableFile


def document(path: Path) -> Any:
    """The one JSON value of a file. Raises UnreadableFile."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} is not valid JSON: {error}") from error


def listed(path: Path, value: Any) -> Iterator[tuple[int, Any]]:
    """The items of a JSON list with their places, from 1. Raises UnreadableFile where it is no list."""
    if not isinstance(value, list):
        raise UnreadableFile(f"{path} holds no list where its records belong")
    return iter(enumerate(value, start=1))


def lines(path: Path) -> Iterator[tuple[int, Any | Unread]]:
    """What each line that is not blank holds, with its number. Raises UnreadableFile."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, written in enumerate(file, start=1):
                if not written.strip():
                    continue
                try:
                    yield line, json.loads(written)
                except (ValueError, RecursionError) as error:
                    yield line, Unread(line, f"the line is not valid JSON: {error}")
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is not UTF-8; save it as UTF-8") from error
