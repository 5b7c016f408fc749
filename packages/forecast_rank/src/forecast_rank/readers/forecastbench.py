"""ForecastBench: forecast files, scored by a resolution set, with a question set for titles and market prices.

The benchmark's rules are followed. A forecaster is an organisation with its model. Forecasts of several people in one
file are one forecaster, their median by question and horizon. A dataset question is a question per horizon, resolved
where the resolution date is that of the forecast; a market question is one question for all dates. An unresolved market
is scored against its current price, a fraction; a question without a resolution yet is left out. Categories keep
datasets, resolved and unresolved markets apart, as the published table does.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.readers.json_files import enumerate_list, read_json
from forecast_rank.readers.records import (
    YES,
    ImportSource,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    ParsedRecord,
    QuestionDescription,
    collect_rows,
    label,
    parse_price,
    parse_probability,
    parse_records,
    parse_time,
    required_field,
)

MARKET_SOURCES = frozenset({"infer", "manifold", "metaculus", "polymarket"})
DATASET, RESOLVED, UNRESOLVED = "dataset", "market, resolved", "market, unresolved"

Descriptions = dict[str, QuestionDescription]
Key = tuple[str, str | None]
"""A question and its horizon; a market question has none."""
Items = Iterable[tuple[int, Any]]


@dataclass(slots=True)
class _ReferenceSets:
    """Outcomes (with whether they are final), titles and market prices of the question and resolution sets."""

    outcomes: dict[Key, tuple[float, bool]] = field(default_factory=dict)
    closed: dict[Key, str] = field(default_factory=dict)
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)


def import_sources(files: Sequence[Path]) -> list[ImportSource]:
    """An import source for each forecast file; the other files go with all of them."""
    forecasts, reference_forecasts, reference_sets = [], [], _ReferenceSets()
    for file in files:
        content = read_json(file)
        if not isinstance(content, dict) or not {"forecasts", "resolutions", "questions"} & set(content):
            raise UnreadableFile(f"{file} is neither a forecast file, a resolution set nor a question set")
        if "forecasts" in content:
            forecasts.append(file)
        else:
            reference_forecasts.append(file)
            _read_descriptions(reference_sets, file, content)
    if not forecasts:
        raise UnreadableFile(f"{', '.join(map(str, files))}: none of them holds forecasts")
    return [
        ImportSource((file, *reference_forecasts), partial(_read, file, reference_sets), fractional_outcomes=True)
        for file in forecasts
    ]


def _read_descriptions(reference_sets: _ReferenceSets, file: Path, content: dict[str, Any]) -> None:
    for place, record in enumerate_list(file, content.get("resolutions") or []):
        try:
            key = _key(record)
            if record.get("resolved_to") is None or record["resolved_to"] != record["resolved_to"]:
                continue  # annulled: NaN
            outcome = parse_probability(required_field(record, "resolved_to"), "resolved_to")
        except InvalidRecord as error:
            raise UnreadableFile(f"{file}, resolution {place}: {error}") from error
        reference_sets.outcomes[key] = (outcome, record.get("resolved") is True)
        if record.get("resolution_date"):
            reference_sets.closed[key] = record["resolution_date"]
    for place, record in enumerate_list(file, content.get("questions") or []):
        try:
            reference_sets.questions[_name(record)] = record
        except InvalidRecord as error:
            raise UnreadableFile(f"{file}, question {place}: {error}") from error


def _name(record: Any) -> str:
    """The name of a question: its source and id, or the ids and directions of a combination."""
    source, key = str(required_field(record, "source")), required_field(record, "id")
    return f"{source}:{key}" if isinstance(key, str) else f"{source}:{json.dumps([key, record.get('direction')])}"


def _key(record: Any) -> Key:
    name = _name(record)
    return name, None if record["source"] in MARKET_SOURCES else str(required_field(record, "resolution_date"))


def _read(file: Path, reference_sets: _ReferenceSets) -> ParsedFile:
    content = read_json(file)
    forecaster = (
        " · ".join(filter(None, (label(content.get("organization")), label(content.get("model"))))) or file.stem
    )
    items = content["forecasts"]
    descriptions: Descriptions = {}
    row = partial(_row, reference_sets, descriptions)
    parse_items = _medians if any(isinstance(item, dict) and item.get("user") for item in items) else _single_forecasts
    reading = collect_rows(parse_items(enumerate_list(file, items), forecaster, row), descriptions)
    reading.records = len(items)
    return reading


def _single_forecasts(items: Items, forecaster: str, row: Callable[..., LongFormRow]) -> Iterator[ParsedRecord]:
    def parse(place: int, item: Any) -> Iterator[LongFormRow]:
        yield row(place, forecaster, _key(item), _probability(item))

    return parse_records(items, parse)


def _medians(items: Items, forecaster: str, row: Callable[..., LongFormRow]) -> Iterator[ParsedRecord]:
    """The median forecast of several people, at the line of the first of them."""
    answers_by_key: dict[Key, dict[str, float]] = {}
    first_line: dict[Key, int] = {}

    def parse(place: int, item: Any) -> Iterable[ParsedRecord]:
        key, user, p = _key(item), str(required_field(item, "user")), _probability(item)
        if user in answers_by_key.setdefault(key, {}):
            raise InvalidRecord(f"{user} has answered this question before")
        answers_by_key[key][user] = p
        first_line.setdefault(key, place)
        return ()

    yield from parse_records(items, parse)
    for key, answers in answers_by_key.items():
        yield row(first_line[key], f"{forecaster} (median)", key, median(answers.values()))


def _probability(item: Any) -> float:
    return parse_probability(item.get("forecast"), "forecast")


def _row(
    reference_sets: _ReferenceSets, descriptions: Descriptions, line: int, forecaster: str, key: Key, p: float
) -> LongFormRow:
    name, horizon = key
    outcome, final = reference_sets.outcomes.get(key, (None, False))
    closed_at = parse_time(reference_sets.closed.get(key, horizon), "resolution_date")
    described = reference_sets.questions.get(name, {})
    question = name if horizon is None else f"{name} by {horizon}"
    category = DATASET if horizon is not None else RESOLVED if final else UNRESOLVED
    title = label(described.get("question")) or ""
    descriptions.setdefault(question, QuestionDescription(question, title, category=category, closed_at=closed_at))
    market = parse_price(described.get("freeze_datetime_value")) if horizon is None else None
    return LongFormRow(
        line, forecaster, question, YES, p, outcome,
        odds=market, event=name, category=category, closed_at=closed_at, exclusive=0.0,
    )  # fmt: skip
