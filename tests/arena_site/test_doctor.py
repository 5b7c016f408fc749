"""`doctor`: every fault of settings, services and line-up is one item with one remedy; nothing is bought."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
import time_machine
from django.core.management import call_command
from django.db import OperationalError, connection
from pytest_httpserver import HTTPServer

from agents.models import Agent, LineUp, LineUpEntry, ModelCall, Release
from agents.services.cost_estimate import plan_costs
from agents.services.release_check import current_releases
from cohorts.models import Cohort, Methodology
from foundation.models import Run
from markets.models import QuestionSet
from tests.answers import GEMINI, GPT
from tests.arena_site.dashboard.accounts import action_path, sign_in
from tests.commands import SUNDAY, CommandOutput, run
from tests.databases import PROJECT, postgres_url
from tests.factories import AgentFactory, DecisionFactory, ModelCallFactory, ReleaseFactory, UniverseFactory
from venue_sandbox.personas import catalogue
from venue_sandbox.server import Addresses, running

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
KEY = "sk-or-v1-0123456789abcdef"
RELEASE = f"release {GPT}"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Addresses]:
    with running() as addresses:
        yield addresses


@pytest.fixture
def healthy(sandbox: Addresses, settings: Any) -> Any:
    settings.OPENROUTER_BASE_URL, settings.OPENROUTER_API_KEY = sandbox.openrouter, KEY
    settings.GAMMA_BASE_URL, settings.CLOB_BASE_URL = sandbox.gamma, sandbox.clob
    settings.KALSHI_BASE_URL, settings.ARENA_SOURCES = sandbox.kalshi, ("polymarket", "kalshi")
    settings.ARENA_LINEUP, settings.ARENA_VENUE_TIMEOUT_S = "approve", 2
    return settings


def failed(ran: CommandOutput) -> dict[str, tuple[str, str]]:
    """Detail and remedy of each ✗ by name."""
    return {item["name"]: (item["detail"], item["remedy"]) for item in ran["items"] if not item["ok"]}


def test_healthy_arena_passes_every_check_and_nothing_is_stored(healthy: Any) -> None:
    ran = run("doctor", SUNDAY)
    assert (ran.code, ran["failed"]) == (0, 0)
    assert [item["name"] for item in ran["items"]][:7] == [
        "settings", "database", "polymarket", "clob", "kalshi", "gateway key", "catalogue",
    ]  # fmt: skip
    assert {item["name"] for item in ran["items"] if item["remedy"]} <= {"sqlite"}, "which Python brought"
    assert not ModelCall.objects.exists()
    assert not Run.objects.exists()
    out = StringIO()
    call_command("doctor", at=SUNDAY, stdout=out)
    assert f"✓ {RELEASE}" in " ".join(out.getvalue().split())


@pytest.mark.parametrize(
    ("setting", "value", "name", "detail", "remedy"),
    [
        ("SECRET_KEY_IS_SET", False, "settings", "SECRET_KEY is not set", "Put SECRET_KEY="),
        ("GAMMA_BASE_URL", "http://127.0.0.1:9", "polymarket", "gamma: GET", "GAMMA_BASE_URL"),
        ("CLOB_BASE_URL", "http://127.0.0.1:9", "clob", "", "CLOB_BASE_URL"),
        ("KALSHI_BASE_URL", "http://127.0.0.1:9", "kalshi", "kalshi: GET", "KALSHI_BASE_URL"),
        ("OPENROUTER_API_KEY", "", "gateway key", "not set", "OPENROUTER_API_KEY"),
        ("OPENROUTER_BASE_URL", "http://127.0.0.1:9", "catalogue", "gateway: GET /", "ARENA_LINEUP=unchecked"),
        ("ARENA_SPEND_LIMIT_USD", Decimal("0.01"), "a week's cost", "limit $0.01", "Raise ARENA_SPEND_LIMIT_USD"),
    ],
)
def test_each_fault_is_named_with_its_remedy(
    healthy: Any, setting: str, value: Any, name: str, detail: str, remedy: str
) -> None:
    setattr(healthy, setting, value)
    ran = run("doctor", SUNDAY)
    assert ran.code == 1
    fault = failed(ran)[name]
    assert detail in fault[0]
    assert remedy in fault[1]
    assert KEY not in json.dumps(ran.summary)


def test_source_of_evidence_is_asked_where_one_is_configured(healthy: Any, sandbox: Addresses, tmp_path: Path) -> None:
    def evidence() -> dict[str, Any]:
        return next(item for item in run("doctor", SUNDAY)["items"] if item["name"] == "evidence")

    healthy.ARENA_EVIDENCE, healthy.ARENA_EVIDENCE_KEY = "exa", KEY
    healthy.ARENA_EVIDENCE_BASE_URL = sandbox.exa
    assert evidence()["ok"]
    healthy.ARENA_EVIDENCE_BASE_URL = "http://127.0.0.1:9"
    assert not evidence()["ok"]
    assert "exa: POST /search" in evidence()["detail"]
    assert "ARENA_EVIDENCE_KEY" in evidence()["remedy"]
    healthy.ARENA_EVIDENCE = f"file:{tmp_path}"
    (tmp_path / "texts.jsonl").write_text(
        '{"query": "*", "text": "A text."}\n{"query": "Will it rain?", "text": "B"}\n'
    )
    assert (evidence()["ok"], evidence()["detail"]) == (True, "1 texts read, 0 not readable")
    (tmp_path / "texts.jsonl").write_text("{")
    assert (evidence()["ok"], evidence()["detail"]) == (False, "0 texts read, 1 not readable")


def search_is_on(settings: Any) -> None:
    settings.ARENA_SEARCH = True
    Methodology.objects.filter(version="v3").update(published_at=SUNDAY)
    Release.objects.update(supported_parameters=["structured_outputs"])


def test_search_is_tested_once_on_the_operators_word(healthy: Any) -> None:
    """One model of the sandbox refuses a schema beside the tool."""
    search_is_on(healthy)
    unasked = run("doctor", SUNDAY)
    (item,) = [item for item in unasked["items"] if item["name"].startswith("search")]
    assert (item["ok"], item["detail"][:8]) == (True, "7 models")
    assert not Release.objects.exclude(schema_beside_search=None).exists()
    tested = run("doctor", SUNDAY, test_search=True)
    details = {item["name"]: item["detail"] for item in tested["items"] if item["name"].startswith("search ")}
    assert len(details) == 7
    assert "is asked without it: gateway answered 400" in details[f"search {GEMINI}"]
    assert re.search(r"keeps to the schema: .*; cost \$0\.\d{4}, in no cap", details[f"search {GPT}"])
    schema_support = dict(
        Release.objects.filter(model_id__in=(GPT, GEMINI)).values_list("model_id", "schema_beside_search")
    )
    assert schema_support == {GPT: True, GEMINI: False}
    assert not ModelCall.objects.exists()
    again = run("doctor", SUNDAY, test_search=True)
    assert f"search {GPT}" not in [item["name"] for item in again["items"]]


def test_search_that_is_off_is_not_tested(healthy: Any) -> None:
    assert failed(run("doctor", SUNDAY, test_search=True))["search"][0] == "no condition with a search tool is on"


def test_gateway_that_fails_tells_nothing_about_a_release(healthy: Any, httpserver: HTTPServer) -> None:
    search_is_on(healthy)
    gateway(httpserver, healthy)
    httpserver.expect_request("/chat/completions").respond_with_json({"error": {"code": 503}}, status=503)
    assert "not known: gateway answered 503" in failed(run("doctor", SUNDAY, test_search=True))[f"search {GPT}"][0]
    assert not Release.objects.exclude(schema_beside_search=None).exists()


def gateway(server: HTTPServer, settings: Any, *, key: Any = None, status: int = 200, **changed: Any) -> None:
    """A gateway whose GPT differs in these fields; Gemini is not listed."""
    rows = [row | (changed if row["id"] == GPT else {}) for row in catalogue()["data"] if row["id"] != GEMINI]
    server.expect_request("/models").respond_with_json({"data": rows})
    server.expect_request("/key").respond_with_json({"data": key or {}}, status=status)
    server.expect_request("/credits").respond_with_json({"data": {"total_credits": 10.5, "total_usage": 10.25}})
    settings.OPENROUTER_BASE_URL = server.url_for("")


def test_faults_that_the_gateway_tells(healthy: Any, httpserver: HTTPServer) -> None:
    gateway(httpserver, healthy, key={"limit_remaining": 3}, context_length=20_000)
    ran = run("doctor", SUNDAY)
    faults = failed(ran)
    assert sorted(faults) == ["gateway credits", f"release {GEMINI}", RELEASE]
    assert faults["gateway credits"][0].startswith("$0.25 left")
    assert "is no longer listed" in faults[f"release {GEMINI}"][0]
    assert "approve_lineup gemini-2.5-flash=MODEL" in faults[f"release {GEMINI}"][1]
    assert faults[RELEASE][0].startswith("20,000 tokens do not hold")


@pytest.mark.parametrize("pricing", [{"prompt": "0", "completion": "0"}, {}])
def test_moving_alias_is_named_with_its_target(healthy: Any, httpserver: HTTPServer, pricing: Any) -> None:
    gateway(httpserver, healthy, alias_target={"slug": "openai/gpt-5.6-sol"}, pricing=pricing)
    detail, remedy = failed(run("doctor", SUNDAY))[RELEASE]
    assert "is a moving alias of openai/gpt-5.6-sol" in detail
    assert "approve_lineup" in remedy


def test_marked_alias_is_a_fault_without_a_catalogue(healthy: Any) -> None:
    healthy.ARENA_LINEUP = "unchecked"
    assert RELEASE not in failed(run("doctor", SUNDAY))
    alias = ReleaseFactory(model_id="~openai/gpt-latest")
    line_up = LineUp.objects.create(proposed_at=SUNDAY, proposed_by="an earlier version", reason="-")
    LineUpEntry.objects.create(line_up=line_up, family=alias.family, release=alias, position=1)
    LineUp.objects.filter(pk=line_up.pk).update(
        status="approved", decided_at=SUNDAY, decided_by="an earlier version", effective_from=SUNDAY
    )
    assert "is a moving alias" in failed(run("doctor", SUNDAY))["release ~openai/gpt-latest"][0]


def test_week_costs_the_dearest_price_that_can_apply(healthy: Any, httpserver: HTTPServer) -> None:
    dear = {"min_prompt_tokens": 20000, "prompt": "0.001"}
    price = {"prompt": "0.00000175", "completion": "0.000014"}
    gateway(httpserver, healthy, pricing=price | {"overrides": [dear]})
    cost = next(item for item in run("doctor", SUNDAY)["items"] if item["name"] == "a week's cost")
    assert cost["detail"].startswith("about $27.58 for the decisions of a cohort")  # 26,923 tokens of prompt


def test_release_is_no_fault_of_a_catalogue_that_can_not_be_read(healthy: Any, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/models").respond_with_json({}, status=503)
    healthy.OPENROUTER_BASE_URL = httpserver.url_for("")
    assert failed(run("doctor", SUNDAY))[RELEASE] == ("not looked up", "Mend the catalogue first.")


def test_week_costs_as_many_decisions_as_ever_overlap(healthy: Any) -> None:
    cost = next(item for item in run("doctor", SUNDAY)["items"] if item["name"] == "a week's cost")
    # 26,923 tokens at 9.873 and 8,000 at 54.478 dollars per million, of all seven models, which think
    assert cost["detail"].startswith("about $0.70 for the decisions of a cohort, $3.51 once 5 overlap; ")


def week_and_season() -> set[str]:
    """The costs of the line-up as the dry runs, `doctor` and the dashboard's forms say them."""
    ran = [run(command, SUNDAY, dry_run=True) for command in ("run_decisions", "run_forecasts")]
    costs = {str(check["costs"]) for check in ran}
    item = next(check for check in run("doctor", SUNDAY)["items"] if check["name"] == "a week's cost")
    costs.add(item["detail"].partition("; limit")[0])
    with time_machine.travel(SUNDAY, tick=False):
        forms = ("run_decisions", "run_forecasts") if Cohort.objects.exists() else ("run_forecasts", "start_cohort")
        for action in forms:
            page = sign_in("operator").get(action_path(action), {"confirm": ""})
            costs.add(page.context["preview"].summary.partition("The coming line-up costs ")[2].removesuffix("."))
    return costs


