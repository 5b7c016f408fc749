"""The manifest of an archive (the hash of every file, the selection, the heads of the hash chains), and its hashes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.records import canonical, sha256

MANIFEST, ANCHOR = "manifest.json", "anchor.json"
FORMAT_VERSION = 3


class InvalidManifest(ValueError):
    """The manifest is missing, malformed, of another format version, or has been changed."""


def manifest_text(contents: Mapping[str, Any]) -> str:
    """The text of the manifest file, with its own hash over everything else in it."""
    hashed_contents = {name: value for name, value in contents.items() if name != "sha256"}
    return (
        json.dumps({**hashed_contents, "sha256": sha256(canonical(hashed_contents))}, indent=1, sort_keys=True) + "\n"
    )


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
