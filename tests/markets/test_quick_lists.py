"""Lists of records: their days are right, and what stands above and beside them asks little."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Forecast
from markets.models import Market, Question, Run
from markets.quick_lists import periods
from tests.factories import MarketFactory, asked, play_week

pytestmark = pytest.mark.django_db

INSTANTS = [
    datetime(2025, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 31, 12, tzinfo=UTC),
    datetime(2026, 10, 2, 0, 0, 0, 1, UTC),
    datetime(2026, 10, 2, 18, tzinfo=UTC),
]


def _runs() -> None:
    for at in reversed(INSTANTS):
        Run.objects.create(kind="sync_markets", at=at, started_at=at)


@pytest.mark.parametrize("kind", ["year", "month", "day"])
def test_the_periods_of_rows_are_those_that_django_finds(kind: Any) -> None:
    _runs()
    found = periods(Run.objects.all(), "at", kind)
    assert found == list(Run.objects.datetimes("at", kind))
    assert len(found) == {"year": 2, "month": 3, "day": 4}[kind]


def test_rows_without_a_time_have_no_period_and_those_that_are_left_out_neither() -> None:
    MarketFactory(closed=True)
    MarketFactory()
    assert len(periods(Market.objects.all(), "closed_at", "day")) == 1
    assert periods(Market.objects.filter(closed_at=None), "closed_at", "day") == []


def hierarchy(client: Client, **query: str) -> list[str]:
    page = client.get(reverse("admin:markets_run_changelist"), query).content.decode()
    return [link.partition("</a>")[0].strip() for link in page.partition('class="toplinks"')[2].split("<a ")][1:]


def test_a_list_leads_from_years_to_days(admin_client: Client) -> None:
    _runs()
    words = [link.partition(">")[2] for link in hierarchy(admin_client)]
    assert words[:2] == ["2025", "2026"]
    words = [link.partition(">")[2] for link in hierarchy(admin_client, at__year="2026")]
    assert words[1:3] == ["January 2026", "October 2026"]
    words = [link.partition(">")[2] for link in hierarchy(admin_client, at__year="2026", at__month="1")]
    assert words[1:3] == ["January 1", "January 31"]


def asked_by(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in captured]


@pytest.mark.parametrize("name", ["decision", "elicitation"])
def test_the_cost_of_a_row_that_is_not_shown_is_not_added_up(admin_client: Client, name: str) -> None:
    play_week()
    sql = asked_by(admin_client, reverse(f"admin:agents_{name}_changelist"))
    (count,) = [query for query in sql if query.startswith("SELECT COUNT(") and f'"agents_{name}"' in query]
    assert "LIMIT" in count
    assert "SUM(" not in count
    assert [query for query in sql if "datetime_trunc" in query.lower()] == []


def test_the_arms_to_choose_from_are_looked_up_where_they_are_few(admin_client: Client) -> None:
    play_week()
    entry = asked(Question.objects.earliest("pk"), {"gpt-5.1": [0.6, 0.4]}, arm="blind")
    path = reverse("admin:agents_forecast_changelist")
    assert not any(query.startswith('SELECT DISTINCT "agents_forecast"') for query in asked_by(admin_client, path))
    (arm,) = [spec for spec in admin_client.get(path).context["cl"].filter_specs if spec.title == "arm"]
    assert list(arm.lookup_choices) == ["blind", "priced"]
    found = admin_client.get(path, {"arm": "blind", "methodology": "v2"}).context["cl"].result_list
    assert {forecast.arm for forecast in found} == {"blind"}
    assert entry.question_id in {forecast.question_id for forecast in found}


def test_the_page_of_an_elicitation_asks_for_its_family_once_whatever_was_forecast(admin_client: Client) -> None:
    play_week()
    forecast = Forecast.objects.latest("pk")
    sql = asked_by(admin_client, reverse("admin:agents_elicitation_change", args=[forecast.elicitation_id]))
    assert len([query for query in sql if 'FROM "agents_family"' in query]) == 1
