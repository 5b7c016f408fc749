"""Forecast hubs (hubverse.io): model outputs and target data, joined by task.

A model output has the columns `output_type, output_type_id, value`, perhaps `model_id` (else the file or its folder is
named after the model), and the task's columns, such as `location, reference_date, horizon`. Target data has the task's
columns, or some of them, and `oracle_value` (perhaps by `output_type, output_type_id`) or, as a time series,
`observation` (the latest `as_of` counts). A folder stands for the files in it, a hub for its model-output and
target-data.

One type of output is ranked: the rows of quantiles, samples, means and medians, and of cdf where the target is a
number, are forecasts of numbers; those of pmf are probabilities of exclusive options, and those of cdf with a target of
0 or 1 at each threshold probabilities of options that are not exclusive.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from forecast_rank.files.cells import parse_columns_of_times
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.headings import NOT_NAMED, InvalidHeadings, NamedHeadings
from forecast_rank.files.input_table import InputTable
from forecast_rank.files.named_columns import NamedColumns, read_file_texts
from forecast_rank.metrics.flat_arrays import Codes
from forecast_rank.readers.records import SCHEMA, input_table

FORMAT = "hub"
OUTPUT_TYPES = ("quantile", "sample", "cdf", "pmf", "median", "mean")
"""In the order in which one is chosen if none is named."""
EVENT_COLUMNS = ("reference_date", "origin_date", "forecast_date", "origin_epiweek", "round_id")
CLOSING_COLUMNS = ("target_end_date", "target_date")
NAMED = {"event": EVENT_COLUMNS, "closed_at": CLOSING_COLUMNS, "weight": ("weight",), "category": ("category",)}
"""Columns that may be named, with the task's columns that they are by default."""
_NUMERIC_TARGETS = ("quantile", "sample", "median", "mean")
_OUTPUT = ("output_type", "output_type_id", "value")
_TARGET = ("output_type", "output_type_id", "oracle_value", "observation", "as_of")
_TABLES = (".csv", ".parquet", ".pq", ".csv.gz", ".csv.zst")
_ROUND = re.compile(r"^\d{4}-\d{2}-\d{2}-(.+)$")
_SEPARATOR = " | "


@dataclass(slots=True)
class HubForecasts:
    """The forecasts of one type of output.

    Attributes
    ----------
    output_type : str
    numbers : NamedColumns or None
        Forecasts of numbers in long form.
    probabilities : InputTable or None
        Forecasts of probabilities; one of the two is None.
    notes : list of str
    label : str
        The files.
    """

    output_type: str
    numbers: NamedColumns | None = None
    probabilities: InputTable | None = None
    notes: list[str] = field(default_factory=list)
    label: str = ""


@dataclass(slots=True)
class _HubTable:
    """The rows of all model outputs or target files below each other, as texts, with the file and line of each."""

    frame: pl.DataFrame
    lines: Codes
    file_names: list[str]

    def take(self, mask: pl.Series) -> "_HubTable":
        places = np.flatnonzero(mask.fill_null(value=False).to_numpy())
        return _HubTable(self.frame[places], self.lines[places], [self.file_names[place] for place in places])


def read_hub(
    paths: Sequence[Path | str], output_type: str | None = None, column_headings: NamedHeadings = NOT_NAMED
) -> HubForecasts:
    """The forecasts of model outputs with the target data of their tasks.

    Raises UnreadableFile if files are missing, cannot be read or joined, or hold no such type of output, and
    InvalidHeadings for a named column that is none of a hub's.
    """
    if unknown := [column for column in column_headings if column not in NAMED]:
        raise InvalidHeadings(f"columns: {', '.join(unknown)}: of a hub name {', '.join(NAMED)}")
    outputs, targets, label = _read_files(paths)
    tasks = [name for name in outputs.frame.columns if name not in (*_OUTPUT, "model_id")]
    keys = [name for name in tasks if name in targets.frame.columns and name not in _TARGET]
    if not keys:
        listed = ", ".join(tasks) or "none"
        raise UnreadableFile(f"{label}: the target data has none of the task's columns, {listed}")
    hub = HubForecasts(_ranked_type(outputs.frame, output_type, label), label=label)
    types = sorted(set(outputs.frame["output_type"]) & set(OUTPUT_TYPES) - {hub.output_type})
    if types:
        hub.notes.append(f"output_type {hub.output_type} is ranked; --output-type ranks {' or '.join(types)}")
    outputs = outputs.take(outputs.frame["output_type"] == hub.output_type)
    column_of_label = _label_columns(tasks, column_headings, label)
    outcomes = pl.DataFrame()
    if hub.output_type != "pmf":
        outcomes = _numeric_outcomes(targets.frame, keys)
    is_number = outcomes.height > 0 and outputs.frame.join(outcomes, on=keys, how="semi").height > 0
    if not is_number and hub.output_type in ("pmf", "cdf"):
        keys = [*keys, "output_type_id"]
        outcomes = _outcomes_by_id(targets.frame, keys, hub.output_type)
    table = _with_outcomes(outputs, _agreed(outcomes, keys, hub.notes), keys, tasks, hub.notes)
    hub.notes += _event_notes(column_of_label)
    if is_number or hub.output_type not in ("pmf", "cdf"):
        hub.numbers = _numbers(table, hub.output_type, tasks, column_of_label, label)
    else:
        hub.probabilities = _probabilities(table, tasks, column_of_label, hub)
    return hub


