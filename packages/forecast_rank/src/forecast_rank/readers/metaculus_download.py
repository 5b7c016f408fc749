"""Metaculus: what the site lets one download, a folder or zip file with `forecast_data.csv` and `question_data.csv`.

A forecast begins at its Start Time; the latest that began before the question closed counts, unless the forecaster
withdrew it before (its End Time comes earlier, and no other forecast follows). Rows of aggregates, such as
recency_weighted, are of no forecaster, and questions of numbers and dates have no probabilities of options: both are
left out, and a note says how many.
"""

import ast
import csv
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.limits import check_expansion
from forecast_rank.readers.csv_records import csv_records
from forecast_rank.readers.records import (
    YES,
    ImportSource,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    QuestionDescription,
    collect_rows,
    label,
    parse_number,
    parse_probability,
    parse_records,
    parse_time,
    required_field,
)

FORECASTS, QUESTIONS = "forecast_data.csv", "question_data.csv"
FORECAST_COLUMNS = ("Question ID", "Start Time", "Probability Yes")
QUESTION_COLUMNS = ("Question ID", "Question Type", "Resolution")
FORECASTERS = ("Forecaster Username", "Forecaster (Anonymized)", "Forecaster ID")
BINARY, MULTIPLE_CHOICE = "binary", "multiple_choice"
VOID = ("annulled", "ambiguous")
ZIP_START = b"PK"


@dataclass(frozen=True, slots=True)
class DownloadedCsv:
    """A CSV file by itself, or in a zip file."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}: {self.member}"

    @contextmanager
    def opened(self) -> Iterator[TextIO]:
        if self.member is None:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                yield file
            return
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as raw:
                yield io.TextIOWrapper(raw, newline="", encoding="utf-8-sig")
        except (zipfile.BadZipFile, zlib.error) as error:
            raise UnreadableFile(f"{self} is broken: {error}") from error

    def records(self, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each record with its line. Raises UnreadableFile."""
        try:
            with self.opened() as file:
                yield from csv_records(file, str(self), columns)
        except OSError as error:
            raise UnreadableFile(f"{self}: {error.strerror or error}") from error


@dataclass(slots=True)
class ListedQuestion:
    """A question as the download describes it; `options` are those of its lists of probabilities."""

    kind: str
    options: list[str]
    current: list[str]
    resolution: str | None
    closed_at: float | None
    event: str | None
    weight: float
    description: QuestionDescription | None = None


@dataclass(slots=True)
class LeftOut:
    """Rows that are no forecasts of a forecaster's on options, by what they are."""

    aggregates: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def notes(self) -> list[str]:
        described = {"of aggregates": self.aggregates, "on questions without options": self.kinds}
        return [
            f"{counts.total():,} forecasts {subject} are left out: {', '.join(sorted(counts))}"
            for subject, counts in described.items()
            if counts
        ]


def is_download(file: Path) -> bool:
    """Whether a path is a folder, a zip file, or one of the two files of a download."""
    if file.is_dir() or _is_zip(file):
        return True
    headings = set(_headings(file))
    return set(FORECAST_COLUMNS) <= headings or set(QUESTION_COLUMNS) <= headings


def import_source(files: Sequence[Path]) -> ImportSource:
    """The import source of a download: a folder, a zip file, or its files. Raises UnreadableFile."""
    csv_of_name: dict[str, DownloadedCsv] = {}
    for file in files:
        for part in _parts(file):
            name = FORECASTS if _is_forecasts(part) else QUESTIONS
            if name in csv_of_name:
                raise UnreadableFile(
                    f"{part}: there is another {name}, {csv_of_name[name]}; rank one download at a time"
                )
            csv_of_name[name] = part
    for name, counterpart in ((FORECASTS, QUESTIONS), (QUESTIONS, FORECASTS)):
        if name not in csv_of_name and counterpart in csv_of_name and csv_of_name[counterpart].member is None:
            beside = csv_of_name[counterpart].path.with_name(name)
            if beside.is_file():
                csv_of_name[name] = DownloadedCsv(beside)
    if missing := [name for name in (FORECASTS, QUESTIONS) if name not in csv_of_name]:
        raise UnreadableFile(f"{', '.join(map(str, files))}: {' and '.join(missing)} of the download missing")
    paths = tuple(dict.fromkeys([csv_of_name[FORECASTS].path, csv_of_name[QUESTIONS].path]))
    return ImportSource(paths, partial(_read, csv_of_name[FORECASTS], csv_of_name[QUESTIONS]))


