"""A methodology's arithmetic and fingerprint, and that a version in use can not be changed by code or by SQL."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from cohorts.methodologies.v1 import V1
from cohorts.methodologies.v2 import V2
from cohorts.methodology_document import MethodologyDocument
from cohorts.models import Methodology
from tests.factories import CohortFactory

pytestmark = pytest.mark.django_db
PUBLISHED = {"v1": "3d827980", "v2": "92d172b0"}
"""The first characters of each version's fingerprint. A change of one is a new version, never a new value here."""
RULES = Methodology(
    minimum_bet=Decimal(50), maximum_bet_fraction=Decimal("0.25"), starting_balance=Decimal(10_000), decision_weeks=5
)


def version(name: str) -> Methodology:
    return Methodology.objects.get(version=name)


def new_version(**changed: Any) -> Methodology:
    """A copy of v2 that no cohort uses."""
    copy = version("v2")
    for name, value in ({"pk": None, "version": "v9"} | changed).items():
        setattr(copy, name, value)
    copy.save()
    return copy


# ── arithmetic ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cash", "exact", "maximum"),
    [
        ("10000.00", "2500", "2500.00"),
        ("7500.00", "1875", "1875.00"),
        ("9999.99", "2499.9975", "2499.99"),
        ("200.00", "50", "50.00"),
        ("199.99", "49.9975", "0.00"),  # below 200 no bet is legal
        ("0.00", "0", "0.00"),
    ],
)
def test_maximum_bet_is_exact_and_shown_rounded_down(cash: str, exact: str, maximum: str) -> None:
    assert RULES.maximum_bet(Decimal(cash)) == Decimal(exact)
    assert RULES.maximum_bet_shown(Decimal(cash)) == Decimal(maximum)


@given(st.decimals("0", "1000000", places=2))
def test_betting_what_is_shown_is_always_legal(cash: Decimal) -> None:
    maximum = RULES.maximum_bet_shown(cash)
    assert maximum == 0 or RULES.minimum_bet <= maximum <= RULES.maximum_bet(cash)
    assert (maximum == 0) == (cash < 200)


def test_bankruptcy_begins_where_no_bet_is_legal() -> None:
    assert Methodology.objects.current().bankruptcy_cash == Decimal(200)


def test_deciding_ends_after_the_versions_own_number_of_weeks() -> None:
    cohort = CohortFactory(methodology=new_version(decision_weeks=2))
    assert (cohort.decisions_end_at - cohort.week_start).days == 14
    assert not cohort.is_deciding(cohort.decisions_end_at)


# ── versions ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("data", [V1, V2], ids=lambda data: data["version"])
def test_a_version_is_as_it_was_published(data: dict[str, Any]) -> None:
    stored = version(data["version"])
    assert stored.sha256.startswith(PUBLISHED[stored.version])
    assert Methodology(**data).sha256 == stored.sha256


def test_v2_trades_as_v1_did() -> None:
    v1, v2 = version("v1"), version("v2")
    fields = [field.name for field in Methodology.frozen_fields()]
    differing = {name for name in fields if getattr(v1, name) != getattr(v2, name)}
    assert differing == {"version", "rulings", "scoring", "forecast"}
    assert v1.forecast_rules is None


def test_fingerprint_changes_with_every_frozen_field_and_with_no_other() -> None:
    v1 = version("v1")
    before = v1.sha256
    for field in Methodology.frozen_fields():
        changed = version("v1")
        setattr(changed, field.name, [getattr(changed, field.name), "changed"])
        assert changed.sha256 != before, field.name
    v1.title = "Another title"
    assert v1.sha256 == before


def test_document_has_every_field_that_a_result_depends_on() -> None:
    assert set(MethodologyDocument.model_fields) == {field.name for field in Methodology.frozen_fields()}


def test_newest_published_version_is_current_and_a_draft_is_not() -> None:
    v2 = version("v2")
    new_version(published_at=None)
    assert Methodology.objects.current() == v2
    Methodology.objects.filter(version="v9").update(published_at=v2.published_at.replace(year=2027))
    assert Methodology.objects.current().version == "v9"


# ── versions in use ───────────────────────────────────────────────────────────────────────────────


def test_in_use_it_can_not_be_changed_by_code_or_sql_and_a_draft_beside_it_can() -> None:
    draft, used_version = new_version(), version("v2")
    CohortFactory(methodology=used_version)
    before = used_version.sha256
    used_version.universe_size = 100
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        used_version.save()
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        Methodology.objects.filter(version="v2").update(decision_weeks=6)
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        connection.cursor().execute("UPDATE cohorts_methodology SET max_tokens = 1")
    assert version("v2").sha256 == before
    draft.max_tokens = 1
    draft.save()
    assert version("v9").max_tokens == 1


def test_not_in_use_it_is_still_a_draft_and_its_title_never_freezes() -> None:
    Methodology.objects.filter(version="v2").update(universe_size=100)
    CohortFactory(methodology=version("v2"))
    Methodology.objects.filter(version="v2").update(title="Trading")
    assert (version("v2").title, version("v2").universe_size) == ("Trading", 100)
