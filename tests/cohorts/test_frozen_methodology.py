"""A methodology that a cohort uses can not be changed: by code, by SQL, on a fresh database or a migrated one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from agents.services.cohort_start import start_cohort
from cohorts.methodologies.v1 import V1
from cohorts.methodologies.v2 import V2
from cohorts.models import Methodology

pytestmark = pytest.mark.django_db
PUBLISHED = {"v1": "3d827980", "v2": "92d172b0"}
"""The first characters of each version's fingerprint. A change of one is a new version, never a new value here."""


def current() -> Methodology:
    return Methodology.objects.current()


@pytest.mark.parametrize("data", [V1, V2], ids=lambda data: data["version"])
def test_a_version_is_as_it_was_published(data: dict[str, Any]) -> None:
    stored = Methodology.objects.get(version=data["version"])
    assert stored.sha256.startswith(PUBLISHED[stored.version])
    assert Methodology(**data).sha256 == stored.sha256


def test_v2_trades_as_v1_did() -> None:
    v1, v2 = (Methodology.objects.get(version=version) for version in PUBLISHED)
    fields = [field.name for field in Methodology.frozen_fields()]
    differing = {name for name in fields if getattr(v1, name) != getattr(v2, name)}
    assert differing == {"version", "rulings", "scoring", "forecast"}
    assert v1.forecast_rules is None


def test_in_use_it_can_not_be_changed_by_code_or_sql() -> None:
    start_cohort(at=datetime(2026, 3, 8, tzinfo=UTC))
    before = current().sha256
    changed = current()
    changed.universe_size = 100
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        changed.save()
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        connection.cursor().execute("UPDATE cohorts_methodology SET max_tokens = 1")
    assert current().sha256 == before


def test_not_in_use_it_is_still_a_draft_and_its_title_never_freezes() -> None:
    Methodology.objects.filter(version="v2").update(universe_size=100)
    start_cohort(at=datetime(2026, 3, 8, tzinfo=UTC))
    Methodology.objects.filter(version="v2").update(title="Trading")
    assert current().title == "Trading"


def test_guard_comes_back_after_a_migrate() -> None:
    start_cohort(at=datetime(2026, 3, 8, tzinfo=UTC))
    on = " ON cohorts_methodology" if connection.vendor == "postgresql" else ""
    connection.cursor().execute(f"DROP TRIGGER methodology_in_use_is_frozen{on}")
    call_command("migrate", verbosity=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        connection.cursor().execute("UPDATE cohorts_methodology SET max_tokens = 1")
