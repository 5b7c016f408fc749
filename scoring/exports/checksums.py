"""SHA-256 of files, and of a zip archive in the file beside it."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def zip_checksum(archive: Path) -> Path:
    """The path of the file that holds the SHA-256 of a zip file, as `sha256sum -c` reads it."""
    return archive.with_name(f"{archive.name}.sha256")
