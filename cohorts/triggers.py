"""What of this floor is on record: a methodology once a cohort uses it, and what a cohort is."""

from collections.abc import Iterator

from cohorts.models import Cohort, Methodology
from markets.guards import CHANGED, Trigger, fixed, kept


def triggers() -> Iterator[Trigger]:
    cohorts = Cohort._meta.db_table
    used = f"EXISTS (SELECT 1 FROM {cohorts} WHERE {cohorts}.methodology_id = OLD.id)"  # noqa: S608 - our own names
    yield fixed(
        Methodology,
        *(field.name for field in Methodology.frozen_fields()),
        when=used,
        name="methodology_in_use_is_frozen",
        message=f"a methodology that a cohort uses {CHANGED}",
    )
    yield from kept(Methodology, used)
    yield fixed(Cohort, "number", "week_start", "methodology", "started_at")
    yield from kept(Cohort)
