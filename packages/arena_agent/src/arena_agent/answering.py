"""Asks an agent for the answer to one task, and checks it."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from arena_agent.agent import Agent
from arena_agent.blocks import UnreadableBlock, read_markets, read_portfolio, read_questions
from arena_agent.checks import (
    Refusal,
    check_decision,
    check_forecast,
    encode_answer,
    forecast_as_read,
    read_instructions,
)
from arena_agent.loading import describe
from arena_agent.objects import ArenaTask, Question
from arena_verifier.answer_texts import Malformed
from arena_verifier.decisions import Answer, get_field, parse_answer, parse_id
from arena_verifier.forecasts import listed_forecasts


@dataclass
class CheckedAnswer:
    """An agent's answer to a task: the body to send (None if there is nothing to send) and what was left out."""

    task: str
    body: str | None = None
    probabilities: dict[str, dict[str, float]] = field(default_factory=dict)
    """By question and option, as they are scored."""
    faults: list[str] = field(default_factory=list)
    """The reasons of what was left out, or why there is no answer."""
    raised: bool = False
    """An exception of the agent is among the faults."""
    cost_usd: float = 0.0
    """The dollars that the agent says it spent on the task."""

    def to_json(self) -> str:
        """The answer as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "CheckedAnswer":
        """The inverse of `to_json`."""
        return cls(**json.loads(line))


class Answerer:
    """An agent with the event loop of its asynchronous methods, which all tasks share."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._runner: asyncio.Runner | None = None

    def setup(self) -> None:
        """Calls the agent's `setup`."""
        self._await(self.agent.setup())

    def teardown(self) -> None:
        """Calls the agent's `teardown`, and closes its event loop."""
        try:
            self._await(self.agent.teardown())
        finally:
            if self._runner is not None:
                self._runner.close()

    def answer(self, task: ArenaTask) -> CheckedAnswer:
        """The checked answer to a task; whatever the agent raises is a fault of it."""
        result, spent = CheckedAnswer(task.id), self.agent.cost_usd
        try:
            if self.agent.overrides("answer"):
                self._answer_whole(task, result)
            elif task.trading:
                self._decide(task, result)
            else:
                self._forecast(task, result)
        except (Malformed, Refusal, UnreadableBlock) as fault:
            result.body, result.probabilities = None, {}
            result.faults.append(str(fault))
        result.cost_usd = self.agent.cost_usd - spent
        return result

    def _tell(self, subject: ArenaTask | Question, error: Exception) -> str:
        """Tells the agent of its exception; returns it in words, with that of `on_error` itself."""
        try:
            self.agent.on_error(subject, error)
        except Exception as second:
            return f"{describe(error)}; on_error: {describe(second)}"
        return describe(error)

    def _answer_whole(self, task: ArenaTask, result: CheckedAnswer) -> None:
        try:
            text = self._await(self.agent.answer(task))
        except Exception as error:
            result.raised = True
            raise Malformed(self._tell(task, error)) from error
        text = text if isinstance(text, str) else ""
        if task.trading:
            self._take_decision(task, parse_answer(text, bet_reasons=True), result)
            return
        questions = read_questions(task.blocks)
        forecasts: dict[str, Any] = {question.id: {} for question in questions}
        for path, forecast in listed_forecasts(text).items():
            question_id = parse_id(*get_field(forecast, path, "question_id"))
            forecasts.get(question_id, {})[path] = forecast
        self._take_forecasts(questions, forecasts, result)

    def _decide(self, task: ArenaTask, result: CheckedAnswer) -> None:
        if not self.agent.overrides("trade"):
            raise Malformed(f"{type(self.agent).__name__} has no trade")
        portfolio, markets = read_portfolio(task.blocks), read_markets(task.blocks)
        try:
            instructions = self._await(self.agent.trade(portfolio, markets))
        except Exception as error:
            result.raised = True
            raise Malformed(self._tell(task, error)) from error
        self._take_decision(task, read_instructions(instructions), result)

    def _take_decision(self, task: ArenaTask, answer: Answer, result: CheckedAnswer) -> None:
        decision, reasons = check_decision(answer, read_portfolio(task.blocks), read_markets(task.blocks))
        result.faults += reasons
        result.body = encode_answer(decision)

    def _forecast(self, task: ArenaTask, result: CheckedAnswer) -> None:
        if not self.agent.overrides("forecast"):
            raise Malformed(f"{type(self.agent).__name__} has no forecast")
        questions = read_questions(task.blocks)
        forecast: Callable[[Question], Any] = self.agent.forecast
        if inspect.iscoroutinefunction(forecast):
            answers = self._run(_gather(forecast, questions))
        else:
            answers = [self._ask(forecast, question) for question in questions]
        forecasts: dict[str, Any] = {}
        for index, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            path = f"forecasts[{index}]"
            if isinstance(answer, Exception):
                result.raised = True
                forecasts[question.id] = Refusal(f"question {question.id}: {self._tell(question, answer)}")
                continue
            try:
                forecasts[question.id] = {path: forecast_as_read(question, answer, path)}
            except Malformed as fault:
                forecasts[question.id] = fault
        self._take_forecasts(questions, forecasts, result)

    def _take_forecasts(
        self,
        questions: Sequence[Question],
        forecasts: Mapping[str, Mapping[str, Any] | ValueError],
        result: CheckedAnswer,
    ) -> None:
        """Puts into a result what can be taken of the forecasts of each question, which are by path, or a fault."""
        messages = []
        for question in questions:
            stated = forecasts[question.id]
            try:
                if isinstance(stated, ValueError):
                    raise stated
                checked = check_forecast(question, stated)
            except (Malformed, Refusal) as fault:
                result.faults.append(str(fault))
                continue
            messages.append(checked.body)
            result.probabilities[question.id] = checked.probabilities
        if messages:
            result.body = encode_answer({"forecasts": messages})

    def _ask(self, forecast: Callable[[Question], Any], question: Question) -> Any:
        """The forecast of a question, or the exception that it raised."""
        try:
            return self._await(forecast(question))
        except Exception as error:
            return error

    def _await(self, value: Any) -> Any:
        return self._run(value) if inspect.isawaitable(value) else value

    def _run(self, awaitable: Any) -> Any:
        self._runner = self._runner or asyncio.Runner()

        async def wait() -> Any:
            return await awaitable

        return self._runner.run(wait())


async def _gather(forecast: Callable[[Question], Any], questions: Sequence[Question]) -> list[Any]:
    """The forecasts of all questions, asked at once; an exception in the place of each that failed."""
    return await asyncio.gather(*map(forecast, questions), return_exceptions=True)
