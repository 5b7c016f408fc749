"""Failures of systems of this kind: each has tests, and those without a better home are here."""

import csv
import io
import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from agents import clients
from agents.models import Agent, Decision, JournalEntry, Settlement, Trade
from agents.services.decisions import run_decisions
from agents.services.spending import week_spending
from arena_site import jobs
from cohorts.models import Cohort
from foundation.models import Run
from markets.models import Market, Universe
from markets.sources.polymarket import Clob
from markets.sources.polymarket.clob import TokenValues
from scoring.models import BrierScore
from tests.answers import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN, bet
from tests.commands import DECISION, SUNDAY, run
from tests.databases import PROJECT
from tests.factories import bet as record_bet
from tests.markup import element, elements, get_page, visible_text
from tests.sandbox import Venue
from tests.scoring.exports.archives import csv_cells, table_rows
from tests.season.published_figures import own_text
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.each_database

TESTS_OF_FAILURES = (
    "test_a_gateway_that_fails_for_everybody_costs_the_week_nothing_but_time",
    "test_resolution_pass_while_the_first_model_answers_completes_nothing",
    "test_last_position_settles_and_every_place_shows_the_money",
    "test_concurrent_runs_leave_the_ledger_of_a_single_run",
    "test_killed_at_each_step_boundary_and_run_again_nothing_differs",
    "test_one_unusable_row_of_each_kind_costs_no_other_row",
    "test_absurd_or_missing_price_never_collapses_the_value",
    "test_closed_position_keeps_its_value_is_shown_as_awaiting_and_can_not_be_sold",
    "test_anything_but_the_documented_end_is_none",
    "test_winner_is_found_by_token_when_outcomes_change_places",
    "test_malformed_answer_is_asked_again_with_the_reason_and_both_are_paid",
    "test_date_filter_covers_the_day_in_every_format",
    "test_every_endpoint_has_the_same_agent_figures",
    "test_in_archive_and_admin_negative_numbers_are_numbers_and_formulas_text",
    "test_another_client_can_not_lock_the_operator_out",
    "test_every_page_answers_while_jobs_hold_their_transaction_open",
    "test_no_migration_locks_or_rewrites_a_big_table_for_long",
    "test_hostile_questions_change_neither_headings_nor_rows",
    "test_release_that_has_ended_is_approved_before_a_cohort_starts",
    "test_spend_limit_counts_what_is_booked",
    "test_silent_worker_is_an_alert_after_a_minute_and_sent_once",
    "test_forgery_whose_hashes_were_put_right_is_named",
    "test_answers_outlast_a_server_that_stops",
    "test_tampered_rows_are_named_and_rebuilt",
)
"""The test that shows each failure first; further ones stand beside it."""
RAIN = "Will it rain?"
DAY, TEN = timedelta(days=1), timedelta(minutes=10)
EVERYBODY = (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN)


