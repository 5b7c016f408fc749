"""Folders that all workers of a run share, each filled by the first worker that needs it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name in the run's temporary folder, after `make` has filled it once. Read only."""
    worker_folder = tmp_path_factory.getbasetemp()
    run = worker_folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else worker_folder
    return made_at(run / name, make)


def made_at(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, after `make` has filled it, unless it is there."""
    folder.parent.mkdir(exist_ok=True, parents=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first worker makes it, the others wait
        if not folder.exists():
            draft = folder.with_suffix(".draft")
            draft.mkdir(exist_ok=True)
            make(draft)
            draft.rename(folder)
    return folder
