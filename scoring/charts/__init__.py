"""Charts as geometry: numbers in, coordinates out. Templates turn them into SVG, a script makes that interactive."""

from scoring.charts.lines import Curve, Event, Line, LineChart, Point, Tick, curve_of, line_chart, order_chart
from scoring.charts.marks import mark_of, readable
from scoring.charts.reliability import Dot, Reliability, reliability_chart
from scoring.charts.scatter import Scatter, scatter_chart
from scoring.charts.sparks import Spark, spark

__all__ = [
    "Curve", "Dot", "Event", "Line", "LineChart", "Point", "Reliability", "Scatter", "Spark", "Tick", "curve_of",
    "line_chart", "mark_of", "order_chart", "readable", "reliability_chart", "scatter_chart", "spark",
]  # fmt: skip
