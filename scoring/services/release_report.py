"""Scores by the date of a release and the end of its knowledge: a part of the forecast leaderboards' reports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Min

from agents.models import Forecast, Release
from forecast_rank import EventSums, brier, event_sums, market_brier, resample_counts, studentised_interval
from forecast_rank.metrics.event_groups import grouped_events
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.score_trend import LEAST_EVENTS, Crossing, ScoreTrend, score_trend
from scoring.services.forecast_panels import ResolvedEntry, joint_panel

TREND_SECONDS = 365 * 86_400
"""Forecasts made later than this after a release's first are in no trend."""
DAYS_PER_YEAR = 365.25
DATES = ("released_on", "knowledge_cutoff")
"""The dates of a release over which there is a trend."""
LINE_POINTS = 24
AHEAD = 365
"""Days after the newest release to which the line is drawn."""


class ReleaseRecords(NamedTuple):
    """Releases by id, with their families, and the times of their first forecasts in seconds since 1970."""

    releases: Mapping[int, Release]
    firsts: Mapping[int, float]


def stored_releases() -> ReleaseRecords:
    """The releases that have forecast anything."""
    rows = Forecast.objects.order_by().values_list("release").annotate(Min("made_at"))
    firsts = {release: first.timestamp() for release, first in rows}
    return ReleaseRecords(Release.objects.select_related("family").in_bulk(firsts), firsts)


def release_report(resolved: Sequence[ResolvedEntry], records: ReleaseRecords) -> dict[str, Any]:
    """Each release's Brier score, and less that of the market on the same questions, and the trends by both dates.

    External agents have no release of a model.
    """
    pks = {entry.releases[name] for entry in resolved for name in entry.forecasts}
    releases = {str(pk): records.releases[pk] for pk in sorted(pks)}
    if not releases:
        return {"rows": [], "trends": dict.fromkeys(DATES)}
    entries, late = _within_a_year(resolved, records.firsts)
    panel = joint_panel(entries, list(releases))
    scores, market = brier(panel), market_brier(panel)
    score_sums, gap_sums = event_sums(panel, scores), event_sums(panel, scores - market)
    score_ends, gap_ends = _intervals(score_sums, 0.0), _intervals(gap_sums, -1.0)
    rows: list[dict[str, Any]] = []
    for place, (name, release) in enumerate(releases.items()):
        is_release = panel.forecaster == place
        cutoff = release.cutoff
        rows.append(
            {
                "release": release.pk,
                "model_id": release.model_id,
                "display_name": release.display_name,
                "family": release.family.slug,
                "released_on": release.released_on and release.released_on.isoformat(),
                "knowledge_cutoff": cutoff and cutoff.isoformat(),
                "cutoff_source": _cutoff_source(release),
                "n": round(float(panel.weight[is_release].sum())),
                "forecasts": int(is_release.sum()),
                "late_forecasts": late.get(name, 0),
                "events": int(score_sums.events[place]),
                "brier": _number(score_sums.means[place]),
                "brier_ci": score_ends[place],
                "difference": _number(gap_sums.means[place]),
                "difference_ci": gap_ends[place],
            }
        )
    trends = {}
    for column in DATES:
        dates = np.array([_ordinal(row[column]) for row in rows], dtype=np.float64)
        trends[column] = _trend(gap_sums, dates)
    return {"rows": rows, "trends": trends}


def _within_a_year(
    resolved: Sequence[ResolvedEntry], firsts: Mapping[int, float]
) -> tuple[list[ResolvedEntry], dict[str, int]]:
    """The entries with forecasts by release, and the numbers of those made more than 365 days after its first."""
    entries: list[ResolvedEntry] = []
    late: dict[str, int] = {}
    for entry in resolved:
        forecasts = {}
        for name, vector in entry.forecasts.items():
            release = entry.releases[name]
            if entry.frozen_at - firsts[release] <= TREND_SECONDS:
                forecasts[str(release)] = vector
            else:
                late[str(release)] = late.get(str(release), 0) + 1
        entries.append(replace(entry, forecasts=forecasts, external_forecasts={}))
    return entries, late


def _cutoff_source(release: Release) -> str | None:
    if release.knowledge_cutoff:
        return "catalogue"
    return "declared" if release.declared_cutoff else None


def _intervals(sums: EventSums, least: float) -> list[list[float] | None]:
    """The interval of each mean over events, within `least` and 1; None below four events."""
    groups = grouped_events(sums)
    ends = studentised_interval(sums, resample_counts(groups.sums.shape[1]), drawn=groups)
    intervals: list[list[float] | None] = []
    for (low, high), events in zip(ends.tolist(), sums.events, strict=True):
        is_known = events >= LEAST_EVENTS and not np.isnan(low)
        intervals.append([max(low, least), min(high, 1.0)] if is_known else None)
    return intervals


def _trend(sums: EventSums, dates: Floats) -> dict[str, Any] | None:
    """The trend in a year of the dates, points of its line and band, and the date at which it meets 0, the market."""
    trend = score_trend(sums, dates)
    if trend is None:
        return None
    trend_dates = dates[~np.isnan(dates) & (sums.events >= LEAST_EVENTS)]
    low, high = trend.slope_interval
    crossing = parity(trend)
    last = (
        trend_dates.max() + AHEAD
        if crossing is None
        else min(max(crossing.high, trend_dates.max()), trend_dates.max() + 3 * AHEAD)
    )
    points = []
    xs = np.unique(np.rint(np.linspace(trend_dates.min(), last, LINE_POINTS)))
    for x, values in zip(xs, trend.values(xs).T.tolist(), strict=True):
        points.append({"date": _day(x), **dict(zip(("value", "low", "high"), values, strict=True))})
    return {
        "releases": len(trend_dates),
        "events": int((sums.weights > 0).any(axis=0).sum()),
        "slope": trend.slope * DAYS_PER_YEAR,
        "slope_ci": [low * DAYS_PER_YEAR, high * DAYS_PER_YEAR],
        "parity": crossing and _day(crossing.x),
        "parity_ci": crossing and [_day(crossing.low), _day(crossing.high)],
        "line": points,
    }


def parity(trend: ScoreTrend) -> Crossing | None:
    """The dates at which a falling trend meets the market; None if it does not fall, or no calendar holds them."""
    crossing = trend.crossing()
    if crossing is None or trend.slope >= 0 or crossing.low < 1 or crossing.high > date.max.toordinal():
        return None
    return crossing


def _ordinal(day: str | None) -> float:
    return float("nan") if day is None else float(date.fromisoformat(day).toordinal())


def _day(ordinal: float) -> str:
    return date.fromordinal(round(ordinal)).isoformat()


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
