"""The kinds of ends of an answer, from the gateway's reason and the provider's own (native) one."""

from enum import Enum, auto


class AnswerEnd(Enum):
    """How an answer ended: it decides what an empty or unreadable one counts as."""

    NORMAL = auto()
    CUT = auto()
    TOOL_CALL = auto()
    REFUSAL = auto()
    ERROR = auto()
    FAILURE = auto()
    """No reason, or one that no list here has: a failure of the provider, never the model's own words."""


ERRORS = frozenset({"error"})
FAILURES = frozenset(
    {"network_error", "connection_error", "insufficient_system_resource", "server_error", "internal_error",
     "internal_server_error", "service_unavailable", "overloaded", "timeout"}
)  # fmt: skip
"""Failures of the provider, whatever the gateway calls the end."""
CUTS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_context_window_exceeded",
     "model_length", "token_limit"}
)  # fmt: skip
TOOL_CALLS = frozenset(
    {"tool_calls", "tool_call", "tool_use", "function_call", "malformed_function_call", "unexpected_tool_call"}
)
REFUSALS = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "image_safety", "prohibited_content",
     "image_prohibited_content", "blocklist", "recitation", "image_recitation", "spii", "model_armor",
     "guardrail_intervened", "sensitive"}
)  # fmt: skip
NORMAL = frozenset(
    {"stop", "stop_sequence", "stop_token", "end", "end_turn", "end_of_turn", "eos", "eos_token", "eot", "done",
     "complete", "completed", "finished"}
)  # fmt: skip
KINDS = (
    (ERRORS, AnswerEnd.ERROR),
    (FAILURES, AnswerEnd.FAILURE),
    (CUTS, AnswerEnd.CUT),
    (TOOL_CALLS, AnswerEnd.TOOL_CALL),
    (REFUSALS, AnswerEnd.REFUSAL),
)


def answer_end(
    reason: str | None, native_reason: str | None, *, states_native: bool, calls_tool: bool = False
) -> AnswerEnd:
    """The end that two reasons tell; a gateway that never sends native reasons is judged by its own alone.

    A call of a tool is the model's own only where neither reason names a failure.
    """
    reasons = {(reason or "").casefold()}
    if states_native:
        reasons.add((native_reason or "").casefold())
    if calls_tool:
        reasons.add("tool_calls")
    for names, end in KINDS:
        if reasons & names:
            is_failure = end == AnswerEnd.TOOL_CALL and not reasons <= TOOL_CALLS | REFUSALS | NORMAL | {""}
            return AnswerEnd.FAILURE if is_failure else end
    return AnswerEnd.NORMAL if reasons <= NORMAL else AnswerEnd.FAILURE
