"""The methodologies and arms that have leaderboards of their own."""

from cohorts.models import Cohort
from markets.models import QuestionBatch, QuestionSet
from scoring.constants import ALL_METHODOLOGIES, TRADING


def versions_in_play(protocol: str) -> list[str]:
    """The versions that cohorts of the trading protocol, or question sets of the forecast protocol, follow."""
    if protocol == TRADING:
        return sorted(Cohort.objects.order_by().values_list("methodology__version", flat=True).distinct())
    return sorted(QuestionSet.objects.order_by().values_list("methodology", flat=True).distinct())


def separate_versions(protocol: str) -> list[str]:
    """All methodologies together, and each by itself where there are several: one alone has the leaderboard of all."""
    versions = versions_in_play(protocol)
    return [ALL_METHODOLOGIES, *(versions if len(versions) > 1 else [])]


def arms_asked() -> list[str]:
    """The arms of the forecast protocol that have question batches."""
    return sorted(QuestionBatch.objects.order_by().values_list("arm", flat=True).distinct())
