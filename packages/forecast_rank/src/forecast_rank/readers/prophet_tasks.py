"""Prophet Arena's tasks: questions with options and, once resolved, outcomes, beside files of predictions.

A file of tasks alone has questions and no forecasts. Predictions are JSON Lines in the same import:
`{"task_id", "predictor_name", "probabilities": [{"market", "probability"}], "made_at"}`. The outcomes of a task are
exclusive unless another number than one resolved YES.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forecast_rank.readers.json_files import read_json_lines
from forecast_rank.readers.prophet_csv import stated_vector
from forecast_rank.readers.records import (
    ImportSource,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    QuestionDescription,
    UnreadableRecord,
    collect_rows,
    parse_records,
    parse_time,
    required_field,
)

Tasks = dict[str, QuestionDescription]


def import_sources(files: Sequence[Path]) -> list[ImportSource]:
    """An import source for each file of predictions, with all tasks; without predictions, for each file of tasks."""
    predictions: list[Path] = []
    descriptions: list[Path] = []
    for file in files:
        (predictions if _holds_predictions(file) else descriptions).append(file)
    sources = []
    for file in predictions:
        sources.append(ImportSource((file, *descriptions), partial(_read, file, descriptions)))
    if not predictions:
        for file in descriptions:
            sources.append(ImportSource((file,), partial(_read_tasks, file)))
    return sources


def _holds_predictions(file: Path) -> bool:
    return any(isinstance(record, dict) and "probabilities" in record for _, record in read_json_lines(file))


def _read_tasks(file: Path) -> ParsedFile:
    tasks, unread = Tasks(), list[UnreadableRecord]()
    _read_descriptions(tasks, file, unread)
    reading = collect_rows(unread, tasks)
    reading.records = len(tasks) + len(unread)
    return reading


def _read_descriptions(tasks: Tasks, file: Path, unread: list[UnreadableRecord]) -> None:
    for line, record in read_json_lines(file):
        try:
            if isinstance(record, UnreadableRecord):
                raise InvalidRecord(record.why)
            task = _task(record)
            if task.question in tasks:
                raise InvalidRecord(f"task_id {task.question} was there before")
        except InvalidRecord as error:
            unread.append(UnreadableRecord(line, str(error)))
        else:
            tasks[task.question] = task


def _task(record: Any) -> QuestionDescription:
    name, outcomes = str(required_field(record, "task_id")), required_field(record, "outcomes")
    options = tuple(map(str, outcomes)) if isinstance(outcomes, list) else ()
    if not isinstance(outcomes, list) or len(set(options)) != len(options):
        raise InvalidRecord("outcomes is no list of different names")
    resolved = record.get("resolved_outcome")
    happened = None
    if resolved is not None:
        value = required_field(resolved, "value")
        happened = tuple(map(str, value if isinstance(value, list) else [value]))
        for option in happened:
            if option not in options:
                raise InvalidRecord(f"the resolved outcome {option[:60]!r} is none of the outcomes")
    metadata = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
    return QuestionDescription(
        name,
        str(record.get("title") or ""),
        options,
        happened,
        str(metadata.get("category") or ""),
        parse_time(record.get("predict_by"), "predict_by"),
    )


def _read(file: Path, descriptions: Sequence[Path]) -> ParsedFile:
    tasks = Tasks()
    for description in descriptions:
        _read_descriptions(tasks, description, [])
    return collect_rows(parse_records(read_json_lines(file), partial(_rows, tasks)), tasks)


def _rows(tasks: Tasks, line: int, record: Any) -> Iterator[LongFormRow]:
    name, forecaster = str(required_field(record, "task_id")), str(required_field(record, "predictor_name"))
    if (task := tasks.get(name)) is None:
        raise InvalidRecord(f"task_id {name} is not among the tasks")
    vector = stated_vector(record.get("probabilities"))
    for market in vector:
        if market not in task.options:
            raise InvalidRecord(f"{market[:60]!r} is none of the task's outcomes")
    for option in task.options:
        if option not in vector:
            raise InvalidRecord(f"{option[:60]!r} has no probability")
    for option in task.options:
        yield LongFormRow(
            line, forecaster, name, option, vector[option],
            None if task.happened is None else float(option in task.happened),
            category=task.category or None,
            made_at=parse_time(record.get("made_at"), "made_at"),
            closed_at=task.closed_at,
            exclusive=float(task.happened is None or len(task.happened) == 1),
        )  # fmt: skip
