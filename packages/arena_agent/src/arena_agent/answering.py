"""Asks an agent for the answer to one task, and checks it."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from arena_agent.agent import Agent
from arena_agent.blocks import UnreadableBlock, read_markets, read_portfolio, read_questions
from arena_agent.checks import FaultyAnswer, Refusal, abbreviate, check_decision, check_forecast, encode_answer
from arena_agent.loading import describe
from arena_agent.objects import ArenaTask, Bet, Forecast, Question, Sell


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

    def answer(self, task: ArenaTask) -> CheckedAnswer:
        """The checked answer to a task; whatever the agent raises is a fault of it."""
        result = CheckedAnswer(task.id)
        try:
            if self.agent.overrides("answer"):
                self._answer_whole(task, result)
            elif task.trading:
                self._decide(task, result)
            else:
                self._forecast(task, result)
        except (FaultyAnswer, Refusal, UnreadableBlock) as fault:
            result.body, result.probabilities = None, {}
            result.faults.append(str(fault))
        return result

    def _answer_whole(self, task: ArenaTask, result: CheckedAnswer) -> None:
        try:
            text = self._await(self.agent.answer(task))
        except Exception as error:
            result.raised = True
            raise FaultyAnswer(describe(error)) from error
        answer = extract_object(text)
        if task.trading:
            instructions = _stated_instructions(answer)
            reasoning = answer.get("reasoning")
            self._take_decision(task, instructions, result, reasoning=reasoning)
        else:
            self._take_forecasts(read_questions(task.blocks), *_stated_forecasts(answer), result)

    def _decide(self, task: ArenaTask, result: CheckedAnswer) -> None:
        if not self.agent.overrides("trade"):
            raise FaultyAnswer(f"{type(self.agent).__name__} has no trade")
        portfolio, markets = read_portfolio(task.blocks), read_markets(task.blocks)
        try:
            instructions = self._await(self.agent.trade(portfolio, markets))
        except Exception as error:
            result.raised = True
            raise FaultyAnswer(describe(error)) from error
        self._take_decision(task, instructions, result)

    def _take_decision(self, task: ArenaTask, instructions: Any, result: CheckedAnswer, reasoning: Any = None) -> None:
        markets = read_markets(task.blocks)
        decision, reasons = check_decision(instructions, read_portfolio(task.blocks), markets)
        if isinstance(reasoning, str) and reasoning:
            decision["reasoning"] = reasoning
        result.faults += reasons
        result.body = encode_answer(decision)

    def _forecast(self, task: ArenaTask, result: CheckedAnswer) -> None:
        if not self.agent.overrides("forecast"):
            raise FaultyAnswer(f"{type(self.agent).__name__} has no forecast")
        questions = read_questions(task.blocks)
        forecast: Callable[[Question], Any] = self.agent.forecast
        if inspect.iscoroutinefunction(forecast):
            answers = self._run(_gather(forecast, questions))
        else:
            answers = [self._ask(forecast, question) for question in questions]
        self._take_forecasts(questions, {q.id: a for q, a in zip(questions, answers, strict=True)}, {}, result)

    def _take_forecasts(
        self,
        questions: Sequence[Question],
        answers: Mapping[str, Any],
        rationales: Mapping[str, Any],
        result: CheckedAnswer,
    ) -> None:
        messages = []
        for index, question in enumerate(questions):
            answer = answers.get(question.id, _NOTHING)
            if isinstance(answer, Exception):
                result.raised = True
                result.faults.append(f"question {question.id}: {describe(answer)}")
                continue
            if answer is _NOTHING:
                result.faults.append(f"question {question.id}: no forecast")
                continue
            if question.id in rationales:
                answer = Forecast(answer, rationales[question.id])
            try:
                checked = check_forecast(question, answer, f"forecasts[{index}]")
            except (FaultyAnswer, Refusal) as fault:
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


_NOTHING = object()
_LIST_OF = {"BET": "bets", "SELL": "sells", "HOLD": None}


async def _gather(forecast: Callable[[Question], Any], questions: Sequence[Question]) -> list[Any]:
    """The forecasts of all questions, asked at once; an exception in the place of each that failed."""
    return await asyncio.gather(*map(forecast, questions), return_exceptions=True)


# --- answers as text -------------------------------------------------------------------------------------


def extract_object(text: Any) -> dict[str, Any]:
    """The JSON object of a model's answer; fences and prose around it are skipped. Raises FaultyAnswer."""
    if not isinstance(text, str):
        raise FaultyAnswer("no JSON object in the answer")
    first, last = text.rfind("</think>") + 1, text.rfind("}")
    start = text.find("{", first)
    if start < 0 or last < start:
        raise FaultyAnswer("no JSON object in the answer")
    try:
        value = json.loads(text[start : last + 1], strict=False)
    except (ValueError, RecursionError) as error:
        raise FaultyAnswer(f"the answer is not valid JSON: {error}") from None
    assert isinstance(value, dict)
    return value


def _stated_forecasts(answer: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The probabilities and the rationales of an answer, by question."""
    forecasts = answer.get("forecasts")
    if not isinstance(forecasts, list):
        raise FaultyAnswer("forecasts is missing: it must be a list")
    probabilities, rationales = {}, {}
    for index, forecast in enumerate(forecasts):
        if not isinstance(forecast, dict) or "question_id" not in forecast or "probabilities" not in forecast:
            raise FaultyAnswer(f"forecasts[{index}] must be an object with question_id and probabilities")
        question = str(forecast["question_id"])
        probabilities[question] = forecast["probabilities"]
        rationales[question] = forecast.get("rationale")
    return probabilities, rationales


def _stated_instructions(answer: Mapping[str, Any]) -> list[Bet | Sell]:
    """The bets and sales of an answer."""
    action = answer.get("action")
    if not isinstance(action, str) or (action := action.strip().upper()) not in _LIST_OF:
        raise FaultyAnswer('action must be "BET", "SELL" or "HOLD"')
    instructions: list[Bet | Sell] = []
    for name, kind, fields in (
        ("bets", Bet, ("market_id", "side", "amount")),
        ("sells", Sell, ("position_id", "percentage")),
    ):
        items = answer.get(name) or []
        if not isinstance(items, list):
            raise FaultyAnswer(f"{name} must be a list, not {abbreviate(items)}")
        if items and _LIST_OF[action] != name:
            raise FaultyAnswer(f'{name} must be empty when action is "{action}"')
        if not items and _LIST_OF[action] == name:
            raise FaultyAnswer(f'{name} must not be empty when action is "{action}"')
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise FaultyAnswer(f"{name}[{index}] must be an object, not {abbreviate(item)}")
            for field_name in fields:
                if field_name not in item:
                    raise FaultyAnswer(f"{name}[{index}].{field_name} is missing")
            reason = [item["reason"]] if kind is Bet and "reason" in item else []
            instructions.append(kind(*(item[field_name] for field_name in fields), *reason))
    return instructions
