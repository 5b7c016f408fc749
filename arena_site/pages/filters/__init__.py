"""Filters and functions of the pages' templates, grouped by what they format."""

from arena_site.pages.filters.labels import decision_badge, family_label, readable_color
from arena_site.pages.filters.links import origin, page_url
from arena_site.pages.filters.numbers import (
    cost,
    count,
    dollars,
    format_as,
    fraction,
    half_width,
    minus,
    money,
    number,
    number_cells,
    p_value,
    percent,
    pnl_class,
    price,
    score,
    score_part,
    seconds,
    shares,
    signed_money,
    signed_number,
    signed_percent,
    signed_score,
)
from arena_site.pages.filters.text import item, or_dash, single_line, truncatechars, untrusted
from arena_site.pages.filters.times import day, tick_label, timestamp

__all__ = [
    "cost", "count", "day", "decision_badge", "dollars", "family_label", "format_as", "fraction", "half_width", "item",
    "minus", "money", "number", "number_cells", "or_dash", "origin", "p_value", "page_url", "percent", "pnl_class",
    "price", "readable_color", "score", "score_part", "seconds", "shares", "signed_money", "signed_number",
    "signed_percent", "signed_score", "single_line", "tick_label", "timestamp", "truncatechars", "untrusted",
]  # fmt: skip
FILTERS = {name: globals()[name] for name in __all__ if name != "page_url"}
