"""The parameters of a request: the methodology's, as far as the release honours them."""

from typing import Any

from agents.models import ModelCall, Task

LARGER = 2
"""How many times the tokens are allowed after an answer was cut."""


def token_budget(task: Task, calls: list[ModelCall]) -> int:
    """The most tokens of the next answer: more once one was cut, within the release's maximum."""
    wanted = task.methodology.max_tokens * (LARGER if any(call.result == call.Result.CUT for call in calls) else 1)
    return min(wanted, task.release.max_completion_tokens or wanted)


def request_parameters(task: Task, max_tokens: int, *, formatted: bool = True) -> dict[str, Any]:
    """The parameters to send: none that the release ignores, the answer's JSON schema only if it states support."""
    methodology, release = task.methodology, task.release
    provider = methodology.provider_routing | methodology.provider_pins.get(release.model_id, {})
    parameters: dict[str, Any] = {"max_tokens": max_tokens}
    if release.honours("temperature"):
        parameters["temperature"] = methodology.temperature
    if methodology.reasoning and release.honours("reasoning"):
        parameters["reasoning"] = methodology.reasoning
    formatted = formatted and not methodology.free_form_answers
    if formatted and "structured_outputs" in (release.supported_parameters or ()):
        schema = {"name": task.PROTOCOL, **task.ANSWER_SCHEMA}
        parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
        # Other endpoints of the model would drop the format silently.
        provider = provider | {"require_parameters": True}
    if provider:
        parameters["provider"] = provider
    return parameters
