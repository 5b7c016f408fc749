"""What holds for every admin page: it opens, it is searched, its queries are counted, records are only read."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Family, Release
from cohorts.models import Methodology, MissedWeek
from markets.models import Alert
from markets.readonly import ReadOnlyAdmin
from tests.factories import WEEK, FamilyFactory, play_week

pytestmark = pytest.mark.django_db

OURS = [model for app in ("markets", "cohorts", "agents", "scoring") for model in apps.get_app_config(app).get_models()]
WRITABLE = {Family, Release, Methodology}
FIXED = {Methodology}
BIG = ("snapshot", "priceobservation", "modelcall", "journalentry", "trade")


def name(model: type[Model]) -> str:
    return model._meta.model_name or ""


def url(model: type[Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{name(model)}_{page}", args=args)


def grow() -> None:
    week = play_week().week_start
    MissedWeek.objects.create(week_start=week + timedelta(weeks=20), recorded_at=week, reason="down")
    Alert.objects.create(kind="closed-unresolved", subject=str(week), message="Closed for long.", raised_at=WEEK)
    FamilyFactory()


def test_every_model_is_registered() -> None:
    assert [model for model in OURS if model not in admin.site._registry] == []


@pytest.mark.parametrize("model", OURS, ids=name)
def test_a_list_costs_the_same_queries_however_many_rows_it_has(admin_client: Client, model: type[Model]) -> None:
    def counted() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as captured:
            page = admin_client.get(url(model, "changelist"))
        assert page.status_code == 200
        return len(captured), len(page.context["cl"].result_list)

    grow()
    before, few = counted()
    grow()
    grow()
    after, many = counted()
    assert few
    assert many > few or model in FIXED or name(model) == "leaderboard"
    assert after == before <= 14


@pytest.mark.parametrize("model", OURS, ids=name)
def test_a_list_can_be_searched_with_any_text(admin_client: Client, model: type[Model]) -> None:
    grow()
    assert admin_client.get(url(model, "changelist"), {"q": "zz'1"}).context["cl"].result_count == 0


@pytest.mark.parametrize("model", [model for model in OURS if name(model) in BIG], ids=name)
def test_a_big_table_is_never_counted_in_full(admin_client: Client, model: type[Model]) -> None:
    grow()
    with CaptureQueriesContext(connection) as captured:
        admin_client.get(url(model, "changelist"))
    counts = [query["sql"] for query in captured if "COUNT(" in query["sql"] and f'_{name(model)}"' in query["sql"]]
    assert counts
    assert all("LIMIT" in sql for sql in counts)


@pytest.mark.parametrize("model", [model for model in OURS if model not in WRITABLE], ids=name)
def test_a_record_can_be_looked_at_but_not_written_even_by_a_superuser(
    admin_client: Client, model: type[Model]
) -> None:
    grow()
    row = model._default_manager.first()
    assert row is not None
    assert isinstance(admin.site._registry[model], ReadOnlyAdmin)
    assert admin_client.get(url(model, "change", row.pk)).status_code == 200
    assert admin_client.post(url(model, "change", row.pk), {}).status_code == 403
    assert admin_client.get(url(model, "add")).status_code == 403
    assert admin_client.post(url(model, "add"), {}).status_code == 403
    assert admin_client.post(url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    delete = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(url(model, "changelist"), delete)
    assert model._default_manager.filter(pk=row.pk).exists()


@pytest.mark.parametrize("model", sorted(WRITABLE, key=name), ids=name)
def test_what_is_configured_has_a_form(admin_client: Client, model: type[Model]) -> None:
    assert admin_client.get(url(model, "add")).status_code == 200


def test_no_list_is_for_the_public(client: Client) -> None:
    for model in OURS:
        assert client.get(url(model, "changelist")).status_code == 302
