"""Parses and checks a model's answer in the forecast protocol: a probability for every option of every question.

The parser is lenient where the meaning is certain (text around the object, numbers as text, a percent sign, the case
of an option's name) and refuses everything else: no probability is divided by 100, completed to 1 or taken from
prose. Structure is checked for the answer as a whole, values question by question, so that one slip does not cost
the other questions.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from arena_verifier.answer_texts import BLANKS, LastObject, Malformed, abbreviate, extract_object, storable
from arena_verifier.decisions import PLAIN, get_field, parse_id, parse_list, parse_number, parse_optional_text

MAX_FORECASTS = 1_000
MAX_ENDS = 20
"""How many closing braces before a cut may end the last whole forecast; others are part of the one after it."""
SUM_TOLERANCE = Decimal("0.02")
"""How far from 1 the probabilities of exclusive options may sum; within it they are normalised."""
EXACT_TOLERANCE = 1e-6
"""How far from 1 a sum may be without normalisation."""

_PROBABILITY = re.compile(rf"(-?{PLAIN})\s*(%?)")


@dataclass(frozen=True, slots=True)
class PromptQuestion:
    """A question as the prompt put it."""

    question_id: str
    options: tuple[str, ...]
    exclusive: bool


@dataclass(frozen=True, slots=True)
class StatedForecast:
    """A forecast as stated: neither the question nor the options nor the values have been checked."""

    question_id: str
    probabilities: tuple[tuple[str, Decimal], ...]
    rationale: str

    def as_json(self) -> dict[str, Any]:
        """The forecast as it is stored with its call."""
        probabilities = [[option, str(value)] for option, value in self.probabilities]
        return {"question_id": self.question_id, "probabilities": probabilities, "rationale": self.rationale}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "StatedForecast":
        """The inverse of `as_json`."""
        probabilities = tuple((option, Decimal(value)) for option, value in stored["probabilities"])
        return cls(stored["question_id"], probabilities, stored["rationale"])


@dataclass(frozen=True, slots=True)
class CheckedForecast:
    """The result for one question: a probability for every option, or the reason why there is none.

    `stated` holds the numbers as written (percents as fractions): under the options' own names in a valid forecast,
    under the stated names in an invalid one. `normalised` means that they were scaled to sum to 1.
    """

    question_id: str
    probabilities: dict[str, float] | None
    stated: dict[str, str]
    normalised: bool
    rationale: str
    reason: str


def parse_forecasts(text: str) -> tuple[StatedForecast, ...]:
    """The forecasts that a text states, in its order. Raises Malformed with the first fault of structure."""
    return tuple(parse_forecast(forecast, path) for path, forecast in listed_forecasts(text).items())


def listed_forecasts(text: str) -> dict[str, Any]:
    """The forecasts that a text lists, by path. Raises Malformed without any."""
    data = extract_object(text)
    forecasts = parse_list(data, "forecasts", MAX_FORECASTS, "forecasts")
    if not forecasts:
        raise Malformed(f"forecasts {'must not be empty' if 'forecasts' in data else 'is missing: it must be a list'}")
    return {f"forecasts[{place}]": forecast for place, forecast in enumerate(forecasts)}


def parse_cut_forecasts(text: str) -> tuple[StatedForecast, ...]:
    """The forecasts that a text states whole before it breaks off; the one in which it does is left out.

    A fault stays in every longer part of the text, so that few parts need to be parsed to find the longest without.
    """
    last = LastObject()
    with suppress(Malformed):
        extract_object(text, last)
    closings = [match.end() for match in re.finditer("}", text)][-MAX_ENDS:]
    ends = [end for end in last.inner_ends if end >= closings[0]]
    if ends and (forecasts := _parse_part(text[: ends.pop()])):
        return forecasts
    faulty = bisect_left(ends, True, key=lambda end: not _parse_part(text[:end]))
    return _parse_part(text[: ends[faulty - 1] if faulty else last.start])


def _parse_part(text: str) -> tuple[StatedForecast, ...]:
    """The forecasts of a text that ends after one of them; none if it is malformed."""
    try:
        return parse_forecasts(text + "]}")
    except Malformed:
        return ()


def parse_forecast(value: Any, path: str) -> StatedForecast:
    """The forecast that an object states. Raises Malformed with its first fault, which `path` names."""
    question_id = parse_id(*get_field(value, path, "question_id"))
    options, options_path = get_field(value, path, "probabilities")
    if not isinstance(options, dict):
        raise Malformed(f"{options_path} must be an object, not {abbreviate(options)}")
    probabilities = []
    for option, probability in options.items():
        number = _parse_probability(probability, f"{options_path}[{abbreviate(option)}]")
        probabilities.append((storable(option), number))
    return StatedForecast(
        question_id=question_id,
        probabilities=tuple(probabilities),
        rationale=parse_optional_text(value.get("rationale"), f"{path}.rationale"),
    )


def _parse_probability(value: Any, path: str) -> Decimal:
    number = parse_number(value, path, _PROBABILITY, "0.4 or 40%")
    if isinstance(number, Decimal):
        return number
    return Decimal(number[1]).scaleb(-2) if number[2] else Decimal(number[1])


class _InvalidForecast(ValueError):
    """The reason why a forecast is invalid."""


def check_forecasts(
    answers: Sequence[StatedForecast], questions: Sequence[PromptQuestion]
) -> tuple[CheckedForecast, ...]:
    """One result for each question, in their order; forecasts of other questions are ignored."""
    by_question: dict[str, list[StatedForecast]] = {}
    for forecast in answers:
        by_question.setdefault(forecast.question_id, []).append(forecast)
    return tuple(_check_question(question, by_question.get(question.question_id, [])) for question in questions)


def first_valid(answers: Sequence[Sequence[CheckedForecast]]) -> list[tuple[int, CheckedForecast]]:
    """For each question its first valid forecast with the place of its answer, else the last answer's refusal."""
    results: list[tuple[int, CheckedForecast]] = []
    for place, forecasts in enumerate(answers):
        for number, forecast in enumerate(forecasts):
            if place == 0:
                results.append((place, forecast))
            elif results[number][1].probabilities is None:
                results[number] = place, forecast
    return results


