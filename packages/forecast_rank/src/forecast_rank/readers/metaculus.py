"""Metaculus: the CSV of forecasts that its AI Forecasting Benchmark publishes, one forecast to a line.

A binary question has `probability_yes`; a multiple-choice one a JSON list of its options and one of their
probabilities. Questions of a post are one event. A forecast counts up to the question's actual close; annulled and
ambiguous questions do not count, nor do numeric ones, whose forecasts are no probabilities of options.
`metaculus_download` reads what the site lets anybody download.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forecast_rank.readers import metaculus_download
from forecast_rank.readers.csv_records import read_csv_records
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

COLUMNS = ("question_id", "forecaster", "type", "probability_yes", "resolution")
BINARY, MULTIPLE_CHOICE = "binary", "multiple_choice"
VOID = ("annulled", "ambiguous")

Descriptions = dict[str, QuestionDescription]


def import_sources(files: Sequence[Path]) -> list[ImportSource]:
    """An import source for each file of the benchmark, and one for the site's own download."""
    download = [file for file in files if metaculus_download.is_download(file)]
    sources = [ImportSource((file,), partial(read, file)) for file in files if file not in download]
    return [*sources, metaculus_download.import_source(download)] if download else sources


def read(file: Path) -> ParsedFile:
    descriptions: Descriptions = {}
    records = read_csv_records(file, COLUMNS)
    return collect_rows(parse_records(records, partial(_rows, descriptions)), descriptions)


def _rows(descriptions: Descriptions, line: int, record: dict[str, Any]) -> Iterator[LongFormRow]:
    question, forecaster = str(required_field(record, "question_id")), str(required_field(record, "forecaster"))
    kind, resolution = required_field(record, "type"), label(record.get("resolution"))
    if resolution in VOID:
        raise InvalidRecord(f"resolution {resolution!r}: the question does not count")
    if kind == BINARY:
        vector = {YES: parse_probability(record.get("probability_yes"), "probability_yes")}
        happened = {"yes": YES, "no": ""}.get(resolution or "", resolution)
        names: tuple[str, ...] = (YES, "")
    elif kind == MULTIPLE_CHOICE:
        vector, happened = _vector(record), resolution
        names = tuple(vector)
    else:
        raise InvalidRecord(f"type {str(kind)[:40]!r} has no probabilities of options")
    if happened is not None and happened not in names:
        raise InvalidRecord(f"resolution {happened[:40]!r} is none of the options")
    made_at = parse_time(record.get("forecast_timestamp"), "forecast_timestamp")
    close = "actual_close_time" if label(record.get("actual_close_time")) else "scheduled_close_time"
    closed_at = parse_time(record.get(close), close)
    weight = record.get("question_weight")
    described = None if happened is None else tuple(option for option in vector if option == happened)
    title = str(record.get("question_title") or "")
    descriptions.setdefault(
        question, QuestionDescription(question, title, tuple(vector), described, closed_at=closed_at)
    )
    for option, p in vector.items():
        yield LongFormRow(
            line, forecaster, question, option, p, None if happened is None else float(option == happened),
            event=label(record.get("post_id")),
            made_at=made_at,
            closed_at=closed_at,
            weight=parse_number(weight, "question_weight") if label(weight) else 1.0,
            exclusive=float(kind == MULTIPLE_CHOICE),
        )  # fmt: skip


def _vector(record: dict[str, Any]) -> dict[str, float]:
    options, numbers = (_list(record, name) for name in ("options", "probability_yes_per_category"))
    if len(options) != len(numbers):
        raise InvalidRecord(f"probability_yes_per_category holds {len(numbers)} numbers for {len(options)} options")
    if len(set(map(str, options))) < len(options):
        raise InvalidRecord("options names one of them twice")
    pairs = zip(map(str, options), numbers, strict=True)
    return {option: parse_probability(p, f"the probability of {option[:60]!r}") for option, p in pairs}


def _list(record: dict[str, Any], name: str) -> list[Any]:
    try:
        value = json.loads(required_field(record, name))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidRecord):
            raise
        raise InvalidRecord(f"{name} is not valid JSON") from None
    if not isinstance(value, list) or not value:
        raise InvalidRecord(f"{name} is no list")
    return value
