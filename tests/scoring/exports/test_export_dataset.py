"""`export_dataset`: the rows of an archive, windows, cells, and memory."""

import csv
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models import Agent, Decision, JournalEntry, Trade
from forecast_rank.files.csv_cells import FORMULA_STARTS, escape_formula, unescape_formula
from scoring.exports.dictionary import KINDS
from scoring.exports.encoding import CSV_PARSERS, csv_text
from scoring.exports.tables import TABLES
from scoring.exports.verification.verifier import verify_archive
from scoring.management.commands.export_dataset import window_bound
from scoring.models import Snapshot
from tests.commands import run
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    QuestionFactory,
    ReleaseFactory,
    SnapshotFactory,
    ask,
    bet,
    chain_all,
    play_week,
)
from tests.guards import guards_removed
from tests.lazy_modules import pl
from tests.scoring.exports.archives import csv_cells, table_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


# contents


def test_dictionary_describes_every_column_of_every_table_in_both_formats(exported: Path) -> None:
    folder = exported / "whole"
    dictionary = json.loads((folder / "dictionary.json").read_text())
    assert [table["table"] for table in dictionary] == [table.name for table in TABLES]
    for table in dictionary:
        header = next(csv.reader((folder / "csv" / f"{table['table']}.csv").open(newline="")))
        assert header == [column["name"] for column in table["columns"]]
        assert pl.read_parquet_schema(folder / "parquet" / f"{table['table']}.parquet").names() == header
        assert all((column["type"] in KINDS and column["meaning"].endswith(".")) or "?" in column["meaning"]
                   for column in table["columns"])  # fmt: skip


def test_decimals_are_exact_and_formats_agree(exported: Path) -> None:
    for table in TABLES:
        assert table_rows(exported / "whole", table.name) == table_rows(exported / "whole", table.name, "parquet")
    paid = {row["amount"] for row in table_rows(exported / "whole", "trades")}
    assert Decimal("333.33") in paid


def test_parquet_has_exact_decimals_instants_and_categories(exported: Path) -> None:
    schema = pl.read_parquet_schema(exported / "whole" / "parquet" / "trades.parquet")
    assert schema["id"] == pl.Int64
    assert [schema[name] for name in ("amount", "shares", "price")] == [pl.Decimal(38, n) for n in (2, 6, 10)]
    assert schema["executed_at"] == pl.Datetime("us", "UTC")
    assert schema["kind"] == schema["side"] == pl.Categorical
    dictionary = json.loads((exported / "whole" / "dictionary.json").read_text())
    trades = {
        column["name"]: column for table in dictionary if table["table"] == "trades" for column in table["columns"]
    }
    assert (trades["market"]["references"], trades["amount"]["unit"]) == ("markets.id", "US dollars")
    primary = {f"{table.name}.{column.name}" for table in TABLES for column in table.columns}
    assert {column.references for table in TABLES for column in table.columns} - {None} <= primary


def test_archive_describes_itself_in_frictionless_and_croissant(exported: Path) -> None:
    folder = exported / "whole"
    files = json.loads((folder / "manifest.json").read_text())["files"]
    package = json.loads((folder / "datapackage.json").read_text())
    assert (package["profile"], package["licenses"][0]["name"]) == ("tabular-data-package", "CC-BY-4.0")
    rows = {resource["name"]: table_rows(folder, resource["name"]) for resource in package["resources"]}
    assert set(rows) == {table.name for table in TABLES}
    for resource in package["resources"]:
        listed = files[resource["path"]]
        assert (resource["bytes"], resource["hash"]) == (listed["bytes"], f"sha256:{listed['sha256']}")
        names = [field["name"] for field in resource["schema"]["fields"]]
        assert names == (folder / resource["path"]).read_text().splitlines()[0].split(",")
        for key in resource["schema"].get("foreignKeys", ()):
            target = {row[key["reference"]["fields"]] for row in rows[key["reference"]["resource"]]}
            assert {row[key["fields"]] for row in rows[resource["name"]]} - {None} <= target
    trades = next(
        table_of_archive for table_of_archive in package["resources"] if table_of_archive["name"] == "trades"
    )["schema"]
    assert trades["primaryKey"] == "id"
    assert {"fields": "market", "reference": {"resource": "markets", "fields": "id"}} in trades["foreignKeys"]
    croissant = json.loads((folder / "croissant.json").read_text())
    assert croissant["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert {table_of_archive["@id"]: table_of_archive["sha256"] for table_of_archive in croissant["distribution"]} == {
        path: listed["sha256"] for path, listed in files.items() if path.startswith("csv/")
    }
    fields = {field["@id"]: field for records in croissant["recordSet"] for field in records["field"]}
    assert fields["trades/market"]["references"] == {"field": {"@id": "markets/id"}}
    assert {field["references"]["field"]["@id"] for field in fields.values() if "references" in field} <= set(fields)


