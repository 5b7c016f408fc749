"""The requests of each command to an upstream: the state before them, and the possible results of a fault there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from agents.models import Agent, Decision, ModelCall, Position
from foundation.models import Alert, Run
from markets.models import Market, Outcome, UniverseEntry
from scoring.models import Snapshot
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.faults.upstream import Act, answering
from tests.sandbox import Venue

RAIN, CUP, NEW = "Will it rain?", "Lakers or Celtics?", "Will it snow?"
HOUR = timedelta(hours=1)
LATER = SUNDAY + 6 * HOUR
ONE = {"family": "gpt-5.1"}
SUM = Decimal("10000.00")


# ── states of the arena and the venue ─────────────────────────────────────────────────────────────


def synced(venue: Venue) -> None:
    """Two markets on record, nobody's money on either, a cohort of seven."""
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    assert run("sync_markets", SUNDAY).code == 0
    run("start_cohort", SUNDAY)


def with_positions(venue: Venue) -> None:
    """One agent holds both, and nothing was heard of them since."""
    synced(venue)
    venue.says(GPT, bet(RAIN, "YES", 500, (CUP, "Lakers", 550)))
    assert run("run_decisions", DECISION, **ONE)["trades"] == 2


def with_one_position(venue: Venue) -> None:
    synced(venue)
    venue.says(GPT, bet(RAIN, "YES", 500))
    assert run("run_decisions", DECISION, **ONE)["trades"] == 1


def bought_all(venue: Venue, *questions: str) -> None:
    """Markets on which one agent holds YES, 50 dollars each at 0.40."""
    for question in questions:
        venue.market(question)
    venue.start_first_cohort()
    venue.says(GPT, bet(questions[0], "YES", 50, *((question, "YES", 50) for question in questions[1:])))
    assert run("run_decisions", DECISION, **ONE)["trades"] == len(questions)


def listing_more(venue: Venue) -> None:
    synced(venue)
    venue.market(NEW)


def jumped(venue: Venue) -> None:
    synced(venue)
    venue.move(CUP, Lakers="0.95", Celtics="0.05")


def doubtful(venue: Venue) -> None:
    with_positions(venue)
    venue.quote(venue.tokens(RAIN)[0], "0.70")


def won(venue: Venue) -> None:
    with_one_position(venue)
    venue.resolve(RAIN, "Yes")


def won_but_unconfirmed(venue: Venue) -> None:
    with_one_position(venue)
    venue.close(RAIN, "1", "0")
    venue.winners[RAIN] = "Yes"


def first_page(venue: Venue) -> Act:
    return answering(200, {"markets": [venue.row(NEW)], "next_cursor": "2"})


def midpoints(venue: Venue) -> Act:
    return answering(200, venue.midpoints)


# ── entry points ──────────────────────────────────────────────────────────────────────────────────

Facts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class EntryPoint:
    """A request of a command to an upstream, the state before it, and the possible results of a fault there.

    `results` has the figures for each word of the matrix, `an_hour_later` those of the same command without the fault.
    An upstream that gets as far as answering gives the answer `before` first.
    """

    name: str
    setting: str
    command: str
    at: datetime
    prepare: Callable[[Venue], None]
    results: dict[str, Facts]
    an_hour_later: Facts
    before: Callable[[Venue], Act] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


LOST = {"code": 1, "errors": 1, "changed": []}
"""The command fails in one line, and whatever is on record stays as it was."""
NOT_SETTLED = {"resolved": 0, "cancelled": 0, "positions_settled": 0}
NO_ANSWER = {"code": 1, "errors": 1, "asked": 1, "failed": 1, "fallback_holds": 0, "changed": []} | {
    "decided": [("failed", None)]
}
AT_LAST_PRICES = {"snapshots": 7, "values": {SUM}}

