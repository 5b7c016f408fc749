"""Every admin page: search, filters, counted queries, read-only records, downloads."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from agents.models import (
    AgentVersion,
    Application,
    Chain,
    CreditReading,
    Decision,
    Family,
    Forecast,
    JournalEntry,
    Maintenance,
    Maker,
    ManualSettlement,
    Registration,
    Release,
    RunSetting,
    SigningKey,
    Trade,
)
from agents.services.chain import append_publication
from agents.services.lineups import propose_lineup
from cohorts.models import Cohort, Methodology, MissedWeek
from foundation.admin import readonly
from foundation.admin.readonly import ReadOnlyAdmin
from foundation.services.alerts import raise_alert
from markets.models import (
    CacheVersion,
    EvidenceClaim,
    EvidenceSnippet,
    Market,
    OrderBook,
    QuestionEntry,
    UniverseEntry,
    VenueTraffic,
)
from scoring.models import AgentsBoard, Leaderboard, PublishedBoard, Snapshot
from tests.arena_site.addresses import admin_address as url
from tests.factories import (
    WEEK,
    AgentFactory,
    DecisionFactory,
    FamilyFactory,
    MarketFactory,
    ModelCallFactory,
    bet,
    play_week,
    seal_hold,
    submit_hold,
)
from tests.selection import sample_and_all, some_of_each
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

OURS = [model for app in ("markets", "cohorts", "agents", "scoring") for model in apps.get_app_config(app).get_models()]
CONFIGURED = {Family, Release, Methodology, Registration}
WRITABLE = CONFIGURED | {User, Group}
FIXED = {AgentsBoard, Chain, Methodology, CacheVersion, Leaderboard, SigningKey, VenueTraffic}
"""Tables that do not grow with the season."""
BIG = ("snapshot", "priceobservation", "modelcall", "journalentry", "trade")


def name(model: type[Model]) -> str:
    return model._meta.model_name or ""


def grow() -> None:
    week = play_week().week_start
    MissedWeek.objects.create(week_start=week + timedelta(weeks=20), recorded_at=week, reason="down")
    raise_alert(kind="closed-unresolved", items={str(week): "Closed?"}, message="Closed for long.", at=WEEK)
    VenueTraffic.objects.get_or_create(venue="polymarket")
    Maintenance.objects.create(began_at=week, ended_at=week, is_open=False, reason="new disks")
    CreditReading.objects.create(read_at=week, key_label="sk-or", used_usd=week.day)
    newcomer = FamilyFactory().releases.get()
    RunSetting.objects.create(protocol="trading", family=newcomer.family, paused=True)
    guest = submit_hold(Decision.objects.exclude(universe=None).latest("pk")).registration.family
    AgentVersion.objects.create(family=guest, number=1, began_at=week)
    seal_hold(AgentFactory(family=newcomer.family, release=newcomer, cohort=Cohort.objects.latest("pk")))
    Maker.objects.create(name="Ada", address=f"ada@{guest.slug}.example", confirmed_at=week)
    Application.objects.create(name="Guest", slug="guest", maker_name="Ada", address="ada@a.example", requested_at=week)
    propose_lineup(releases=[newcomer], by="ann", reason="to see", at=WEEK)
    universe_entry = UniverseEntry.objects.latest("pk")
    universe, outcome = universe_entry.universe, universe_entry.market.outcomes.all()[0]
    OrderBook.objects.get_or_create(universe=universe, outcome=outcome, captured_at=week, bids=[], asks=[])
    market = universe_entry.market
    manual = {"kind": "settlement", "positions": 0, "reason": "to see", "source": "the venue", "settled_by": "ann"}
    ManualSettlement.objects.create(market=market, settled_at=week, **manual)
    board = {"protocol": "trading", "at": week, "entries": [], "report": {}, "sha256": "0" * 64}
    PublishedBoard.objects.create(**board, link=append_publication([]))
    entry = QuestionEntry.objects.latest("pk")
    EvidenceClaim.objects.create(day=week, methodology="v3", lease_until=week)
    EvidenceSnippet.objects.create(entry=entry, position=entry.snippets.count() + 1, text="Dry.", retrieved_at=week)


grown = shared_rows(grow)


def queries(client: Client, path: str, *, again: bool = False) -> tuple[int, Any]:
    """How many queries a page costs, and the page; what Django remembers once is remembered by then."""
    if not again:
        client.get(path)
    with CaptureQueriesContext(connection) as captured:
        page = client.get(path)
    assert page.status_code == 200, path
    return len(captured), page


def test_every_model_is_registered() -> None:
    assert [model for model in OURS if model not in admin.site._registry] == []


def kind_of_admin(model: type[Model]) -> tuple[str, bool]:
    """The rule by which admin pages are grouped: pages of an app are written alike, and big tables are paged."""
    return model._meta.app_label, name(model) in BIG


@pytest.mark.parametrize("models", sample_and_all(OURS, kind_of_admin))
def test_query_count_of_lists_and_change_pages_is_independent_of_rows(
    grown: None, admin_client: Client, models: list[type[Model]]
) -> None:
    rows: Any = {model: model._default_manager.order_by("pk").first() for model in models}

    def counted(*, again: bool = False) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
        """The queries and rows of each list, and the queries of the page of its first row."""
        pages = {name(model): queries(admin_client, url(model, "changelist"), again=again) for model in models}
        lists = {of: (count, len(page.context["cl"].result_list)) for of, (count, page) in pages.items()}
        changes = {name(m): queries(admin_client, url(m, "change", row.pk), again=again)[0] for m, row in rows.items()}
        return lists, changes

    lists, changes = counted()
    grow()
    grow()
    later_lists, later_changes = counted(again=True)
    assert [of for of in lists if not lists[of][1]] == []
    assert {of for of in lists if later_lists[of][1] <= lists[of][1]} <= {name(model) for model in FIXED}
    assert {of: count for of, (count, _) in later_lists.items() if count != lists[of][0] or count > 16} == {}
    assert {of: count for of, count in later_changes.items() if count != changes[of] or count > 20} == {}


SEARCHED = [model for model, page in admin.site._registry.items() if page.search_fields]


def search_of(model: type[Model]) -> Any:
    return type(admin.site._registry[model]).get_search_results


@pytest.mark.parametrize("model", some_of_each(SEARCHED, search_of, 1), ids=name)
def test_search_of_a_hundred_words_compares_eight(admin_client: Client, model: type[Model]) -> None:
    comparisons = {}
    for words in (8, 100):
        with CaptureQueriesContext(connection) as captured:
            page = admin_client.get(url(model, "changelist"), {"q": " ".join(["e"] * words)})
        comparisons[words] = max(len(query["sql"]) for query in captured)
        assert page.status_code == 200
        assert ("uses its first eight words" in page.content.decode()) == (words > 8)
    assert comparisons[8] == comparisons[100]


@pytest.mark.parametrize("models", sample_and_all(OURS, kind_of_admin))
def test_lists_accept_any_search_text_and_filter(grown: None, admin_client: Client, models: list[type[Model]]) -> None:
    choices = 0
    for model in models:
        response = admin_client.get(url(model, "changelist"), {"q": "zz'1"})
        assert response.context["cl"].result_count == 0, model
        for spec in response.context["cl"].filter_specs:
            if getattr(spec, "parameter_name", "") in ("preset", "day"):
                for value, _ in spec.lookup_choices:
                    answer = admin_client.get(url(model, "changelist"), {spec.parameter_name: value})
                    assert answer.status_code == 200, (model, value)
                    choices += 1
    assert choices > 2 * len(models)


def test_search_matches_words_with_text_and_numbers_with_keys(grown: None, admin_client: Client) -> None:
    trade, address = Trade.objects.earliest("pk"), url(Trade, "changelist")
    for word, keyed, read in ((f"{trade.pk}", True, False), (f"rain {trade.pk}", True, True), ("rain", False, True)):
        with CaptureQueriesContext(connection) as captured:
            response = admin_client.get(address, {"q": word})
        (count_sql,) = (query["sql"] for query in captured if "COUNT(" in query["sql"] and "WHERE" in query["sql"])
        assert ('"agents_trade"."id"' in count_sql.partition("WHERE")[2]) is keyed, word
        assert ('_market"."question"' in count_sql.partition("WHERE")[2]) is read, word
        if word.isdecimal():
            assert list(response.context["cl"].result_list) == [trade]


@pytest.mark.parametrize("model", [model for model in OURS if name(model) in BIG], ids=name)
def test_a_big_table_is_never_counted_in_full(grown: None, admin_client: Client, model: type[Model]) -> None:
    with CaptureQueriesContext(connection) as captured:
        admin_client.get(url(model, "changelist"))
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"] and f'_{name(model)}"' in query["sql"]]
    assert counts
    assert all("LIMIT" in sql for sql in counts)


@pytest.mark.parametrize(
    "model", some_of_each([model for model in OURS if model not in WRITABLE], kind_of_admin, 1), ids=name
)
def test_no_record_can_be_written_even_by_a_superuser(grown: None, admin_client: Client, model: type[Model]) -> None:
    row = model._default_manager.first()
    assert row is not None
    assert admin_client.get(url(model, "change", row.pk)).status_code == 200
    assert admin_client.post(url(model, "change", row.pk), {}).status_code == 403
    assert admin_client.get(url(model, "add")).status_code == 403
    assert admin_client.post(url(model, "add"), {}).status_code == 403
    assert admin_client.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    delete = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(url(model, "changelist"), delete)
    assert model._default_manager.filter(pk=row.pk).exists()


def test_only_configuration_models_can_be_written(rf: RequestFactory, admin_user: User) -> None:
    request = rf.get("/")
    request.user = admin_user
    writable = {
        model
        for model, page in admin.site._registry.items()
        if page.has_add_permission(request)
        or page.has_change_permission(request)
        or page.has_delete_permission(request)
    }
    assert writable == WRITABLE
    assert [m for m in OURS if m not in WRITABLE and not isinstance(admin.site._registry[m], ReadOnlyAdmin)] == []


@pytest.mark.parametrize("model", sorted(CONFIGURED, key=name), ids=name)
def test_configuration_models_have_a_form(admin_client: Client, model: type[Model]) -> None:
    assert admin_client.get(url(model, "add")).status_code == 200


def test_lists_require_a_login(client: Client) -> None:
    for model in OURS:
        assert client.get(url(model, "changelist")).status_code == 302
        if isinstance(admin.site._registry[model], ReadOnlyAdmin):
            assert client.get(url(model, "csv")).status_code == 302


# ── what operators ask ────────────────────────────────────────────────────────────────────────────


def found(client: Client, model: type[Model], preset: str, at: Any, settings: Any) -> set[int]:
    settings.ARENA_CLOCK = at
    rows = client.get(url(model, "changelist"), {"preset": preset}).context["cl"].queryset
    return {row.pk for row in rows}


def test_failed_this_week_is_of_this_week(admin_client: Client, settings: Any) -> None:
    agent = AgentFactory()
    DecisionFactory(agent=agent, week=1, failed=True)
    now = DecisionFactory(agent=agent, week=2, failed=True)
    DecisionFactory(agent=AgentFactory(cohort=agent.cohort), week=2)
    at = WEEK + timedelta(days=8)
    assert found(admin_client, Decision, "failed", at, settings) == {now.pk}
    assert found(admin_client, Decision, "failed", at + timedelta(weeks=5), settings) == set()


def test_fallback_holds_and_those_that_cost_more_than_the_median(admin_client: Client, settings: Any) -> None:
    cohort = AgentFactory().cohort
    decisions = [DecisionFactory(agent=AgentFactory(cohort=cohort), fallback=number == 1) for number in range(3)]
    for decision, cost in zip(decisions, ("0.01", "0.02", "0.03"), strict=True):
        ModelCallFactory(decision=decision, cost_usd=cost)
    at = WEEK + timedelta(days=1)
    assert found(admin_client, Decision, "fallback", at, settings) == {decisions[1].pk}
    assert found(admin_client, Decision, "expensive", at, settings) == {decisions[2].pk}


def test_preset_lists_markets_closed_for_a_day_with_positions(admin_client: Client, settings: Any) -> None:
    waiting = MarketFactory(closed=True, traded=True)
    MarketFactory(closed=True)
    MarketFactory(traded=True)
    assert waiting.closed_at == WEEK + timedelta(days=2)
    assert found(admin_client, Market, "closed-24h", WEEK + timedelta(days=2, hours=23), settings) == set()
    assert found(admin_client, Market, "closed-24h", WEEK + timedelta(days=3), settings) == {waiting.pk}
    assert found(admin_client, Market, "closed-72h", WEEK + timedelta(days=3), settings) == set()


# ── in what order, and how much ───────────────────────────────────────────────────────────────────


def listed(client: Client, model: type[Model], **query: str) -> list[Any]:
    return list(client.get(url(model, "changelist"), query).context["cl"].result_list)


def test_lists_sort_by_related_rows_in_both_directions(grown: None, admin_client: Client) -> None:
    column = str(admin.site._registry[Forecast].get_list_display(None).index("question"))  # type: ignore[arg-type]
    rows = [row.pk for row in Forecast.objects.order_by("-question_id", "-pk")]
    assert len({row.question_id for row in Forecast.objects.all()}) > 1
    assert [row.pk for row in listed(admin_client, Forecast, o=column)] == rows
    rows = [row.pk for row in Forecast.objects.order_by("question_id", "-pk")]
    assert [row.pk for row in listed(admin_client, Forecast, o=f"-{column}")] == rows


def test_pages_of_a_list_hold_each_row_once_in_order(admin_client: Client) -> None:
    agent = AgentFactory()
    for _ in range(51):
        bet(agent, amount="10.00")
    pages = [row.pk for number in ("1", "2") for row in listed(admin_client, Trade, p=number)]
    assert pages == list(Trade.objects.order_by("-pk").values_list("pk", flat=True))
    assert len(listed(admin_client, Trade)) == 50
    assert [row.pk for row in listed(admin_client, Trade, all="")] == pages


def test_snapshots_are_found_by_agent_and_sorted_by_figures_of_a_day(grown: None, admin_client: Client) -> None:
    agent = Snapshot.objects.earliest("pk").agent
    response = listed(admin_client, Snapshot, q=agent.display_name)
    assert {row.agent.display_name for row in response} == {agent.display_name}
    assert not listed(admin_client, Snapshot, q=f"{agent.display_name} nobody")
    day = f"{Snapshot.objects.latest('taken_at').taken_at:%Y-%m-%d}"
    sortable = [
        admin_client.get(url(Snapshot, "changelist"), query).content.decode().count('class="sortable')
        for query in ({}, {"day": day})
    ]
    assert sortable == [2, 8]


# ── taking a list away ────────────────────────────────────────────────────────────────────────────


def csv_rows(client: Client, model: type[Model], **query: str) -> list[dict[str, str]]:
    answer = client.get(url(model, "csv"), query)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))


def test_csv_download_applies_filters_and_escapes_formulas(admin_client: Client) -> None:
    agent = AgentFactory()
    bet(agent, MarketFactory(question="=HYPERLINK(1)"))
    bet(agent, MarketFactory(question="Plain?"), amount="100.00")
    entries = csv_rows(admin_client, JournalEntry, kind__exact="buy")
    assert [(row["kind"], row["amount"], row["market"]) for row in entries] == [
        ("buy", "-100.00", "Plain?"),
        ("buy", "-500.00", "'=HYPERLINK(1)"),
    ]
    assert entries[0]["occurred_at"] == "2026-03-08T00:05:00Z"
    listed = admin_client.get(url(JournalEntry, "changelist"), {"kind__exact": "buy"}).content.decode()
    assert f'href="{url(JournalEntry, "csv")}?kind__exact=buy"' in listed


def test_every_list_can_be_downloaded(grown: None, admin_client: Client) -> None:
    for model in OURS:
        if isinstance(admin.site._registry[model], ReadOnlyAdmin):
            assert csv_rows(admin_client, model), model


def test_download_above_the_row_limit_is_refused(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = AgentFactory()
    for _ in range(3):
        bet(agent, amount="100.00")
    monkeypatch.setattr(readonly, "MAX_CSV_ROWS", 2)
    answer = admin_client.get(url(Trade, "csv"), {"kind__exact": "BUY"}, follow=True)
    assert answer.redirect_chain == [(f"{url(Trade, 'changelist')}?kind__exact=BUY", 302)]
    assert "narrow the list" in answer.content.decode()


def test_invalid_filter_redirects_to_the_list(admin_client: Client) -> None:
    assert admin_client.get(url(Trade, "csv"), {"kind__regexx": "BUY"}).status_code == 302