def test_every_failure_has_a_test() -> None:
    files = (PROJECT / "tests").rglob("test_*.py")
    names = {name for path in files for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert set(TESTS_OF_FAILURES) - names == set()


def open_season(venue: Venue) -> None:
    venue.market(RAIN)
    venue.start_first_cohort()


def buy(venue: Venue) -> None:
    venue.says(GPT, bet(RAIN, "YES", 500))
    assert run("run_decisions", DECISION)["trades"] == 1


season = shared_rows_at_venue(open_season)
bought = shared_rows_at_venue(buy, after=season, name="season")


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    """One market synced and cohort 1 started, Sunday midnight."""
    return venue.as_left(season[0])


@pytest.fixture
def holding(bought: tuple[Venue, None], venue: Venue) -> Venue:
    """GPT holds 1,250 YES shares of it, bought for 500."""
    return venue.as_left(bought[0])


def facts(address: str, client: Client) -> dict[str, str]:
    """The facts at the head of a page, without small print."""
    rows = elements(get_page(client, address), "dl > div:has(dd)")
    return {visible_text(row, "dt"): own_text(element(row, "dd")) for row in rows}


def page_text(client: Client, address: str) -> str:
    return unescape(client.get(address).content.decode())


@pytest.mark.parametrize("status", [402, 503])
def test_a_gateway_that_fails_for_everybody_costs_the_week_nothing_but_time(opened: Venue, status: int) -> None:
    for model in EVERYBODY[:1] if status == 402 else EVERYBODY:
        opened.says(model, Failure(status))
    with time_machine.travel(DECISION, tick=False), pytest.raises(jobs.JobFailed, match=rf"GPT-5.2.*{status}"):
        jobs.decisions()
    assert Run.objects.get(kind="run_decisions").status == Run.Status.FAILED
    recorded = Decision.objects.filter(status="failed", action=None, error__contains=str(status))
    assert recorded.count() == len(EVERYBODY)
    assert {prompt.model for prompt in opened.asked} == set(EVERYBODY[:1] if status == 402 else EVERYBODY)
    refused = recorded.filter(error__startswith="the account was refused, not the model: ")
    assert refused.count() == (len(EVERYBODY) if status == 402 else 0)  # without credit nobody else is asked
    assert run("check_resolutions", DECISION + timedelta(hours=1))["cohorts_completed"] == 0
    assert Cohort.objects.get().status == Cohort.Status.ACTIVE
    with time_machine.travel(DECISION + timedelta(hours=23), tick=False):
        jobs.decisions()
    assert Decision.objects.filter(status="completed", action="HOLD", fallback=False).count() == len(EVERYBODY)


class StallingClob(Clob):
    """Has its prices, but does not come back with them before `meanwhile` is over."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(settings.CLOB_BASE_URL)
        self.meanwhile = meanwhile

    def midpoints(self, token_ids: Iterable[str]) -> TokenValues[Decimal]:
        prices = super().midpoints(token_ids)
        self.meanwhile()
        return prices


def test_a_worker_that_waits_on_prices_while_another_decides_trades_nothing(opened: Venue) -> None:
    def overtake() -> None:
        opened.move(RAIN, Yes="0.44", No="0.56")
        assert run("run_decisions", DECISION)["trades"] == 1

    opened.says(GPT, bet(RAIN, "YES", 500), bet(RAIN, "NO", 900))
    with StallingClob(overtake) as clob, clients.gateway() as gateway:
        report = run_decisions(at=DECISION, settings=clients.call_settings(gateway), clob=clob)
    assert (report.asked, report.trades, report.failed) == (0, 0, 0)
    assert len(opened.asked) == len(EVERYBODY)
    assert Universe.objects.count() == 1
    assert Trade.objects.get().price == Decimal("0.44")


def test_a_payout_that_breaks_off_halfway_is_paid_whole_by_the_next_pass(holding: Venue) -> None:
    """What was written of it before its last row is gone with the rest."""

    def breaks_off(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith('INSERT INTO "agents_journalentry"'):
            raise OperationalError("server closed the connection")
        return execute(sql, params, many, context)

    holding.resolve(RAIN, "Yes")
    with connection.execute_wrapper(breaks_off):
        assert run("check_resolutions", SUNDAY + DAY).code == 1
    assert not Settlement.objects.exists()
    assert Agent.objects.get(model_id=GPT).cash == Decimal("9500.00")
    ran = run("check_resolutions", SUNDAY + 2 * DAY)
    assert (ran["resolved"], ran["positions_settled"], ran["brier_rows"]) == (1, 1, 1)
    assert Agent.objects.get(model_id=GPT).cash == Decimal("10750.00")


@pytest.mark.forged_record
def test_a_bet_that_is_paid_late_pays_nobody_else_again(holding: Venue) -> None:
    holding.resolve(RAIN, "Yes")
    assert run("check_resolutions", SUNDAY + DAY)["positions_settled"] == 1
    record_bet(Agent.objects.get(model_id=GROK), Market.objects.get(), "YES", "800.00")
    ran = run("check_resolutions", SUNDAY + 2 * DAY)
    assert (ran.code, ran["positions_settled"]) == (0, 1)
    cash = Agent.objects.filter(model_id__in=(GPT, GROK)).values_list("model_id", "cash")
    assert dict(cash) == {GPT: Decimal("10750.00"), GROK: Decimal("11200.00")}
    assert JournalEntry.objects.filter(kind="payout").count() == BrierScore.objects.count() == 2


def test_a_stale_price_is_marked_wherever_it_is_page_text(holding: Venue, client: Client, admin_client: Client) -> None:
    places = {f"/markets/{Market.objects.get().pk}/": 5, "/cohorts/1/gpt-5.2/": 1}
    """How often each page says so: the market's of both sides, of what was observed of them, and of the position."""

    def marked() -> dict[str, int]:
        return {page: page_text(client, page).count('<span class="badge stale">') for page in places}

    run("take_snapshots", SUNDAY + TEN)
    assert marked() == dict.fromkeys(places, 0)
    assert "arena_stale_prices 0.0" in page_text(client, "/metrics")
    holding.quote(holding.tokens(RAIN)[0], None)
    holding.gone.add(holding.row(RAIN)["id"])
    for command in ("sync_markets", "take_snapshots"):
        run(command, SUNDAY + 2 * TEN)
    assert marked() == places
    assert "arena_stale_prices 1.0" in page_text(client, "/metrics")
    assert "1 held price stale" in page_text(admin_client, reverse("admin:index"))
    (newest, *_) = client.get("/api/v1/snapshots/", {"family": "gpt-5.1"}).json()["results"]
    assert (newest["total_value"], newest["stale_positions"]) == ("10000.00", 1)
    (outcome, _) = client.get(f"/api/v1/markets/{Market.objects.get().pk}/").json()["outcomes"]
    assert (outcome["side"], outcome["stale"]) == ("YES", True)


def test_what_awaits_its_resolution_says_so_and_keeps_its_value_on_every_page(holding: Venue, client: Client) -> None:
    """Bought at 0.40, worth 0.52 when it closed; upstream shows 0.9995."""
    holding.move(RAIN, Yes="0.52", No="0.48")
    for command in ("sync_markets", "take_snapshots"):
        run(command, SUNDAY + DAY)
    holding.close(RAIN, "0.9995", "0.0005", status="disputed")
    for command in ("sync_markets", "take_snapshots", "check_resolutions"):
        run(command, SUNDAY + 2 * DAY)
    texts = {
        f"/markets/{Market.objects.get().pk}/": "Closed and awaiting its resolution",
        "/cohorts/1/gpt-5.2/": "awaiting resolution",
        "/cohorts/1/": "1 awaiting resolution",
        "/cohorts/": "1 awaiting resolution",
    }
    assert [page for page, text in texts.items() if text not in page_text(client, page)] == []
    (agent,) = client.get("/api/v1/agents/", {"family": "gpt-5.1"}).json()["results"]
    (entry,) = [e for e in client.get("/api/v1/leaderboard/").json()["results"] if e["family"] == "gpt-5.1"]
    assert agent["total_value"] == entry["total_value"] == "10150.00"
    assert facts("/cohorts/1/gpt-5.2/", client)["Total value"] == "$10,150.00"
    assert facts("/models/gpt-5.2/", client)["Mean value"] == "$10,150.00"


def test_a_malformed_answer_is_paid_for_wherever_a_cost_is_page_text(opened: Venue, client: Client) -> None:
    opened.says(GPT, "I would rather not say.", '{"action": "HOLD"}')
    ran = run("run_decisions", DECISION)
    assert Decimal(ran["cost_usd"]) == Decimal("0.008")
    decision = Decision.objects.get(agent__model_id=GPT)
    assert [call.result for call in decision.calls.all()] == ["malformed", "answered"]
    assert client.get(f"/api/v1/decisions/{decision.pk}/").json()["cost_usd"] == "0.002000"
    (entry,) = [e for e in client.get("/api/v1/leaderboard/").json()["results"] if e["family"] == "gpt-5.1"]
    assert entry["cost_usd"] == "0.002000"
    places = {
        f"/decisions/{decision.pk}/": 1,
        "/cohorts/1/gpt-5.2/": 2,
        "/cohorts/1/": 1,
        "/models/gpt-5.2/": 4,
        "/trading/": 1,
    }
    assert {page: client.get(page).content.decode().count("$0.0020") for page in places} == places
    assert f'arena_model_cost_usd{{model="{GPT}"}} 0.002' in page_text(client, "/metrics")
    assert week_spending("trading", SUNDAY).spent == Decimal("0.008")


def test_sunday_midnight_belongs_to_the_new_week(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY - timedelta(hours=1))
    assert run("start_cohort", SUNDAY - timedelta(microseconds=1)).summary["cohort"] == 1
    assert run("start_cohort", SUNDAY).summary["cohort"] == 2
    assert [cohort.week_start for cohort in Cohort.objects.order_by("number")] == [SUNDAY - timedelta(weeks=1), SUNDAY]
    for at in (SUNDAY - timedelta(microseconds=1), SUNDAY):
        assert run("run_decisions", at).code == 0
    weeks = Decision.objects.values_list("cohort__number", "week").distinct()
    assert set(weeks) == {(1, 1), (1, 2), (2, 1)}


AMOUNTS = ("492.02", "419.13", "459.07", "538.01", "63.74")
"""The mean of these bets' scores has another last digit where they are added up one after another."""


def test_an_archive_and_the_admin_have_the_numbers_of_the_api(
    venue: Venue, client: Client, admin_client: Client, tmp_path: Path
) -> None:
    questions = [f"Question {number}?" for number in range(len(AMOUNTS))]
    for question, price in zip((*questions, RAIN), ("0.37", "0.41", "0.113", "0.59", "0.87", "0.661"), strict=True):
        venue.market(question, {"Yes": price, "No": str(1 - Decimal(price))})
    venue.start_first_cohort()
    first, *later_bets = [(question, "YES", amount) for question, amount in zip(questions, AMOUNTS, strict=True)]
    venue.says(GPT, bet(*first, *later_bets, (RAIN, "NO", "132.52")))
    venue.says(GROK, "no JSON", bet(RAIN, "YES", "647.51"))
    assert run("run_decisions", DECISION).code == 0
    for number, question in enumerate(questions):
        venue.resolve(question, "No" if number % 2 else "Yes")
    venue.move(RAIN, Yes="0.713", No="0.287")
    for command in ("sync_markets", "check_resolutions", "take_snapshots"):
        assert run(command, SUNDAY + DAY).code == 0
    assert run("export_dataset", None, "--out", tmp_path / "all").code == 0

    entries = {entry["family"]: entry for entry in client.get("/api/v1/leaderboard/").json()["results"]}
    figures = ("rank", "return_percent", "return_ci", "brier", "brier_ci", "bss_market", "win_rate", "resolved_bets")
    money = ("total_value", "pnl", "cost_usd")
    listed = [row for row in table_rows(tmp_path / "all", "leaderboard_trading") if not row["methodology"]]
    assert len(listed) == len(entries) == len(EVERYBODY)
    for row in listed:
        entry = entries[row["family"]]
        assert {key: row[key] for key in figures} == {key: entry[key] for key in figures}
        assert {key: row[key] for key in money} == {key: Decimal(entry[key]) for key in money}
    assert {row["family"]: row["resolved_bets"] for row in listed if row["resolved_bets"]} == {"gpt-5.1": len(AMOUNTS)}

    agents = {agent["id"]: agent for agent in client.get("/api/v1/agents/").json()["results"]}
    names = {agent["display_name"]: agent for agent in agents.values()}
    money_fields = ("cash", "positions_value", "total_value", "pnl")
    archived = table_rows(tmp_path / "all", "snapshots")
    assert len(archived) == len(agents)
    for row in archived:
        agent = agents[row["agent"]]
        assert {key: row[key] for key in money_fields} == {key: Decimal(agent[key]) for key in money_fields}
        assert (row["brier"], row["resolved_bets"]) == (agent["brier"], agent["resolved_bets"])
        assert agent["brier"] == entries[agent["family"]]["brier"]
    listed = admin_csv(admin_client, "scoring_snapshot")
    assert len(listed) == len(agents)
    for line in listed:
        agent = names[line["agent"].partition(" in cohort")[0]]
        assert {key: line[key] for key in money_fields} == {key: agent[key] for key in money_fields}
        assert line["brier"] == ("" if agent["brier"] is None else repr(agent["brier"]))


FORMULAS = ("=1+1?", "+1 degree?", "-1 degree?", "@home?")
"""What a question begins with, a spreadsheet would calculate."""


def test_in_archive_and_admin_negative_numbers_are_numbers_and_formulas_text(
    venue: Venue, admin_client: Client, tmp_path: Path
) -> None:
    for question in FORMULAS:
        venue.market(question)
    venue.start_first_cohort()
    bets = bet(FORMULAS[0], "YES", 100, *((question, "YES", 100) for question in FORMULAS[1:]))
    venue.says(GPT, lambda prompt: bets(prompt) | {"reasoning": "\t=1+1"})
    assert run("run_decisions", DECISION)["trades"] == len(FORMULAS)
    assert run("export_dataset", None, "--out", tmp_path / "all").code == 0
    assert {row["question"] for row in csv_cells(tmp_path / "all", "markets")} == {f"'{text}" for text in FORMULAS}
    assert {row["question"] for row in table_rows(tmp_path / "all", "markets")} == set(FORMULAS)
    assert "'\t=1+1" in {row["reasoning"] for row in csv_cells(tmp_path / "all", "decisions")}
    bought = [row["amount"] for row in csv_cells(tmp_path / "all", "journal") if row["kind"] == "buy"]
    assert bought == ["-100.00"] * len(FORMULAS)
    entries = [row for row in admin_csv(admin_client, "agents_journalentry") if row["kind"] == "buy"]
    assert {row["market"] for row in entries} == {f"'{text}" for text in FORMULAS}
    assert {row["amount"] for row in entries} == {"-100.00"}


def admin_csv(operator: Client, model: str) -> list[dict[str, str]]:
    """The rows of an admin list as its CSV has them."""
    answer: Any = operator.get(reverse(f"admin:{model}_csv"))
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
