"""Boards of past instants, kept from the instant on which they hold until the next one that changes them.

What such a board says rests on what had been scored or had ended by then. Triggers take away what a change reaches, in
the very transaction that makes it, so that what is there holds, whoever writes. A change of now reaches nothing: it
only ends how far the newest boards hold. What is not there is computed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from django.db import connection, transaction

from agents.models import Family, Forecast
from markets.fields import instant
from markets.guards import Trigger, differs
from markets.models import Market, Question, QuestionEntry, QuestionOption, QuestionSheet
from scoring.models import BrierScore, PastBoard, Revision

TRADING, FORECAST = "trading", "forecast"
THINGS = {TRADING: "past_trading", FORECAST: "past_forecast"}
"""By protocol, the token that every change renews which reaches a past board."""
BEGINNING, FOREVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""From before anything ended; until something else does."""
RENEWED = "{renewed}"
"""Stands for what makes a token, which the databases spell differently."""
PAST, TOKENS = PastBoard._meta.db_table, Revision._meta.db_table
BATCH = 20
"""Boards that are written at a time: who changes what they rest on waits no longer than for these."""


class Key(NamedTuple):
    """Which board."""

    protocol: str
    methodology: str = ""
    arm: str = ""
    category: str = ""


class Lacking(NamedTuple):
    """A board that is not there, and the time for which it holds."""

    key: Key
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Ends:
    """When what boards rest on came to its end, by category; that of all is empty."""

    by_category: Mapping[str, Sequence[datetime]]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, datetime]]) -> "Ends":
        """From categories with instants."""
        found: dict[str, set[datetime]] = {"": {BEGINNING}}
        for category, at in rows:
            found[""].add(at)
            if category:
                found.setdefault(category, {BEGINNING}).add(at)
        return cls({category: sorted(instants) for category, instants in found.items()})


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def stored(key: Key, at: datetime | None) -> Any | None:
    """What a board as of an instant (none: of all there is) says; None where that is not on record.

    By hand: to look one row up, the ORM takes several times as long as the database.
    """
    conditions = " AND ".join([f"{name} = %s" for name in key._fields])
    since = connection.ops.adapt_datetimefield_value(FOREVER if at is None else at)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT until, entries FROM {PAST} "  # noqa: S608 - our own names
            f"WHERE {conditions} AND since <= %s ORDER BY since DESC LIMIT 1",
            [*key, since],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    until, entries = instant(row[0]), row[1]
    return json.loads(entries) if until == FOREVER or (at is not None and until > at) else None  # type: ignore[operator]


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


def token(protocol: str) -> str:
    """What `keep` must be told: read before anything that a board is made of."""
    return Revision.objects.filter(thing=THINGS[protocol]).values_list("token", flat=True).first() or ""


def lacking(board: Key, ends: Ends, under: str) -> list[Lacking]:
    """The boards of every category that are not there, the newest first.

    One that is there and was cut short by a change that did not reach it, is let go on to where it ends.
    """
    there: dict[str, dict[datetime, tuple[int, datetime]]] = {}
    kept = PastBoard.objects.filter(protocol=board.protocol, methodology=board.methodology, arm=board.arm)
    for category, since, pk, until in kept.order_by().values_list("category", "since", "pk", "until"):
        there.setdefault(category, {})[since] = (pk, until)
    missing, short = [], []
    for category, instants in ends.by_category.items():
        of_category = there.get(category, {})
        for since, until in pairwise([*instants, FOREVER]):
            if since not in of_category:
                missing.append(Lacking(board._replace(category=category), since, until))
            elif of_category[since][1] != until:
                short.append(PastBoard(pk=of_category[since][0], until=until))
    if short:
        _under(board.protocol, under, lambda: PastBoard.objects.bulk_update(short, ["until"], batch_size=500))
    return sorted(missing, key=lambda one: one.since, reverse=True)


def keep(made: Iterable[tuple[Lacking, Any]], protocol: str, under: str) -> int:
    """Writes boards as they are made, as long as nothing changed since `under` was the token; returns how many."""
    written, waiting = 0, []
    for one, entries in made:
        waiting.append(PastBoard(**one.key._asdict(), since=one.since, until=one.until, entries=entries))
        if len(waiting) == BATCH:
            if not _put(waiting, protocol, under):
                return written
            written, waiting = written + BATCH, []
    return written + (len(waiting) if waiting and _put(waiting, protocol, under) else 0)


def _put(boards: Sequence[PastBoard], protocol: str, under: str) -> bool:
    return _under(protocol, under, lambda: PastBoard.objects.bulk_create(boards, ignore_conflicts=True))


def _under(protocol: str, token: str, write: Any) -> bool:
    """Writes if the token is still what it was, which nobody can renew before it is done; did it?"""
    with transaction.atomic():
        held = Revision.objects.filter(thing=THINGS[protocol], token=token).update(token=token)
        if held:
            write()
    return bool(held)


