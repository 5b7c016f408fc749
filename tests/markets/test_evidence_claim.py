"""The claim on the evidence of a day: one holder at a time, and a dead one's lease ends."""

from datetime import timedelta

import pytest
import time_machine

from markets.models import EvidenceClaim
from markets.services.evidence import LEASE, EvidenceClaimed, claim_evidence
from tests.factories import WEEK

pytestmark = pytest.mark.django_db
DAY = WEEK + timedelta(days=1)


def test_live_claim_refuses_others_until_it_is_released() -> None:
    with claim_evidence(DAY, "v3"):
        with pytest.raises(EvidenceClaimed, match="2026-03-09"), claim_evidence(DAY, "v3"):
            pass
        assert EvidenceClaim.objects.count() == 1
    with claim_evidence(DAY, "v3"), claim_evidence(DAY, "v4"), claim_evidence(WEEK, "v3"):
        assert EvidenceClaim.objects.count() == 3
    assert not EvidenceClaim.objects.exists()


def test_failure_releases_the_claim() -> None:
    with pytest.raises(ZeroDivisionError), claim_evidence(DAY, "v3"):
        1 / 0  # noqa: B018 - what fails does not matter
    assert not EvidenceClaim.objects.exists()


def test_expired_claim_is_taken_and_its_late_holder_releases_nothing() -> None:
    with time_machine.travel(DAY, tick=False) as clock:
        late, taker = claim_evidence(DAY, "v3"), claim_evidence(DAY, "v3")
        late.__enter__()
        clock.shift(LEASE)
        taker.__enter__()
        late.__exit__(None, None, None)
        assert EvidenceClaim.objects.get().lease_until == DAY + 2 * LEASE
        taker.__exit__(None, None, None)
    assert not EvidenceClaim.objects.exists()