def _ranked_type(frame: pl.DataFrame, output_type: str | None, label: str) -> str:
    """The type of output that is named, else the first that is there. Raises UnreadableFile."""
    present = set(frame["output_type"].drop_nulls())
    for candidate in OUTPUT_TYPES:
        if candidate in present and output_type in (None, candidate):
            return candidate
    listed = ", ".join(sorted(present)) or "none"
    raise UnreadableFile(f"{label}: no output_type {output_type or ' or '.join(OUTPUT_TYPES)}; there are {listed}")


def _with_outcomes(
    outputs: _HubTable, outcomes: pl.DataFrame, keys: list[str], tasks: list[str], notes: list[str]
) -> _HubTable:
    """The outputs of tasks with target data, with their outcomes; those left out are noted."""
    joined = outputs.frame.join(outcomes, on=keys, how="left", maintain_order="left", nulls_equal=True)
    is_known = joined["outcome"].is_not_null()
    if missing := int((~is_known).sum()):
        count = joined.filter(~is_known).select(tasks).n_unique()
        notes.append(f"{missing:,} rows of {count:,} tasks without target data are left out")
    return _HubTable(joined, outputs.lines, outputs.file_names).take(is_known)


def _read_files(paths: Sequence[Path | str]) -> tuple[_HubTable, _HubTable, str]:
    """The model outputs, the target data and a name for all. Raises UnreadableFile."""
    label = " ".join(map(str, paths))
    outputs, oracles, series = [], [], []
    for path in _files(paths):
        frame, lines, name = read_file_texts(path)
        frame = frame.select(pl.all().cast(pl.String, strict=False).str.strip_chars().replace(["", "NA"], None))
        frame = frame.rename({heading: heading.strip().lower() for heading in frame.columns})
        if {"output_type", "output_type_id"} <= set(frame.columns):  # 1 and 1.0 are one threshold
            number = pl.col("output_type_id").cast(pl.Float64, strict=False).cast(pl.String)
            is_threshold = (pl.col("output_type") == "cdf") & number.is_not_null()
            frame = frame.with_columns(output_type_id=pl.when(is_threshold).then(number).otherwise("output_type_id"))
        table = _HubTable(frame, lines, [name] * len(frame))
        if "oracle_value" in frame.columns:
            oracles.append(table)
        elif "observation" in frame.columns:
            series.append(table)
        elif set(_OUTPUT) <= set(frame.columns):
            if "model_id" not in frame.columns:
                table.frame = frame.with_columns(model_id=pl.lit(_model_of(Path(path))))
            outputs.append(table)
        else:
            raise UnreadableFile(
                f"{name} is neither a model output (columns {', '.join(_OUTPUT)}) nor target data (a column "
                f"oracle_value or observation); it has {', '.join(frame.columns)}"
            )
    for kind, tables in (("model output", outputs), ("target data, with a column oracle_value", oracles or series)):
        if not tables:
            raise UnreadableFile(f"{label}: no file holds {kind}")
    return _concatenated(outputs), _concatenated(oracles or series), label


def _files(paths: Sequence[Path | str]) -> list[Path | str]:
    """The files, those of a folder in order; of a hub those of its model-output and target-data."""
    files: list[Path | str] = []
    for path in paths:
        folder = Path(path)
        if not folder.is_dir():
            files.append(path)
            continue
        parts = [folder / part for part in ("model-output", "target-data")]
        for part in parts if parts[0].is_dir() else [folder]:
            files += [file for file in sorted(part.rglob("*")) if file.is_file() and file.name.endswith(_TABLES)]
    return files


def _model_of(path: Path) -> str:
    """The model of a file without a column model_id: round-MODEL, or its folder in model-output."""
    if path.parent.parent.name == "model-output":
        return path.parent.name
    if match := _ROUND.match(path.name.partition(".")[0]):
        return match[1]
    raise UnreadableFile(f"{path} has no column model_id, nor is it named after a date and its model")


def _concatenated(tables: list[_HubTable]) -> _HubTable:
    names = [name for table in tables for name in table.file_names]
    lines = np.concatenate([table.lines for table in tables])
    return _HubTable(pl.concat([table.frame for table in tables], how="diagonal"), lines, names)


