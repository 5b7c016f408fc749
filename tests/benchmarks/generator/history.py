"""Snapshots of a made season, the runs that would have taken them, and the chain over what was decided."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import FloatField, ForeignKey, IntegerField, Model

from agents.models import Agent, Chain, ChainLink, Decision, Elicitation
from agents.models.ledger import to_cents
from agents.records import link_sha256
from agents.services.chain import completed_record, lock_chain
from cohorts.weeks import GRID
from foundation.models import Run
from scoring.models import Snapshot
from scoring.selectors.valuations import Valuation
from tests.benchmarks.generator.listings import BATCH
from tests.benchmarks.generator.plan import Plan
from tests.benchmarks.generator.portfolios import State

SWAY = 0.03
"""How far from the last prices' worth holdings may have been, as a share, a month before the end."""
STEPS = 10_000
SNAPSHOT = (
    "agent", "taken_at", "cash", "positions_value", "total_value", "pnl", "pnl_percent", "brier", "resolved_bets",
    "open_positions", "stale_positions",
)  # fmt: skip
TOOK = timedelta(seconds=2)


def snapshots_store(plan: Plan, agent: Agent, place: int, states: Sequence[State]) -> int:
    """The agent's snapshots over the plan's days; the last one is its worth at the season's last prices."""
    instants = list(_instants(plan, agent))
    sway = _sway(plan, place, len(instants))
    start, current, rows = agent.cohort.methodology.starting_balance, 0, []
    for instant, share in zip(instants, sway, strict=True):
        while current + 1 < len(states) and states[current + 1].at <= instant:
            current += 1
        state = states[current]
        worth = Valuation(state.cash, state.positions_value + to_cents(state.positions_value * share / STEPS), start)
        rows.append(
            (
                agent.pk, instant, worth.cash, worth.positions_value, worth.total, worth.pnl, worth.pnl_percent,
                state.brier, state.resolved, state.positions, 0,
            )
        )  # fmt: skip
    return rows_insert(Snapshot, SNAPSHOT, rows)


def rows_insert(model: type[Model], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Stores rows of these fields past the ORM, whose objects take ten times as long; how many there were."""
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    connection = connections[DEFAULT_DB_ALIAS]  # the proxy would look it up for every value
    plain = (ForeignKey, IntegerField, FloatField)  # their values are the database's own
    prepare = [None if isinstance(field, plain) else field.get_db_prep_save for field in fields]
    prepared = [
        [to_db(value, connection) if to_db else value for to_db, value in zip(prepare, row, strict=True)]
        for row in rows
    ]
    table, columns = model._meta.db_table, ", ".join(str(field.column) for field in fields)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in prepared:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", prepared)
    return len(prepared)


def _instants(plan: Plan, agent: Agent) -> Iterator[datetime]:
    at = max(plan.snapshots_from, agent.cohort.started_at)
    while at <= plan.end:
        yield at
        at += GRID


def _sway(plan: Plan, place: int, length: int) -> list[Decimal]:
    """A walk that ends at 0, in parts of STEPS."""
    steps = np.random.default_rng([plan.seed, place]).integers(-1, 2, length)
    walk = np.cumsum(steps[::-1])[::-1] - steps
    limit = int(SWAY * STEPS)
    return [Decimal(int(value)) for value in np.clip(walk, -limit, limit)]


def runs_store(plan: Plan) -> None:
    """A successful run for each instant of the snapshots."""
    instants = (plan.snapshots_from + n * GRID for n in range((plan.end - plan.snapshots_from) // GRID + 1))
    Run.objects.bulk_create(
        [
            Run(
                kind="take_snapshots", at=at, started_at=at, finished_at=at + TOOK, status=Run.Status.SUCCEEDED,
                summary={"snapshots": plan.agents, "priced": plan.size.markets, "fallback_prices": 0},
            )
            for at in instants
        ],
        batch_size=BATCH,
    )  # fmt: skip


def chains_store() -> None:
    """Appends all completed tasks to their chains, in the order of their completion.

    In bulk: PostgreSQL would go through all versions of the chain's row that one transaction has made, for each link.
    """
    decisions = Decision.objects.order_by("decided_at", "pk")
    elicitations = Elicitation.objects.order_by("made_at", "pk")
    for completed in (
        decisions.select_related("agent__family", "cohort__methodology", "universe").defer("universe__market_block"),
        elicitations.select_related("family", "release", "methodology", "batch__question_set").defer("batch__block"),
    ):
        links, chain = [], lock_chain(completed.model.PROTOCOL)
        name = str(completed.model._meta.model_name)
        for task in completed.iterator(chunk_size=BATCH):
            record, call = completed_record(task)
            link = ChainLink(
                protocol=chain.protocol, sequence=len(links) + 1, record_sha256=record, previous=chain.head,
                sha256=link_sha256(chain.head, record), call=call, **{name: task},
            )  # fmt: skip
            links.append(link)
            chain.head = link.sha256
        ChainLink.objects.bulk_create(links, batch_size=BATCH)
        Chain.objects.filter(pk=chain.pk).update(length=len(links), head=chain.head)
