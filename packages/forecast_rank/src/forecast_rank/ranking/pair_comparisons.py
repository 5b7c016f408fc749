"""Paired tests of forecasters on common questions."""

from dataclasses import replace
from typing import Any

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.paired_tests import PairedComparisons, paired_tests
from forecast_rank.metrics.panel import Panel
from forecast_rank.ranking.figure_table import FigureTable
from forecast_rank.ranking.json_values import to_json_value


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
    if forecaster_count <= most:
        return pairs, []
    if not pairs:
        return [], ["no pairs are compared, as asked"]
    among = f"among the first {len(panel.forecasters):,} of {forecaster_count:,} forecasters by {score}"
    return pairs, [f"pairs are compared {among}; --pairs N compares more"]


def pair_entries(tests: PairedComparisons, names: list[str]) -> list[dict[str, Any]]:
    """Paired tests as JSON values."""
    columns = {name: getattr(tests, name) for name in tests._fields if name not in ("first", "second")}
    entries = []
    for k, (first, second) in enumerate(zip(tests.first.tolist(), tests.second.tolist(), strict=True)):
        figures = {name: to_json_value(column[k]) for name, column in columns.items()}
        entries.append({"first": names[first], "second": names[second], **figures})
    return entries
