"""Formats of numbers, and charts of values over time."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from agents.lineup_2026 import LINEUP_2026
from agents.models import Family
from arena_site.pages import filters as arena
from arena_site.pages.charts.axes import time_ticks
from arena_site.pages.charts.curves import ChartEvent, Curve
from arena_site.pages.charts.diagrams import reliability_diagram, reliability_grid, scatter_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart as draw_lines
from arena_site.pages.charts.markers import MARKERS, luminance, marker_path, readable_color
from arena_site.pages.environment import environment
from tests.factories import WEEK

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
line_chart = partial(draw_lines, y_title="Value")
HOURS = [WEEK + timedelta(hours=n) for n in range(3)]


# --- numbers and times ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (arena.money, Decimal("-1234.5"), "−$1,234.50"),
        (arena.money, "10000.00", "$10,000.00"),
        (arena.money, None, "–"),
        (arena.signed_money, Decimal("12.3"), "+$12.30"),
        (arena.signed_money, Decimal(0), "$0.00"),
        (arena.signed_percent, -0.001, "0.00\u202f%"),
        (arena.signed_percent, 3.456, "+3.46\u202f%"),
        (arena.fraction, 0.5, "50.0\u202f%"),
        (arena.fraction, 0.0, "0.0\u202f%"),
        (arena.score, 0.0, "0.000"),
        (arena.score, None, "–"),
        (arena.price, Decimal("0.4300000000"), "43.0 %"),
        (arena.price, Decimal("0.0005"), "0.05 %"),
        (arena.cost, Decimal("0.00123"), "$0.0012"),
        (arena.cost, Decimal("12.345"), "$12.34"),
        (arena.seconds, 1234, "1.2\u202fs"),
        (arena.timestamp, None, "–"),
        (arena.pnl_class, -0.004, ""),
        (arena.pnl_class, -3, "loss"),
    ],
)
def test_number_format(write, value, written):
    assert write(value) == written


@pytest.mark.parametrize(
    ("written", "element"),
    [
        ("{{ 0.47|fraction }}", '<data value="0.47">47.0\u202f%</data>'),
        ("{{ '10000.00'|money }}", '<data value="10000.00">$10,000.00</data>'),
        ("{{ tiny|cost }}", '<data value="0.00000000">$0.0000</data>'),
        ("{{ 0.00042|p_value }}", '<data value="0.00042">&lt; 0.001</data>'),
        ("{{ [-1.5, 2.5]|return_margin }}", '<data value="[-1.5, 2.5]">± 2.00\u202f%</data>'),
        ("{{ 0.05|margin }}", '<data value="0.05">0.098</data>'),
        ("{{ 0.002|times(1000, 'cost') }}", '<data value="0.002">$2.00</data>'),
        ("{{ missing.part|money }}{{ none|score }}{{ ''|count }}{{ missing|times(2, 'cost') }}", "––––"),
        ('<p title="{{ plain.money(1) }}">', '<p title="$1.00">'),
    ],
)
def test_number_in_a_page_has_the_value_of_the_json(written, element):
    assert environment().from_string(written).render(tiny=Decimal("0E-8")) == element


# --- charts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distant", [0, 9000])
def test_names_at_the_ends_of_lines_do_not_overlap_and_keep_their_order(distant):
    adjacent = [Curve(str(n), "#000000", [Decimal(4000 + 10 * n)] * 3) for n in range(6)]
    chart = line_chart(HOURS, [*adjacent, Curve("distant", "#000000", [Decimal(distant)] * 3)])
    heights = [line.label.y for line in chart.lines[:6]]
    assert all(low - high > 17.9 for low, high in pairwise(heights))
    assert all(0 < line.label.y <= chart.bottom for line in chart.lines)


def test_a_line_begins_where_its_values_begin():
    chart = line_chart(HOURS, [Curve("late", "#000000", [None, Decimal(1), Decimal(2)])])
    assert chart.lines[0].path.count("L") == 1


def test_a_single_instant_and_a_flat_line_can_be_drawn():
    assert line_chart(HOURS[:1], [Curve("one", "#000000", [Decimal(0)])]).lines[0].end.x > 0


def test_nothing_makes_no_chart():
    assert line_chart([], []) is None


# --- colours and shapes ---------------------------------------------------------------------------------

BACKGROUNDS = ("#fcfbf8", "#ffffff", "#12161c", "#191f27")
"""Backgrounds of charts in both themes."""
COLOR_VISION = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Linear colours as they are perceived: Machado, Oliveira and Fernandes (2009), at severity 1."""


