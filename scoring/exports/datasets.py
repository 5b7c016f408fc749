"""Datasets of the past, cut from an archive: tasks as models saw them, apart from outcomes and everyone's forecasts.

An agent under evaluation is handed the tasks alone. `packages/arena_agent/README.md` describes the files. Each row
follows from the archive's tables, and the manifest names the archive.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import Any

from agents.records import canonical, sha256
from arena_agent.dataset import FORECASTS, FORMAT, MANIFEST, OUTCOMES, TASKS
from arena_agent.hub import CARD, dataset_card
from arena_verifier.rows import Row
from cohorts.conditions import Conditions
from cohorts.forecast_rules import ForecastRules
from forecast_rank.atomic_folders import atomic_folder
from forecast_rank.files.checksums import file_sha256
from foundation.bulk import subset
from foundation.json_lines import instant_text
from markets.models import Question
from scoring.exports.archived_forecasts import ArchivedForecasts
from scoring.exports.sound_archives import block_texts, instant, methodologies, open_archive
from scoring.exports.verification.archive_reader import Archive
from scoring.selectors.forecast_panels import ResolvedEntry


class NotADataset(Exception):
    """The folder to write to holds something else than a dataset; nothing was written."""


@dataclass(frozen=True, slots=True)
class BuiltDataset:
    """The numbers of a dataset's contents, and the hash that its manifest states of itself."""

    tasks: int
    questions: int
    forecasters: int
    sha256: str


def build_dataset(
    archive: Path, *, folder: Path, start: datetime, end: datetime, at: datetime, name: str = ""
) -> BuiltDataset:
    """The dataset of an archive's batches frozen in [start, end) with a question resolved by `at`, in `folder`.

    `archive` is the folder of a verified archive, which holds nothing that is sealed. Complete or not there at all; an
    older dataset is replaced. One with a name has a card. Raises NotADataset where the folder holds something else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).exists())):
        raise NotADataset(f"{folder}: holds something else than a dataset")
    tables = open_archive(archive)
    past = PastTasks(tables, start=start, end=end, at=at)
    forecasts = list(past.forecasts())
    with atomic_folder(folder) as draft:
        counts = {
            TASKS: _write_lines(draft / TASKS, past.lines()),
            OUTCOMES: _write_lines(draft / OUTCOMES, past.outcomes()),
            FORECASTS: _write_forecasts(draft / FORECASTS, forecasts),
        }
        window = {"from": instant_text(start), "to": instant_text(end), "made_at": instant_text(at)}
        window |= {"name": name} if name else {}
        manifest = _manifest(draft, counts, tables, window, {row[0] for row in forecasts})
        if name:
            (draft / CARD).write_text(dataset_card(manifest, name), encoding="utf-8")
    questions = {entry.question for entry in past.entries.values()}
    return BuiltDataset(len(past.tasks), len(questions), len({row[0] for row in forecasts}), manifest["sha256"])


ForecastRow = tuple[str, str, str, str, float]
"""Forecaster, task, question, option, probability."""


@dataclass(frozen=True)
class PastTasks:
    """The batches of an archive that were frozen in [start, end) and have a question resolved by `at`."""

    tables: Archive
    start: datetime
    end: datetime
    at: datetime

    @cached_property
    def sets(self) -> dict[int, Row]:
        """The question sets of the window, by id."""
        sets = {}
        for pk, row in self.tables.by("question_sets").items():
            if self.start <= instant(row["frozen_at"]) < self.end:
                sets[pk] = row
        return sets

    @cached_property
    def entries(self) -> dict[int, ResolvedEntry]:
        """The window's entries of resolved questions by id, in their order."""
        archived = ArchivedForecasts(self.tables)
        resolved = set()
        for pk, question in self.tables.by("questions").items():
            if question["status"] == Question.Status.RESOLVED and instant(question["resolved_at"]) <= self.at:
                resolved.add(pk)
        entries = {}
        for pk, row in self.tables.by("question_entries").items():
            if row["question"] in resolved and row["question_set"] in self.sets:
                entries[pk] = archived.entry(row)
        return entries

    @cached_property
    def tasks(self) -> dict[int, tuple[Row, list[int]]]:
        """The batches that ask any of these entries, oldest first, each with its row and the ids of its entries."""
        by_batch: dict[tuple[int, int], list[int]] = defaultdict(list)
        for pk, entry in self.entries.items():
            by_batch[entry.batch].append(pk)
        batches = [row for row in self.tables.rows("question_batches") if _batch_key(row) in by_batch]
        batches.sort(key=lambda row: (self._frozen_at(row), *_batch_key(row), row["arm"]))
        return {row["id"]: (row, by_batch[_batch_key(row)]) for row in batches}

    @cached_property
    def rules(self) -> dict[str, ForecastRules]:
        """The rules of each methodology with a forecast protocol, by version."""
        rules = {methodology.version: methodology.forecast_rules for methodology, _ in methodologies(self.tables)}
        return {version: value for version, value in rules.items() if value is not None}

    @cached_property
    def texts(self) -> dict[tuple[str, int], str]:
        return block_texts(self.tables)

    def lines(self) -> Iterator[Row]:
        """The tasks as an agent is handed them."""
        for batch, (row, _) in self.tasks.items():
            blocks = {}
            for kind in ("questions", "evidence"):
                if text := self.texts.get((kind, batch)):
                    blocks[kind.upper()] = text
            question_set = self.sets[row["question_set"]]
            rules = self.rules[question_set["methodology"]]
            yield {
                "task": task_name(batch),
                "arm": row["arm"],
                "methodology": question_set["methodology"],
                "frozen_at": question_set["frozen_at"],
                "blocks": blocks,
                "system_prompt": rules.system_prompt,
                "user_prompt": rules.user_message(
                    rules.condition(row["arm"]),
                    date=question_set["day"][:10],
                    questions=blocks["QUESTIONS"],
                    evidence=blocks.get("EVIDENCE", ""),
                ),
            }

    def outcomes(self) -> Iterator[Row]:
        """What happened, and the prices, of each option that counts in a task."""
        for batch, (_, entries) in self.tasks.items():
            for pk in entries:
                if self._counts(batch, pk):
                    yield from _outcomes(task_name(batch), self.entries[pk])

    def forecasts(self) -> Iterator[ForecastRow]:
        """Everyone's forecasts that count on boards; of two releases of one family that of the newer."""
        batch_of = {row["id"]: row["batch"] for row in self.tables.rows("elicitations")}
        began = {row["id"]: row["effective_from"] for row in self.tables.rows("releases")}
        forecasts = []
        for row in self.tables.rows("forecasts"):
            batch, entry = batch_of[row["elicitation"]], row["entry"]
            if batch in self.tasks and entry in self.entries and self._counts(batch, entry) and not row["excluded"]:
                forecasts.append(row)
        forecasts.sort(key=lambda row: (began[row["release"]], row["release"], row["id"]))
        newest = {}
        for row in forecasts:
            newest[row["family"], batch_of[row["elicitation"]], row["entry"]] = row["probabilities"]
        for (family, batch, pk), probabilities in newest.items():
            resolved = self.entries[pk]
            for option in resolved.options:
                yield family, task_name(batch), str(resolved.question), option, probabilities[option]

    def _frozen_at(self, batch: Row) -> str:
        return str(self.sets[batch["question_set"]]["frozen_at"])

    def _counts(self, batch: int, entry: int) -> bool:
        """Whether forecasts of an entry count on the boards of the batch's condition."""
        row, _ = self.tasks[batch]
        return self.tables.counts_in(row["arm"], self.tables.by("question_entries")[entry])


