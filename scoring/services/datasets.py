"""Datasets of the past: the tasks of a window as models saw them, apart from outcomes and everyone's forecasts.

An agent under evaluation is handed the tasks alone. `packages/arena_agent/README.md` describes the files.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from pathlib import Path
from typing import Any

from django.db.models import QuerySet

from agents.models import Forecast
from agents.records import canonical, sha256
from agents.sealing import respecting_seals
from arena_agent.dataset import FORECASTS, FORMAT, MANIFEST, OUTCOMES, TASKS
from cohorts.conditions import stored_conditions
from forecast_rank.atomic_folders import atomic_folder
from forecast_rank.files.checksums import file_sha256
from foundation.json_lines import instant_text
from markets.models import Question, QuestionBatch, QuestionEntry
from scoring.services.forecast_panels import ResolvedEntry, entries_by_id


class NotADataset(Exception):
    """The folder to write to holds something else than a dataset; nothing was written."""


@dataclass(frozen=True, slots=True)
class BuiltDataset:
    """The numbers of a dataset's contents, and the hash that its manifest states of itself."""

    tasks: int
    questions: int
    forecasters: int
    sha256: str


def build_dataset(*, folder: Path, start: datetime, end: datetime, at: datetime) -> BuiltDataset:
    """The dataset of the batches frozen in [start, end) with a question resolved by `at`, in `folder`.

    Complete or not there at all; an older one is replaced. Raises NotADataset where the folder holds something else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).exists())):
        raise NotADataset(f"{folder}: holds something else than a dataset")
    with atomic_folder(folder) as draft, respecting_seals(at=at):
        entries = _entries(start, end, at)
        resolved = entries_by_id(entries)
        tasks = _tasks(entries)
        forecasts = _forecasts(tasks, resolved)
        outcomes: list[dict[str, Any]] = []
        for task, pks in tasks:
            for pk in pks:
                outcomes += _outcomes(task_name(task), resolved[pk])
        counts = {
            TASKS: _write_lines(draft / TASKS, (_task_line(batch) for batch, _ in tasks)),
            OUTCOMES: _write_lines(draft / OUTCOMES, outcomes),
            FORECASTS: _write_forecasts(draft / FORECASTS, forecasts),
        }
        manifest = _manifest(draft, counts, start=start, end=end, at=at)
    questions = {entry.question for entry in resolved.values()}
    return BuiltDataset(len(tasks), len(questions), len({row[0] for row in forecasts}), manifest["sha256"])


def task_name(batch: QuestionBatch) -> str:
    return f"batch-{batch.pk}"


def _entries(start: datetime, end: datetime, at: datetime) -> QuerySet[QuestionEntry]:
    """The entries of resolved questions that were frozen in the window."""
    entries = QuestionEntry.objects.filter(question_set__frozen_at__gte=start, question_set__frozen_at__lt=end)
    entries = entries.filter(question__status=Question.Status.RESOLVED, question__resolved_at__lte=at)
    return entries.order_by("question_set__frozen_at", "question_set", "position")


def _tasks(entries: QuerySet[QuestionEntry]) -> list[tuple[QuestionBatch, list[int]]]:
    """The batches that ask any of these questions, oldest first, each with the ids of its entries."""
    by_batch: dict[tuple[int, int], list[int]] = {}
    for pk, question_set, number in entries.values_list("pk", "question_set", "batch"):
        by_batch.setdefault((question_set, number), []).append(pk)
    batches = QuestionBatch.objects.filter(question_set__in={question_set for question_set, _ in by_batch})
    batches = batches.select_related("question_set").order_by(
        "question_set__frozen_at", "question_set", "number", "arm"
    )
    tasks = []
    for batch in batches:
        pks = by_batch.get((batch.question_set_id, batch.number))
        if pks is not None:
            tasks.append((batch, pks))
    return tasks


def _task_line(batch: QuestionBatch) -> dict[str, Any]:
    questions = batch.question_set
    return {
        "task": task_name(batch),
        "arm": batch.arm,
        "methodology": questions.methodology,
        "frozen_at": instant_text(questions.frozen_at),
        "blocks": batch.blocks,
    }


def _outcomes(task: str, entry: ResolvedEntry) -> Iterable[dict[str, Any]]:
    for index, option in enumerate(entry.options):
        row: dict[str, Any] = {"task": task, "question_id": str(entry.question), "option": option}
        row["outcome"] = int(entry.happened[index])
        row |= {"category": entry.category or None, "event": entry.event or None}
        prices = {"odds": entry.odds[index], "no_odds": entry.no_odds[index]}
        yield row | {name: price for name, price in prices.items() if not isnan(price)}


ForecastRow = tuple[str, str, str, str, float]
"""Forecaster, task, question, option, probability."""


def _forecasts(
    tasks: Sequence[tuple[QuestionBatch, list[int]]], resolved: Mapping[int, ResolvedEntry]
) -> list[ForecastRow]:
    """Everyone's forecasts for these tasks, of options with an outcome."""
    batches = {batch.pk: batch for batch, _ in tasks}
    forecasts = Forecast.objects.counted().filter(elicitation__batch__in=batches, entry__in=resolved).order_by("pk")
    columns = ("family__slug", "elicitation__batch", "entry", "probabilities")
    rows: list[ForecastRow] = []
    for row in forecasts.values_list(*columns, named=True):
        entry, task = resolved[row.entry], task_name(batches[row.elicitation__batch])
        for option in entry.options:
            if option in row.probabilities:
                probability = row.probabilities[option]
                rows.append((row.family__slug, task, str(entry.question), option, probability))
    return rows


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return len(lines)


def _write_forecasts(path: Path, rows: Sequence[ForecastRow]) -> int:
    import polars as pl  # which only this needs

    texts = dict.fromkeys(("forecaster", "task", "question_id", "option"), pl.String)
    pl.DataFrame(rows, schema={**texts, "probability": pl.Float64}, orient="row").write_parquet(path)
    return len(rows)


def _manifest(
    draft: Path, counts: Mapping[str, int], *, start: datetime, end: datetime, at: datetime
) -> dict[str, Any]:
    """Writes the manifest: the hash, size and rows of each file, and its own hash over the rest."""
    files = {
        name: {"sha256": file_sha256(draft / name), "bytes": (draft / name).stat().st_size, "rows": rows}
        for name, rows in counts.items()
    }
    window = {"from": instant_text(start), "to": instant_text(end), "made_at": instant_text(at)}
    manifest: dict[str, Any] = {
        "format": FORMAT, **window, "board_condition": stored_conditions().board(), "files": files,
    }  # fmt: skip
    manifest["sha256"] = sha256(canonical(manifest))
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return manifest