def _numeric_outcomes(targets: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The numbers observed for each task."""
    if "oracle_value" in targets.columns:
        value = pl.col("oracle_value")
        if "output_type" in targets.columns:
            of_numbers = pl.col("output_type").is_in(_NUMERIC_TARGETS) | pl.col("output_type").is_null()
            targets = targets.filter(of_numbers)
    else:
        value = pl.col("observation")
        if "as_of" in targets.columns:
            targets = targets.sort("as_of").unique(keys, keep="last", maintain_order=True)
    return targets.select(*keys, outcome=value.cast(pl.Float64, strict=False)).drop_nulls("outcome").unique()


def _agreed(outcomes: pl.DataFrame, keys: list[str], notes: list[str]) -> pl.DataFrame:
    """The outcomes without those of tasks for which several are stated, which are noted."""
    several = pl.struct(keys).is_duplicated()
    if len(contested := outcomes.filter(several).select(keys).unique(maintain_order=True)):
        task = _SEPARATOR.join(str(part) for part in contested.row(0))
        notes.append(f"Warning: the target data states different values for {len(contested):,} tasks, such as {task}")
    return outcomes.filter(~several)


def _outcomes_by_id(targets: pl.DataFrame, keys: list[str], output_type: str) -> pl.DataFrame:
    """What happened of each option of each task, 0 or 1."""
    if "oracle_value" not in targets.columns or "output_type_id" not in targets.columns:
        raise UnreadableFile(f"output_type {output_type} needs target data with output_type_id and oracle_value")
    if "output_type" in targets.columns:
        targets = targets.filter(pl.col("output_type") == output_type)
    outcome = pl.col("oracle_value").cast(pl.Float64, strict=False)
    return targets.select(*keys, outcome=outcome).drop_nulls("outcome").unique()


def _label_columns(tasks: list[str], column_headings: NamedHeadings, label: str) -> dict[str, str]:
    """The task's column of each label. Raises UnreadableFile for a named one that is missing."""
    column_of_label: dict[str, str] = {}
    for name, usual in NAMED.items():
        heading = column_headings.get(name, "").strip().lower()
        if heading and heading not in tasks:
            raise UnreadableFile(f"{label} has no column {heading!r} for {name}; it has {', '.join(tasks)}")
        candidates = [heading] if heading else [column for column in usual if column in tasks]
        if candidates:
            column_of_label[name] = candidates[0]
    return column_of_label


def _event_notes(column_of_label: dict[str, str]) -> list[str]:
    if "event" not in column_of_label:
        return [
            "each task is an event of its own; --columns event=COLUMN names a column whose tasks depend on each other"
        ]
    return [f"tasks of one {column_of_label['event']} are one event; --columns event=COLUMN names another column"]


def _question(tasks: list[str], frame: pl.DataFrame) -> pl.Expr:
    """The values of the task's columns, but for those that are the same in all rows."""
    varying = [name for name in tasks if frame[name].n_unique() > 1] or tasks
    return pl.concat_str([pl.col(name).fill_null("–") for name in varying], separator=_SEPARATOR)


def _numbers(
    table: _HubTable, output_type: str, tasks: list[str], column_of_label: dict[str, str], label: str
) -> NamedColumns:
    """The rows in long form."""
    contents = {"value": pl.col("value")}
    if output_type == "cdf":
        contents = {"threshold": pl.col("output_type_id"), "probability": pl.col("value")}
    elif output_type in ("quantile", "sample"):
        contents[output_type] = pl.col("output_type_id")
    labels = {name: pl.col(column) for name, column in column_of_label.items() if name != "category"}
    frame = table.frame.select(
        forecaster="model_id", question=_question(tasks, table.frame), **contents, outcome="outcome", **labels
    )
    return NamedColumns(frame, table.lines, label, _several(table.file_names))


def _probabilities(
    table: _HubTable, tasks: list[str], column_of_label: dict[str, str], hub: HubForecasts
) -> InputTable:
    """The rows as options of questions: exclusive ones of pmf, thresholds of cdf."""
    frame = table.frame
    columns: dict[str, pl.Expr] = {
        "forecaster": pl.col("model_id"),
        "question": _question(tasks, frame),
        "option": pl.col("output_type_id"),
        "probability": pl.col("value").cast(pl.Float64, strict=False),
        "outcome": pl.col("outcome").cast(pl.Float64, strict=False),
        "exclusive": pl.lit(1.0 if hub.output_type == "pmf" else 0.0),
    }
    for name in ("event", "category"):
        if name in column_of_label:
            columns[name] = pl.col(column_of_label[name])
    faults = {}
    if "closed_at" in column_of_label:
        written = frame[column_of_label["closed_at"]].cast(pl.Categorical)
        times = parse_columns_of_times({"closed_at": written})["closed_at"]
        columns["closed_at"], faults = pl.lit(pl.Series(times.values)), times.faults
    if "weight" in column_of_label:
        columns["weight"] = pl.col(column_of_label["weight"]).cast(pl.Float64, strict=False)
    rows = frame.select(**columns)
    rows = rows.select(
        [(pl.col(name) if name in columns else pl.lit(None)).cast(kind).alias(name) for name, kind in SCHEMA.items()]
    )
    result = input_table([rows], table.lines)
    result.faults = faults
    result.notes, result.file_names = hub.notes, _several(table.file_names)
    result.understood = {"file": hub.label, "format": f"hub, output_type {hub.output_type}"}
    return result


def _several(file_names: list[str]) -> list[str]:
    """The file of each row where they are of more than one."""
    return file_names if len(set(file_names)) > 1 else []