def test_one_figure_of_a_week_and_a_season_before_the_first_call(healthy: Any) -> None:
    """With nothing stored, with a cohort, and with an answer on record."""
    healthy.ARENA_SOURCES = ("polymarket",)  # the other venue has fewer markets than a day has questions
    (assumed,) = week_and_season()
    assert assumed.startswith("about $0.70 for the decisions of a cohort, $3.51 once 5 overlap; $")
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY).code == 0
    assert week_and_season() == {assumed}
    dry = run("run_forecasts", SUNDAY, dry_run=True)
    assert 0 < Decimal(dry["season_usd"]) == pytest.approx(5 * Decimal(dry["week_usd"]), abs=Decimal("0.03"))
    agent = Agent.objects.get(release__model_id=GPT)
    ModelCallFactory(decision=DecisionFactory(agent=agent), model=GPT, cost_usd=Decimal("0.75"))
    (paid,) = week_and_season()
    more = Decimal(paid[7:11]) - Decimal(assumed[7:11])
    # in place of 26,923 and 8,000 tokens at 1.75 and 14 dollars a million
    assert more == pytest.approx(Decimal("0.75") - Decimal("0.1591"), abs=Decimal("0.011"))
    assert "7 models without an answer on record: 8,000 tokens assumed of one that thinks, 2,000 of another" in paid
    assert ModelCall.objects.count() == 1


