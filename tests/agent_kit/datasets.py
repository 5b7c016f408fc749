"""Datasets for tests: tasks of one question each, outcomes by chance, and models that know a little."""

import json
import random
from pathlib import Path
from typing import Any

from arena_agent.canonical import file_sha256, sha256
from arena_agent.dataset import FILES
from tests.lazy_modules import pl

COLUMNS = ["question_id", "question", "rules", "exclusive", "options", "prices", "closes"]


def write_dataset(folder: Path, tasks: int = 40, *, days: int = 1, models: int = 3, seed: int = 0) -> Path:
    """Writes a dataset in which each question is asked in `days` tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    lines, outcomes, forecasts = [], [], []
    for number in range(tasks):
        question, task = str(1000 + number // days), f"batch-{number}"
        names = ["YES", "NO"] if int(question) % 3 else ["Alpha", "Beta “x”", "Other, with comma"]
        price = chance.uniform(0.1, 0.8)
        prices = {name: round(price if n == 0 else (1 - price) / (len(names) - 1), 3) for n, name in enumerate(names)}
        row = [question, f"Will {question}?", "Resolves.", True, names, prices if number % 5 else None, None]
        block = "\n".join(json.dumps(block_row, ensure_ascii=False) for block_row in (COLUMNS, row))
        lines.append({"task": task, "blocks": {"QUESTIONS": block}, "frozen_at": "2026-03-08T02:00:00Z"})
        winner = names[int(random.Random(question).random() > 0.5)]
        common = {"task": task, "question_id": question, "category": "Politics", "event": f"event-{int(question) // 2}"}
        odds = {name: prices[name] + 0.005 for name in names}
        outcomes += [
            common | {"option": name, "outcome": int(name == winner), "odds": odds[name], "no_odds": None}
            for name in names
        ]
        for model in range(models):
            first = chance.uniform(0.05, 0.95)
            forecasts += [
                (f"model-{model}", task, question, name, first if n == 0 else (1 - first) / (len(names) - 1))
                for n, name in enumerate(names)
            ]
    write_lines(folder / "tasks.jsonl", lines)
    write_lines(folder / "outcomes.jsonl", outcomes)
    schema = ["forecaster", "task", "question_id", "option", "probability"]
    pl.DataFrame(forecasts, schema=schema, orient="row").write_parquet(folder / "forecasts.parquet")
    return sealed(folder)


def write_lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def sealed(folder: Path) -> Path:
    """Writes the manifest of a dataset's files."""
    files = {name: {"sha256": file_sha256(folder / name), "bytes": (folder / name).stat().st_size} for name in FILES}
    manifest_fields = {"format": 1, "names": {"model-0": "Model [0]"}, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest_fields | {"sha256": sha256(manifest_fields)}))
    return folder
