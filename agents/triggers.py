"""Guards of agents, line-ups, model calls, decisions, forecasts, the chain and every movement of money."""

from collections.abc import Iterator

from agents.models import (
    Agent,
    AgentVersion,
    Attempt,
    Chain,
    ChainLink,
    DailyAnchor,
    Decision,
    Elicitation,
    Envelope,
    Family,
    Forecast,
    Instruction,
    JournalEntry,
    LineUp,
    LineUpEntry,
    ManualSettlement,
    ModelCall,
    Position,
    Receipt,
    RefusedForecast,
    Release,
    Reversal,
    Settlement,
    SigningKey,
    Submission,
    Trade,
)
from agents.models.call import RECONCILED
from agents.models.chain import Protocol
from agents.models.task import Status, Task
from foundation.change_times import UPDATED_AT
from foundation.guards import CHANGED, Trigger, all_but, append_only, differs, fixed, protected

Result = ModelCall.Result
SENT_WITH = (
    "decision", "elicitation", "sequence", "attempt", "idempotency_key", "model", "portfolio_block", "positions_block",
    "awaiting", "retry_note", "questions_block", "parameters", "prompt_sha256", "booked_usd", "sent_at",
)  # fmt: skip
"""The fields of a call that are stored before the request leaves."""


def triggers() -> Iterator[Trigger]:
    yield from append_only(JournalEntry, Trade, Settlement, Reversal, ManualSettlement, Instruction)
    yield _journal_goes_forward()
    yield from append_only(Forecast, RefusedForecast, ChainLink, DailyAnchor, Submission, AgentVersion)
    yield from append_only(Receipt, Attempt)
    yield fixed(Family, "external", "track")
    has_ended = "OLD.ended_at IS NOT NULL"
    yield fixed(SigningKey, when=f"{has_ended} OR {differs(SigningKey, all_but(SigningKey, 'ended_at'))}")
    yield from protected(SigningKey)
    for task in (Decision, Elicitation):
        yield fixed(task, when=f"OLD.status IN ('{Status.COMPLETED}', '{Status.MISSED}')")
        yield from _waits_in_its_envelope(task)
        yield from protected(task)
    yield from _envelopes()
    yield fixed(ModelCall, when=_call_would_change())
    yield from protected(ModelCall)
    yield _chain_grows_by_links()
    yield from protected(Chain)
    yield fixed(Agent, "cohort", "family", "release", "model_id", "display_name", "price_prompt", "price_completion")
    yield from protected(Agent)
    yield fixed(Position, "agent", "market", "outcome", "opened_at")
    yield from protected(Position)
    yield fixed(Release, "family", "model_id", "price_prompt", "price_completion", "effective_from", when=_in_use())
    yield from _line_ups()


def _line_ups() -> Iterator[Trigger]:
    """A line-up's entries are fixed with its proposal; its decision is made once."""
    line_up, release = LineUp._meta.db_table, Release._meta.db_table
    decided = f"OLD.status <> '{LineUp.Status.PROPOSED}'"
    yield fixed(LineUp, when=f"{decided} OR {differs(LineUp, ('proposed_at', 'proposed_by', 'reason', 'findings'))}")
    yield from protected(LineUp)
    yield from append_only(LineUpEntry)
    still_open = f"SELECT 1 FROM {line_up} WHERE id = NEW.line_up_id AND status = '{LineUp.Status.PROPOSED}'"  # noqa: S608
    of_the_family = f"SELECT 1 FROM {release} WHERE id = NEW.release_id AND family_id = NEW.family_id"  # noqa: S608
    table = LineUpEntry._meta.db_table
    yield Trigger(
        f"{table}_is_of_a_proposal",
        table,
        "INSERT",
        f"a line-up lists releases of its families, and once it is decided on {CHANGED}",
        f"NOT EXISTS ({still_open}) OR NOT EXISTS ({of_the_family})",
    )


