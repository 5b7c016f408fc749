"""Guards of the record: triggers refuse changes and deletions by any client, and permit what is still open."""

from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, UniqueConstraint
from django.utils import timezone

from agents.models import (
    Agent,
    AgentVersion,
    Chain,
    Decision,
    Family,
    Instruction,
    ManualSettlement,
    ModelCall,
    Release,
    SigningKey,
)
from arena_site.models import AuditEntry
from cohorts.models import Cohort, Methodology
from foundation import guards
from markets.models import EvidenceSnippet, Market, OrderBook, Outcome, QuestionEntry, Universe
from scoring.models import Snapshot
from scoring.services.published_boards import publish_boards
from tests.factories import (
    DECIDED,
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    ModelCallFactory,
    PriceObservationFactory,
    SnapshotFactory,
    play_week,
    seal_hold,
    submit_hold,
)
from tests.guards import guards_removed
from tests.selection import one_per_rule
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PROTECTED = {
    apps.get_model(label): field
    for label, field in (
        ("agents.Agent", "model_id"), ("agents.Attempt", "reason"), ("agents.Chain", "head"),
        ("agents.ChainLink", "sha256"), ("agents.Receipt", "signature"), ("agents.SigningKey", "public_key"),
        ("agents.DailyAnchor", "document"), ("agents.AgentVersion", "note"), ("agents.Family", "track"),
        ("agents.Decision", "reasoning"), ("agents.Elicitation", "error"), ("agents.Envelope", "verdict"),
        ("agents.Forecast", "rationale"),
        ("agents.Instruction", "reason"), ("agents.JournalEntry", "amount"), ("agents.LineUp", "findings"),
        ("agents.LineUpEntry", "position"), ("agents.ManualSettlement", "reason"), ("agents.ModelCall", "raw_response"),
        ("agents.Position", "opened_at"),
        ("agents.RefusedForecast", "reason"), ("agents.Release", "price_prompt"), ("agents.Reversal", "reason"),
        ("agents.Settlement", "payout"), ("agents.Submission", "response"), ("agents.Trade", "amount"),
        ("arena_site.AuditEntry", "reason"), ("cohorts.Cohort", "week_start"), ("cohorts.Methodology", "minimum_bet"),
        ("markets.EvidenceSnippet", "text"), ("markets.PriceObservation", "price"), ("markets.Question", "text"),
        ("markets.QuestionBatch", "block"),
        ("markets.QuestionEntry", "prices"), ("markets.QuestionOption", "name"), ("markets.QuestionSet", "sha256"),
        ("markets.OrderBook", "asks"),
        ("markets.Universe", "market_block"), ("markets.UniverseEntry", "prices"), ("scoring.Snapshot", "total_value"),
        ("scoring.PublishedBoard", "entries"),
    )
}  # fmt: skip
"""The protected tables, each with a column that can not be changed."""
DELETABLE = {Family, Release}
"""Protected from deletion by a foreign key alone."""