def test_each_prompt_text_occurs_once_and_every_block_refers_to_one(exported: Path) -> None:
    texts = [row["sha256"] for row in table_rows(exported / "whole", "prompts")]
    assert len(texts) == len(set(texts))
    assert {row["sha256"] for row in table_rows(exported / "whole", "blocks")} <= set(texts)


def test_archive_holds_terms_of_reuse_and_methodologies(exported: Path) -> None:
    terms = " ".join((exported / "whole" / "LICENSE.txt").read_text().split())
    assert "belong to their venues (Polymarket, Kalshi)" in terms
    methodologies = json.loads((exported / "whole" / "methodologies.json").read_text())
    assert [row["version"] for row in methodologies] == ["v1", "v2", "v3"]


def test_cohort_archive_holds_rows_of_that_cohort_only(exported: Path) -> None:
    folder = exported / "cohort"
    assert {row["cohort"] for row in table_rows(folder, "agents")} == {1}
    agent_ids = {row["id"] for row in table_rows(folder, "agents")}
    for name in ("trades", "positions", "journal", "snapshots", "settlements", "brier_scores", "decisions"):
        agents = {row["agent"] for row in table_rows(folder, name)}
        assert agents
        assert agents <= agent_ids, name
    assert {row["week"] for row in table_rows(folder, "decisions")} == {1, 2}


@pytest.mark.thorough
def test_same_contents_give_the_same_bytes(tmp_path: Path) -> None:
    play_week()
    for name in ("one", "two"):
        assert run("export_dataset", WEEK, out=tmp_path / name, format=("csv", "parquet"), zip=True).code == 0
    assert (tmp_path / "one" / "manifest.json").read_text() == (tmp_path / "two" / "manifest.json").read_text()
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_release_has_the_parameters_that_it_honours(tmp_path: Path) -> None:
    release = ReleaseFactory(supported_parameters=["seed", "temperature"])
    unknown = ReleaseFactory(family=release.family, supported_parameters=None, effective_from=WEEK - timedelta(days=1))
    assert run("export_dataset", WEEK, out=tmp_path / "a", format=("csv", "parquet")).code == 0
    for format in ("csv", "parquet"):
        honoured = {row["id"]: row["supported_parameters"] for row in table_rows(tmp_path / "a", "releases", format)}
        assert (honoured[release.pk], honoured[unknown.pk]) == (["seed", "temperature"], None)


def test_archive_of_an_empty_arena_verifies(tmp_path: Path) -> None:
    exported = run("export_dataset", WEEK, out=tmp_path / "empty", format=("csv", "parquet"))
    assert (exported.code, exported["rejected"]) == (0, 0)
    assert run("verify_export", None, tmp_path / "empty").code == 0


def test_earlier_archive_is_replaced_and_any_other_folder_is_refused(tmp_path: Path) -> None:
    assert run("export_dataset", WEEK, out=tmp_path / "a").code == 0
    assert run("export_dataset", WEEK, out=tmp_path / "a").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert run("export_dataset", WEEK, out=tmp_path / "mine").code == 2
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize("bad", [{"cohort": 9}, {"day": WEEK, "start": WEEK}, {"start": WEEK, "end": WEEK}])
def test_contradictory_options_are_bad_usage(tmp_path: Path, bad: dict[str, Any]) -> None:
    assert run("export_dataset", WEEK, out=tmp_path / "bad", **bad).code == 2
    assert not (tmp_path / "bad").exists()