def _check_question(question: PromptQuestion, forecasts: Sequence[StatedForecast]) -> CheckedForecast:
    first = forecasts[0] if forecasts else StatedForecast(question.question_id, (), "")
    try:
        vector = _merge_forecasts(question, forecasts)
        probabilities, normalised = _normalise(question, vector)
    except _InvalidForecast as fault:
        reason = f"question {question.question_id}: {fault}"
        numbers = {option: str(value) for option, value in first.probabilities}
        return CheckedForecast(question.question_id, None, numbers, False, first.rationale, reason)
    numbers = {option: str(value) for option, value in vector.items()}
    return CheckedForecast(question.question_id, probabilities, numbers, normalised, first.rationale, "")


def _merge_forecasts(question: PromptQuestion, forecasts: Sequence[StatedForecast]) -> dict[str, Decimal]:
    """The stated numbers in the question's order of options; repeated forecasts must agree."""
    if not forecasts:
        raise _InvalidForecast("no forecast")
    first, *repetitions = (_match_options(question, forecast) for forecast in forecasts)
    for repetition in repetitions:
        for option, value in first.items():
            if repetition[option] != value:
                raise _InvalidForecast(
                    f"{abbreviate(option)} is given as {abbreviate(value)} and as {abbreviate(repetition[option])}"
                )
    return first


def _match_options(question: PromptQuestion, forecast: StatedForecast) -> dict[str, Decimal]:
    """The numbers of one forecast under the options' own names."""
    by_folded_name: dict[str, list[str]] = {}
    for option in question.options:
        by_folded_name.setdefault(_fold(option), []).append(option)
    vector: dict[str, Decimal] = {}
    for name, value in forecast.probabilities:
        candidates = [name] if name in question.options else by_folded_name.get(_fold(name), [])
        if len(candidates) != 1:
            fault = f"may mean {len(candidates)} of its options" if candidates else "is none of its options"
            raise _InvalidForecast(f"{abbreviate(name)} {fault}")
        option = candidates[0]
        if option in vector:
            raise _InvalidForecast(f"{abbreviate(option)} is named twice")
        if not 0 <= value <= 1:
            raise _InvalidForecast(f"{abbreviate(option)} is given {abbreviate(value)}, which is outside [0, 1]")
        vector[option] = value
    ordered: dict[str, Decimal] = {}
    for option in question.options:
        if option not in vector:
            raise _InvalidForecast(f"{abbreviate(option)} has no probability")
        ordered[option] = vector[option]
    return ordered


def _fold(name: str) -> str:
    return name.strip(BLANKS).casefold()


def _normalise(question: PromptQuestion, vector: dict[str, Decimal]) -> tuple[dict[str, float], bool]:
    """The probabilities to be scored, and whether they had to be scaled to sum to 1."""
    probabilities = {option: float(value) for option, value in vector.items()}
    if not question.exclusive:
        return probabilities, False
    total = sum(vector.values(), Decimal(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise _InvalidForecast(f"the probabilities of its {len(vector)} options sum to {abbreviate(total)}, not 1")
    float_total = math.fsum(probabilities.values())
    if abs(float_total - 1) <= EXACT_TOLERANCE:
        return probabilities, False
    return {option: value / float_total for option, value in probabilities.items()}, True
