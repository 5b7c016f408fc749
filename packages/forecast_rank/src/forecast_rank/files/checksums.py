"""Hashes of files and folders, and zip files with their checksums beside them."""

import hashlib
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forecast_rank.atomic_files import atomic_write


def zip_archive(folder: Path) -> Path:
    """The archive as one file beside its folder, and its hash beside that, as `sha256sum -c` reads it.

    The manifest's hashes do not cover what a zip file holds between its members. All members bear one date, so that
    equal contents give equal files.
    """
    target = folder.with_name(f"{folder.name}.zip")
    with atomic_write(zip_checksum(target)) as checksum, atomic_write(target) as draft:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    member = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                    member.compress_type = zipfile.ZIP_DEFLATED
                    with path.open("rb") as source, archive.open(member, "w", force_zip64=True) as sink:
                        shutil.copyfileobj(source, sink, 1 << 20)
        checksum.write_text(f"{file_sha256(draft)}  {target.name}\n", encoding="utf-8")
        # The old checksum goes before its file does: a zip without one is sound, a zip with another's is not.
        zip_checksum(target).unlink(missing_ok=True)
    return target


def list_files(folder: Path, without: str, rows: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Hash, size and (for tables) number of rows of every file in a folder but one, by relative path."""
    return {
        path.relative_to(folder).as_posix(): {
            "sha256": file_sha256(path),
            "bytes": path.stat().st_size,
            "rows": rows.get(path.relative_to(folder).as_posix()),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != without
    }


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def zip_checksum(archive: Path) -> Path:
    """The path of the file that holds the SHA-256 of a zip file, as `sha256sum -c` reads it."""
    return archive.with_name(f"{archive.name}.sha256")


def check_zip_checksum(path: Path) -> Iterator[str]:
    """The SHA-256 of a zip file is the one in the file beside it, if there is one."""
    checksum = zip_checksum(path)
    if path.is_file() and checksum.is_file():
        words = checksum.read_text(encoding="utf-8", errors="replace").split()
        if words[:1] != [file_sha256(path)]:
            yield f"{path.name}: its SHA-256 is not the one in {checksum.name}"
