"""Answers of models as tests script them, from the market or question that is asked about."""

from collections.abc import Callable, Mapping
from typing import Any

from venue_sandbox.prompt import ModelRequest

HOLD = {"action": "HOLD", "reasoning": "nothing to do"}
GPT, GEMINI, GROK = "openai/gpt-5.2", "google/gemini-3-pro-preview", "x-ai/grok-4.1-fast"
CLAUDE, DEEPSEEK = "anthropic/claude-opus-4.5", "deepseek/deepseek-v3.2"
KIMI, QWEN = "moonshotai/kimi-k2-thinking", "qwen/qwen3-235b-a22b-2507"


def bet(question: str, side: str, amount: Any, *more: tuple[str, str, Any]) -> Callable[[ModelRequest], Any]:
    """An answer that bets on markets named by their questions."""

    def answer(request: ModelRequest) -> Any:
        bets = [
            {"market_id": request.market_id(q), "side": s, "amount": a} for q, s, a in ((question, side, amount), *more)
        ]
        return {"action": "BET", "bets": bets, "reasoning": "because"}

    return answer


def forecast(
    vectors: Mapping[str, Mapping[str, Any]] | None = None, *, lean: float = 0.0
) -> Callable[[ModelRequest], Any]:
    """An answer that states the probabilities given by question, else even ones with `lean` more for the first."""

    def answer(request: ModelRequest) -> Any:
        return {
            "forecasts": [_forecast_of(row, (vectors or {}).get(row["question"]), lean) for row in request.questions]
        }

    return answer


def _forecast_of(row: dict[str, Any], probabilities: Mapping[str, Any] | None, lean: float) -> dict[str, Any]:
    if probabilities is None:
        share = 1 / len(row["options"]) if row["exclusive"] else 0.5
        probabilities = dict.fromkeys(row["options"], share)
        first, last = row["options"][0], row["options"][-1]
        probabilities = probabilities | {first: share + lean, last: share - lean}
    return {"question_id": row["question_id"], "probabilities": probabilities, "rationale": "because"}


def sell(question: str, percentage: Any) -> Callable[[ModelRequest], Any]:
    """An answer that sells from the first position on a market named by its question."""

    def answer(request: ModelRequest) -> Any:
        position_row = next(row for row in request.positions if row["question"] == question)
        sells = [{"position_id": position_row["position_id"], "percentage": percentage}]
        return {"action": "SELL", "sells": sells, "reasoning": "because"}

    return answer


def hold_or_even_forecast(request: ModelRequest) -> Any:
    """The answer of a model for which a test has scripted none."""
    return forecast()(request) if "\nQUESTIONS\n" in request.user else HOLD
