"""Scores of forecasts."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from forecast_rank.metrics.proper_scores import accuracy, brier, log_score, spherical
from forecast_rank.metrics.skill import market_brier

from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.exports.verification.forecast_records import ForecastRecords
from scoring.services.forecast_panels import single_forecasts_panel

BATCH = 1_000


def check_forecast_scores(archive: Archive) -> Iterator[str]:
    """Each forecast on a resolved question has the scores that follow from its probabilities, and no other has one."""
    records = ForecastRecords(archive)
    scores = {row["forecast"]: row for row in archive.rows("forecast_scores")}
    for pk, forecast in records.forecasts.items():
        resolved = records.questions[forecast["question"]]["status"] == "resolved"
        if resolved != (pk in scores) and not archive.is_window:
            yield f"forecast_scores: forecast {pk} has {'none' if resolved else 'one'}, against its question's status"
        yield from _check_origin(records, forecast)
    remaining = iter(scores.items())
    while batch := list(islice(remaining, BATCH)):
        forecasts = [records.forecasts[pk] for pk, _ in batch]
        panel = single_forecasts_panel([(records.entry(row["entry"]), records.vector(row)) for row in forecasts])
        columns = [measure(panel).tolist() for measure in (brier, log_score, spherical, accuracy, market_brier)]
        names = ("brier", "log", "spherical", "accuracy", "market_brier")
        for (pk, score), *figures in zip(batch, *columns, strict=True):
            computed = {name: None if np.isnan(f) else f for name, f in zip(names, figures, strict=True)}
            yield from mismatches(f"forecast_scores: of forecast {pk}", score, computed)


def _check_origin(records: ForecastRecords, forecast: Row) -> Iterator[str]:
    """A forecast agrees with its elicitation, and with the question of its entry."""
    elicitation = records.elicitations.get(forecast["elicitation"])
    if elicitation is None:
        return
    names = ("family", "release", "methodology", "made_at")
    if [forecast[name] for name in names] != [elicitation[name] for name in names]:
        yield f"forecasts: forecast {forecast['id']} differs from its elicitation {elicitation['id']}"
    if records.entries[forecast["entry"]]["question"] != forecast["question"]:
        yield f"forecasts: forecast {forecast['id']} is on another question than its entry"
