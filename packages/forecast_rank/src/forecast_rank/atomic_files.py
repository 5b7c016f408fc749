"""Files that are written beside their place and renamed onto it, so that a reader never meets half of one."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed onto it when the block ends well; else `path` stays as it was.

    A pipe or a device (`/dev/stdout`) is given as it is: there is nothing to replace.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()  # a symbolic link goes on pointing at the file
    draft = target.with_name(f".{target.stem}.{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
