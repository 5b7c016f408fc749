"""KalshiBench: raw model answers `<answer>yes</answer> <confidence>65</confidence>`, without outcomes.

The prompt asked for "a number from 0 to 100 representing your confidence that the answer is "yes"", under the name
confidence; many models gave their confidence in their own answer instead. A number therefore counts as P(yes) only
where it agrees with the answer: "yes" with 50 or more (P(yes) under either reading), "no" with 50 or less (the
definition of the prompt; as confidence in "no" it would contradict the answer). Other numbers are rejected, and none is
inverted to 1 - p: the benchmark's own `predicted_probability` does that, and is not read.

Only text after the thinking counts. Rows have no outcome: they are forecasts on open questions. The forecaster is the
part of the file's name behind its tier. A `question_id` is the name of a series: if it stands on several rows of a
file, these questions cannot be distinguished and are rejected.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forecast_rank.readers.json_files import read_json_lines
from forecast_rank.readers.records import (
    YES,
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    ParsedRecord,
    collect_rows,
    parse_records,
    required_field,
)

_THOUGHT_END = re.compile("</think>", re.IGNORECASE)
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%?")
_EVEN = 50.0


def read(file: Path) -> ParsedFile:
    forecaster = file.stem.rpartition("__")[2]
    rows_by_id = Counter(record.get("question_id") for _, record in read_json_lines(file) if isinstance(record, dict))

    def parse(line: int, record: Any) -> Iterator[ParsedRecord]:
        question = str(required_field(record, "question_id"))
        if record.get("error"):
            raise InvalidRecord(f"the call failed: {str(record['error'])[:80]}")
        p = p_yes(required_field(record, "raw_output"))
        if (times := rows_by_id[record["question_id"]]) > 1:
            raise InvalidRecord(f"question_id {question} stands on {times} rows: nothing tells the questions apart")
        yield LongFormRow(line, forecaster, question, YES, p, None, exclusive=0.0)

    return collect_rows(parse_records(read_json_lines(file), parse))


def p_yes(text: Any) -> float:
    """The probability of YES of an answer. Raises InvalidRecord if it is missing or ambiguous."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidRecord("the answer is empty")
    final_text = _THOUGHT_END.split(text)[-1]
    if "<think>" in final_text.lower():
        raise InvalidRecord("the thinking is never closed, so that no answer stands after it")
    answer, confidence = _one(final_text, "answer"), _one(final_text, "confidence")
    if answer not in ("yes", "no"):
        raise InvalidRecord(f"the answer is neither yes nor no: {answer[:40]!r}")
    written = _NUMBER.fullmatch(confidence)
    if not written:
        raise InvalidRecord(f"the confidence is no plain number: {confidence[:40]!r}")
    number = float(written[1])
    if number > 100:
        raise InvalidRecord(f"the confidence {confidence} is above 100")
    if 0 < number < 1:
        raise InvalidRecord(f"the confidence {confidence} may be a share or a percentage")
    if (number > _EVEN and answer == "no") or (number < _EVEN and answer == "yes"):
        raise InvalidRecord(f"the answer {answer} contradicts the stated {confidence}: no P(yes) is certain")
    return number / 100


def _one(text: str, name: str) -> str:
    """The single value of a tag. One that is opened again before it ends is a value of its own kind."""
    values, is_open = set[str](), False
    for part in re.split(f"<{name}>", text, flags=re.IGNORECASE)[1:]:
        value, *rest = re.split(f"</{name}>", part, maxsplit=1, flags=re.IGNORECASE)
        if rest:
            values.add(f"<{name}>…" if is_open else value.strip().lower())
        is_open = not rest
    if len(values) != 1:
        raise InvalidRecord(
            f"{len(values)} different values of {name} are stated" if values else f"no {name} is stated"
        )
    return values.pop()
