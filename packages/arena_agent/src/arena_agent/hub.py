"""A dataset as a folder that Hugging Face's `load_dataset` reads: Parquet files, and a card with its YAML."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from arena_agent.dataset import FORECASTS, MANIFEST, OUTCOMES, TASKS, Dataset, InvalidDataset

CARD = "README.md"
LICENCE = "cc-by-4.0"
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
OUTCOME_COLUMNS = ("task", "question_id", "option", "outcome", "category", "event", "quote", "odds", "no_odds")


def dataset_card(manifest: dict[str, Any], name: str) -> str:
    """The card of a dataset, by its manifest."""
    rows = {}
    for name_of_file, entry in manifest["files"].items():
        rows[name_of_file] = entry.get("rows") or 0
    size = next((label for most, label in SIZES if rows[FORECASTS] < most), "n>10M")
    title = f"Forecaster Arena, {name}"
    template = files("arena_agent").joinpath("texts/dataset_card.md").read_text("utf-8")
    return template.format(
        licence=LICENCE,
        title=json.dumps(title) if ":" in title else title,
        size=size,
        forecasts=f"{rows[FORECASTS]:,}",
        tasks=f"{rows[TASKS]:,}",
        outcomes=f"{rows[OUTCOMES]:,}",
        start=manifest.get("from", "the first day"),
        end=manifest.get("to", "the last"),
        archive=(manifest.get("archive") or {}).get("sha256", "unknown"),
        sha256=manifest["sha256"],
    )


def write_hub_folder(dataset: Dataset, folder: Path, name: str) -> list[Path]:
    """Writes the files for an upload into an empty folder; returns them. Raises InvalidDataset."""
    import polars as pl

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidDataset(f"{folder}: it is no empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for line in dataset.task_lines():
        row = json.loads(line)
        blocks = row.pop("blocks")
        texts = {key: row.get(key) for key in ("task", "arm", "methodology", "frozen_at")}
        texts |= {"questions": blocks.get("QUESTIONS"), "evidence": blocks.get("EVIDENCE")}
        tasks.append(texts | {key: row.get(key) for key in ("system_prompt", "user_prompt")})
    outcomes = []
    for row in dataset.outcomes():
        outcomes.append({column: row.get(column) for column in OUTCOME_COLUMNS})
    numbers: dict[str, Any] = {"outcome": pl.Int8, **dict.fromkeys(("quote", "odds", "no_odds"), pl.Float64)}
    texts_of_outcomes = {column: numbers.get(column, pl.String) for column in OUTCOME_COLUMNS}
    pl.DataFrame(tasks, schema=dict.fromkeys(tasks[0] if tasks else (), pl.String)).write_parquet(
        folder / "tasks.parquet"
    )
    pl.DataFrame(outcomes, schema=texts_of_outcomes).write_parquet(folder / "outcomes.parquet")
    pl.read_parquet(dataset.forecasts).write_parquet(folder / FORECASTS)
    (folder / CARD).write_text(dataset_card(dataset.manifest, name), encoding="utf-8")
    (folder / MANIFEST).write_text(json.dumps(dataset.manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return sorted(folder.iterdir())
