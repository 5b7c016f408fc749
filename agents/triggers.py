"""What of this floor is on record: who played, what was asked and answered, and every movement of money."""

from collections.abc import Iterator

from agents.models import (
    Agent,
    Chain,
    ChainLink,
    Decision,
    Elicitation,
    Forecast,
    Instruction,
    JournalEntry,
    LineUp,
    LineUpEntry,
    ModelCall,
    Position,
    RefusedForecast,
    Release,
    Reversal,
    Settlement,
    Submission,
    Trade,
)
from agents.models.task import Status
from markets.guards import CHANGED, Trigger, all_but, differs, fixed, for_ever, kept, refusal

Result = ModelCall.Result
SENT_WITH = (
    "decision", "elicitation", "sequence", "attempt", "idempotency_key", "model", "portfolio_block", "positions_block",
    "awaiting", "retry_note", "prompt_sha256", "sent_at",
)  # fmt: skip
"""What a call's row holds before the request leaves."""


def triggers() -> Iterator[Trigger]:
    yield from for_ever(JournalEntry, Trade, Settlement, Reversal, Instruction)
    yield from for_ever(Forecast, RefusedForecast, ChainLink, Submission)
    for task in (Decision, Elicitation):
        yield fixed(task, when=f"OLD.status IN ('{Status.COMPLETED}', '{Status.MISSED}')")
        yield from kept(task)
    yield fixed(ModelCall, when=_call_would_change())
    yield from kept(ModelCall)
    yield _chain_grows_by_links()
    yield from kept(Chain)
    yield fixed(Agent, "cohort", "family", "release", "model_id", "display_name", "price_prompt", "price_completion")
    yield from kept(Agent)
    yield fixed(Position, "agent", "market", "outcome", "opened_at")
    yield from kept(Position)
    yield fixed(Release, "family", "model_id", "price_prompt", "price_completion", "effective_from", when=_played())
    yield from _line_ups()


def _line_ups() -> Iterator[Trigger]:
    """What one lists is settled with its proposal, and what became of it once."""
    line_up, release = LineUp._meta.db_table, Release._meta.db_table
    decided = f"OLD.status <> '{LineUp.Status.PROPOSED}'"
    yield fixed(LineUp, when=f"{decided} OR {differs(LineUp, ('proposed_at', 'proposed_by', 'reason', 'findings'))}")
    yield from kept(LineUp)
    yield from for_ever(LineUpEntry)
    still_open = f"SELECT 1 FROM {line_up} WHERE id = NEW.line_up_id AND status = '{LineUp.Status.PROPOSED}'"  # noqa: S608
    its_own = f"SELECT 1 FROM {release} WHERE id = NEW.release_id AND family_id = NEW.family_id"  # noqa: S608
    yield refusal(
        f"{LineUpEntry._meta.db_table}_is_of_a_proposal",
        LineUpEntry,
        "INSERT",
        f"a line-up lists releases of its families, and once it is decided on {CHANGED}",
        f"NOT EXISTS ({still_open}) OR NOT EXISTS ({its_own})",
    )


def _call_would_change() -> str:
    """An answer is written once, late where its worker was taken for dead; what it led to may be that all of it was
    refused."""
    unanswered = f"OLD.result IN ('{Result.SENT}', '{Result.LOST}')"
    refused = f"OLD.result = '{Result.ANSWERED}' AND NEW.result = '{Result.REFUSED}'"
    beside = differs(ModelCall, all_but(ModelCall, "result", "error"))
    return f"({differs(ModelCall, SENT_WITH)}) OR NOT ({unanswered} OR ({refused} AND NOT ({beside})))"


def _chain_grows_by_links() -> Trigger:
    link, said = ChainLink._meta.db_table, "a chain's head is that of its last link: it can not be changed"
    last = (
        f"EXISTS (SELECT 1 FROM {link} WHERE {link}.protocol = NEW.protocol "  # noqa: S608 - our own names
        f"AND {link}.sequence = NEW.length AND {link}.sha256 = NEW.head)"
    )
    moved = differs(Chain, ("protocol", "length", "head"))
    grown = f"NEW.protocol = OLD.protocol AND NEW.length > OLD.length AND {last}"
    return refusal(f"{Chain._meta.db_table}_is_fixed", Chain, "UPDATE", said, f"({moved}) AND NOT ({grown})")


def _played() -> str:
    return " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {table}.release_id = OLD.id)"  # noqa: S608 - our own names
        for table in (Agent._meta.db_table, Elicitation._meta.db_table, LineUpEntry._meta.db_table)
    )