# windows


def test_window_holds_the_markets_of_a_question_with_none_of_these(tmp_path: Path) -> None:
    question = QuestionFactory(markets=[MarketFactory(), MarketFactory()])
    outcomes = set(question.options.exclude(outcome=None).values_list("outcome", flat=True))
    assert question.options.filter(outcome=None).exists()
    ask(question, day=WEEK)
    assert run("export_dataset", WEEK, "--out", tmp_path / "d", "--day", f"{WEEK:%Y-%m-%d}").code == 0
    assert outcomes <= {row["id"] for row in table_rows(tmp_path / "d", "outcomes")}


@pytest.fixture
def rows_around_midnight() -> None:
    """Snapshots, decisions and journal entries just before, at and after Sunday midnight."""
    agent = AgentFactory(cohort=CohortFactory())
    sunday = WEEK + timedelta(weeks=1)
    bet(agent, MarketFactory(), week=1)
    trade = bet(agent, MarketFactory(), week=2)
    for at in (sunday - timedelta(microseconds=1), sunday, sunday + timedelta(hours=23, minutes=50),
               sunday + timedelta(days=1)):  # fmt: skip
        SnapshotFactory(agent=agent, taken_at=at)
    with guards_removed(Decision, Trade, JournalEntry):
        Decision.objects.filter(pk=trade.decision_id).update(decided_at=sunday)
        Trade.objects.filter(pk=trade.pk).update(executed_at=sunday)
        JournalEntry.objects.filter(trade=trade).update(occurred_at=sunday)
    chain_all()


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-03-15", 0),
        ("2026-03-15T00:00:00Z", 0),
        ("2026-03-15T00:00:00.000+00:00", 0),
        ("2026-03-15T02:00:00+02:00", 0),
        ("2026-03-15T18:00:00-05:00", 23),
    ],
)
def test_bound_of_a_window_has_any_form(text: str, hour: int) -> None:
    assert window_bound(text) == datetime(2026, 3, 15, hour, tzinfo=UTC)


def test_sunday_midnight_belongs_to_the_window_of_the_new_week_only(rows_around_midnight: None, tmp_path: Path) -> None:
    for name, start, end in (("old", "2026-03-08", "2026-03-15"), ("new", "2026-03-15", "2026-03-22")):
        assert run("export_dataset", None, "--out", tmp_path / name, "--from", start, "--to", end).code == 0
    for name, time, counts in (
        ("decisions", "decided_at", (1, 1)),
        ("trades", "executed_at", (1, 1)),
        ("journal", "occurred_at", (2, 1)),
        ("snapshots", "taken_at", (1, 3)),
    ):
        old, new = table_rows(tmp_path / "old", name), table_rows(tmp_path / "new", name)
        assert (len(old), len(new)) == counts, name
        assert max(row[time] for row in old) < "2026-03-15T00:00:00.000000Z" <= min(row[time] for row in new)


def test_day_is_a_window_of_24_hours(rows_around_midnight: None, tmp_path: Path) -> None:
    window = ("--from", "2026-03-15T02:00:00+02:00", "--to", "2026-03-16")
    for name, options in (("day", ("--day", "2026-03-15")), ("window", window)):
        assert run("export_dataset", None, "--out", tmp_path / name, *options).code == 0
        assert [row["taken_at"] for row in table_rows(tmp_path / name, "snapshots")] == [
            "2026-03-15T00:00:00.000000Z",
            "2026-03-15T23:50:00.000000Z",
        ]
    assert not [line for line in verify_archive(tmp_path / "day").violations if "outside the window" in line]


def test_bound_without_a_time_zone_is_refused(tmp_path: Path) -> None:
    refused = run("export_dataset", None, "--out", tmp_path / "d", "--from", "2026-03-15T00:00:00")
    assert refused.code
    assert "has no time zone" in refused.stderr


# formulas