def _parts(file: Path) -> list[DownloadedCsv]:
    if file.is_dir():
        return [DownloadedCsv(file / name) for name in (FORECASTS, QUESTIONS) if (file / name).is_file()]
    if not _is_zip(file):
        return [DownloadedCsv(file)]
    try:
        with zipfile.ZipFile(file) as archive:
            members = [item for item in archive.infolist() if item.filename.split("/")[-1] in (FORECASTS, QUESTIONS)]
            members = [item for item in members if "__MACOSX" not in item.filename]
            check_expansion(file, sum(item.file_size for item in members))
            if any(item.flag_bits & 1 for item in members):
                raise UnreadableFile(f"{file} is protected by a password")
            return [DownloadedCsv(file, item.filename) for item in members]
    except (zipfile.BadZipFile, OSError) as error:
        raise UnreadableFile(f"{file} is not a whole zip file: {error}") from error


def _is_zip(file: Path) -> bool:
    """Whether a file begins as a zip file does, whole or cut."""
    with file.open("rb") as opened:
        return opened.read(len(ZIP_START)) == ZIP_START


def _headings(file: Path) -> list[str]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            return next(csv.reader(opened), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _is_forecasts(part: DownloadedCsv) -> bool:
    if part.member is not None:
        return part.member.endswith(FORECASTS)
    return set(FORECAST_COLUMNS) <= set(_headings(part.path)) or part.path.name == FORECASTS


def _read(forecasts: DownloadedCsv, described: DownloadedCsv) -> ParsedFile:
    questions: dict[str, ListedQuestion | InvalidRecord] = {}
    for line, record in described.records(QUESTION_COLUMNS):
        try:
            name = str(required_field(record, "Question ID"))
        except InvalidRecord as error:
            raise UnreadableFile(f"{described}, line {line}: {error}") from error
        try:
            questions[name] = _question(name, record)
        except InvalidRecord as error:
            questions[name] = error
    left_out = LeftOut()
    withdrawn = _withdrawals(forecasts, questions)
    descriptions: dict[str, QuestionDescription] = {}
    rows = partial(_rows, questions, withdrawn, descriptions, left_out)
    parsed = collect_rows(parse_records(forecasts.records(FORECAST_COLUMNS), rows), descriptions)
    parsed.notes = left_out.notes()
    return parsed


def _question(name: str, record: dict[str, Any]) -> ListedQuestion:
    kind = str(required_field(record, "Question Type"))
    current, every = _options(record, "MC Options (Current)"), _options(record, "MC Options (All)")
    close = "Actual Close Time" if label(record.get("Actual Close Time")) else "Scheduled Close Time"
    weight = record.get("Question Weight")
    question = ListedQuestion(
        kind,
        every or current or _options(record, "MC Options"),
        current or every or _options(record, "MC Options"),
        label(record.get("Resolution")),
        parse_time(record.get(close), close),
        label(record.get("Post ID")),
        parse_number(weight, "Question Weight") if label(weight) else 1.0,
    )
    options = tuple(question.current) if kind == MULTIPLE_CHOICE else (YES,)
    happened = _happened(question) if kind in (BINARY, MULTIPLE_CHOICE) else None
    resolution = None if happened is None else tuple(option for option in options if option == happened)
    title = str(record.get("Question Title") or "")
    question.description = QuestionDescription(name, title, options, resolution, closed_at=question.closed_at)
    return question


def _options(record: dict[str, Any], name: str) -> list[str]:
    """A list of options, written as in Python; empty where the question has none."""
    if not (text := label(record.get(name))):
        return []
    options = [str(option) for option in _list(text, name)]
    if len(set(options)) < len(options):
        raise InvalidRecord(f"{name} names one of them twice")
    return options


def _list(text: str, name: str) -> list[Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise InvalidRecord(f"{name} is no list") from None
    if not isinstance(value, list):
        raise InvalidRecord(f"{name} is no list")
    return value


def _happened(question: ListedQuestion) -> str | None:
    """The option that happened, "" for NO, None while the question is open. Raises InvalidRecord."""
    resolution = question.resolution
    if resolution is None:
        return None
    if resolution.lower() in VOID:
        raise InvalidRecord(f"resolution {resolution!r}: the question does not count")
    if question.kind == BINARY:
        option_names = {"yes": YES, "no": ""}
        if resolution.lower() in option_names:
            return option_names[resolution.lower()]
    elif resolution in question.options:
        return resolution
    raise InvalidRecord(f"resolution {resolution[:40]!r} is none of the options")


def _forecaster(record: dict[str, Any]) -> str:
    name = next((name for column in FORECASTERS if (name := label(record.get(column)))), None)
    if name is None:
        raise InvalidRecord("the forecaster is missing")
    return name


def _is_aggregate(record: dict[str, Any]) -> bool:
    """Whether a row is of a method, with a count of forecasters and without an id."""
    return bool(label(record.get("Forecaster Count"))) or (
        "Forecaster ID" in record and not label(record["Forecaster ID"])
    )


def _withdrawals(
    forecasts: DownloadedCsv, questions: dict[str, ListedQuestion | InvalidRecord]
) -> dict[tuple[str, str], float]:
    """When forecasters withdrew their last forecast of a question, where that was before it closed."""
    last: dict[tuple[str, str], tuple[float, float]] = {}
    for _, record in forecasts.records(FORECAST_COLUMNS):
        try:
            key = (str(required_field(record, "Question ID")), _forecaster(record))
            question = questions.get(key[0])
            start, end = (parse_time(record.get(name), name) for name in ("Start Time", "End Time"))
        except InvalidRecord:
            continue
        if start is None or not isinstance(question, ListedQuestion):
            continue
        closed = float("inf") if question.closed_at is None else question.closed_at
        if start < closed:
            last[key] = max(last.get(key, (start, 0.0)), (start, float("inf") if end is None else end))
    return {
        key: end
        for key, (_, end) in last.items()
        if isinstance(question := questions[key[0]], ListedQuestion) and question.closed_at and end < question.closed_at
    }


def _rows(
    questions: dict[str, ListedQuestion | InvalidRecord],
    withdrawn: dict[tuple[str, str], float],
    descriptions: dict[str, QuestionDescription],
    left_out: LeftOut,
    line: int,
    record: dict[str, Any],
) -> Iterator[LongFormRow]:
    name = str(required_field(record, "Question ID"))
    forecaster = _forecaster(record)
    if _is_aggregate(record):
        left_out.aggregates[forecaster] += 1
        return
    question = questions.get(name)
    if question is None:
        raise InvalidRecord(f"Question ID {name[:40]} is not in {QUESTIONS}")
    if isinstance(question, InvalidRecord):
        raise question
    if question.kind not in (BINARY, MULTIPLE_CHOICE):
        left_out.kinds[question.kind] += 1
        return
    if (name, forecaster) in withdrawn:
        raise InvalidRecord("the forecast was withdrawn before the question closed")
    happened, vector = _happened(question), _vector(question, record)
    made_at = parse_time(required_field(record, "Start Time"), "Start Time")
    if question.description is not None:
        descriptions.setdefault(name, question.description)
    for option, p in vector.items():
        yield LongFormRow(
            line, forecaster, name, option, p, None if happened is None else float(option == happened),
            event=question.event,
            made_at=made_at,
            closed_at=question.closed_at,
            weight=question.weight,
            exclusive=float(question.kind == MULTIPLE_CHOICE),
        )  # fmt: skip


def _vector(question: ListedQuestion, record: dict[str, Any]) -> dict[str, float]:
    """The probability of each option that the question has now."""
    if question.kind == BINARY:
        return {YES: parse_probability(record.get("Probability Yes") or None, "Probability Yes")}
    column = "Probability Yes Per Category"
    numbers = _list(re.sub(r"\bnan\b", "None", str(required_field(record, column))), column)
    if len(numbers) != len(question.options):
        raise InvalidRecord(f"{column} holds {len(numbers)} numbers for {len(question.options)} options")
    probabilities = dict(zip(question.options, numbers, strict=True))
    return {
        option: parse_probability(probabilities.get(option), f"the probability of {option[:60]!r}")
        for option in question.current
    }
