"""Public datasets: the resolved tasks of the past, once a day, retained by the rule of archives."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.utils._os import safe_join

from scoring.services.public_archives import days_to_drop, public_folder, published_day

FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)
"""No question was asked before it."""


def publish_dataset(*, at: datetime) -> dict[str, Any]:
    """Cuts the dataset of a day from its archive, of all tasks with a question resolved by then, and removes what the
    rule drops.

    Without such a task there is none.
    """
    from arena_agent.dataset import FILES
    from scoring.services.datasets import build_dataset

    day = published_day(at)
    folder = _root() / day
    folder.parent.mkdir(parents=True, exist_ok=True)
    built = build_dataset(public_folder() / day, folder=folder, start=FIRST_DAY, end=at, at=at)
    if not built.tasks:
        shutil.rmtree(folder)
        return {"dataset": None}
    for day in days_to_drop(dataset_days()):
        shutil.rmtree(_root() / day)
    size = sum((folder / name).stat().st_size for name in FILES)
    return {"dataset": folder.name, "tasks": built.tasks, "dataset_bytes": size, "dataset_sha256": built.sha256}


def dataset_days() -> list[str]:
    """The days with a dataset, newest first."""
    return sorted((folder.name for folder in _root().glob("????-??-??")), reverse=True)


def dataset_file(day: str, name: str) -> Path:
    """The path of a dataset's file. Raises SuspiciousFileOperation for a name that leads out of it."""
    return Path(safe_join(_root() / day, name))


def dataset_facts(day: str) -> dict[str, Any]:
    """A dataset's day, tasks, size and hash, by its manifest."""
    from arena_agent.dataset import MANIFEST, TASKS

    manifest = json.loads(dataset_file(day, MANIFEST).read_text(encoding="utf-8"))
    size = sum(file["bytes"] for file in manifest["files"].values())
    return {"day": day, "tasks": manifest["files"][TASKS]["rows"], "bytes": size, "sha256": manifest["sha256"]}


def _root() -> Path:
    return public_folder() / "datasets"
