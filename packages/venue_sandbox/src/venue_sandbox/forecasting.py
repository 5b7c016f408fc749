"""The personas' probability forecasts for a batch of questions, with or without prices."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from statistics import NormalDist
from typing import Any

from venue_sandbox import answer_formats
from venue_sandbox.answer_formats import FormattedAnswer
from venue_sandbox.catalogue import Event
from venue_sandbox.exchange import Exchange
from venue_sandbox.personas import Persona
from venue_sandbox.prompt import block, table
from venue_sandbox.seeded_random import seeded_random

HEADING = "QUESTIONS"
MIN_PROBABILITY = 0.001
"""Probabilities stay this far from 0 and 1."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class ForecastStyle:
    """A persona's manner. With `knowledge` 1 it sees the true probability `ahead` of the crowd, with 0 nothing."""

    knowledge: float
    ahead: timedelta
    noise: float
    """Standard deviation of its error, in probits."""
    boldness: float = 1.0
    """Above 1 it exaggerates, below 1 it hedges."""
    careless: float = 0.0
    """The share of questions whose answer breaks the rules."""


STYLES = {
    "openai/gpt-5.2": ForecastStyle(0.7, timedelta(hours=36), 0.15),
    "google/gemini-3-pro-preview": ForecastStyle(0.5, timedelta(hours=18), 0.25, boldness=1.25),
    "x-ai/grok-4.1-fast": ForecastStyle(0.3, timedelta(hours=6), 0.3, boldness=0.6),
    "anthropic/claude-opus-4.5": ForecastStyle(0.7, timedelta(hours=24), 0.1),
    "deepseek/deepseek-v3.2": ForecastStyle(0.2, timedelta(0), 0.5, careless=0.02),
    "moonshotai/kimi-k2-thinking": ForecastStyle(0.5, timedelta(hours=12), 0.3, boldness=1.1),
    "qwen/qwen3-235b-a22b-2507": ForecastStyle(0.1, timedelta(0), 0.7, boldness=1.4, careless=0.06),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A line of the QUESTIONS block."""

    id: str
    text: str
    exclusive: bool
    options: list[str]
    prices: Mapping[str, Decimal | None] | None

    @property
    def prior(self) -> tuple[float, ...]:
        """The probabilities by the shown prices alone, uniform where there is none."""
        even = 1 / len(self.options) if self.exclusive else 0.5
        prices = self.prices or {}
        return tuple(even if prices.get(option) is None else float(prices[option] or 0) for option in self.options)


def _read_questions(text: str) -> tuple[list[Question], str]:
    """The questions of a message and the text after them, which on a retry holds the complaint. Raises ValueError."""
    lines = text.split("\n")
    rows, end = block(lines, HEADING)
    names = ("question_id", "question", "exclusive", "options", "prices")
    try:
        questions = [Question(*itemgetter(*names)(row)) for row in table(rows)]
    except (KeyError, TypeError, ValueError) as why:
        raise ValueError(f"the questions are invalid: {why!r}") from why
    return questions, "\n".join(lines[end:])


def is_batch(text: str) -> bool:
    """Whether a message holds questions rather than a portfolio."""
    return HEADING in text.split("\n")


def forecast(
    exchanges: Sequence[Exchange], persona: Persona, text: str, at: datetime, *, patient: bool
) -> FormattedAnswer:
    """A persona's answer to a batch: the same for the same batch, another on a retry with a complaint.

    A `patient` one is never cut short.
    """
    (questions, complaint), style = _read_questions(text), STYLES[persona.follows or persona.id]
    rng = seeded_random(exchanges[0].seed, persona.id, HEADING, at.date(), complaint)
    answer: dict[str, Any] = {
        "forecasts": [_forecast_question(exchanges, style, question, at, complaint) for question in questions]
    }
    if persona.answer_format is answer_formats.garbled:
        cut = rng.random() < 0.15 and not patient
        return (answer_formats.truncated if cut else answer_formats.terse)(answer, rng)
    if persona.answer_format is answer_formats.chatty:
        return f"My forecasts:\n\n```json\n{json.dumps(answer, indent=2)}\n```", "stop"
    return persona.answer_format(answer, rng)


def _forecast_question(
    exchanges: Sequence[Exchange], style: ForecastStyle, question: Question, at: datetime, complaint: str
) -> dict[str, Any]:
    rng = seeded_random(exchanges[0].seed, astuple(style), question.text, at.date(), question.prices is None, complaint)
    chances_by_exchange = (_truth(exchange, question, at + style.ahead) for exchange in exchanges)
    truth = next((chances for chances in chances_by_exchange if chances is not None), None)
    vector = []
    for chance, prior in zip(truth or question.prior, question.prior, strict=True):
        probit = style.knowledge * _probit(chance) + (1 - style.knowledge) * _probit(prior)
        vector.append(NORMAL.cdf(style.boldness * probit + rng.gauss(0, style.noise)))
    if question.exclusive:
        vector = [value / sum(vector) for value in vector]
    probabilities = dict(zip(question.options, _rounded(vector, question.exclusive), strict=True))
    if rng.random() < style.careless:
        probabilities.pop(question.options[-1])
    rationale = "The price looks about right." if truth is None else "Base rates first, then what has changed since."
    return {"question_id": question.id, "probabilities": probabilities, "rationale": rationale}


def _probit(chance: float) -> float:
    return NORMAL.inv_cdf(min(max(chance, MIN_PROBABILITY), 1 - MIN_PROBABILITY))


def _rounded(vector: list[float], exclusive: bool) -> list[float]:
    """Rounded to three digits; the largest absorbs the rounding error of an exclusive question."""
    rounded = [round(value, 3) for value in vector]
    if exclusive:
        top = rounded.index(max(rounded))
        rounded[top] = round(rounded[top] + 1 - sum(rounded), 3)
    return rounded


def _truth(exchange: Exchange, question: Question, at: datetime) -> list[float] | None:
    """The true chance of each option; None where the exchange has no such question."""
    if chances := exchange.chances(question.text, at):
        chances_by_name = [chances.get(option.casefold()) for option in question.options]
        return None if None in chances_by_name else [chance for chance in chances_by_name if chance is not None]
    event = exchange.by_title.get(question.text)
    return None if event is None else _event_truth(exchange, event, question, at)


def _event_truth(exchange: Exchange, event: Event, question: Question, at: datetime) -> list[float]:
    chances = {market.label or market.question: exchange.truth(market, at)[0] for market in event.markets}
    remainder = max(0.0, 1 - sum(chances.get(option, 0.0) for option in question.options))
    return [chances.get(option, remainder) for option in question.options]
