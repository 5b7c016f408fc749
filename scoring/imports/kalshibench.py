"""KalshiBench's raw model answers: `<answer>yes</answer> <confidence>65</confidence>`, without outcomes.

Its prompt asked for "a number from 0 to 100 representing your confidence that the answer is "yes"", under the name
confidence; many models gave their confidence in their own answer instead. So a number counts as P(yes) only where it
agrees with the answer beside it: "yes" with 50 or more (P(yes) under either reading), "no" with 50 or less (what the
prompt defines; as confidence in "no" it would speak against the answer). Every other one is refused, and no number is
ever turned round into 1 − p: the benchmark's own `predicted_probability` did that, and is not read.

Only what stands after the thinking counts. Rows carry no outcome: they are forecasts on open questions.
The forecaster is the file's name behind its tier. A `question_id` names a series: where it stands on several rows of a
file, nothing tells those questions apart, and all of them are refused.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scoring.imports.documents import lines
from scoring.imports.rows import YES, Part, Reading, Row, Said, Unread, Unusable, gathered, required

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_CONFIDENCE = re.compile(r"<confidence>(.*?)</confidence>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r".*</think>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%?")
_EVEN = 50.0


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file."""
    return [Part((file,), partial(_read, file)) for file in files]


def _read(file: Path) -> Reading:
    return gathered(_said(file))


def _said(file: Path) -> Iterator[Said]:
    forecaster = file.stem.rpartition("__")[2]
    named = Counter(record.get("question_id") for _, record in lines(file) if isinstance(record, dict))
    for line, record in lines(file):
        if isinstance(record, Unread):
            yield record
            continue
        try:
            question = str(required(record, "question_id"))
            p = _p_yes(record)
            if (times := named[record["question_id"]]) > 1:
                raise Unusable(f"question_id {question} stands on {times} rows: nothing tells the questions apart")
        except Unusable as error:
            yield Unread(line, str(error))
        else:
            yield Row(line, forecaster, question, YES, p, None, exclusive=0.0)


def _p_yes(record: dict[str, Any]) -> float:
    if record.get("error"):
        raise Unusable(f"the call failed: {str(record['error'])[:80]}")
    return p_yes(required(record, "raw_output"))


def p_yes(text: Any) -> float:
    """The probability of YES that an answer states. Raises Unusable where it states none that is certain."""
    if not isinstance(text, str) or not text.strip():
        raise Unusable("the answer is empty")
    stated = _THOUGHT.sub("", text)
    if "<think>" in stated.lower():
        raise Unusable("the thinking is never closed, so that no answer stands after it")
    answer = _one(_ANSWER, stated, "answer")
    confidence = _one(_CONFIDENCE, stated, "confidence")
    if answer not in ("yes", "no"):
        raise Unusable(f"the answer is neither yes nor no: {answer[:40]!r}")
    written = _NUMBER.fullmatch(confidence)
    if not written:
        raise Unusable(f"the confidence is no plain number: {confidence[:40]!r}")
    number = float(written[1])
    if number > 100:
        raise Unusable(f"the confidence {confidence} is above 100")
    if 0 < number < 1:
        raise Unusable(f"the confidence {confidence} may be a share or a percentage")
    if (number > _EVEN and answer == "no") or (number < _EVEN and answer == "yes"):
        raise Unusable(f"the answer {answer} contradicts the stated {confidence}: no P(yes) is certain")
    return number / 100


def _one(tag: re.Pattern[str], text: str, name: str) -> str:
    """The one thing said in a tag."""
    said = {found.strip().lower() for found in tag.findall(text)}
    if len(said) != 1:
        raise Unusable(f"{len(said)} different values of {name} are stated" if said else f"no {name} is stated")
    return said.pop()
