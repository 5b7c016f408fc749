"""Admin pages of snapshots and leaderboards."""

import pytest
from django.test import Client
from django.urls import reverse

from scoring.models import Leaderboard
from tests.factories import WEEK, AgentFactory, SnapshotFactory

pytestmark = pytest.mark.django_db


def test_leaderboard_entries_are_escaped(admin_client: Client) -> None:
    leaderboard = Leaderboard.objects.create(
        protocol="trading", computed_at=WEEK, entries=[{"family": "grok-4", "display_name": "<b>Grok</b>"}]
    )
    page = admin_client.get(reverse("admin:scoring_leaderboard_change", args=[leaderboard.pk])).content.decode()
    assert "&lt;b&gt;Grok&lt;/b&gt;" in page
    assert "<b>Grok</b>" not in page


def test_snapshots_are_found_by_agent_name(admin_client: Client) -> None:
    SnapshotFactory(agent=AgentFactory())
    page = admin_client.get(reverse("admin:scoring_snapshot_changelist"), {"q": "GPT"})
    assert page.context["cl"].result_count == 1
