"""The manifest of an archive (the hash of every file, the selection, the heads of the hash chains), and its hashes."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.records import canonical, sha256

MANIFEST = "manifest.json"
FORMAT_VERSION = 1


class InvalidManifest(ValueError):
    """The manifest is missing, malformed, of another format version, or has been changed."""


def manifest_text(contents: Mapping[str, Any]) -> str:
    """The text of the manifest file, with its own hash over everything else in it."""
    rest = {name: value for name, value in contents.items() if name != "sha256"}
    return json.dumps({**rest, "sha256": sha256(canonical(rest))}, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an archive. Raises InvalidManifest unless it is byte for byte what `manifest_text` gives."""
    try:
        text = (folder / MANIFEST).read_bytes().decode()
        contents = json.loads(text)
        unchanged = isinstance(contents, dict) and manifest_text(contents) == text
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidManifest(f"{MANIFEST}: {error}") from error
    if not unchanged:
        raise InvalidManifest(f"{MANIFEST}: its hash does not match its contents, or it is not in canonical form")
    if contents.get("format") != FORMAT_VERSION:
        raise InvalidManifest(f"{MANIFEST}: format {contents.get('format')}, this program reads {FORMAT_VERSION}")
    return contents


def list_files(folder: Path, rows: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Hash, size and (for tables) number of rows of every file in a folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): {
            "sha256": file_sha256(path),
            "bytes": path.stat().st_size,
            "rows": rows.get(path.relative_to(folder).as_posix()),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def zip_checksum(archive: Path) -> Path:
    """The path of the file that holds the SHA-256 of a zip file, as `sha256sum -c` reads it."""
    return archive.with_name(f"{archive.name}.sha256")
