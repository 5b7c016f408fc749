"""Geometry of charts: numbers in, coordinates out. Templates draw them as SVG, charts.js makes them interactive."""

from arena_site.pages.charts.axes import Tick
from arena_site.pages.charts.diagrams import ReliabilityDiagram, ScatterDiagram, reliability_diagram, scatter_diagram
from arena_site.pages.charts.lines import (
    ChartEvent,
    Curve,
    LineChart,
    chart_by_order,
    chart_over_time,
    family_curve,
)
from arena_site.pages.charts.markers import REFERENCE_COLORS, marker_of, marker_path, readable_color
from arena_site.pages.charts.sparklines import Sparkline, sparkline

__all__ = [
    "REFERENCE_COLORS", "ChartEvent", "Curve", "LineChart", "ReliabilityDiagram", "ScatterDiagram", "Sparkline",
    "Tick", "chart_by_order", "chart_over_time", "family_curve", "marker_of", "marker_path", "readable_color",
    "reliability_diagram", "scatter_diagram", "sparkline",
]  # fmt: skip
