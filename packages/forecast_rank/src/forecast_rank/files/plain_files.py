"""Plain copies of standard input, pipes and compressed files."""

import gzip
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.limits import check_expansion, expansion_limit

STANDARD_INPUT = "-"
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLOCK = 1 << 22
_ZSTD_HEADER = 18
_MAX_GZIP_RATIO = 1032
"""No deflated byte expands to more (zlib's documentation)."""


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file that can be read from its beginning, as often as needed.

    Attributes
    ----------
    path : Path
        Of the file, or of its plain copy.
    name : str
        As the user knows it.
    compression : str or None
    """

    path: Path
    name: str
    compression: str | None = None


@contextmanager
def plain_file(source: Path | str) -> Iterator[PlainFile]:
    """The file itself, or a plain copy of standard input (`-`), of a pipe, or of a gzip or zstd file.

    Raises UnreadableFile. One that is raised within the context names the file as the user does.
    """
    name = "standard input" if str(source) == STANDARD_INPUT else str(source)
    path = Path(source)
    with TemporaryDirectory() as folder:
        try:
            if str(source) == STANDARD_INPUT:
                path = _copy(sys.stdin.buffer, Path(folder, "input"))
            elif path.is_fifo():
                with path.open("rb") as pipe:
                    path = _copy(pipe, Path(folder, path.name))
            start = first_bytes(path)
            compression = "gzip" if start.startswith(GZIP) else "zstd" if start.startswith(ZSTANDARD) else None
            if compression:
                path = _unpacked(path, Path(folder, "unpacked"), compression)
            yield PlainFile(path, name, compression)
        except UnreadableFile as error:
            if folder not in str(error):
                raise
            raise type(error)(str(error).replace(str(path), name)) from error


def first_bytes(path: Path, count: int = 4) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def _unpacked(path: Path, folder: Path, compression: str) -> Path:
    folder.mkdir()
    copy = folder / (path.stem if path.suffix.lower() in (".gz", ".zst") else path.name)
    module: Any = gzip
    broken: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    if compression == "zstd":
        module = _zstd()
        broken = (*broken, module.ZstdError)
    try:
        check_expansion(path, _stated_size(path, compression))
        if compression == "zstd" or path.stat().st_size * _MAX_GZIP_RATIO > expansion_limit(path):
            deque(_blocks(module, path), maxlen=0)  # the disk is slow: nothing is written of what expands too far
        with copy.open("wb") as out:
            for block in _blocks(module, path):
                out.write(block)
    except broken as error:
        raise UnreadableFile(f"{path} is not a readable {compression} file: {error}") from error
    return copy


def _stated_size(path: Path, compression: str) -> int:
    """The bytes that the file says it expands to, at least; 0 if it does not say."""
    if compression == "zstd":
        return _zstd().get_frame_info(first_bytes(path, _ZSTD_HEADER)).decompressed_size or 0
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(-min(4, size), os.SEEK_END)
        size_in_file = int.from_bytes(file.read(4), "little")  # of its last part, modulo 4 GiB
    return size_in_file if size_in_file <= _MAX_GZIP_RATIO * size else 0  # else the file is cut


def _blocks(module: Any, path: Path) -> Iterator[bytes]:
    """The expanded contents. Raises UnreadableFile once they are more than the limit."""
    size = 0
    with module.open(path) as file:
        while block := file.read(_BLOCK):
            size += len(block)
            check_expansion(path, size)
            yield block


def _copy(file: Any, copy: Path) -> Path:
    with copy.open("wb") as out:
        while block := file.read(_BLOCK):
            out.write(block)
    return copy


def _zstd() -> Any:
    """The module of zstandard: of the standard library from Python 3.14 on."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
