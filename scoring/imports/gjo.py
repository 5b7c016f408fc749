"""Good Judgment Open: files of predictions, with metadata that names each problem's options and correct answer.

A problem's id is a number in one file and text in the other. Options are exclusive.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scoring.imports.documents import document, listed
from scoring.imports.rows import (
    Part,
    Reading,
    Row,
    Said,
    Titled,
    Unread,
    Unusable,
    gathered,
    probability,
    required,
    seconds,
)
from scoring.ranking.files import UnreadableFile

Problems = dict[str, Titled]


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file of predictions; the metadata explains all of them."""
    predictions, metadata, problems = [], [], Problems()
    for file in files:
        content = document(file)
        if any(isinstance(item, dict) and "prediction" in item for _, item in listed(file, content)):
            predictions.append(file)
        else:
            metadata.append(file)
            _learn(problems, file, content)
    if not predictions or not metadata:
        missing = "predictions" if not predictions else "the problems' metadata"
        raise UnreadableFile(f"{', '.join(map(str, files))}: none of them holds {missing}")
    return [Part((file, *metadata), partial(_read, file, problems)) for file in predictions]


def _learn(problems: Problems, file: Path, content: Any) -> None:
    for place, record in listed(file, content):
        try:
            name = str(required(record, "problem_id"))
            options = tuple(str(option) for option in required(record, "options"))
            closed_at = seconds((record.get("metadata") or {}).get("end_time"), "end_time")
            happened = _happened(record.get("correct_answer"), options)
        except (Unusable, TypeError, AttributeError) as error:
            raise UnreadableFile(f"{file}, problem {place}: {error}") from error
        title = str(record.get("title") or "")
        problems[name] = Titled(name, title, options, happened, closed_at=closed_at)


def _happened(answer: Any, options: tuple[str, ...]) -> tuple[str, ...] | None:
    if answer is None or answer == "" or answer == []:
        return None
    happened = tuple(str(option) for option in (answer if isinstance(answer, list) else [answer]))
    if unknown := [option for option in happened if option not in options]:
        raise Unusable(f"the correct answer {unknown[0][:40]!r} is none of the options")
    return happened


def _read(file: Path, problems: Problems) -> Reading:
    return gathered(_said(file, problems), problems)


def _said(file: Path, problems: Problems) -> Iterator[Said]:
    for place, record in listed(file, document(file)):
        try:
            yield from list(_rows(place, record, problems))
        except Unusable as error:
            yield Unread(place, str(error))


def _rows(place: int, record: Any, problems: Problems) -> Iterator[Row]:
    name, who = str(required(record, "problem_id")), str(required(record, "username"))
    vector = required(record, "prediction")
    if (problem := problems.get(name)) is None:
        raise Unusable(f"problem_id {name} is not in the metadata")
    if not isinstance(vector, list) or len(vector) != len(problem.options):
        told = f"{len(vector)} numbers" if isinstance(vector, list) else "no list"
        raise Unusable(f"prediction holds {told}, the problem {len(problem.options)} options")
    made_at = seconds(record.get("timestamp"), "timestamp")
    for option, p in zip(problem.options, vector, strict=True):
        outcome = None if problem.happened is None else float(option in problem.happened)
        yield Row(
            place, who, name, option, probability(p, f"prediction for {option}"), outcome,
            made_at=made_at, closed_at=problem.closed_at,
        )  # fmt: skip