def _waits_in_its_envelope(task: type[Task]) -> Iterator[Trigger]:
    """A task is answered with a sealed envelope, and changes no more until that is opened, which completes it."""
    table, envelope = task._meta.db_table, Envelope._meta.db_table
    has = f"EXISTS (SELECT 1 FROM {envelope} WHERE {task._meta.model_name}_id = NEW.id AND state = '{{}}')"  # noqa: S608
    sealed, opened = has.format(Envelope.State.SEALED), has.format(Envelope.State.OPENED)
    answered, completed = f"'{Status.ANSWERED}'", f"'{Status.COMPLETED}'"
    message = f"{task._meta.verbose_name_plural} wait in their envelopes and {CHANGED} before these are opened"
    leaves = f"OLD.status = {answered} AND NOT (NEW.status = {completed} AND {opened})"
    enters = f"NEW.status = {answered} AND NOT {sealed}"
    yield Trigger(f"{table}_waits_in_its_envelope", table, "UPDATE", message, f"({leaves}) OR ({enters})")
    yield Trigger(f"{table}_begins_unanswered", table, "INSERT", message, enters)


def _envelopes() -> Iterator[Trigger]:
    """An envelope is sealed, then opened or replaced, once; nothing else of it changes."""
    sealed, table = f"'{Envelope.State.SEALED}'", Envelope._meta.db_table
    yield fixed(Envelope, when=f"OLD.state <> {sealed} OR {differs(Envelope, all_but(Envelope, 'state', 'opened_at'))}")
    yield Trigger(f"{table}_begins_sealed", table, "INSERT", "envelopes begin sealed", f"NEW.state <> {sealed}")
    yield from protected(Envelope)


def _call_would_change() -> str:
    """The condition that an UPDATE rewrites an answer: stored once, it may be refused and its cost reconciled.

    The answer of an external agent may be replaced by a later one.
    """
    unanswered = f"OLD.result IN ('{Result.SENT}', '{Result.LOST}')"
    marks_refused = f"OLD.result = '{Result.ANSWERED}' AND NEW.result = '{Result.REFUSED}'"
    marks_replaced = f"OLD.result = '{Result.ANSWERED}' AND NEW.result = '{Result.REPLACED}'"
    reconciles = "OLD.cost_source = 'booked' AND NEW.reconciled_at IS NOT NULL"
    exceptions = [unanswered]
    changes = ((marks_refused, ("result", "error")), (marks_replaced, ("result",)), (reconciles, RECONCILED))
    for condition, fields in changes:
        change = differs(ModelCall, all_but(ModelCall, UPDATED_AT, *fields))
        exceptions.append(f"({condition} AND NOT ({change}))")
    return f"({differs(ModelCall, SENT_WITH)}) OR NOT ({' OR '.join(exceptions)})"


def _journal_goes_forward() -> Trigger:
    """No entry is dated before an earlier one of its agent."""
    table = JournalEntry._meta.db_table
    later = f"SELECT 1 FROM {table} WHERE agent_id = NEW.agent_id AND occurred_at > NEW.occurred_at"  # noqa: S608
    message = "a journal goes forward: the agent has a later entry"
    return Trigger(f"{table}_goes_forward", table, "INSERT", message, f"EXISTS ({later})")


def _chain_grows_by_links() -> Trigger:
    link, message = ChainLink._meta.db_table, "a chain's head is that of its last link: it can not be changed"
    receipt = Receipt._meta.db_table
    last = (
        f"(EXISTS (SELECT 1 FROM {link} WHERE {link}.protocol = NEW.protocol "  # noqa: S608 - our own names
        f"AND {link}.sequence = NEW.length AND {link}.sha256 = NEW.head) "
        f"OR NEW.protocol = '{Protocol.RECEIPT}' AND EXISTS (SELECT 1 FROM {receipt} "
        f"WHERE {receipt}.sequence = NEW.length AND {receipt}.sha256 = NEW.head))"
    )
    changed = differs(Chain, ("protocol", "length", "head"))
    grown = f"NEW.protocol = OLD.protocol AND NEW.length > OLD.length AND {last}"
    table = Chain._meta.db_table
    return Trigger(f"{table}_is_fixed", table, "UPDATE", message, f"({changed}) AND NOT ({grown})")


def _in_use() -> str:
    """The condition that an agent, a forecast task or a line-up refers to the release."""
    return " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {table}.release_id = OLD.id)"  # noqa: S608 - our own names
        for table in (Agent._meta.db_table, Elicitation._meta.db_table, LineUpEntry._meta.db_table)
    )
