"""What a reader of published files makes of them: usable rows, descriptions of questions, and refused records."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from forecast_rank import usable_rows
from forecast_rank.readers.formats import FORMATS, empty_column_warnings
from tests.lazy_modules import pl


@dataclass
class Parsed:
    """The rows of all sources of some files, in their order, and what was refused."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    questions: dict[str, Any] = field(default_factory=dict)
    refused: list[tuple[int, str]] = field(default_factory=list)
    records: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def stated(self) -> list[tuple[Any, ...]]:
        columns = ("forecaster", "question", "option", "probability", "outcome")
        return [tuple(row[column] for column in columns) for row in self.rows]

    def values(self, column: str) -> list[Any]:
        return [row[column] for row in self.rows]


def parsed(format: str, *files: Path) -> Parsed:
    result = Parsed()
    for source in FORMATS[format](files):
        reading = source.read()
        good, rejected = usable_rows(reading.table, fractional_outcomes=source.fractional_outcomes)
        places, lines = np.flatnonzero(good), reading.table.lines()
        columns = {name: column.gather(places) for name, column in reading.table.names.items()}
        for name, values in (reading.table.numbers | reading.table.times).items():
            columns[name] = pl.Series(values[places])
        columns["line"] = pl.Series(lines[places])
        result.rows += pl.DataFrame(columns).fill_nan(None).to_dicts()
        for question in reading.questions:
            result.questions.setdefault(question.question, question)
        reasons = {item.line: item.why for item in reading.unread}
        for item in rejected:
            reasons.setdefault(item.row, item.why)
        result.refused += sorted(reasons.items())
        result.records += reading.records
        result.warnings += empty_column_warnings(format, reading)
    return result
