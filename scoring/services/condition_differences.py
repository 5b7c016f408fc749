"""Paired differences between the conditions of one model, and what samples tell of errors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from typing import Any

import numpy as np

from cohorts.conditions import Conditions
from forecast_rank import brier, corrected_margins, holm, paired_tests
from scoring.condition_differences import ConditionDifference
from scoring.methodologies import arms_asked
from scoring.services.forecast_panels import ResolvedEntry, Selection, joint_panel, resolved_entries

Entries = Mapping[int, ResolvedEntry]


def condition_differences(conditions: Conditions, *, at: datetime | None = None) -> list[ConditionDifference]:
    """The differences of every model and pair of conditions with common forecasts, now or by an instant."""
    by_arm = {arm: resolved_entries(Selection(arm, until=at)) for arm in arms_asked() if arm in conditions.by_name}
    return paired_differences(by_arm, conditions)


def paired_differences(
    by_arm: Mapping[str, Sequence[ResolvedEntry]], conditions: Conditions
) -> list[ConditionDifference]:
    """The differences by model and pair of conditions; p is corrected for all rows, the interval as p is."""
    by_family: dict[str, dict[str, dict[int, ResolvedEntry]]] = {}
    for arm, entries in by_arm.items():
        for entry in entries:
            for family, vector in entry.forecasts.items():
                of_arm = by_family.setdefault(family, {}).setdefault(arm, {})
                of_arm[entry.entry] = replace(entry, forecasts={arm: vector}, external_forecasts={})
    rows: list[ConditionDifference] = []
    for family, of_arms in sorted(by_family.items()):
        for pair in combinations(filter(of_arms.__contains__, conditions.by_name), 2):
            first, second = conditions.richer_first(*pair)
            if difference := _difference(family, first, of_arms[first], second, of_arms[second]):
                rows.append(difference)
    return _corrected(rows)


def _difference(family: str, first: str, ones: Entries, second: str, others: Entries) -> ConditionDifference | None:
    """The difference of one model under two conditions, with an uncorrected p; None without a common forecast."""
    common = ones.keys() & others.keys()
    if not common:
        return None
    entries = []
    for pk in sorted(ones.keys() | others.keys()):
        forecasts = (ones[pk].forecasts if pk in ones else {}) | (others[pk].forecasts if pk in others else {})
        entries.append(replace(ones.get(pk) or others[pk], forecasts=forecasts))
    panel = joint_panel(entries, [first, second])
    test = paired_tests(panel, brier(panel))
    return ConditionDifference(
        family=family,
        condition_a=first,
        condition_b=second,
        n=len({ones[pk].question for pk in common}),
        forecasts=int(test.n[0]),
        events=int(test.events[0]),
        difference=float(test.difference[0]),
        se=_finite(test.se[0]),
        p=_finite(test.p[0]),
    )


def _corrected(rows: Sequence[ConditionDifference]) -> list[ConditionDifference]:
    """The rows with p corrected by Holm for the number of all rows, and intervals that fit it."""
    p, se = (np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in ("p", "se"))
    freedom = np.maximum([row.events - 1 for row in rows], 1)
    corrected = []
    for row, adjusted, margin in zip(rows, holm(p), corrected_margins(se, freedom, p), strict=True):
        interval = None if np.isnan(margin) else [row.difference - float(margin), row.difference + float(margin)]
        corrected.append(replace(row, p_adjusted=_finite(adjusted), interval=interval))
    return corrected


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
