"""A methodology's arithmetic and its fingerprint: what is legal follows from the row, not from code."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from cohorts.models import Methodology
from tests.factories import CohortFactory

pytestmark = pytest.mark.django_db
RULES = Methodology(
    minimum_bet=Decimal(50), maximum_bet_fraction=Decimal("0.25"), starting_balance=Decimal(10_000), decision_weeks=5
)


@pytest.mark.parametrize(
    ("cash", "exact", "shown"),
    [
        ("10000.00", "2500", "2500.00"),
        ("7500.00", "1875", "1875.00"),
        ("9999.99", "2499.9975", "2499.99"),
        ("200.00", "50", "50.00"),
        ("199.99", "49.9975", "0.00"),  # below 200 no bet is legal
        ("0.00", "0", "0.00"),
    ],
)
def test_maximum_bet_is_exact_and_shown_rounded_down(cash: str, exact: str, shown: str) -> None:
    assert RULES.maximum_bet(Decimal(cash)) == Decimal(exact)
    assert RULES.maximum_bet_shown(Decimal(cash)) == Decimal(shown)


@given(st.decimals("0", "1000000", places=2))
def test_betting_what_is_shown_is_always_legal(cash: Decimal) -> None:
    shown = RULES.maximum_bet_shown(cash)
    assert shown == 0 or RULES.minimum_bet <= shown <= RULES.maximum_bet(cash)
    assert (shown == 0) == (cash < 200)


def test_bankruptcy_begins_where_no_bet_is_legal() -> None:
    assert Methodology.objects.current().bankruptcy_cash == Decimal(200)


def test_fingerprint_changes_with_every_frozen_field_and_with_no_other() -> None:
    v1 = Methodology.objects.get(version="v1")
    before = v1.sha256
    for field in Methodology.frozen_fields():
        changed = Methodology.objects.get(version="v1")
        kept = getattr(changed, field.name)
        setattr(changed, field.name, [kept, "changed"])
        assert changed.sha256 != before, field.name
    v1.title = "Another title"
    assert v1.sha256 == before


def test_newest_published_version_is_current_and_a_draft_is_not() -> None:
    v2 = Methodology.objects.get(version="v2")
    draft = Methodology.objects.get(version="v2")
    draft.pk, draft.version, draft.published_at = None, "v3", None
    draft.save()
    assert Methodology.objects.current() == v2
    Methodology.objects.filter(version="v3").update(published_at=v2.published_at.replace(year=2027))
    assert Methodology.objects.current().version == "v3"


def test_version_without_a_cohort_changes_freely_beside_one_that_is_frozen() -> None:
    draft = Methodology.objects.get(version="v2")
    draft.pk, draft.version = None, "v3"
    draft.save()
    CohortFactory(methodology=Methodology.objects.get(version="v2"))
    draft.max_tokens = 1
    draft.save()
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        Methodology.objects.filter(version="v2").update(decision_weeks=6)


def test_deciding_ends_after_the_versions_own_number_of_weeks() -> None:
    short = Methodology.objects.get(version="v2")
    short.pk, short.version, short.decision_weeks = None, "v3", 2
    short.save()
    cohort = CohortFactory(methodology=short)
    assert (cohort.decisions_end_at - cohort.week_start).days == 14
    assert not cohort.is_deciding(cohort.decisions_end_at)
