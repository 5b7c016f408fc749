"""Paired differences between the conditions of one model, from the forecasts of all arms."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
from django.db.models import Avg, Q

from agents.models import Forecast
from cohorts.conditions import Conditions, stored_conditions
from forecast_rank import brier, corrected_margins, holm, paired_tests
from scoring.leaderboard_keys import arms_asked
from scoring.models import ForecastScore
from scoring.selectors.condition_differences import ConditionDifference
from scoring.selectors.event_tests import difference_test
from scoring.selectors.forecast_panels import ResolvedEntry, Selection, joint_panel, resolved_entries

QUESTION_COLUMNS = ("forecast__question", "forecast__question__event_key")
ANSWER_COLUMNS = ("forecast__entry", "forecast__release")
"""The columns that group the scores of one release on one question and day."""


def condition_report(*, at: datetime | None = None) -> dict[str, Any]:
    """The comparison of conditions as a part of a report, of questions resolved now or by an instant."""
    rows = list(map(asdict, condition_differences(at=at)))
    return {"differences": rows, "prices": price_effect(at=at)}


def condition_differences(*, at: datetime | None = None) -> list[ConditionDifference]:
    """The differences of every model and pair of conditions with common forecasts, now or by an instant."""
    conditions, by_arm = stored_conditions(), {}
    for arm in arms_asked():
        if arm in conditions.by_name:
            by_arm[arm] = resolved_entries(Selection(arm, until=at))
    return paired_differences(by_arm, conditions)


def price_effect(*, at: datetime | None = None) -> dict[str, Any] | None:
    """How much lower the Brier score is with the market's prices in the prompt than without, on the same questions.

    The conditions compared are the first that differ in their prices alone, the boards' before others. One value for
    each question: the mean over models and days. Questions of one event are resampled together. None without an
    interval.
    """
    pairs = stored_conditions().pairs_apart("prices")
    if not pairs:
        return None
    with_prices, without = pairs[0]
    forecasts = Forecast.objects.counted().filter(family__external=False, arm__in=(with_prices, without))
    scores = ForecastScore.objects.filter(forecast__in=forecasts).order_by("forecast__question")
    if at is not None:
        scores = scores.filter(forecast__question__resolved_at__lte=at)
    gain = Avg("brier", filter=Q(forecast__arm=without)) - Avg("brier", filter=Q(forecast__arm=with_prices))
    answers = scores.values(*QUESTION_COLUMNS, *ANSWER_COLUMNS).annotate(gain=gain).exclude(gain=None)
    by_question: dict[tuple[int, str], list[float]] = defaultdict(list)
    for question, event, difference in answers.values_list(*QUESTION_COLUMNS, "gain"):
        by_question[question, event].append(difference)
    gains = list(map(fmean, by_question.values()))
    test = difference_test(gains, [event for _, event in by_question])
    if test is None:
        return None
    mean, margin = fmean(gains), test["margin"]
    interval = [max(mean - margin, -1.0), min(mean + margin, 1.0)]
    return {"gain": mean, "interval": interval, "questions": len(gains), **test}


def paired_differences(
    by_arm: Mapping[str, Sequence[ResolvedEntry]], conditions: Conditions
) -> list[ConditionDifference]:
    """The differences by model and pair of conditions; p is corrected for all rows, the interval as p is."""
    by_family: dict[str, dict[int, ResolvedEntry]] = defaultdict(dict)
    for arm, entries in by_arm.items():
        for entry in entries:
            for family, vector in entry.forecasts.items():
                by_pk = by_family[family]
                if entry.entry not in by_pk:
                    by_pk[entry.entry] = replace(entry, forecasts={}, external_forecasts={})
                by_pk[entry.entry].forecasts[arm] = vector
    arms = [arm for arm in conditions.by_name if arm in by_arm]
    rows: list[tuple[ConditionDifference, float]] = []
    for family in sorted(by_family):
        rows += _of_family(family, by_family[family], arms, conditions)
    return _corrected(rows)


def _of_family(
    family: str, entries: Mapping[int, ResolvedEntry], arms: Sequence[str], conditions: Conditions
) -> Iterator[tuple[ConditionDifference, float]]:
    """The differences of one model between conditions with common forecasts, with uncorrected p, and its freedom."""
    panel = joint_panel([entries[pk] for pk in sorted(entries)], arms)
    tests = paired_tests(panel, brier(panel))
    for place, pair in enumerate(combinations(arms, 2)):
        questions = {entry.question for entry in entries.values() if entry.forecasts.keys() >= set(pair)}
        if questions:
            first, second = conditions.richer_first(*pair)
            sign = 1 if first == pair[0] else -1
            row = ConditionDifference(
                family=family,
                condition_a=first,
                condition_b=second,
                n=len(questions),
                forecasts=int(tests.n[place]),
                events=int(tests.events[place]),
                difference=sign * float(tests.difference[place]) + 0.0,
                se=_finite(tests.se[place]),
                p=_finite(tests.p[place]),
            )
            yield row, float(tests.freedom[place])


def _corrected(tests: Sequence[tuple[ConditionDifference, float]]) -> list[ConditionDifference]:
    """The rows with p corrected by Holm for the number of all rows, and intervals that fit it; with their freedom."""
    rows = [row for row, _ in tests]
    p = np.array([row.p for row in rows], dtype=np.float64)
    se = np.array([row.se for row in rows], dtype=np.float64)
    freedom = np.array([freedom for _, freedom in tests])
    corrected = []
    for row, adjusted, margin in zip(rows, holm(p), corrected_margins(se, freedom, p), strict=True):
        ends = row.difference - float(margin), row.difference + float(margin)
        interval = None if np.isnan(margin) else [max(ends[0], -1.0), min(ends[1], 1.0)]
        corrected.append(replace(row, p_adjusted=_finite(adjusted), interval=interval))
    return corrected


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
