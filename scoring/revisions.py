"""Tokens for what boards and curves rest on, renewed by triggers in the very transaction that changes it.

Whoever writes renews them: code, the admin, plain SQL. So what is kept under a token is never stale, and never needs
an age.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

from django.db import connection

from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from markets.guards import Trigger
from scoring import past
from scoring.models import Leaderboard, Revision, Snapshot

BOARDS, PLAYERS, SNAPSHOTS = "boards", "players", "snapshots"
"""What has tokens. PLAYERS: who plays, in which cohorts, by which rules, and what finished ones came to."""
THINGS = (BOARDS, PLAYERS, SNAPSHOTS, *past.THINGS.values())
ANY = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class _Watch:
    """Renews `things` when rows of `table` change by `event`, if the SQL condition `when` (over NEW) holds."""

    table: str
    event: str
    things: tuple[str, ...]
    when: str = ""
    columns: str = ""

    @property
    def name(self) -> str:
        return f"revise_{'_'.join(self.things)}_{self.event.lower()}_{self.table}"


def _watches() -> Iterator[_Watch]:
    snapshot, cohort = Snapshot._meta.db_table, Cohort._meta.db_table
    agent, family, board = Agent._meta.db_table, Family._meta.db_table, Leaderboard._meta.db_table
    methodology = Methodology._meta.db_table
    for event in ANY:
        yield _Watch(board, event, (BOARDS,))
        yield _Watch(cohort, event, (PLAYERS,))
        yield _Watch(family, event, (PLAYERS,))
        yield _Watch(methodology, event, (PLAYERS,))
        yield _Watch(snapshot, event, (SNAPSHOTS,))
    for event in ("INSERT", "DELETE"):
        yield _Watch(agent, event, (PLAYERS,))
    # Not every move of cash: agents are locked one by one, and all of them would queue for the one token.
    over = f"EXISTS (SELECT 1 FROM {cohort} c WHERE c.id = NEW.cohort_id AND c.completed_at IS NOT NULL)"  # noqa: S608
    yield _Watch(agent, "UPDATE", (PLAYERS,), over, columns="cash, model_id, cohort_id, family_id")


def triggers() -> Iterator[Trigger]:
    for watch in _watches():
        yield Trigger(
            name=watch.name,
            table=watch.table,
            moment="AFTER",
            event=f"{watch.event} OF {watch.columns}" if watch.columns else watch.event,
            sqlite=_renew(watch, "lower(hex(randomblob(16)))"),
            postgresql=_renew(watch, "replace(gen_random_uuid()::text, '-', '')"),
            when=watch.when,
            by_row=bool(watch.when),  # once for a statement where no condition looks at its rows
        )


def renew(using: str) -> None:
    """Makes new tokens of everything and lets no past board stand: what changed without triggers, nobody knows."""
    past.forget(using)
    for thing in THINGS:
        Revision.objects.using(using).update_or_create(thing=thing, defaults={"token": uuid4().hex})


def _renew(watch: _Watch, token: str) -> str:
    """One after another, in one order everywhere, so that two writers never wait for each other."""
    table = Revision._meta.db_table
    return " ".join(f"UPDATE {table} SET token = {token} WHERE thing = '{t}';" for t in sorted(watch.things))  # noqa: S608


def tokens() -> Mapping[str, str]:
    """The token of each thing as of now, in one cheap statement; none where the tables were emptied."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT thing, token FROM {Revision._meta.db_table}")  # noqa: S608 - a table's name
        return dict(cursor.fetchall())