def test_negative_numbers_stay_numbers_and_formulas_in_text_are_escaped(exported: Path) -> None:
    folder = exported / "whole"
    amounts = [row["amount"] for row in csv_cells(folder, "journal")]
    assert "-2500.00" in amounts
    assert all(float(amount) is not None for amount in amounts)
    losses = [float(row["pnl"]) for row in csv_cells(folder, "snapshots")]
    assert min(losses) < 0
    assert {row["question"] for row in csv_cells(folder, "markets")} >= {"'=SUM(A1)+Lakers"}
    (reasoning,) = {row["reasoning"] for row in csv_cells(folder, "decisions") if "cmd" in row["reasoning"]}
    assert reasoning.startswith("'-1+1|cmd")
    assert any(row["question"] == "=SUM(A1)+Lakers" for row in table_rows(folder, "markets"))
    assert any(row["question"] == "=SUM(A1)+Lakers" for row in table_rows(folder, "markets", "parquet"))


def test_no_text_cell_of_any_table_begins_like_a_formula(exported: Path) -> None:
    for table in TABLES:
        textual = [column.name for column in table.columns if column.kind in ("text", "json")]
        for row in csv_cells(exported / "whole", table.name):
            assert not [row[name] for name in textual if row[name][:1] and row[name][0] in FORMULA_STARTS]


@given(st.text())
def test_any_text_is_escaped_and_reads_back_unchanged(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text
    assert not escape_formula(text)[:1] or escape_formula(text)[0] not in FORMULA_STARTS
    assert CSV_PARSERS["text"](csv_text(text, "text")) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=10))
def test_any_number_is_written_and_read_back_unchanged(number: Decimal) -> None:
    text = f"{number:f}"
    assert f"{CSV_PARSERS['decimal'](csv_text(number, 'decimal')):f}" == text


# memory

MEASURED_EXPORT = """
import sys
from pathlib import Path
import django
django.setup()
from scoring.exports.archive import build_archive
from scoring.exports.selection import ExportSelection
from datetime import UTC, datetime
def peak():  # not ru_maxrss, which a new program inherits from its parent
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
folder, at = Path(sys.argv[1]), datetime(2027, 1, 1, tzinfo=UTC)
build_archive(folder=folder, selection=ExportSelection(), formats=("csv", "parquet"), at=at)
print(before // 1024, peak() // 1024)
"""
MAX_MIB = 300


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
def test_memory_stays_bounded_for_84_000_snapshots(tmp_path: Path) -> None:
    from tests.bulk_factories import create_portfolios

    create_portfolios(cohorts=4, positions=20)
    agents = list(Agent.objects.all())
    for start in range(0, 3_000, 1_000):
        Snapshot.objects.bulk_create(
            Snapshot(
                agent=agent, taken_at=datetime(2026, 3, 8, tzinfo=UTC) + n * timedelta(minutes=10), cash=agent.cash,
                positions_value=Decimal("1.00"), total_value=agent.cash + 1, pnl=agent.cash - 9_999,
                pnl_percent=Decimal("0.0000"), resolved_bets=0, open_positions=1, stale_positions=0,
            )
            for n in range(start, start + 1_000)
            for agent in agents
        )  # fmt: skip
    assert Snapshot.objects.count() == 84_000
    peak = _peak_mib(tmp_path / "big")
    assert peak < MAX_MIB, f"{peak} MiB"
    assert sum(1 for _ in csv_cells(tmp_path / "big", "snapshots")) == 84_000


def _peak_mib(folder: Path) -> int:
    """Peak memory of a process that exports this test's database."""
    import os

    from django.db import connection

    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        source = folder.with_suffix(".sqlite3")
        import sqlite3

        with sqlite3.connect(source) as target:
            connection.ensure_connection()
            connection.connection.backup(target)
        url = f"sqlite:///{source}"
    else:
        server = os.environ["DATABASE_URL"]
        url = f"{server.partition('?')[0].rpartition('/')[0]}/{name}"
        url += f"?{server.partition('?')[2]}" if "?" in server else ""
    env = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    ran = subprocess.run([sys.executable, "-c", MEASURED_EXPORT, str(folder)], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout.split()[-1])
