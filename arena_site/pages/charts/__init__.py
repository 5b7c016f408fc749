"""Charts as coordinates: templates draw them as SVG, charts.js makes them interactive."""
