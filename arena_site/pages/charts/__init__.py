"""Geometry of charts: numbers in, coordinates out. Templates draw them as SVG, charts.js makes them interactive."""