def forget(using: str) -> None:
    """Takes all of them away: nobody knows what changed while there were no triggers."""
    PastBoard.objects.using(using).all().delete()


# ── triggers ──────────────────────────────────────────────────────────────────────────────────────


def triggers() -> Iterator[Trigger]:
    """What takes away the boards that a change reaches. The sets and sheets of questions are on record as they are."""
    yield from _of_scores()
    yield from _of_questions()
    slug = "OLD.slug IS DISTINCT FROM NEW.slug OR OLD.external IS DISTINCT FROM NEW.external"
    everything = f"{_renewed(FORECAST)} DELETE FROM {PAST} WHERE protocol = '{FORECAST}';"  # noqa: S608 - our own names
    yield _trigger("named", Family, "UPDATE OF slug, external", everything, when=slug)


def _of_scores() -> Iterator[Trigger]:
    old, new = (_reached(TRADING, f"{row}.resolved_at") for row in ("OLD", "NEW"))
    yield _trigger("scored", BrierScore, "INSERT", new)
    yield _trigger("rescored", BrierScore, "UPDATE", f"{old} {new}")
    yield _trigger("unscored", BrierScore, "DELETE", old)
    first = f"(SELECT MIN(resolved_at) FROM {BrierScore._meta.db_table} WHERE market_id = NEW.id)"  # noqa: S608
    columns = ("source", "event_id", "category")
    # Whether it has scores or not: one that is being scored meanwhile does not show.
    yield _trigger(
        "market", Market, f"UPDATE OF {', '.join(columns)}", _reached(TRADING, first), when=differs(Market, columns)
    )


def _of_questions() -> Iterator[Trigger]:
    resolved = f"'{Question.Status.RESOLVED}'"
    old, new = (_reached(FORECAST, f"{row}.resolved_at") for row in ("OLD", "NEW"))
    columns = ("status", "resolved_at", "closed_at", "category")
    ended = f"(OLD.status = {resolved} OR NEW.status = {resolved}) AND ({differs(Question, columns)})"
    yield _trigger("ended", Question, f"UPDATE OF {', '.join(columns)}", f"{old} {new}", when=ended)
    for name, model in (("option", QuestionOption), ("entry", QuestionEntry), ("forecast", Forecast)):
        for event, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            yield _trigger(f"{name}_{event.lower()}", model, event, *_late(f"{row}.question_id"))
    entry, question = QuestionEntry._meta.db_table, Question._meta.db_table
    first = (
        f"(SELECT MIN(q.resolved_at) FROM {entry} e JOIN {question} q ON q.id = e.question_id "  # noqa: S608
        f"WHERE e.question_set_id = NEW.question_set_id AND e.sheet = NEW.number AND q.status = {resolved})"
    )
    yield _trigger("sheet", QuestionSheet, "INSERT", *_where_there(FORECAST, first))


def _late(question: str) -> tuple[str, str]:
    """For SQLite and PostgreSQL, where a question may have ended by now.

    PostgreSQL keeps it from ending meanwhile: whoever ends it would not see the row that is being written.
    """
    table = Question._meta.db_table
    ended = f"(SELECT resolved_at FROM {table} WHERE id = {question} AND status = '{Question.Status.RESOLVED}')"  # noqa: S608
    sqlite, postgresql = _where_there(FORECAST, ended)
    return sqlite, f"PERFORM 1 FROM {table} WHERE id = {question} FOR SHARE; {postgresql}"


def _where_there(protocol: str, instant: str) -> tuple[str, str]:
    """For SQLite and PostgreSQL: nothing, not even a lock, where there is no such instant."""
    sqlite = _reached(protocol, instant, renewed_if=f"{instant} IS NOT NULL")
    return sqlite, f"IF {instant} IS NOT NULL THEN {_reached(protocol, instant)} END IF;"


def _reached(protocol: str, instant: str, renewed_if: str = "") -> str:
    """Lets no board stand that holds at an instant or later. The token first: who holds it is still writing boards."""
    of = f"protocol = '{protocol}' AND until > {instant}"
    return (
        f"{_renewed(protocol, renewed_if)} DELETE FROM {PAST} WHERE {of} AND since >= {instant}; "  # noqa: S608
        f"UPDATE {PAST} SET until = {instant} WHERE {of};"
    )


def _renewed(protocol: str, condition: str = "") -> str:
    also = f" AND {condition}" if condition else ""
    return f"UPDATE {TOKENS} SET token = {RENEWED} WHERE thing = '{THINGS[protocol]}'{also};"  # noqa: S608


def _trigger(name: str, model: Any, event: str, sqlite: str, postgresql: str = "", when: str = "") -> Trigger:
    return Trigger(
        name=f"past_boards_{name}",
        table=model._meta.db_table,
        moment="AFTER",
        event=event,
        sqlite=sqlite.replace(RENEWED, "lower(hex(randomblob(16)))"),
        postgresql=(postgresql or sqlite).replace(RENEWED, "replace(gen_random_uuid()::text, '-', '')"),
        when=when,
    )
