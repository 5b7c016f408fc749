"""Public datasets: the resolved tasks of the past, a version a week by name, which never changes afterwards."""

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from django.utils._os import safe_join

from scoring.exports.public_archives import public_folder, published_day

FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)
"""No question was asked before it."""
WEEKLY = 13
DATASET_RULE = f"the last {WEEKLY} versions, then the first of each month for ever"
PREFIX = "forecasts-"


def publish_dataset(*, at: datetime) -> dict[str, Any]:
    """Cuts a week's dataset from the archive of a day, of all tasks with a question resolved by then.

    The first of a week stands: later archives of the week leave it as it is. Without a resolved task there is none.
    """
    from scoring.exports.datasets import build_dataset

    name = dataset_name(at)
    folder = _root() / name
    if folder.exists():
        return {"dataset": name, **_size(name)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    archive = public_folder() / published_day(at)
    built = build_dataset(archive, folder=folder, start=FIRST_DAY, end=at, at=at, name=name)
    if not built.tasks:
        shutil.rmtree(folder)
        return {"dataset": None}
    for old in names_to_drop(dataset_names()):
        shutil.rmtree(_root() / old)
    return {"dataset": name, **_size(name)}


def dataset_name(at: datetime) -> str:
    """The name of the dataset of an instant's week: forecasts-2026w12."""
    year, week, _ = at.astimezone(UTC).isocalendar()
    return f"{PREFIX}{year}w{week:02d}"


def names_to_drop(names: Sequence[str]) -> list[str]:
    """The names, newest first, of which nothing is retained."""
    first_of_month = {min(month) for _, month in groupby(names, _month)}
    return [name for name in names[WEEKLY:] if name not in first_of_month]


def dataset_names() -> list[str]:
    """The names of the datasets, newest first."""
    return sorted((folder.name for folder in _root().glob(f"{PREFIX}????w??")), reverse=True)


def dataset_file(name: str, file: str) -> Path:
    """The path of a dataset's file. Raises SuspiciousFileOperation for a name that leads out of it."""
    return Path(safe_join(_root() / name, file))


def dataset_facts(name: str) -> dict[str, Any]:
    """A dataset's name, span, tasks, size and hash, by its manifest."""
    from arena_agent.dataset import MANIFEST, TASKS

    manifest = json.loads(dataset_file(name, MANIFEST).read_text(encoding="utf-8"))
    size = sum(file["bytes"] for file in manifest["files"].values())
    return {
        "name": name,
        "until": manifest["to"],
        "tasks": manifest["files"][TASKS]["rows"],
        "bytes": size,
        "sha256": manifest["sha256"],
    }


def _size(name: str) -> dict[str, Any]:
    facts = dataset_facts(name)
    return {"tasks": facts["tasks"], "dataset_bytes": facts["bytes"], "dataset_sha256": facts["sha256"]}


def _month(name: str) -> tuple[int, int]:
    """The year and month of a version's Monday."""
    year, _, week = name.removeprefix(PREFIX).partition("w")
    monday = date.fromisocalendar(int(year), int(week), 1)
    return monday.year, monday.month


def _root() -> Path:
    return public_folder() / "datasets"