def refused(sql: str, parameters: list[Any] | None = None) -> bool:
    """Whether the database refuses a statement, whoever sends it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql, parameters)
    except IntegrityError as error:
        return any(words in str(error) for words in (guards.CHANGED, guards.DELETED, guards.REPLACED))
    return False


def season() -> None:
    play_week()
    CohortFactory()
    submit_hold(Decision.objects.exclude(universe=None).earliest("pk"))
    for agent in Agent.objects.filter(family__external=False).order_by("-pk")[:2]:
        seal_hold(agent)
    SigningKey.objects.create(fingerprint="0" * 16, public_key="0" * 64, began_at=WEEK, ended_at=WEEK + DECIDED)
    AgentVersion.objects.create(family=Family.objects.filter(external=True)[0], number=2, began_at=WEEK)
    AuditEntry.objects.create(at=WEEK, by="ann", action="sync", reason="to see", result="done")
    ManualSettlement.objects.create(
        market=Market.objects.all()[0], kind="settlement", positions=0, reason="to see", source="the venue",
        settled_by="ann", settled_at=WEEK,
    )  # fmt: skip
    publish_boards(at=WEEK + timedelta(days=31))
    for outcome in Outcome.objects.order_by("pk")[:2]:
        universe = Universe.objects.order_by("pk")[0]
        OrderBook.objects.create(universe=universe, outcome=outcome, captured_at=WEEK, bids=[], asks=[["0.4", "10"]])
    entry = QuestionEntry.objects.order_by("pk")[0]
    digest = sha256(b"It rained.").hexdigest()
    for position in (1, 2):
        EvidenceSnippet.objects.create(
            entry=entry, position=position, text="It rained.", retrieved_at=WEEK, sha256=digest
        )


def another(model: type[Model], field: str) -> Any:
    """A value of the field that the row of the test does not have, as the database takes it."""
    column: Any = model._meta.get_field(field)
    kind = column.get_internal_type()
    value: Any = {
        "DateTimeField": WEEK + timedelta(days=400), "JSONField": {"bent": 1}, "DecimalField": 0,
        "CharField": "open" if field == "track" else "bent", "PositiveIntegerField": 70,
        "PositiveSmallIntegerField": 70,
    }.get(kind, "bent" if kind == "TextField" else 0)  # fmt: skip
    return column.get_db_prep_save(value, connection)


def row_of(model: type[Model]) -> int:
    """A row that is final."""
    rows = model._default_manager.order_by("-pk")
    narrowed = {
        Cohort: {"agents__isnull": False},
        Release: {"agents__isnull": False},
        Methodology: {"cohorts__isnull": False},
    }.get(model, {})
    row = rows.filter(**narrowed).first()
    assert row is not None, model
    return int(row.pk)


def column_of(model: type[Model]) -> str:
    """The column of a table that can not be changed."""
    return str(model._meta.get_field(PROTECTED[model]).column)  # type: ignore[union-attr]


def has_unique_key(model: type[Model]) -> bool:
    """Whether a table has another key than its id."""
    unique = [field for field in model._meta.concrete_fields if field.unique and not field.primary_key]
    constraints = [constraint for constraint in model._meta.constraints if isinstance(constraint, UniqueConstraint)]
    return bool(unique or constraints)


def stored_row(table: str, pk: int) -> dict[str, Any]:
    """The values of a row by column, as the database holds them."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE id = %s", [pk])
        return dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))