def parts(color: str) -> tuple[float, ...]:
    return tuple(int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))


def contrast(one: str, second: str) -> float:
    low, high = sorted((luminance(parts(one)), luminance(parts(second))))
    return (high + 0.05) / (low + 0.05)


def lab(colors: list[str], vision: str) -> np.ndarray:
    """The colours in CIELAB, D65, as they are perceived."""
    share = np.array([parts(color) for color in colors])
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    perceived = np.clip(linear @ np.array(COLOR_VISION[vision]).T, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = perceived @ to_xyz.T / np.array([0.95047, 1, 1.08883])
    root = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    x, y, z = root.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize(
    "color", [*(family.color for family in LINEUP_2026), "#ffff00", "#000000", "#ffffff", "#0000ff"]
)
def test_every_colour_contrasts_with_the_backgrounds_of_both_themes(color):
    assert min(contrast(readable_color(color), background) for background in BACKGROUNDS) >= 3


def test_backgrounds_are_those_of_the_stylesheet():
    stylesheet = Path("arena_site/static/arena/arena.css").read_text()
    assert re.findall(r"--(?:background|surface): (#\w+);", stylesheet) == list(BACKGROUNDS)


@pytest.mark.parametrize("vision", COLOR_VISION)
def test_line_ups_colours_differ_for_every_colour_vision(vision):
    points = lab([readable_color(family.color) for family in LINEUP_2026], vision)
    distances = [np.linalg.norm(one - second) for one, second in combinations(points, 2)]
    assert min(distances) > 19.5


def test_families_differ_by_shape_as_well():
    assert len({marker_path(mark, 0, 0) for mark in range(len(MARKERS))}) == len(MARKERS) > len(LINEUP_2026)


# --- ticks, events, diagrams ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "written"),
    [
        (timedelta(minutes=10), ["8 Mar", "00:02", "00:04", "00:06", "00:08", "00:10"]),
        (timedelta(hours=5), ["8 Mar", "01:00", "02:00", "03:00", "04:00", "05:00"]),
        (timedelta(days=2), ["8 Mar", "12:00", "9 Mar", "12:00", "10 Mar"]),
        (timedelta(days=21), ["8 Mar", "15 Mar", "22 Mar", "29 Mar"]),
    ],
)
def test_ticks_stand_at_round_instants_for_any_range(length, written):
    chart = line_chart([WEEK, WEEK + length], [Curve("one", "#000000", [Decimal(1), Decimal(2)])])
    assert [arena.position_label(tick.value, chart.axis) for tick in chart.x_ticks] == written


def test_a_range_that_begins_between_round_instants_has_its_ticks_inside():
    first = WEEK + timedelta(hours=7, minutes=13)
    ticks = time_ticks(first, first + timedelta(hours=2))
    assert ticks[0] > first
    assert all(at.minute in (0, 30) for at in ticks)


@pytest.mark.parametrize(
    ("positions", "axis", "written"),
    [
        ([0, 0.5, 1], "weeks", ["0", "0.2 weeks", "0.4 weeks", "0.6 weeks", "0.8 weeks", "1 week"]),
        ([0, 3, 6], "weeks", ["0", "1 week", "2 weeks", "3 weeks", "4 weeks", "5 weeks", "6 weeks"]),
        ([1, 2, 3], "questions", ["1", "2", "3"]),
    ],
)
def test_positions_without_time_have_their_unit(positions, axis, written):
    chart = line_chart(positions, [Curve("one", "#000000", [1, 2, 3])], axis=axis)
    assert [arena.position_label(tick.value, axis) for tick in chart.x_ticks] == written


@pytest.mark.parametrize(
    ("unit", "values", "written"),
    [
        ("money", [10000, 10400], "$10,100"),
        ("money", [1, 1.4], "$1.1"),
        ("fraction", [0.5, 0.9], "60\u202f%"),
        ("price", [0.5, 0.9], "60\u202f%"),
        ("percent", [-2, 2], "−1\u202f%"),
        ("percent", [-2, 2], "0\u202f%"),
    ],
)
def test_values_at_the_axis_are_written_in_the_charts_unit(unit, values, written):
    chart = line_chart(HOURS[:2], [Curve("one", "#000000", values)], unit=unit)
    assert written in [arena.tick_label(tick.value, unit, chart.decimals) for tick in chart.y_ticks]


