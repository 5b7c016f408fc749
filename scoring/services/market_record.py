"""The models' record against the market's prices: their lead week by week, and on each question that resolved.

All of it rests on alpha, the market's Brier score less the model's on the same question at the prices of that day.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from forecast_rank import to_json_value
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.skill import alpha, market_probability
from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import EventSums, event_sums, resample_counts
from scoring.constants import DISAGREEMENT_BANDS, QUESTIONS_LISTED
from scoring.selectors.performance import EPOCH
from scoring.services.forecast_panels import ResolvedEntry, panels

WEEK = timedelta(weeks=1)
WINDOW_WEEKS = 4
"""Weeks of forecasts behind a point of the lead over time."""


class QuestionRecord(NamedTuple):
    """A forecaster's mean figures over the days of each question, one row for each forecaster and question.

    forecaster, question : places in the panel's forecasters, ids of questions
    widest : the forecast of its widest gap
    gap : mean of the widest difference from the market's probabilities on a day
    """

    forecaster: Codes
    question: Codes
    number: Codes
    widest: Codes
    gap: Floats
    brier: Floats
    alpha: Floats


def market_record(resolved: Sequence[ResolvedEntry], families: Mapping[str, str]) -> dict[str, Any]:
    """The parts `leads` and `against_market` of a leaderboard's report, of families by slug."""
    panel = panels(resolved, families).families
    record = _question_record(panel, [entry.question for entry in resolved])
    categories = {entry.question: entry.category for entry in resolved}
    return {
        "leads": _leads(panel, [entry.asked_at for entry in resolved]),
        "against_market": {
            "kinds": list(_kinds(record, panel.forecasters, categories)),
            "largest": list(_largest(record, panel, resolved)),
        },
    }


def _leads(panel: Panel, asked_at: Sequence[datetime | None]) -> dict[str, Any]:
    """Mean alpha of the forecasts of the WINDOW_WEEKS before each end of a week, with 95 % intervals.

    Intervals are `studentised_interval` over the events of the window, all forecasters on the same resamples, and never
    beyond -1 and 1, the bounds of alpha; null below four events.
    """
    days = [day for day in asked_at if day is not None]
    if not days or not len(panel):
        return {"ends": [], "forecasters": {}}
    values, weeks = alpha(panel), np.array(list(map(_week, asked_at)))[panel.question]
    ends = range(int(weeks.min()) + 1, int(weeks.max()) + 2)
    points: dict[str, list[Any]] = {name: [] for name in panel.forecasters}
    for end in ends:
        in_window = (weeks < end) & (weeks >= end - WINDOW_WEEKS)
        sums = event_sums(panel, np.where(in_window, values, np.nan))
        has_event = sums.weights.any(axis=0)
        sums = EventSums(sums.sums[:, has_event], sums.weights[:, has_event])
        counts = resample_counts(int(has_event.sum()))
        intervals = np.clip(studentised_interval(sums, counts), -1, 1)
        for place, name in enumerate(panel.forecasters):
            low, high = map(to_json_value, intervals[place])
            lead, events = to_json_value(sums.means[place]), int(sums.events[place])
            points[name].append(None if lead is None else [lead, low, high, events])
    return {"ends": [(EPOCH + end * WEEK).isoformat() for end in ends], "forecasters": points}


def _week(day: datetime | None) -> float:
    return np.nan if day is None else (day - EPOCH) // WEEK


def _question_record(panel: Panel, questions: Sequence[int]) -> QuestionRecord:
    """The forecasts with a price, brought together by forecaster and question."""
    gaps = panel.max_cells(_gaps(panel))
    priced = np.flatnonzero(~np.isnan(gaps))
    question_ids = np.array(questions, dtype=np.int64)[panel.question[priced]]
    size = max(questions, default=0) + 1
    keys, pair = np.unique(panel.forecaster[priced] * size + question_ids, return_inverse=True)
    number = np.bincount(pair, minlength=len(keys))

    def mean(values: Floats) -> Floats:
        return np.bincount(pair, values[priced], len(keys)) / np.maximum(number, 1)

    widest = np.zeros(len(keys), dtype=np.int64)
    order = np.argsort(gaps[priced], kind="stable")
    widest[pair[order]] = priced[order]  # the last one written, of equal gaps the newest, is the widest
    return QuestionRecord(keys // size, keys % size, number, widest, mean(gaps), mean(brier(panel)), mean(alpha(panel)))


def _gaps(panel: Panel) -> Floats:
    """The difference from the market of each cell, rounded to hide the error of binary fractions."""
    gaps: Floats = np.abs(panel.probability - market_probability(panel)).round(9)
    return gaps


def _kinds(record: QuestionRecord, names: Sequence[str], categories: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """How often the forecaster, and how often the market, had the lower Brier score, by category and width of gap."""
    bands = np.searchsorted(DISAGREEMENT_BANDS, record.gap, side="right")
    totals: dict[tuple[int, str, int], list[int]] = {}
    for place, question in enumerate(record.question.tolist()):
        key = (int(record.forecaster[place]), categories[question], int(bands[place]))
        total = totals.setdefault(key, [0, 0, 0])
        total[0] += 1
        total[1] += bool(record.alpha[place] > 0)
        total[2] += bool(record.alpha[place] < 0)
    for key, total in sorted(totals.items()):
        forecaster, category, band = key
        row = {"family": names[forecaster], "category": category, "band": band}
        yield row | dict(zip(("questions", "model", "market"), total, strict=True))


def _largest(record: QuestionRecord, panel: Panel, resolved: Sequence[ResolvedEntry]) -> Iterator[dict[str, Any]]:
    """The questions with the highest, and those with the lowest, alpha of each forecaster, highest first."""
    prices, gaps = market_probability(panel), _gaps(panel)
    for forecaster, name in enumerate(panel.forecasters):
        places = np.flatnonzero(record.forecaster == forecaster)
        ordered = places[np.argsort(-record.alpha[places], kind="stable")]
        losses = ordered[max(QUESTIONS_LISTED, len(ordered) - QUESTIONS_LISTED) :]
        for place in [*ordered[:QUESTIONS_LISTED], *losses]:
            forecast = int(record.widest[place])
            first, end = panel.offsets[forecast], panel.offsets[forecast + 1]
            cell = int(np.argmax(gaps[first:end]))
            entry = resolved[panel.question[forecast]]
            lead, score = float(record.alpha[place]), float(record.brier[place])
            yield {
                "family": name,
                "question": entry.question,
                "category": entry.category,
                "day": entry.asked_at and entry.asked_at.isoformat(),
                "option": entry.options[cell],
                "probability": float(panel.probability[first + cell]),
                "price": float(prices[first + cell]),
                "happened": bool(entry.happened[cell]),
                "forecasts": int(record.number[place]),
                "brier": score,
                "market_brier": score + lead,
                "lead": lead,
            }
