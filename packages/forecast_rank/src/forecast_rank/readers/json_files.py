"""JSON and JSON Lines files, with a clear error for unreadable ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.readers.records import UnreadableRecord


def read_json(path: Path) -> Any:
    """The JSON value of a file. Raises UnreadableFile."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} is not valid JSON: {error}") from error


def enumerate_list(path: Path, value: Any) -> Iterator[tuple[int, Any]]:
    """The items of a JSON list, numbered from 1. Raises UnreadableFile if the value is not a list."""
    if not isinstance(value, list):
        raise UnreadableFile(f"{path} holds no list where its records belong")
    return iter(enumerate(value, start=1))


def read_json_lines(path: Path) -> Iterator[tuple[int, Any | UnreadableRecord]]:
    """The value of each line that is not blank, with its number. Raises UnreadableFile."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line, written in enumerate(file, start=1):
                if not written.strip():
                    continue
                try:
                    yield line, json.loads(written)
                except (ValueError, RecursionError) as error:
                    yield line, UnreadableRecord(line, f"the line is not valid JSON: {error}")
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is not UTF-8; save it as UTF-8") from error
