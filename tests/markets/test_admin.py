"""Admin pages of markets, universes, runs and alerts."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from foundation.models import Alert
from tests.factories import WEEK, MarketFactory, UniverseFactory

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"


def raise_alert(subject: str = "500001") -> Alert:
    return Alert.objects.create(kind="closed-unresolved", subject=subject, message="Closed for long.", raised_at=WEEK)


def acknowledge(client: Client, *alerts: Alert) -> Any:
    form_data = {"action": "acknowledge", "_selected_action": [alert.pk for alert in alerts]}
    return client.post(reverse("admin:foundation_alert_changelist"), form_data)


def test_a_market_shows_its_question_escaped_and_its_sides(admin_client: Client) -> None:
    market = MarketFactory(question=HOSTILE, prices={HOSTILE: "0.25", "Other": "0.75"})
    for path in ("markets_market_changelist", "markets_outcome_changelist"):
        page = admin_client.get(reverse(f"admin:{path}")).content.decode()
        assert HOSTILE not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    page = admin_client.get(reverse("admin:markets_market_change", args=[market.pk])).content.decode()
    assert HOSTILE not in page
    assert "0.25" in page


def test_a_universe_links_to_its_entries(admin_client: Client) -> None:
    universe = UniverseFactory(markets=[MarketFactory(question="In this universe?")])
    page = admin_client.get(reverse("admin:markets_universe_change", args=[universe.pk])).content.decode()
    link = f"{reverse('admin:markets_universeentry_changelist')}?universe__id__exact={universe.pk}"
    assert f'href="{link}"' in page
    assert "In this universe?" in admin_client.get(link).content.decode()


def test_selected_alerts_go_to_the_dashboards_acknowledgement(admin_client: Client) -> None:
    first_alert, also, _ = raise_alert(), raise_alert("500002"), raise_alert("500003")
    answer = acknowledge(admin_client, first_alert, also)
    assert answer.status_code == 302
    page = admin_client.get(answer.headers["Location"])
    assert {alert.pk for alert in page.context["form"].cleaned_data["alert"]} == {first_alert.pk, also.pk}
    assert not Alert.objects.exclude(cleared_at=None).exists()


def test_a_viewer_can_not_acknowledge_alerts(client: Client) -> None:
    viewer = User.objects.create_user("viewer", password="x", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_alert"))
    client.force_login(viewer)
    assert "Location" not in acknowledge(client, raise_alert()).headers
