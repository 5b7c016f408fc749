"""The manifest: the hash of every file of an archive, what was selected, and how the chains stood."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.records import canonical, sha256
from scoring.exports.files import file_sha256

MANIFEST = "manifest.json"
FORMAT = 1


class BadManifest(ValueError):
    """A manifest that is none, or that somebody changed."""


def written(contents: Mapping[str, Any]) -> str:
    """The manifest as it lies in the archive, its own hash over the rest included."""
    rest = {name: value for name, value in contents.items() if name != "sha256"}
    return json.dumps({**rest, "sha256": sha256(canonical(rest))}, indent=1, sort_keys=True) + "\n"


def read(folder: Path) -> dict[str, Any]:
    """The manifest of an archive. Raises BadManifest unless it is byte for byte what `written` gives."""
    try:
        text = (folder / MANIFEST).read_bytes().decode()
        contents = json.loads(text)
        genuine = isinstance(contents, dict) and written(contents) == text
    except (OSError, ValueError, RecursionError) as error:
        raise BadManifest(f"{MANIFEST}: {error}") from error
    if not genuine:
        raise BadManifest(f"{MANIFEST}: its own hash is not that of the rest, or it is not written as manifests are")
    if contents.get("format") != FORMAT:
        raise BadManifest(f"{MANIFEST}: format {contents.get('format')}, this reads {FORMAT}")
    return contents


def listed(folder: Path, rows: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Hash, size and number of rows (of tables) of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): {
            "sha256": file_sha256(path),
            "bytes": path.stat().st_size,
            "rows": rows.get(path.relative_to(folder).as_posix()),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
