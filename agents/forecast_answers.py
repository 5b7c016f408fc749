"""What a model forecast, read exactly: a probability for every option of every question it was asked.

Lenient where the meaning is certain (what stands around the object, numbers as text, a percent sign, the case of an
option's name), deaf everywhere else: no probability is divided by 100, completed to 1 or taken from prose. Structure
is judged of the answer as a whole, values question by question, so that one slip does not cost the other questions.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agents.answers import (
    BLANKS,
    PLAIN,
    Malformed,
    field_of,
    id_of,
    list_of,
    number_of,
    optional_text,
    read_object,
    shown,
    storable,
)

MAX_FORECASTS = 1_000
TOLERANCE = 0.02
"""How far from 1 the probabilities of exclusive options may sum and still be meant as a distribution."""
EXACT = 1e-6
"""How far from 1 a sum may be and count as 1."""

_PROBABILITY = re.compile(rf"(-?{PLAIN})\s*(%?)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the prompt put it."""

    question_id: str
    options: tuple[str, ...]
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Stated:
    """A forecast as said: neither the question nor the options nor the values have been checked."""

    question_id: str
    probabilities: tuple[tuple[str, Decimal], ...]
    rationale: str

    def as_json(self) -> dict[str, Any]:
        """The forecast as it is stored until it is judged."""
        said = [[option, str(value)] for option, value in self.probabilities]
        return {"question_id": self.question_id, "probabilities": said, "rationale": self.rationale}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Stated":
        """The forecast that `as_json` gave."""
        probabilities = tuple((option, Decimal(value)) for option, value in said["probabilities"])
        return cls(said["question_id"], probabilities, said["rationale"])


@dataclass(frozen=True, slots=True)
class Judged:
    """What an answer comes to on one question: a probability for every option, or the reason why there is none.

    `stated` holds the numbers as they were written (percents as fractions), under the options' own names where the
    forecast counts, under the names that were said where it does not. `normalised` tells that they were scaled.
    """

    question_id: str
    probabilities: dict[str, float] | None
    stated: dict[str, str]
    normalised: bool
    rationale: str
    reason: str


def read_forecasts(text: str) -> tuple[Stated, ...]:
    """The forecasts a text states, in its order; `Malformed` with the first fault of structure, type or ambiguity."""
    said = read_object(text)
    forecasts = list_of(said, "forecasts", MAX_FORECASTS, "forecasts")
    if not forecasts:
        raise Malformed(f"forecasts {'must not be empty' if 'forecasts' in said else 'is missing: it must be a list'}")
    return tuple(_stated(forecast, f"forecasts[{i}]") for i, forecast in enumerate(forecasts))


def _stated(said: Any, where: str) -> Stated:
    question_id = id_of(*field_of(said, where, "question_id"))
    options, named = field_of(said, where, "probabilities")
    if not isinstance(options, dict):
        raise Malformed(f"{named} must be an object, not {shown(options)}")
    return Stated(
        question_id=question_id,
        probabilities=tuple(
            (storable(option), _probability(value, f"{named}[{shown(option)}]")) for option, value in options.items()
        ),
        rationale=optional_text(said.get("rationale"), f"{where}.rationale"),
    )


def _probability(said: Any, where: str) -> Decimal:
    number = number_of(said, where, _PROBABILITY, "0.4 or 40%")
    if isinstance(number, Decimal):
        return number
    return Decimal(number[1]).scaleb(-2) if number[2] else Decimal(number[1])


# Judging


class _Refused(ValueError):
    """Why a forecast does not count."""


def judge(stated: Sequence[Stated], asked: Sequence[Asked]) -> tuple[Judged, ...]:
    """One verdict for each question asked, in their order; what was said of other questions is passed over."""
    said: dict[str, list[Stated]] = {}
    for forecast in stated:
        said.setdefault(forecast.question_id, []).append(forecast)
    return tuple(_judged(question, said.get(question.question_id, [])) for question in asked)


def _judged(question: Asked, said: Sequence[Stated]) -> Judged:
    first = said[0] if said else Stated(question.question_id, (), "")
    try:
        vector = _vector(question, said)
        probabilities, normalised = _distribution(question, vector)
    except _Refused as refusal:
        reason = f"question {question.question_id}: {refusal}"
        as_said = {option: str(value) for option, value in first.probabilities}
        return Judged(question.question_id, None, as_said, False, first.rationale, reason)
    as_written = {option: str(value) for option, value in vector.items()}
    return Judged(question.question_id, probabilities, as_written, normalised, first.rationale, "")


def _vector(question: Asked, said: Sequence[Stated]) -> dict[str, Decimal]:
    """The numbers stated, option by option in the question's order."""
    if not said:
        raise _Refused("no forecast")
    vectors = [_matched(question, forecast) for forecast in said]
    for other in vectors[1:]:
        for option, value in vectors[0].items():
            if other[option] != value:
                raise _Refused(f"{shown(option)} is given as {shown(value)} and as {shown(other[option])}")
    return vectors[0]


def _matched(question: Asked, forecast: Stated) -> dict[str, Decimal]:
    """The numbers of one forecast under the options' own names."""
    folded: dict[str, list[str]] = {}
    for option in question.options:
        folded.setdefault(_folded(option), []).append(option)
    found: dict[str, Decimal] = {}
    for name, value in forecast.probabilities:
        candidates = [name] if name in question.options else folded.get(_folded(name), [])
        if len(candidates) != 1:
            fault = f"may mean {len(candidates)} of its options" if candidates else "is none of its options"
            raise _Refused(f"{shown(name)} {fault}")
        option = candidates[0]
        if option in found:
            raise _Refused(f"{shown(option)} is named twice")
        if not 0 <= value <= 1:
            raise _Refused(f"{shown(option)} is given {shown(value)}, which is outside [0, 1]")
        found[option] = value
    for option in question.options:
        if option not in found:
            raise _Refused(f"{shown(option)} has no probability")
    return {option: found[option] for option in question.options}


def _folded(name: str) -> str:
    return name.strip(BLANKS).casefold()


def _distribution(question: Asked, vector: dict[str, Decimal]) -> tuple[dict[str, float], bool]:
    """The probabilities to be scored, and whether they had to be scaled to sum to 1."""
    probabilities = {option: float(value) for option, value in vector.items()}
    if not question.exclusive:
        return probabilities, False
    off = sum(vector.values(), Decimal(0)) - 1
    if abs(off) > Decimal(str(TOLERANCE)):
        raise _Refused(f"the probabilities of its {len(vector)} options sum to {shown(off + 1)}, not 1")
    total = math.fsum(probabilities.values())
    if abs(total - 1) <= EXACT:
        return probabilities, False
    return {option: value / total for option, value in probabilities.items()}, True
