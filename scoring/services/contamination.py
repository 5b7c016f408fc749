"""Boards restricted to questions that their venue created after a model's knowledge cut-off."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from django.db.models import Count, Min, Q

from agents.models import Forecast, Release
from markets.models import QuestionOption
from scoring.services.forecast_panels import ResolvedEntry, Selection


def release_cutoffs() -> list[tuple[int, date | None]]:
    """The knowledge cut-off of each release, by id."""
    return [(release.pk, release.cutoff) for release in Release.objects.order_by("pk")]


def entries_after_cutoff(
    selection: Selection, entries: Sequence[ResolvedEntry]
) -> tuple[list[ResolvedEntry], dict[str, dict[str, int]]]:
    """The entries with those forecasts alone whose question is younger than what their release knows.

    A question is as old as its oldest market, by the venue's own date; it counts from the day after the cut-off on.
    Where the question's age or the release's cut-off is unknown, the forecast is left out: nothing shows it is clean.
    Entries that keep no forecast, and external agents, are left out. The second result counts by family the forecasts
    `after` and `before` the cut-off, and those that are `unknown`.
    """
    cutoffs = dict(release_cutoffs())
    created = _created_on({entry.question for entry in entries})
    releases = _releases(selection, entries)
    counts: dict[str, Counter[str]] = {}
    restricted = []
    for entry in entries:
        kept = {}
        for family, vector in entry.forecasts.items():
            day, cutoff = created.get(entry.question), cutoffs[releases[entry.entry, family]]
            state = "unknown" if day is None or cutoff is None else "after" if day > cutoff else "before"
            counts.setdefault(family, Counter())[state] += 1
            if state == "after":
                kept[family] = vector
        if kept:
            restricted.append(replace(entry, forecasts=kept, external_forecasts={}))
    return restricted, {family: dict(states) for family, states in counts.items()}


def restricted_report(contents: Any, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """A restricted leaderboard as part of the report of the whole one."""
    report = {name: contents.report[name] for name in ("pairs", "data", "market", "curves")}
    return {"entries": contents.entries, "report": {**report, "cutoffs": counts}}


def _created_on(questions: set[int]) -> dict[int, date]:
    """The day of the oldest market of each question; none where the venue does not date one of them."""
    options = QuestionOption.objects.filter(question__in=questions, outcome__isnull=False).order_by()
    undated = Count("pk", filter=Q(outcome__market__created_at=None))
    rows = options.values("question").annotate(first=Min("outcome__market__created_at"), undated=undated)
    return {row["question"]: row["first"].date() for row in rows if not row["undated"]}


def _releases(selection: Selection, entries: Sequence[ResolvedEntry]) -> dict[tuple[int, str], int]:
    """The release of each family's forecast in an entry: of two the newer, as on the boards."""
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, entry__in={entry.entry for entry in entries})
    rows = forecasts.order_by("release__effective_from", "release", "pk").values_list(
        "entry", "family__slug", "release"
    )
    return {(entry, family): release for entry, family, release in rows}
