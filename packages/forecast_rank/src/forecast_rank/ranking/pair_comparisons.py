"""Comparisons of forecasters with each other: paired tests, tests over time, and relative skill."""

from dataclasses import replace
from typing import Any

import numpy as np

from forecast_rank.metrics.diebold_mariano import diebold_mariano_pairs
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.paired_tests import PairedComparisons, holm, paired_tests
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.relative_skill import relative_skill
from forecast_rank.metrics.uncertainty import EventSums
from forecast_rank.ranking.figure_table import FigureTable
from forecast_rank.ranking.json_values import to_json_value
from forecast_rank.ranking.settings import MOST_MODELLED, Settings


def compared_pairs(
    table: FigureTable, panel: Panel, values: Floats, ranking: str, score: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Paired tests of the first forecasters of a ranking, as many as the settings say, and a note if they are not all.

    `values` are the score of each forecast of the panel.
    """
    forecaster_count, most = sum(name not in table.unranked for name in panel.forecasters), table.settings.pairs
    if forecaster_count > most or forecaster_count < len(panel.forecasters):
        first = np.sort(table.order(ranking)[:most] if ranking in table.rankings else []).astype(np.int64)
        place = np.full(len(panel.forecasters), -1)
        place[first] = np.arange(len(first))
        is_selected = place[panel.forecaster] >= 0
        panel, values = panel.take(is_selected), values[is_selected]
        names = [panel.forecasters[i] for i in first]
        panel = replace(panel, forecasters=names, forecaster=place[panel.forecaster])
    pairs = pair_entries(paired_tests(panel, values), panel.forecasters) if len(panel.forecasters) > 1 else []
    notes = add_time_tests(pairs, panel, values, table.settings)
    if forecaster_count <= most:
        return pairs, notes
    if not pairs:
        return [], ["no pairs are compared, as asked"]
    among = f"among the first {len(panel.forecasters):,} of {forecaster_count:,} forecasters by {score}"
    return pairs, [*notes, f"pairs are compared {among}; --pairs N compares more"]


def pair_entries(tests: PairedComparisons, names: list[str]) -> list[dict[str, Any]]:
    """Paired tests as JSON values."""
    columns = {name: getattr(tests, name) for name in tests._fields if name not in ("first", "second")}
    entries = []
    for k, (first, second) in enumerate(zip(tests.first.tolist(), tests.second.tolist(), strict=True)):
        figures = {name: to_json_value(column[k]) for name, column in columns.items()}
        entries.append({"first": names[first], "second": names[second], **figures})
    return entries


def add_time_tests(entries: list[dict[str, Any]], panel: Panel, values: Floats, settings: Settings) -> list[str]:
    """Adds the Diebold-Mariano tests over closing times to the pairs, if a horizon is set; returns notes."""
    if not settings.horizon or not entries:
        return []
    tests = diebold_mariano_pairs(panel, values, horizon=settings.horizon)
    place = {name: index for index, name in enumerate(panel.forecasters)}
    corrected = dict(zip(tests, holm([test.p for test in tests.values()]).tolist(), strict=True)) if tests else {}
    for entry in entries:
        pair = place[entry["first"]], place[entry["second"]]
        test = tests.get(pair)
        entry["dm_times"] = test.n if test else None
        entry["dm_se"] = to_json_value(test.se) if test else None
        entry["dm_statistic"] = to_json_value(test.statistic) if test else None
        entry["dm_p"] = to_json_value(test.p) if test else None
        entry["dm_p_holm"] = to_json_value(corrected[pair]) if test else None
    if tests:
        return []
    least_times = settings.horizon + 1
    return [
        f"no Diebold–Mariano tests: no pair has {least_times:,} times in common at which questions closed (closed_at)"
    ]


def add_relative_skill(table: FigureTable, panel: Panel, values: Floats) -> list[str]:
    """Adds the relative skill of the forecasters by a score that is at least 0 and lower is better; returns notes.

    Raises InvalidSetting if the baseline is no forecaster.
    """
    names, settings = panel.forecasters, table.settings
    settings.check_baseline(names)
    if len(names) < 2:
        return ["relative skill: none of a single forecaster"]
    if len(names) > MOST_MODELLED:
        return [f"relative skill: none of more than {MOST_MODELLED} forecasters"]
    if np.isinf(values).any():
        return ["relative skill: none, for some scores are infinite"]
    skill = relative_skill(panel, values)
    references = len(table.names) - len(names)
    absent = np.full(references, np.nan)
    logs = EventSums(*(np.concatenate([part, np.zeros((references, part.shape[1]))]) for part in skill.log_sums))
    with np.errstate(divide="ignore"):
        table.add_estimate(
            "relative_skill", np.append(np.log(skill.value), absent), logs, lower=True, key="relative_skill"
        )
    table.set_figure("relative_skill", np.append(skill.value, absent))
    if "relative_skill_ci" in table.figures:
        table.set_figure("relative_skill_ci", np.exp(table.figures["relative_skill_ci"]))
    if settings.baseline is not None:
        scaled = skill.value / skill.value[names.index(settings.baseline)]
        table.set_figure("scaled_relative_skill", np.append(scaled, absent))
    return []
