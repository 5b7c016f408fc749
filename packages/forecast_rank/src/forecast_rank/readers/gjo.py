"""Good Judgment Open: files of predictions, with metadata of each problem's options and correct answer.

A problem's id is a number in one file and text in the other. Options are exclusive. A problem closes at the `end_date`
of its `metadata`; pm_rank's documentation calls that field `end_time`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.readers.json_files import enumerate_list, read_json
from forecast_rank.readers.records import (
    ImportSource,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    QuestionDescription,
    collect_rows,
    parse_probability,
    parse_records,
    parse_time,
    required_field,
)

Problems = dict[str, QuestionDescription]
CLOSING_FIELDS = ("end_date", "end_time")


def import_sources(files: Sequence[Path]) -> list[ImportSource]:
    """An import source for each file of predictions; the metadata goes with all of them."""
    predictions, metadata, problems = [], [], Problems()
    for file in files:
        content = read_json(file)
        if any(isinstance(item, dict) and "prediction" in item for _, item in enumerate_list(file, content)):
            predictions.append(file)
        else:
            metadata.append(file)
            _read_descriptions(problems, file, content)
    if not predictions or not metadata:
        missing = "predictions" if not predictions else "the problems' metadata"
        raise UnreadableFile(f"{', '.join(map(str, files))}: none of them holds {missing}")
    return [ImportSource((file, *metadata), partial(_read, file, problems)) for file in predictions]


def _read_descriptions(problems: Problems, file: Path, content: Any) -> None:
    for place, record in enumerate_list(file, content):
        try:
            name = str(required_field(record, "problem_id"))
            options = tuple(map(str, required_field(record, "options")))
            closed_at = _closing_time(record.get("metadata") or {})
            happened = _happened(record.get("correct_answer"), options)
        except (InvalidRecord, TypeError, AttributeError) as error:
            raise UnreadableFile(f"{file}, problem {place}: {error}") from error
        title = str(record.get("title") or "")
        problems[name] = QuestionDescription(name, title, options, happened, closed_at=closed_at)


def _closing_time(metadata: dict[str, Any]) -> float | None:
    for name in CLOSING_FIELDS:
        if metadata.get(name):
            return parse_time(metadata[name], name)
    return parse_time(metadata.get(CLOSING_FIELDS[0]), CLOSING_FIELDS[0])


def _happened(answer: Any, options: tuple[str, ...]) -> tuple[str, ...] | None:
    if answer is None or answer == "" or answer == []:
        return None
    happened = tuple(map(str, answer if isinstance(answer, list) else [answer]))
    for option in happened:
        if option not in options:
            raise InvalidRecord(f"the correct answer {option[:40]!r} is none of the options")
    return happened


def _read(file: Path, problems: Problems) -> ParsedFile:
    records = enumerate_list(file, read_json(file))
    return collect_rows(parse_records(records, partial(_rows, problems)), problems)


def _rows(problems: Problems, place: int, record: Any) -> Iterator[LongFormRow]:
    name, forecaster = str(required_field(record, "problem_id")), str(required_field(record, "username"))
    vector = required_field(record, "prediction")
    if (problem := problems.get(name)) is None:
        raise InvalidRecord(f"problem_id {name} is not in the metadata")
    if not isinstance(vector, list) or len(vector) != len(problem.options):
        length = f"{len(vector)} numbers" if isinstance(vector, list) else "no list"
        raise InvalidRecord(f"prediction holds {length}, the problem {len(problem.options)} options")
    made_at = parse_time(record.get("timestamp"), "timestamp")
    for option, p in zip(problem.options, vector, strict=True):
        outcome = None if problem.happened is None else float(option in problem.happened)
        yield LongFormRow(
            place, forecaster, name, option, parse_probability(p, f"prediction for {option}"), outcome,
            made_at=made_at, closed_at=problem.closed_at,
        )  # fmt: skip
