"""A methodology that a cohort uses can not be changed: by code, by SQL, on a fresh database or a migrated one."""

from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from agents.services.enrolment import cohort_start
from cohorts.methodologies.v1 import V1
from cohorts.models import Methodology

pytestmark = pytest.mark.django_db
PUBLISHED = "3d827980"
"""The first characters of v1's fingerprint. A change of v1 is a new version, never a new value here."""


def v1() -> Methodology:
    return Methodology.objects.get(version="v1")


def test_v1_is_as_it_was_published() -> None:
    assert v1().sha256.startswith(PUBLISHED)
    assert Methodology(**V1).sha256 == v1().sha256


def test_in_use_it_can_not_be_changed_by_code_or_sql() -> None:
    cohort_start(at=datetime(2026, 3, 8, tzinfo=UTC))
    before = v1().sha256
    changed = v1()
    changed.universe_size = 100
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        changed.save()
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        connection.cursor().execute("UPDATE cohorts_methodology SET max_tokens = 1")
    assert v1().sha256 == before


def test_not_in_use_it_is_still_a_draft_and_its_title_never_freezes() -> None:
    Methodology.objects.filter(version="v1").update(universe_size=100)
    cohort_start(at=datetime(2026, 3, 8, tzinfo=UTC))
    Methodology.objects.filter(version="v1").update(title="Trading")
    assert v1().title == "Trading"


def test_guard_comes_back_after_a_migrate() -> None:
    cohort_start(at=datetime(2026, 3, 8, tzinfo=UTC))
    on = " ON cohorts_methodology" if connection.vendor == "postgresql" else ""
    connection.cursor().execute(f"DROP TRIGGER methodology_in_use_is_frozen{on}")
    call_command("migrate", verbosity=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        connection.cursor().execute("UPDATE cohorts_methodology SET max_tokens = 1")