def test_first_forecasts_are_estimated_from_the_catalogue(healthy: Any) -> None:
    assumed = run("run_forecasts", SUNDAY, dry_run=True)
    assert (assumed["questions"], assumed["asked"], assumed["recorded"]) == (30, 28, 0)
    assert assumed["basis"].endswith("as no market is stored yet")
    assert run("sync_markets", SUNDAY).code == 0
    drafted = run("run_forecasts", SUNDAY, dry_run=True)
    assert drafted["basis"] == "the questions that the stored markets would make"
    assert run("run_forecasts", SUNDAY, dry_run=True, questions=4)["questions"] == 4
    with time_machine.travel(SUNDAY, tick=False):
        page = sign_in("operator").get(action_path("run_forecasts"), {"confirm": ""})
    cost = f"Expected cost: ${Decimal(drafted['cost_usd']):.2f}."
    assert cost in page.context["preview"].summary
    assert Decimal(drafted["cost_usd"]) > Decimal("0.1")
    assert not QuestionSet.objects.exists()
    assert not Run.objects.filter(kind="run_forecasts").exists()
    ran = run("run_forecasts", SUNDAY)
    tokens = [call.tokens_input for call in ModelCall.objects.filter(model=GPT)]
    assert (ran["questions"], len(tokens) * 7) == (drafted["questions"], drafted["asked"])
    frozen = run("run_forecasts", SUNDAY, dry_run=True)
    assert (frozen["asked"], frozen["cost_usd"]) == (0, "0.000000")


