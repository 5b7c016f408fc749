"""Folders that are filled beside their place and swapped in whole; what a killed process left is cleaned up."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """An empty draft beside `folder`, which takes its place when the block ends well; else `folder` stays as it was.

    For the moment of the swap the old folder is called `.NAME.old`. A process that is killed there leaves it so, and
    the next call gives it its name back before it does anything else.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft, old = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.draft"), _old(folder)
    with _locked(folder.parent):
        _recover(folder)
        draft.mkdir()
        draft_lock = _lock(draft)
    try:
        yield draft
        with _locked(folder.parent):
            if folder.exists():
                folder.replace(old)
            try:
                draft.replace(folder)
            except BaseException:
                if old.exists():
                    old.replace(folder)
                raise
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(draft_lock)


def _recover(folder: Path) -> None:
    """Undoes what killed processes left: half a swap, and drafts that nobody fills any more."""
    old = _old(folder)
    if old.exists() and folder.exists():
        shutil.rmtree(old)
    elif old.exists():
        old.replace(folder)
    for path in folder.parent.iterdir():
        if path.name.startswith(f".{folder.name}.") and path.name.endswith(".draft"):
            try:
                lock = _lock(path, fcntl.LOCK_NB)
            except BlockingIOError:  # another process is filling it
                continue
            shutil.rmtree(path)
            os.close(lock)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = _lock(folder)
    try:
        yield
    finally:
        os.close(lock)


def _lock(folder: Path, mode: int = 0) -> int:
    """A descriptor that holds an exclusive lock on a folder until it is closed, or its process has ended."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
