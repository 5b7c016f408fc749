"""Prophet Arena's tasks: questions with their options and, once resolved, what happened; predictions go beside them.

A file of tasks alone brings questions and no forecasts. Predictions are JSON Lines of the same command:
`{"task_id", "predictor_name", "probabilities": [{"market", "probability"}], "made_at"}`. A task's outcomes are read as
exclusive unless another number than one came true.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scoring.imports.documents import lines
from scoring.imports.prophet_csv import stated_vector
from scoring.imports.rows import (
    Part,
    Reading,
    Row,
    Said,
    Titled,
    Unread,
    Unusable,
    gathered,
    required,
    seconds,
)

Tasks = dict[str, Titled]


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file of predictions, explained by all tasks; for each file of tasks where there are none."""
    predictions = [file for file in files if _holds_predictions(file)]
    described = [file for file in files if file not in predictions]
    if not predictions:
        return [Part((file,), partial(_read_tasks, file)) for file in described]
    return [Part((file, *described), partial(_read, file, described)) for file in predictions]


def _holds_predictions(file: Path) -> bool:
    return any(isinstance(record, dict) and "probabilities" in record for _, record in lines(file))


def _read_tasks(file: Path) -> Reading:
    tasks, unread = Tasks(), list[Unread]()
    _learn(tasks, file, unread)
    reading = gathered(unread, tasks)
    reading.records = len(tasks) + len(unread)
    return reading


def _learn(tasks: Tasks, file: Path, unread: list[Unread]) -> None:
    for line, record in lines(file):
        try:
            if isinstance(record, Unread):
                raise Unusable(record.why)
            task = _task(record)
            if task.question in tasks:
                raise Unusable(f"task_id {task.question} was there before")
        except Unusable as error:
            unread.append(Unread(line, str(error)))
        else:
            tasks[task.question] = task


def _task(record: Any) -> Titled:
    name, outcomes = str(required(record, "task_id")), required(record, "outcomes")
    if not isinstance(outcomes, list) or len({str(option) for option in outcomes}) != len(outcomes):
        raise Unusable("outcomes is no list of different names")
    options = tuple(str(option) for option in outcomes)
    resolved = record.get("resolved_outcome")
    happened = None
    if resolved is not None:
        value = required(resolved, "value")
        happened = tuple(str(option) for option in (value if isinstance(value, list) else [value]))
        if unknown := [option for option in happened if option not in options]:
            raise Unusable(f"the resolved outcome {unknown[0][:60]!r} is none of the outcomes")
    metadata = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
    return Titled(
        name,
        str(record.get("title") or ""),
        options,
        happened,
        str(metadata.get("category") or ""),
        seconds(record.get("predict_by"), "predict_by"),
    )


def _read(file: Path, described: Sequence[Path]) -> Reading:
    tasks = Tasks()
    for other in described:
        _learn(tasks, other, [])
    return gathered(_said(file, tasks), tasks)


def _said(file: Path, tasks: Tasks) -> Iterator[Said]:
    for line, record in lines(file):
        if isinstance(record, Unread):
            yield record
            continue
        try:
            yield from list(_rows(line, record, tasks))
        except Unusable as error:
            yield Unread(line, str(error))


def _rows(line: int, record: Any, tasks: Tasks) -> Iterator[Row]:
    name, who = str(required(record, "task_id")), str(required(record, "predictor_name"))
    if (task := tasks.get(name)) is None:
        raise Unusable(f"task_id {name} is not among the tasks")
    vector = stated_vector(record.get("probabilities"))
    if unknown := [market for market in vector if market not in task.options]:
        raise Unusable(f"{unknown[0][:60]!r} is none of the task's outcomes")
    if missing := [option for option in task.options if option not in vector]:
        raise Unusable(f"{missing[0][:60]!r} has no probability")
    for option in task.options:
        yield Row(
            line, who, name, option, vector[option],
            None if task.happened is None else float(option in task.happened),
            category=task.category or None,
            made_at=seconds(record.get("made_at"), "made_at"),
            closed_at=task.closed_at,
            exclusive=float(task.happened is None or len(task.happened) == 1),
        )  # fmt: skip