def _batch_key(batch: Row) -> tuple[int, int]:
    return batch["question_set"], batch["number"]


def task_name(batch: int) -> str:
    return f"batch-{batch}"


def _outcomes(task: str, entry: ResolvedEntry) -> Iterator[Row]:
    for index, option in enumerate(entry.options):
        row: Row = {"task": task, "question_id": str(entry.question), "option": option}
        row["outcome"] = int(entry.happened[index])
        row |= {"category": entry.category or None, "event": entry.event or None}
        prices = {"quote": entry.quote[index], "odds": entry.odds[index], "no_odds": entry.no_odds[index]}
        yield row | {name: price for name, price in prices.items() if not isnan(price)}


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
    draft: Path, counts: Mapping[str, int], tables: Archive, window: Mapping[str, str], forecasters: Collection[str]
) -> dict[str, Any]:
    """Writes the manifest, with the archive, the forecasters' display names, and its own hash over the rest."""
    names, files = {}, {}
    for row in tables.rows("families"):
        if row["slug"] in forecasters:
            names[row["slug"]] = row["display_name"]
    for name, rows in counts.items():
        path = draft / name
        files[name] = {"sha256": file_sha256(path), "bytes": path.stat().st_size, "rows": rows}
    archive = subset(tables.manifest, ("made_at", "selection", "sha256"))
    manifest: dict[str, Any] = {
        "format": FORMAT, **window, "archive": archive, "board_condition": _board_condition(tables), "names": names,
        "files": files,
    }  # fmt: skip
    manifest["sha256"] = sha256(canonical(manifest))
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return manifest


def _board_condition(tables: Archive) -> str:
    versions = [methodology for methodology, _ in methodologies(tables)]
    for number, methodology in enumerate(versions):
        methodology.pk = number  # breaks ties of the publication date by the version
    return Conditions(versions).board()
