"""Datasets: tasks of the past, their outcomes, and everyone's forecasts. The README describes the files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena_agent.canonical import file_sha256, read_json, sha256

TASKS, OUTCOMES, FORECASTS, MANIFEST = "tasks.jsonl", "outcomes.jsonl", "forecasts.parquet", "manifest.json"
FILES = (TASKS, OUTCOMES, FORECASTS)
FORMAT = 1
MAX_MANIFEST_BYTES = 5_000_000
MAX_FILE_BYTES = 2_000_000_000


class InvalidDataset(ValueError):
    """A dataset that is not what it should be; the message names the file and the line."""


@dataclass(frozen=True)
class Dataset:
    """A folder with the files of a dataset, whose hashes are those of its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def sha256(self) -> str:
        """The hash that the manifest states of itself."""
        return str(self.manifest["sha256"])

    @property
    def board_condition(self) -> str:
        """The condition that the arena's board is of; empty where the manifest names none."""
        return str(self.manifest.get("board_condition", ""))

    @property
    def names(self) -> dict[str, str]:
        """The display names of forecasters, by the names under which their forecasts stand."""
        names = self.manifest.get("names")
        return {str(slug): str(name) for slug, name in names.items()} if isinstance(names, dict) else {}

    @property
    def forecasts(self) -> Path:
        """The file of everyone's forecasts."""
        return self.folder / FORECASTS

    def task_lines(self) -> Iterator[str]:
        """The lines of the tasks, one by one, as an agent is handed them."""
        with (self.folder / TASKS).open(encoding="utf-8") as file:
            yield from filter(str.strip, file)

    def outcomes(self) -> Iterator[dict[str, Any]]:
        """The rows of the outcomes. Raises InvalidDataset at the first that is none."""
        with (self.folder / OUTCOMES).open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = read_json(line)
                    fault = next((name for name in ("question_id", "option", "outcome") if name not in row), None)
                except (ValueError, TypeError) as error:
                    raise InvalidDataset(f"{OUTCOMES}, line {number}: it is no JSON object: {error}") from None
                if fault is not None:
                    raise InvalidDataset(f"{OUTCOMES}, line {number}: {fault} is missing")
                yield row


def check_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, after its own hash and those of the files have been found right."""
    path = folder / MANIFEST
    try:
        manifest = read_json(path.read_bytes())
    except FileNotFoundError:
        raise InvalidDataset(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise InvalidDataset(f"{path}: {error}") from None
    check_own_hash(manifest)
    for name in FILES:
        try:
            is_same = file_sha256(folder / name) == manifest["files"][name]["sha256"]
        except OSError as error:
            raise InvalidDataset(f"{folder / name}: {error.strerror}") from None
        if not is_same:
            raise InvalidDataset(f"{folder / name}: its SHA-256 is not that of the manifest")
    return manifest


def check_own_hash(manifest: Any) -> None:
    """Checks the form of a manifest and its own hash. Raises InvalidDataset."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise InvalidDataset(f"{MANIFEST}: it must be an object with files")
    if manifest.get("format", FORMAT) != FORMAT:
        raise InvalidDataset(f"{MANIFEST}: its format is {manifest['format']!r}; this version reads {FORMAT}")
    for name in FILES:
        entry = manifest["files"].get(name)
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
            raise InvalidDataset(f"{MANIFEST}: files has no {name} with its sha256")
    hashed_contents = {name: value for name, value in manifest.items() if name != "sha256"}
    if manifest.get("sha256") != sha256(hashed_contents):
        raise InvalidDataset(f"{MANIFEST}: its sha256 is not that of its content")