def test_model_that_thinks_is_expected_to_take_more_tokens(healthy: Any, httpserver: HTTPServer) -> None:
    """8,000 at 14 dollars a million in place of 2,000, for a decision and for 28 batches of forecasts a week."""
    gateway(httpserver, healthy, supported_parameters=["temperature"])
    plain = run("run_decisions", SUNDAY, dry_run=True)
    httpserver.clear()
    gateway(httpserver, healthy, supported_parameters=["reasoning", "temperature"])
    thinking = run("run_decisions", SUNDAY, dry_run=True)
    more = Decimal("0.000014") * 6000 * (5 + 28)
    assert Decimal(thinking["week_usd"]) - Decimal(plain["week_usd"]) == pytest.approx(more, abs=Decimal("0.011"))
    item = next(check for check in run("doctor", SUNDAY)["items"] if check["name"] == "a week's cost")
    assert item["detail"].startswith(thinking["costs"])


def test_docs_say_what_the_flagships_cost(healthy: Any) -> None:
    flagships = current_releases(at=SUNDAY)
    for release in flagships:
        release.supported_parameters = ["reasoning"]
    plan = plan_costs(at=SUNDAY, releases=flagships)
    deploy = " ".join((ROOT / "docs" / "deploy.md").read_text().split())
    assert f"about ${plan.week_usd:.0f} a week and ${plan.season_usd:.0f} a season of {plan.weeks} weeks" in deploy
    readme = (ROOT / "README.md").read_text()
    live = readme.partition("## Run it live")[2].partition("## ")[0]
    assert re.findall(r"manage.py (\w+)", live) == ["migrate", "approve_lineup", "doctor", "createsuperuser", "arena"]


def test_spend_at_the_limit_is_a_fault_with_its_remedy(healthy: Any) -> None:
    name, week = "trading spend this week", SUNDAY + timedelta(hours=1)
    universe = UniverseFactory(markets=[])
    billed = DecisionFactory(agent=AgentFactory(), universe=universe)
    ModelCallFactory(decision=billed, cost_usd=Decimal("1.25"), cost_source="stated")
    ModelCallFactory(decision=billed, cost_source="booked", cost_usd=Decimal(2), booked_usd=Decimal(2))
    item = next(check for check in run("doctor", week)["items"] if check["name"] == name)
    assert (item["ok"], item["detail"]) == (True, "$1.25 billed, $2.00 booked and not billed yet; limit $25.00")
    healthy.ARENA_SPEND_LIMIT_USD = Decimal(3)
    detail, remedy = failed(run("doctor", week))[name]
    assert detail == "spend cap reached: $3.25 of $3.00 for the week, $2.00 of it booked and not billed yet"
    assert remedy.startswith("Run reconcile_costs, which releases what was booked and not billed, or raise the limit")


