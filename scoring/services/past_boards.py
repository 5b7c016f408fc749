"""Makes the boards of past instants that are not on record, so that a reader need not wait for them."""

from cohorts.models import Methodology
from markets.models import QuestionSet, QuestionSheet
from scoring.services.boards import ALL_METHODOLOGIES, keep_past_scores
from scoring.services.forecast_boards import keep_past_boards
from scoring.services.forecast_panels import Selection

MANY, FEW = 1_000, 50
"""Boards of an arm that are made at a time, each in a fraction of a second: daily, and hourly."""


def past_boards_keep(*, most: int) -> int:
    """Makes the boards that are missing of both protocols, of each arm the newest `most`; returns how many."""
    played = Methodology.objects.filter(cohorts__isnull=False).order_by("version")
    kept = sum(keep_past_scores(version) for version in _versions(list(played.values_list("version", flat=True))))
    asked = QuestionSet.objects.order_by("methodology").values_list("methodology", flat=True)
    for arm in QuestionSheet.objects.order_by("arm").values_list("arm", flat=True).distinct():
        for version in _versions(list(asked.distinct())):
            kept += keep_past_boards(Selection(arm, version), most=most)
    return kept


def _versions(methodologies: list[str]) -> list[str]:
    """All together, and each by itself where there are several: a single one's boards are those over all."""
    several = list(dict.fromkeys(methodologies))
    return [ALL_METHODOLOGIES, *several] if len(several) > 1 else [ALL_METHODOLOGIES]
