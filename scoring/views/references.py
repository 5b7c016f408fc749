"""How the references are drawn: in greys and one violet, dashed, so that they look like no competitor."""

from scoring.services.forecast_panels import REFERENCES

REFERENCE_COLORS = dict(zip(REFERENCES, ("#7b8088", "#8c8577", "#7a5195", "#8d5a97", "#6d4a85"), strict=True))
"""Market, uniform, and the three ensembles."""
