"""The kinds of ends of an answer, from the gateway's reason and the provider's own (native) one."""

import re
from enum import Enum, auto


class AnswerEnd(Enum):
    """How an answer ended: it decides what an empty or unreadable one counts as."""

    NORMAL = auto()
    CUT = auto()
    TOOL_CALL = auto()
    REFUSAL = auto()
    ERROR = auto()
    FAILURE = auto()
    """A failure of the provider, or no reason that anybody knows: never the model's own words."""
    UNKNOWN = auto()
    """A word that no list here has; `answer_end` decides what it counts as."""


CUTS = frozenset(
    {"length", "max_length", "max_tokens", "max_output_tokens", "max_completion_tokens",
     "model_context_window_exceeded", "context_length_exceeded", "model_length", "token_limit", "truncated"}
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
    (frozenset({"error"}), AnswerEnd.ERROR),
    (CUTS, AnswerEnd.CUT),
    (TOOL_CALLS, AnswerEnd.TOOL_CALL),
    (REFUSALS, AnswerEnd.REFUSAL),
    (NORMAL, AnswerEnd.NORMAL),
)
FAILURE = re.compile(
    r"error|fail|reset|abort|cancel|overload|insufficient|exhausted|unavailable|time[ _-]?out|timed[ _-]?out|deadline"
    r"|network|connection|disconnect|interrupt|crash|exception|rate[ _-]?limit|quota"
)
"""Parts of words that name a failure of the provider, whatever the gateway calls the end."""


def answer_end(reason: str | None, native_reason: str | None, *, is_empty: bool, calls_tool: bool = False) -> AnswerEnd:
    """The end that two reasons tell: the gateway's decides, if it states one.

    The provider's own overrules it by the word of a failure or a cut; any other word, or none, states nothing. But an
    empty answer ended as its provider says, by a refusal or in an unknown way.
    """
    end, native_end = _kind(reason), _kind(native_reason)
    for failure in (AnswerEnd.ERROR, AnswerEnd.FAILURE):
        if failure in (end, native_end):
            return failure
    if end in (None, AnswerEnd.NORMAL):
        if is_empty or end is None or native_end == AnswerEnd.CUT:
            end = native_end or end
        if calls_tool and end in (None, AnswerEnd.NORMAL):
            return AnswerEnd.TOOL_CALL
    return AnswerEnd.FAILURE if end in (None, AnswerEnd.UNKNOWN) else end


def _kind(reason: str | None) -> AnswerEnd | None:
    """The kind of end that one reason names; None if it is not stated."""
    word = (reason or "").casefold()
    for names, end in KINDS:
        if word in names:
            return end
    if not word:
        return None
    return AnswerEnd.FAILURE if FAILURE.search(word) else AnswerEnd.UNKNOWN