def test_refused_key_is_a_fault(healthy: Any, httpserver: HTTPServer) -> None:
    gateway(httpserver, healthy, status=401)
    assert failed(run("doctor", SUNDAY))["gateway key"] == ("refused with 401", "Make a new key at the gateway.")


@pytest.mark.parametrize(("ahead", "fault"), [(30, False), (-90, True), (90, True)])
def test_clock_more_than_a_minute_off_is_a_fault(healthy: Any, httpserver: HTTPServer, ahead: int, fault: bool) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(seconds=ahead), usegmt=True)
    httpserver.expect_request("/credits").respond_with_data("{}", headers={"Date": date})
    gateway(httpserver, healthy)
    faults = failed(run("doctor", SUNDAY))
    assert ("clock" in faults) == fault
    if fault:
        assert f"{'ahead of' if ahead > 0 else 'behind'} gateway's" in faults["clock"][0]


@pytest.mark.postgres_only
def test_postgresql_database_that_is_missing_is_named_with_its_remedy(sandbox: Addresses) -> None:
    server, _, parameters = postgres_url().partition("?")
    address = f"{server.rpartition('/')[0]}/no_such_arena?{parameters}"
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "arena_site.settings", "DATABASE_URL": address, "SECRET_KEY": "x" * 50,
        "GAMMA_BASE_URL": sandbox.gamma, "CLOB_BASE_URL": sandbox.clob,
        "OPENROUTER_BASE_URL": sandbox.openrouter, "OPENROUTER_API_KEY": KEY,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"], cwd=PROJECT, env=env, capture_output=True, text=True
    )
    (item,) = [item for item in json.loads(ran.stdout.splitlines()[-1])["items"] if item["name"] == "database"]
    assert (item["ok"], item["detail"]) == (False, 'database "no_such_arena" does not exist')
    assert "createdb" in item["remedy"]


@pytest.mark.sqlite_only
def test_folder_of_the_database_that_is_missing_is_to_be_made(healthy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[str]:
        raise OperationalError("unable to open database file")

    monkeypatch.setitem(connection.settings_dict, "NAME", "/no/such/folder/arena.sqlite3")
    monkeypatch.setattr(connection.introspection, "table_names", fail)
    remedy = "Make the folder, or correct DATABASE_URL in .env."
    assert failed(run("doctor", SUNDAY))["database"] == ("the folder /no/such/folder is missing", remedy)


def diagnose(env: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """The exit code of a `doctor` with this environment, and its items by their names."""
    command = [sys.executable, "manage.py", "doctor", "--json", "--at", "2026-03-08T00:00:00Z"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    return ran.returncode, {item["name"]: item for item in json.loads(ran.stdout)["items"]}


def environment(sandbox: Addresses, database: str) -> dict[str, str]:
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "arena_site.settings", "DATABASE_URL": f"sqlite:///{database}",
        "OPENROUTER_BASE_URL": sandbox.openrouter, "OPENROUTER_API_KEY": KEY, "ARENA_LINEUP": "approve",
        "GAMMA_BASE_URL": sandbox.gamma, "CLOB_BASE_URL": sandbox.clob,
    }  # fmt: skip


@pytest.mark.thorough
def test_database_without_tables_is_no_fault_and_one_without_migrations_is(sandbox: Addresses, tmp_path: Path) -> None:
    env = environment(sandbox, f"{tmp_path}/new.sqlite3")
    code, items = diagnose(env)
    assert (code, items["database"]["ok"], items[RELEASE]["ok"]) == (0, True, True)
    httpx.post(f"{sandbox.root}/sandbox/models", json={"id": GEMINI, "ends": "2026-03-01"}).raise_for_status()
    code, items = diagnose(env)
    assert (code, items[f"release {GEMINI}"]["remedy"]) == (1, "uv run manage.py arena --current")
    migrate = [sys.executable, "manage.py", "migrate", "-v0", "markets"]
    subprocess.run(migrate, env=env, check=True, cwd=Path(__file__).parents[2])
    code, items = diagnose(env)
    assert (code, items["database"]["remedy"]) == (1, "uv run manage.py migrate")
