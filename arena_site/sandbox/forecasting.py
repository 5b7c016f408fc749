"""How the personas state probabilities: what each makes of a sheet of questions, with prices or without."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from statistics import NormalDist
from typing import Any

from arena_site.sandbox import voices
from arena_site.sandbox.catalogue import Event, Market
from arena_site.sandbox.chance import dice
from arena_site.sandbox.exchange import Exchange
from arena_site.sandbox.models import Persona
from arena_site.sandbox.prompt import block, table
from arena_site.sandbox.voices import Utterance

HEADING = "QUESTIONS"
FURTHEST = 0.001
"""Nobody says that an option is surer than this."""
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Temper:
    """What a persona is like as a forecaster. `knowing` 1 sees the true chance `ahead` of the crowd, 0 nothing."""

    knowing: float
    ahead: timedelta
    noise: float
    """Standard deviation of its error, in probits."""
    boldness: float = 1.0
    """Above 1 it exaggerates, below 1 it hedges."""
    careless: float = 0.0
    """How often a question gets an answer that breaks the rules."""


TEMPERS = {
    "openai/gpt-5.2": Temper(0.7, timedelta(hours=36), 0.15),
    "google/gemini-3-pro-preview": Temper(0.5, timedelta(hours=18), 0.25, boldness=1.25),
    "x-ai/grok-4.1-fast": Temper(0.3, timedelta(hours=6), 0.3, boldness=0.6),
    "anthropic/claude-opus-4.5": Temper(0.7, timedelta(hours=24), 0.1),
    "deepseek/deepseek-v3.2": Temper(0.2, timedelta(0), 0.5, careless=0.02),
    "moonshotai/kimi-k2-thinking": Temper(0.5, timedelta(hours=12), 0.3, boldness=1.1),
    "qwen/qwen3-235b-a22b-2507": Temper(0.1, timedelta(0), 0.7, boldness=1.4, careless=0.06),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A line of the QUESTIONS block."""

    id: str
    text: str
    exclusive: bool
    options: tuple[str, ...]
    prices: Mapping[str, Decimal | None] | None

    @property
    def prior(self) -> tuple[float, ...]:
        """What somebody thinks who knows only what is shown."""
        even = 1 / len(self.options) if self.exclusive else 0.5
        prices = self.prices or {}
        return tuple(even if prices.get(option) is None else float(prices[option] or 0) for option in self.options)


@dataclass(frozen=True, slots=True)
class Sheet:
    """The questions of a message, and the words after them: on a retry these hold the complaint."""

    questions: tuple[Question, ...]
    afterword: str

    @classmethod
    def read(cls, text: str) -> "Sheet":
        """The sheet in a user message; a ValueError says what is wrong with it."""
        lines = text.split("\n")
        rows, end = block(lines, HEADING)
        try:
            questions = tuple(
                Question(row["question_id"], row["question"], row["exclusive"], tuple(row["options"]), row["prices"])
                for row in table(rows)
            )
        except (KeyError, TypeError, ValueError) as why:
            raise ValueError(f"the questions are not as agreed: {why!r}") from why
        return cls(questions, "\n".join(lines[end:]))


def is_sheet(text: str) -> bool:
    """Is a message one of questions, rather than of a portfolio?"""
    return HEADING in text.split("\n")


def forecast(exchanges: Sequence[Exchange], persona: Persona, text: str, at: datetime) -> Utterance:
    """What a persona answers to a sheet. The same sheet gets the same answer, a retry with a complaint a fresh one."""
    sheet, temper = Sheet.read(text), TEMPERS[persona.id]
    mood = dice(exchanges[0].seed, persona.id, HEADING, at.date(), sheet.afterword)
    said = [_said(exchanges, temper, question, at, mood, sheet.afterword) for question in sheet.questions]
    answer: dict[str, Any] = {"forecasts": said}
    if persona.voice is voices.garbled:
        return (voices.truncated if mood.random() < 0.15 else voices.terse)(answer, mood)
    if persona.voice is voices.chatty:
        return f"My forecasts:\n\n```json\n{json.dumps(answer, indent=2)}\n```", "stop"
    return persona.voice(answer, mood)


def _said(
    exchanges: Sequence[Exchange], temper: Temper, question: Question, at: datetime, mood: Random, complaint: str
) -> dict[str, Any]:
    roll = dice(exchanges[0].seed, str(temper), question.text, at.date(), question.prices is None, complaint)
    known = (_truth(exchange, question, at + temper.ahead) for exchange in exchanges)
    truth = next((chances for chances in known if chances is not None), None)
    vector = []
    for chance, prior in zip(truth or question.prior, question.prior, strict=True):
        probit = temper.knowing * _probit(chance) + (1 - temper.knowing) * _probit(prior)
        vector.append(NORMAL.cdf(temper.boldness * probit + roll.gauss(0, temper.noise)))
    if question.exclusive:
        vector = [value / sum(vector) for value in vector]
    stated = dict(zip(question.options, _rounded(vector, question.exclusive), strict=True))
    if roll.random() < temper.careless:
        stated.pop(question.options[-1])
    rationale = "The price looks about right." if truth is None else "Base rates first, then what has changed since."
    return {"question_id": question.id, "probabilities": stated, "rationale": rationale}


def _probit(chance: float) -> float:
    return NORMAL.inv_cdf(min(max(chance, FURTHEST), 1 - FURTHEST))


def _rounded(vector: list[float], exclusive: bool) -> list[float]:
    """Three digits each, as people write them; the largest takes what is missing to 1."""
    rounded = [round(value, 3) for value in vector]
    if exclusive:
        top = rounded.index(max(rounded))
        rounded[top] = round(rounded[top] + 1 - sum(rounded), 3)
    return rounded


def _truth(exchange: Exchange, question: Question, at: datetime) -> list[float] | None:
    """The true chance of each option; None for a question that the exchange does not know by this text."""
    market = exchange.by_question.get(question.text)
    if market is not None:
        return _of_market(exchange, market, question, at)
    event = exchange.by_title.get(question.text)
    return None if event is None else _of_event(exchange, event, question, at)


def _of_market(exchange: Exchange, market: Market, question: Question, at: datetime) -> list[float] | None:
    chances = dict(zip(map(str.casefold, market.outcomes), exchange.truth(market, at), strict=True))
    named = [chances.get(option.casefold()) for option in question.options]
    return None if None in named else [chance for chance in named if chance is not None]


def _of_event(exchange: Exchange, event: Event, question: Question, at: datetime) -> list[float]:
    chances = {market.label or market.question: exchange.truth(market, at)[0] for market in event.markets}
    rest = max(0.0, 1 - sum(chances.get(option, 0.0) for option in question.options))
    return [chances.get(option, rest) for option in question.options]
