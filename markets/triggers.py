"""Guards of universes, questions and observed prices."""

from collections.abc import Iterator

from foundation.guards import Trigger, append_only, fixed, protected
from markets.models import (
    EvidenceSnippet,
    OrderBook,
    PriceObservation,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
)


def triggers() -> Iterator[Trigger]:
    yield from append_only(Universe, UniverseEntry, OrderBook, QuestionSet, QuestionBatch, QuestionEntry)
    # The audit after the resolution is stored later.
    text_fields = ("title", "url", "source", "published_at", "retrieved_at", "text", "sha256")
    yield fixed(EvidenceSnippet, "entry", "position", *text_fields)
    yield from protected(EvidenceSnippet)
    # The outcome of a question is stored later.
    yield fixed(Question, "source", "event_key", "market", "options_sha256", "text", "rules", "exclusive")
    yield fixed(QuestionOption, "question", "index", "name", "outcome")
    for model in (Question, QuestionOption):
        yield from protected(model)
    yield fixed(PriceObservation)
    yield from protected(PriceObservation, *_last_of_its_day())


def _last_of_its_day() -> tuple[str, str]:
    """The condition of an outcome's last price of a day, which is never pruned; for PostgreSQL and for SQLite.

    A price of the future was not observed: it can be withdrawn.
    """
    table = PriceObservation._meta.db_table
    later = (
        f"NOT EXISTS (SELECT 1 FROM {table} later WHERE later.outcome_id = OLD.outcome_id "  # noqa: S608 - our own names
        "AND (later.observed_at, later.id) > (OLD.observed_at, OLD.id) AND later.observed_at < {})"
    )
    next_day = "date_trunc('day', OLD.observed_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '1 day'"
    in_sqlite = later.format("date(OLD.observed_at, '+1 day')")
    return (
        f"{later.format(next_day)} AND OLD.observed_at <= clock_timestamp()",
        f"{in_sqlite} AND OLD.observed_at <= strftime('%Y-%m-%d %H:%M:%f', 'now')",
    )
