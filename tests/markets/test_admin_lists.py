"""Admin lists: periods of the date hierarchy, and the queries of counts, filters and detail pages."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Forecast
from foundation.admin.readonly import periods
from foundation.models import Run
from markets.models import Market, Question
from tests.factories import MarketFactory, ask, play_week
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
week = shared_rows(play_week)

INSTANTS = [
    datetime(2025, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    datetime(2026, 10, 2, 0, 0, 0, 1, UTC),
    datetime(2026, 10, 2, 18, tzinfo=UTC),
]


def _create_runs() -> None:
    for at in reversed(INSTANTS):
        Run.objects.create(kind="sync_markets", at=at, started_at=at)


@pytest.mark.parametrize("kind", ["year", "month", "day"])
def test_periods_are_those_of_queryset_datetimes(kind: Any) -> None:
    _create_runs()
    dates = periods(Run.objects.all(), "at", kind)
    assert dates == list(Run.objects.datetimes("at", kind))
    assert len(dates) == {"year": 2, "month": 3, "day": 4}[kind]


def test_periods_skip_rows_without_a_time_and_rows_filtered_out() -> None:
    MarketFactory(closed=True)
    MarketFactory()
    assert len(periods(Market.objects.all(), "closed_at", "day")) == 1
    assert periods(Market.objects.filter(closed_at=None), "closed_at", "day") == []


def hierarchy_links(client: Client, **query: str) -> list[str]:
    page = client.get(reverse("admin:foundation_run_changelist"), query).content.decode()
    return [link.partition("</a>")[0].strip() for link in page.partition('class="toplinks"')[2].split("<a ")][1:]


def test_the_date_hierarchy_leads_from_years_to_days(admin_client: Client) -> None:
    _create_runs()
    words = [link.partition(">")[2] for link in hierarchy_links(admin_client)]
    assert words[:2] == ["2025", "2026"]
    words = [link.partition(">")[2] for link in hierarchy_links(admin_client, at__year="2026")]
    assert words[1:3] == ["January 2026", "October 2026"]
    words = [link.partition(">")[2] for link in hierarchy_links(admin_client, at__year="2026", at__month="1")]
    assert words[1:3] == ["January 1", "January 31"]


def queries_of(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in captured]


@pytest.mark.parametrize("name", ["decision", "elicitation"])
def test_the_count_of_a_list_is_bounded_and_sums_no_costs(week: Any, admin_client: Client, name: str) -> None:
    sql = queries_of(admin_client, reverse(f"admin:agents_{name}_changelist"))
    (count,) = [query for query in sql if query.startswith("SELECT COUNT(") and f'"agents_{name}"' in query]
    assert "LIMIT" in count
    assert "SUM(" not in count
    assert [query for query in sql if "datetime_trunc" in query.lower()] == []


def test_filter_values_come_from_the_smaller_table(week: Any, admin_client: Client) -> None:
    entry = ask(Question.objects.earliest("pk"), {"gpt-5.1": [0.6, 0.4]}, arm="blind")
    path = reverse("admin:agents_forecast_changelist")
    assert not any(query.startswith('SELECT DISTINCT "agents_forecast"') for query in queries_of(admin_client, path))
    (arm,) = [spec for spec in admin_client.get(path).context["cl"].filter_specs if spec.title == "arm"]
    assert list(arm.lookup_choices) == ["blind", "priced"]
    result_list = admin_client.get(path, {"arm": "blind", "methodology": "v2"}).context["cl"].result_list
    assert {forecast.arm for forecast in result_list} == {"blind"}
    assert entry.question_id in {forecast.question_id for forecast in result_list}


def test_the_page_of_an_elicitation_loads_its_family_once(week: Any, admin_client: Client) -> None:
    forecast = Forecast.objects.latest("pk")
    sql = queries_of(admin_client, reverse("admin:agents_elicitation_change", args=[forecast.elicitation_id]))
    assert len([query for query in sql if 'FROM "agents_family"' in query]) == 1