def test_events_stand_at_their_instant_and_value_and_those_outside_are_left_out():
    prices = Curve("YES", "#000000", [0.2, 0.4, 0.6])
    bought = ChartEvent(HOURS[1], 0.4, "bought", "#05a85b", href="/decisions/1/")
    chart = line_chart(HOURS, [prices], events=[bought, ChartEvent(HOURS[2] + DAY, 0.6, "later", "#05a85b")])
    ((placed, path),) = chart.events
    assert placed is bought
    x = (chart.left_edge + chart.right_edge) / 2
    place = re.search(rf"L({x} [\d.]+)L", chart.lines[0].path)
    assert path == marker_path(bought.marker, *map(float, place[1].split()), 5.5)


def test_script_receives_the_values_of_the_curves():
    chart = line_chart(HOURS, [Curve("one", "#000000", [None, Decimal("0.12345"), Decimal(3)])], unit="score")
    assert chart.data["curves"][0]["values"] == [None, 0.1235, 3.0]
    chart = line_chart(HOURS, [Curve("one", "#000000", [None, Decimal("9999.99"), Decimal(10_000)])])
    assert chart.data["curves"][0]["values"] == [None, 9999.99, 10_000.0]
    assert chart.data["positions"] == [round(at.timestamp() * 1000) for at in HOURS]


def test_a_line_is_faded_where_it_is_a_mean_of_fewer_than_three_cohorts():
    curve = Curve("one", "#000000", [0.0, 1.0, 2.0, 3.0], numbers=[4, 3, 2, 1])
    chart = line_chart([0, 1, 2, 3], [curve], axis="weeks", unit="percent")
    (line,) = chart.lines
    numbers = {tick.value: number.text for tick, number in zip(chart.x_ticks, chart.numbers, strict=True)}
    assert (line.path.count("L"), line.few.count("L")) == (1, 2)
    assert line.few.startswith(f"M{line.path.rpartition('L')[2]}")
    assert (numbers[0], numbers[3]) == ("4", "1")
    full_chart = line_chart([0, 1, 2, 3], [Curve("one", "#000000", [0.0, 1.0, 2.0, 3.0])], axis="weeks", unit="percent")
    assert (full_chart.lines[0].few, full_chart.numbers, full_chart.x_title_place - full_chart.bottom) == ("", (), 44)


def test_a_band_is_drawn_and_the_axis_has_room_for_it():
    banded = Curve("one", "#000000", [1.0, 2.0, 3.0], band=[(1.0, 1.0), (0.0, 9.0), None])
    chart = line_chart(HOURS, [banded])
    assert chart.lines[0].band.count("L") == 3
    assert max(tick.value for tick in chart.y_ticks) >= 8


def test_no_number_is_minus_zero():
    chart = line_chart([0, 1], [Curve("one", "#000000", [-0.00000001, 0.0])], axis="weeks", unit="percent")
    figure = Figure("one", "One.", chart)
    assert "-0" not in json.dumps(chart.data) + marker_path(0, -0.04, -0.01) + str([*figure.rows])


def test_diagrams_have_forecasts_on_x_and_outcomes_on_y():
    bins = [
        {"forecast": 1.0, "outcome": 0.0, "low": 0.0, "high": 0.3, "weight": 0.2, "pairs": 4, "from": 0.9, "to": 1.0}
    ]
    family = Family.objects.get(slug="grok-4")
    diagram = reliability_diagram("one", bins, family)
    (bin_,) = diagram.bins
    grid = reliability_grid([diagram])
    assert (bin_.x, bin_.y) == (grid.right_edge, grid.bottom)
    assert bin_.high < bin_.low
    assert bin_.number == "4"
    assert diagram.points == [(1.0, 0.0, "4 forecasts, 95 % interval 0.0\u202f% to 30.0\u202f%")]
    assert [share for share, _, _ in grid.shares] == [0, 25, 50, 75, 100]
    drawn = scatter_diagram(family, [(0.0, 1.0, True), (0.5, 0.5, None), (0.2, 0.2, False)])
    assert (drawn.filled.count("M"), drawn.hollow.count("M")) == (1, 2)