def insertion(verb: str, table: str, pk: int, changes: dict[str, Any]) -> tuple[str, list[Any]]:
    """The statement that inserts a copy of a row with other values in some columns, and its parameters."""
    columns = list(stored_row(table, pk))
    copied = ", ".join("%s" if column in changes else f'"{column}"' for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    values = [changes[column] for column in columns if column in changes]
    return f"{verb} {table} ({names}) SELECT {copied} FROM {table} WHERE id = %s", [*values, pk]


def recorded_season() -> set[str]:
    """The rows of the season, and the lines in which the ledger's verification speaks of them."""
    season()
    return violations()


season_on_record = shared_rows(recorded_season)


def test_protected_tables_refuse_update_and_delete(season_on_record: set[str]) -> None:
    for model, field in PROTECTED.items():
        table, pk = model._meta.db_table, row_of(model)
        column = model._meta.get_field(field).column  # type: ignore[union-attr]
        assert refused(f'UPDATE {table} SET "{column}" = %s WHERE id = %s', [another(model, field), pk]), table
        if model not in DELETABLE:
            assert refused(f"DELETE FROM {table} WHERE id = %s", [pk]), table


each_model = pytest.mark.parametrize("model", PROTECTED, ids=lambda model: model._meta.label)


@each_model
def test_insert_replaces_no_protected_row(model: type[Model], season_on_record: set[str]) -> None:
    table, pk, column = model._meta.db_table, row_of(model), column_of(model)
    before, change = stored_row(table, pk), {column: another(model, PROTECTED[model])}
    if connection.vendor == "postgresql":
        insert, parameters = insertion("INSERT INTO", table, pk, {})
        upsert = f'{insert} ON CONFLICT (id) DO UPDATE SET "{column}" = %s'
        assert refused(upsert, [*parameters, change[column]])
    else:
        assert refused(*insertion("INSERT OR REPLACE INTO", table, pk, change))
        assert refused(*insertion("REPLACE INTO", table, pk, change))
        if has_unique_key(model):
            assert refused(*insertion("REPLACE INTO", table, pk, {"id": None}))
    assert stored_row(table, pk) == before


@each_model
def test_duplicate_of_a_protected_row_is_an_integrity_error(model: type[Model], season_on_record: set[str]) -> None:
    table, pk = model._meta.db_table, row_of(model)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(*insertion("INSERT INTO", table, pk, {}))


@pytest.mark.sqlite_only
@each_model
def test_update_replaces_no_protected_row(model: type[Model], season_on_record: set[str]) -> None:
    table, pk = model._meta.db_table, row_of(model)
    before = stored_row(table, pk)
    assert refused(f"UPDATE OR REPLACE {table} SET id = %s", [pk])
    assert stored_row(table, pk) == before


@pytest.mark.sqlite_only
def test_open_row_takes_no_place_of_a_final_one() -> None:
    failed, missed = DecisionFactory(failed=True), DecisionFactory(missed=True)
    keys = {"id": missed.pk, "agent_id": missed.agent_id, "cohort_id": missed.cohort_id, "week": missed.week}
    for columns in (["id"], ["agent_id", "cohort_id", "week"]):
        place = ", ".join(f"{column} = %s" for column in columns)
        attack = f"UPDATE OR REPLACE agents_decision SET {place} WHERE id = %s"
        assert refused(attack, [*(keys[column] for column in columns), failed.pk]), columns


REFUSED_BY_CONSTRAINTS = {Methodology, Snapshot}
"""Tables that refuse a rewritten value of the column even where the guards are off; they have another below."""
REWRITTEN = [
    *((model, field) for model, field in PROTECTED.items() if model not in REFUSED_BY_CONSTRAINTS),
    *((apps.get_model(label), field) for label, field in (
        ("agents.Agent", "price_prompt"), ("agents.Decision", "refusals"), ("agents.Forecast", "probabilities"),
        ("agents.JournalEntry", "occurred_at"), ("agents.LineUp", "decided_by"), ("agents.Reversal", "reversed_at"),
        ("agents.Settlement", "settled_at"), ("agents.Trade", "executed_at"), ("arena_site.AuditEntry", "by"),
        ("cohorts.Cohort", "started_at"), ("cohorts.Methodology", "system_prompt"), ("markets.OrderBook", "fee_rate"),
        ("markets.EvidenceSnippet", "title"), ("markets.PriceObservation", "reason"), ("scoring.Snapshot", "pnl"),
    )),
]  # fmt: skip


def app_of(column: tuple[type[Model], str]) -> str:
    return column[0]._meta.app_label


@pytest.mark.parametrize(
    ("model", "field"),
    one_per_rule(REWRITTEN, app_of),
    ids=lambda value: value if isinstance(value, str) else value._meta.label,
)
def test_rewritten_row_is_found_by_the_ledgers_verification(
    model: type[Model], field: str, season_on_record: set[str]
) -> None:
    # Without its guards, as an older version's database was, or where somebody removed them.
    rows = model._default_manager.order_by("-pk")
    linked = {Decision: {"link__isnull": False}, ModelCall: {"decision__link__isnull": False}}
    narrowed = {**linked, Instruction: {"executed": False}}
    row = rows.filter(**narrowed.get(model, {}))[0] if model in narrowed else rows.get(pk=row_of(model))
    column = model._meta.get_field(field).column  # type: ignore[union-attr]
    with guards_removed(model), connection.cursor() as cursor:
        update = f'UPDATE {model._meta.db_table} SET "{column}" = %s WHERE id = %s'
        cursor.execute(update, [another(model, field), row.pk])
    assert violations() - season_on_record


def violations() -> set[str]:
    output = StringIO()
    with suppress(SystemExit):
        call_command("verify_ledger", at=timezone.now(), stdout=output, stderr=StringIO())
    return {line for line in output.getvalue().splitlines() if not line.lstrip().startswith("violations ")}


def test_every_guarded_table_is_covered() -> None:
    guarded = {trigger.table for trigger in guards.declared()}
    assert guarded == {model._meta.db_table for model in PROTECTED}
    assert guarded == {model._meta.db_table for model, _ in REWRITTEN}


@pytest.mark.postgres_only
def test_protected_tables_refuse_truncate() -> None:
    season()
    connection.check_constraints()
    for model in PROTECTED.keys() - DELETABLE:
        assert refused(f"TRUNCATE {model._meta.db_table} CASCADE"), model


# ── permitted changes ────────────────────────────────────────────────────────────────────────────


def test_model_call_accepts_one_answer_and_then_only_a_refusal() -> None:
    for before in ("sent", "lost"):
        call = ModelCallFactory(result=before, raw_response="", content="")
        call.result, call.raw_response, call.late = "answered", "{}", before == "lost"
        call.save()
        ModelCall.objects.filter(pk=call.pk).update(result="refused", error="bets[0].amount: too much")
        for change in ({"result": "answered"}, {"error": ""}, {"late": None}, {"raw_response": "[]"}):
            with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
                ModelCall.objects.filter(pk=call.pk).update(**change)
    call = ModelCallFactory()
    for change in ({"result": "refused", "content": "another"}, {"result": "sent"}, {"cost_usd": 0}):
        with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
            ModelCall.objects.filter(pk=call.pk).update(**change)
    call = ModelCallFactory(result="sent")
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        ModelCall.objects.filter(pk=call.pk).update(result="answered", prompt_sha256="0" * 64)


def test_failed_decision_may_be_retried_and_missed_one_may_not() -> None:
    failed, missed = DecisionFactory(failed=True), DecisionFactory(missed=True)
    Decision.objects.filter(pk=failed.pk).update(status="completed", action="HOLD", decided_at=WEEK)
    for decision in (failed, missed):
        with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
            Decision.objects.filter(pk=decision.pk).update(status="failed", action=None, decided_at=None)


def test_chain_head_moves_only_to_its_last_link() -> None:
    play_week()
    chain = Chain.objects.get(protocol="trading")
    for length, head in ((chain.length + 1, "0" * 64), (chain.length - 1, chain.head), (chain.length, "0" * 64)):
        with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
            Chain.objects.filter(pk=chain.pk).update(length=length, head=head)
    Chain.objects.filter(pk=chain.pk).update(length=chain.length, head=chain.head)


def test_only_prunable_snapshots_and_prices_can_be_deleted() -> None:
    agent = AgentFactory()
    for minutes in (0, 10, 20):
        SnapshotFactory(agent=agent, taken_at=WEEK + timedelta(minutes=minutes))
    midnight, between, newest = Snapshot.objects.order_by("taken_at")
    between.delete()
    first = PriceObservationFactory(observed_at=WEEK + timedelta(hours=23))
    last = PriceObservationFactory(outcome=first.outcome, observed_at=WEEK + timedelta(hours=23, minutes=59))
    PriceObservationFactory(outcome=first.outcome, observed_at=WEEK + timedelta(days=1))
    first.delete()
    for row in (midnight, newest, last):
        with pytest.raises(IntegrityError, match="can not be deleted"), transaction.atomic():
            row.delete()


# ── missing triggers ───────────────────────────────────────────────────────────────────────────


def drop(name: str, table: str) -> None:
    on = f" ON {table}" if connection.vendor == "postgresql" else ""
    connection.check_constraints()
    connection.cursor().execute(f"DROP TRIGGER {name}{on}")


def warnings() -> list[str]:
    return [str(warning.msg) for warning in run_checks(databases=["default"]) if warning.id == "arena.W003"]


def test_missing_trigger_is_reported_and_restored_by_migrate() -> None:
    season()
    assert warnings() == []
    drop("agents_trade_is_fixed", "agents_trade")
    assert warnings() == ["the database does not guard: agents_trade"]
    errors = StringIO()
    with pytest.raises(SystemExit):
        call_command("verify_ledger", at=timezone.now(), stdout=StringIO(), stderr=errors, json=True)
    call_command("migrate", verbosity=0)
    assert warnings() == []
    assert refused("UPDATE agents_trade SET amount = amount + 1")


def test_changed_trigger_is_reported() -> None:
    trigger = next(t for t in guards.declared() if t.name == "agents_trade_is_fixed")
    if connection.vendor == "postgresql":
        connection.check_constraints()
        connection.cursor().execute("ALTER TABLE agents_trade DISABLE TRIGGER agents_trade_is_fixed")
    else:
        drop(trigger.name, trigger.table)
        connection.cursor().execute(
            f"CREATE TRIGGER {trigger.name} BEFORE UPDATE ON {trigger.table} BEGIN SELECT 1; END"
        )
    assert warnings() == ["the database does not guard: agents_trade"]


def test_migrate_leaves_intact_triggers_alone() -> None:
    assert guards.install(connection) == []