ENTRY_POINTS = (
    EntryPoint(
        "catalogue", "GAMMA_BASE_URL", "sync_markets", LATER, synced,
        {"fails": LOST | {"seen": 0, "updated": 0, "skipped": 0}},
        {"code": 0, "updated": 2},
    ),
    EntryPoint(
        "page two", "GAMMA_BASE_URL", "sync_markets", LATER, listing_more,
        {"part": LOST | {"created": 1}, "fails": LOST | {"created": 0}},
        {"code": 0, "seen": 3},
        before=first_page,
    ),
    EntryPoint(
        "look-up", "GAMMA_BASE_URL", "check_resolutions", LATER, won,
        {
            "fails": LOST | NOT_SETTLED | {"checked": 0},
            "gone": LOST | NOT_SETTLED | {"code": 0, "errors": 0, "alerts": ["market-gone"]},
            "skips": LOST | NOT_SETTLED | {"code": 0, "errors": 0, "log": 1},
        },
        {"code": 0, "resolved": 1, "positions_settled": 1, "alerts": []},
    ),
    EntryPoint(
        "winner", "CLOB_BASE_URL", "check_resolutions", LATER, won_but_unconfirmed,
        {
            "fails": NOT_SETTLED | {"code": 1, "errors": 1, "changed": ["markets", "quotes"]},
            "waits": NOT_SETTLED | {"code": 0, "errors": 0, "waiting": 1, "changed": ["markets", "quotes"]},
        },
        {"code": 0, "resolved": 1, "positions_settled": 1},
    ),
    EntryPoint(
        "jump", "CLOB_BASE_URL", "sync_markets", LATER, jumped,
        {
            "stale": {"code": 1, "errors": 1, "updated": 2, "changed": ["flags", "quotes"]},
            "bookless": {"code": 0, "errors": 0, "updated": 2, "changed": ["flags", "quotes"]},
        },
        {"code": 0, "updated": 2, "stale": 0},
    ),
    EntryPoint(
        "midpoints", "CLOB_BASE_URL", "take_snapshots", LATER, with_positions,
        {"stale": LOST | AT_LAST_PRICES | {"priced": 0, "fallback_prices": 2, "changed": ["flags"]}},
        {"code": 0, "priced": 2, "fallback_prices": 0},
    ),
    EntryPoint(
        "books", "CLOB_BASE_URL", "take_snapshots", LATER, doubtful,
        {
            "stale": AT_LAST_PRICES | {"code": 0, "errors": 0, "log": 1, "priced": 1, "changed": ["flags"]},
            "bookless": AT_LAST_PRICES | {"code": 0, "errors": 0, "log": 0, "priced": 1, "changed": ["flags"]},
            "all stale": LOST | AT_LAST_PRICES | {"priced": 0, "fallback_prices": 2, "changed": ["flags"]},
        },
        {"code": 0, "priced": 2, "fallback_prices": 0},
        before=midpoints,
    ),
    EntryPoint(
        "freeze", "CLOB_BASE_URL", "run_decisions", DECISION, synced,
        {"stale": {"code": 1, "errors": 1, "completed": 1, "changed": ["flags"], "frozen stale": {True}}},
        {"code": 0, "asked": 0, "skipped": 1},
        options=ONE,
    ),
    EntryPoint(
        "model", "OPENROUTER_BASE_URL", "run_decisions", DECISION, synced,
        {
            "fails": NO_ANSWER | {"cost_usd": "0.000000", "booked": False},
            "books": NO_ANSWER | {"booked": True},
        },
        {"code": 0, "asked": 1, "completed": 1, "decided": [("completed", "HOLD")]},
        options=ONE,
    ),
)  # fmt: skip


def on_record() -> dict[str, dict[int, Any]]:
    """What a fault must not change: the catalogue, its prices and whether they are trusted, money, decisions."""
    tables = {
        "markets": (Market, ["question", "description", "category", "volume", "closes_at", "status", "closed_at"]),
        "quotes": (Outcome, ["token_id", "quote"]),
        "prices": (Outcome, ["price"]),
        "flags": (Outcome, ["price_stale"]),
        "cash": (Agent, ["cash", "status"]),
        "positions": (Position, ["status", "shares", "cost_basis"]),
        "universe": (UniverseEntry, ["market", "prices", "sources"]),
        "decisions": (Decision, ["status", "action"]),
    }
    return {
        name: {pk: row for pk, *row in model._default_manager.values_list("pk", *fields)}
        for name, (model, fields) in tables.items()
    }


def facts(entry_point: EntryPoint, at: datetime, names: Facts) -> Facts:
    """The figures `names` of a run of the command. `changed` compares the rows that were there before."""
    before = on_record()
    ran = run(entry_point.command, at, **entry_point.options)
    after = on_record()
    row = Run.objects.latest("pk")
    assert (row.status, row.summary) == (("failed", "succeeded")[ran.code == 0], ran.summary)
    summary = ran.summary | {
        "code": ran.code,
        "errors": len(ran.stderr.strip().splitlines()),
        "log": len(row.log),
        "changed": sorted(name for name, rows in before.items() if any(after[name].get(pk) != rows[pk] for pk in rows)),
        "alerts": list(Alert.objects.filter(cleared_at=None).values_list("kind", flat=True)),
        "stale": Outcome.objects.filter(price_stale=True).count(),
        "values": set(Snapshot.objects.filter(taken_at=at).values_list("total_value", flat=True)),
        "booked": ModelCall.objects.filter(cost_source="booked", cost_usd__gt=0).exists(),
        "decided": list(Decision.objects.values_list("status", "action")),
        "frozen stale": {side["stale"] for e in UniverseEntry.objects.all() for side in e.sources.values()},
    }
    return {name: summary[name] for name in names}
