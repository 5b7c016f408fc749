"""Guards of cohorts, and of the methodologies that a cohort uses."""

from collections.abc import Iterator

from cohorts.models import Cohort, Methodology
from foundation.guards import CHANGED, Trigger, fixed, protected


def triggers() -> Iterator[Trigger]:
    cohorts = Cohort._meta.db_table
    in_use = f"EXISTS (SELECT 1 FROM {cohorts} WHERE {cohorts}.methodology_id = OLD.id)"  # noqa: S608 - our own names
    yield fixed(
        Methodology,
        *(field.name for field in Methodology.frozen_fields()),
        when=in_use,
        name="methodology_in_use_is_frozen",
        message=f"a methodology that a cohort uses {CHANGED}",
    )
    yield from protected(Methodology, in_use)
    yield fixed(Cohort, "number", "week_start", "methodology", "started_at")
    yield fixed(
        Cohort,
        "voided_at",
        "void_reason",
        when="OLD.voided_at IS NOT NULL",
        name="voided_cohort_stays_void",
        message=f"the voiding of a cohort is on record: it {CHANGED}",
    )
    yield from protected(Cohort)
