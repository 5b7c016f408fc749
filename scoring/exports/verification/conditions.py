"""The paired differences between conditions, with intervals and tests."""

from collections.abc import Iterator
from datetime import datetime

from arena_verifier.rows import mismatches
from cohorts.conditions import Conditions
from cohorts.models import Methodology
from scoring.exports.tables.results import CONDITION_DIFFERENCES
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.forecasts import ForecastRecords
from scoring.services.condition_differences import paired_differences

KEY = ("family", "condition_a", "condition_b")


def check_condition_differences(archive: Archive) -> Iterator[str]:
    """Differences, intervals and p follow from forecasts, and every pair is there."""
    if not archive.is_whole:
        return
    methodologies = []
    for row in archive.methodologies():
        published_at = datetime.fromisoformat(row["published_at"]) if row["published_at"] else None
        methodologies.append(Methodology(version=row["version"], published_at=published_at, forecast=row["forecast"]))
    conditions, records = Conditions(methodologies), ForecastRecords(archive)
    arms = {batch["arm"] for batch in archive.by("question_batches").values()}
    computed = {}
    for comparison in paired_differences({arm: records.resolved(arm, "") for arm in sorted(arms)}, conditions):
        computed[comparison.family, comparison.condition_a, comparison.condition_b] = comparison
    for archived in archive.rows(CONDITION_DIFFERENCES.name):
        key = tuple(archived[name] for name in KEY)
        difference = computed.pop(key, None)
        if difference is None:
            yield f"condition_differences: {' '.join(key)} has no common forecasts"
            continue
        figures = {name: getattr(difference, name) for name in CONDITION_DIFFERENCES.names}
        yield from mismatches(f"condition_differences: {' '.join(key)}", archived, figures)
    for key in computed:
        yield f"condition_differences: {' '.join(key)} is missing"
