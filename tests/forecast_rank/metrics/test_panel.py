"""The shape that every metric takes: ragged sums, parts of it, and the references on the same questions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forecast_rank
from forecast_rank.metrics.flat_arrays import distinct_codes, ragged_max, stable_order
from forecast_rank.metrics.panel import from_arrays, references
from tests.forecast_rank.panels import EMPTY, panel, rows_of, synthetic
from tests.lazy_modules import pl


@given(st.lists(st.lists(st.floats(-9, 9) | st.just(-np.inf), min_size=1, max_size=6), max_size=8))
def test_largest_of_each_group(groups: list[list[float]]) -> None:
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    values = np.array([value for group in groups for value in group])
    assert ragged_max(values, np.cumsum(sizes) - sizes, sizes).tolist() == [max(group) for group in groups]


@given(st.lists(st.integers(0, 9) | st.integers(0, 10_000), max_size=30))
def test_distinct_codes_are_those_of_sorting(codes: list[int]) -> None:
    array = np.array(codes, dtype=np.int64)
    expected = np.unique(array, return_inverse=True)
    assert [part.tolist() for part in distinct_codes(array)] == [part.tolist() for part in expected]


@given(st.sampled_from([3, 300, 70_000]), st.lists(st.integers(0, 69_999), max_size=30))
def test_stable_order_leaves_equal_codes_as_they_stand(count: int, codes: list[int]) -> None:
    codes = [code % count for code in codes]
    expected = sorted(range(len(codes)), key=codes.__getitem__)
    assert stable_order(np.array(codes, dtype=np.int64), count).tolist() == expected


def test_forecasts_in_an_order_of_questions() -> None:
    panel = synthetic(4, 30, seed=1, missing=0.4).panel
    order = np.random.default_rng(2).permutation(len(panel.questions))
    expected = [i for question in order for i in np.flatnonzero(panel.question == question)]
    assert panel.by_question(order).tolist() == expected


def test_one_missing_value_is_the_largest_of_its_group_alone() -> None:
    largest = ragged_max(np.array([1, np.nan, 2, 3.0]), np.array([0, 2]), np.array([2, 2]))
    assert np.isnan(largest).tolist() == [True, False]


def test_cells_of_a_forecast() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.7, 0.2, 0.1], 1)
        + rows_of("bob", "r", [0.4, 0.6], 0)
        + rows_of("ann", "r", [0.1, 0.9], 0)
    )
    assert forecasts.sizes.tolist() == [3, 2, 2]
    assert forecasts.cell_option.tolist() == [0, 1, 2, 3, 4, 3, 4]
    assert forecasts.outcome.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert forecasts.sum_cells(forecasts.probability) == pytest.approx([1, 1, 1])
    assert forecasts.max_cells(forecasts.probability).tolist() == [0.7, 0.9, 0.6]  # ann before bob on r
    assert forecasts.spread(np.array([1, 2, 3])).tolist() == [1, 1, 1, 2, 2, 3, 3]


def test_a_part_keeps_the_cells_of_its_forecasts() -> None:
    panel = synthetic(4, 30, seed=1, exclusive=0.5, priced=0.5).panel
    mask = panel.forecaster == 2
    part = panel.take(mask)
    assert len(part) == mask.sum()
    assert part.sum_cells(part.probability) == pytest.approx(panel.sum_cells(panel.probability)[mask])
    assert part.outcome.tolist() == panel.outcome[panel.spread(mask)].tolist()
    assert len(panel.take(np.zeros(len(panel), dtype=bool))) == 0


def test_references_are_market_uniform_and_ensemble() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.7, 0.3], 0, odds=[0.6, 0.5], no_odds=[0.5, 0.6], weight=3.0)
        + rows_of("bob", "q", [0.5, 0.5], 0, odds=[0.7, 0.5], no_odds=[0.4, 0.6])
        + rows_of("ann", "r", [0.8, 0.8, 0.3], [1, 1, 0], exclusive=False)
    )
    reference_panel = references(forecasts)
    assert reference_panel.forecasters == ["market", "uniform", "ensemble"]
    assert reference_panel.forecaster.tolist() == [0, 1, 2, 1, 2]
    assert reference_panel.question.tolist() == [0, 0, 0, 1, 1]
    mids = (0.55 + 0.65) / 2, (0.45 + 0.45) / 2
    assert reference_panel.probability == pytest.approx(
        [mids[0] / sum(mids), mids[1] / sum(mids), 0.5, 0.5, 0.6, 0.4, 0.5, 0.5, 0.5, 0.8, 0.8, 0.3]
    )
    assert reference_panel.weight.tolist() == [1, 1, 1, 1, 1]


def test_market_forecasts_its_quotes_to_the_last_bit(tmp_path: Path) -> None:
    """A mid of 0.1, which 0.1 + 0.1 + 0.1 over 3 and 1 - (1 - 0.1) are not, and one of 0, which has no odds."""
    header = "forecaster,question,option,probability,outcome,odds,quote,weight,exclusive"
    rows = [
        f"{name},{question},{option},0.5,{int(option == 'A')},0.9,{quote},{weight},{exclusive}"
        for name, weight in (("ann", 0.5), ("bob", 0.5), ("eve", 1))
        for question, exclusive, quotes in (("q1", 1, (0.1, 0)), ("q2", 0, (0.1, 0)), ("q3", 1, (0, 0)))
        for option, quote in zip("AB", quotes, strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([header, *rows]))
    beside = references(forecast_rank.read(tmp_path / "rows.csv", strict=True).panel)
    market = beside.forecaster == 0
    assert beside.question[market].tolist() == [0, 1]
    assert beside.probability[np.repeat(market, beside.sizes)].tolist() == [1, 0, 0.1, 0]
    assert beside.weight[market].tolist() == [0.5, 0.5]


def test_quote_outside_its_range_is_rejected() -> None:
    rows = {"forecaster": ["ann"], "question": ["q"], "probability": [0.5], "outcome": [1], "quote": [1.1]}
    (fault,) = forecast_rank.read(pl.DataFrame(rows)).rejected
    assert "quote" in fault.why


def test_arrays_make_a_panel_in_its_order() -> None:
    nan = np.nan
    panel = from_arrays(
        [[[0.6, 0.4], [0.7, 0.3]], [[nan, nan], [0.2, 0.8]]],
        [[1, 0], [0, 1]],
        odds=[[0.5, 0.5], [0.6, 0.45]],
        weight=[[1, 2], [3, 4]],
        event=["e", "e"],
        closed_at=[5, 6],
    )
    assert panel.question.tolist() == [0, 1, 1]
    assert panel.forecaster.tolist() == [0, 0, 1]
    assert panel.probability.tolist() == [0.6, 0.4, 0.7, 0.3, 0.2, 0.8]
    assert panel.odds.tolist() == [0.5, 0.5, 0.6, 0.45, 0.6, 0.45]
    assert panel.no_odds == pytest.approx([0.5, 0.5, 0.4, 0.55, 0.4, 0.55])
    assert panel.weight.tolist() == [1, 2, 4]
    assert panel.questions.event.tolist() == [0, 0]
    assert panel.outcome.tolist() == [1, 0, 0, 1, 0, 1]


def test_nothing() -> None:
    assert len(references(EMPTY)) == 0
    assert EMPTY.sum_cells(np.zeros(0)).shape == EMPTY.max_cells(np.zeros(0)).shape == (0,)
    assert EMPTY.forecaster_means(np.zeros(0)).shape == (0,)
    assert EMPTY.matrix(np.zeros(0)).shape == (0, 0)
