"""Files of an archive against its manifest, and its tables against each other's formats."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from forecast_rank.files.checksums import file_sha256

from scoring.exports.dictionary import dictionary_json
from scoring.exports.manifest import MANIFEST
from scoring.exports.tables import TABLES
from scoring.exports.verification.archive_reader import Archive


def check_files(folder: Path, listed: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Every file in the manifest exists with the same hash, and there are no others."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    for name in sorted(present - listed.keys()):
        yield f"{name}: is not in the manifest"
    for name, stated in sorted(listed.items()):
        if name not in present:
            yield f"{name}: is missing"
        elif file_sha256(folder / name) != stated["sha256"]:
            yield f"{name}: its SHA-256 is not the one in the manifest"


def check_tables(archive: Archive) -> Iterator[str]:
    """Tables have as many rows as the manifest says, the same in every format; the dictionary is this version's."""
    if json.loads((archive.folder / "dictionary.json").read_text(encoding="utf-8")) != dictionary_json(TABLES):
        yield "dictionary.json: differs from the tables of this version"
    formats = archive.formats
    for table in TABLES:
        count = 0
        for count, rows in enumerate(zip_longest(*(archive.rows(table.name, format) for format in formats)), start=1):
            if any(row != rows[0] for row in rows[1:]):
                yield f"{table.name}: row {count} differs between {' and '.join(formats)}"
                break
        for format in formats:
            name = archive.path(table.name, format).relative_to(archive.folder).as_posix()
            if archive.manifest["files"][name]["rows"] != count:
                yield f"{name}: {count} rows, the manifest says {archive.manifest['files'][name]['rows']}"
