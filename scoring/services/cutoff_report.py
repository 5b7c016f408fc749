"""The board of questions that their venue created after each model's knowledge cut-off, as a part of a report."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from django.db.models import Count, Min, Q

from agents.models import Release
from foundation.bulk import subset
from markets.models import QuestionOption
from scoring.selectors.forecast_panels import ResolvedEntry
from scoring.services.forecast_inputs import NO_PARTICIPATION
from scoring.services.trading_leaderboards import LeaderboardContents


def cutoff_report(
    resolved: Sequence[ResolvedEntry], rank: Callable[[Sequence[ResolvedEntry]], LeaderboardContents]
) -> dict[str, Any]:
    """The leaderboard over the forecasts whose question is younger than what their release knows.

    A question is as old as its oldest market, by the venue's own date; it counts from the day after the cut-off on.
    Where the question's age or the release's cut-off is unknown, the forecast is left out: nothing shows it is clean.
    `cutoffs` counts by family the forecasts `after` and `before` the cut-off, and those that are `unknown`.
    """
    cutoffs = {release.pk: release.cutoff for release in Release.objects.all()}
    created = _created_on({entry.question for entry in resolved})
    counts: dict[str, Counter[str]] = {}
    restricted = []
    for entry in resolved:
        clean = {}
        for family, vector in entry.forecasts.items():
            day, cutoff = created.get(entry.question), cutoffs[entry.releases[family]]
            state = "unknown" if day is None or cutoff is None else "after" if day > cutoff else "before"
            counts.setdefault(family, Counter())[state] += 1
            if state == "after":
                clean[family] = vector
        if clean:
            restricted.append(replace(entry, forecasts=clean, external_forecasts={}))
    contents = rank(restricted)
    entries = [entry | dict.fromkeys(NO_PARTICIPATION) for entry in contents.entries]
    report = subset(contents.report, ("pairs", "data", "market", "curves"))
    return {"entries": entries, "report": report | {"cutoffs": {name: dict(states) for name, states in counts.items()}}}


def _created_on(questions: set[int]) -> dict[int, date]:
    """The day of the oldest market of each question; none where the venue does not date one of them."""
    options = QuestionOption.objects.filter(question__in=questions, outcome__isnull=False).order_by()
    undated = Count("pk", filter=Q(outcome__market__created_at=None))
    rows = options.values("question").annotate(first=Min("outcome__market__created_at"), undated=undated)
    return {row["question"]: row["first"].date() for row in rows if not row["undated"]}
