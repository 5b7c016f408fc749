"""The Jinja environment of the pages. The admin's templates are Django's."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.template import defaultfilters
from django.templatetags.static import static
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from jinja2 import ChainableUndefined, Environment, Undefined, pass_context
from jinja2.runtime import Context

from agents.models.family import EXTERNAL_WINDOW
from agents.records import canonical
from arena_site.pages import filters
from arena_site.pages.board_order import column_value
from arena_site.pages.citations import chart_citation, dated_query, image_code
from arena_site.pages.data_elements import as_data, format_as, margin, times
from arena_site.pages.formulas import block_formula, inline_formula
from arena_site.pages.glossary import TERMS
from arena_site.pages.navigation import SECTIONS, section_of
from arena_site.pages.selection import shown_query
from foundation.clock import present


@pass_context
def term(context: Context, slug: str, text: str = "") -> SafeString:
    """A term, by its name or another text, as a button that opens its definition.

    The page's frame puts the definitions of the terms in use at its end. Browsers without popovers show a link to the
    glossary instead (see `.term-link` in the style sheet).
    """
    name = TERMS[slug].name
    context.get("terms_in_use", {})[slug] = TERMS[slug]
    return format_html(
        '<button type="button" class="term" popovertarget="term-{}">{}</button>'
        '<a class="term-link" href="{}#{}" aria-label="Definition: {}"></a>',
        slug,
        text or name,
        filters.page_url("glossary"),
        slug,
        name,
    )


GLOBALS = {
    "SECTIONS": SECTIONS,
    "EXTERNAL_MINUTES": EXTERNAL_WINDOW // timedelta(minutes=1),
    "chart_citation": chart_citation,
    "column_value": column_value,
    "dated_query": dated_query,
    "image_code": image_code,
    "page_time": present,
    "page_url": filters.page_url,
    "plain": filters,
    "section_of": section_of,
    "shown_query": shown_query,
    "static": static,
    "term": term,
}
FILTERS = (
    "code_identifiers", "condition_label", "day", "decision_badge", "family_label", "has_ignored_words",
    "is_board_condition", "marker", "or_dash", "pnl_class", "position_label", "readable_color", "release_of",
    "sampling", "single_line", "tick_label", "timestamp", "untrusted",
)  # fmt: skip
FIGURES = (
    "cost", "count", "dollars", "fraction", "money", "net_return", "number", "p_value", "percent", "price",
    "return_margin", "score", "seconds", "signed_money", "signed_number", "signed_percent", "signed_score",
)  # fmt: skip
"""The filters that write numbers, in <data> elements; the global `plain` has them as text."""
DJANGO_FILTERS = (
    "capfirst", "date", "default", "default_if_none", "pluralize", "slugify", "truncatechars", "urlencode",
)  # fmt: skip


def environment(**options: Any) -> Environment:
    """An environment that escapes text, writes nothing for missing values, and has the pages' filters."""
    options |= {"autoescape": True, "undefined": ChainableUndefined, "keep_trailing_newline": True}
    env = Environment(**options)  # noqa: S701 - autoescape is on
    env.globals |= GLOBALS
    for module, names in ((filters, FILTERS), (defaultfilters, DJANGO_FILTERS)):
        env.filters |= {name: _undefined_as_none(getattr(module, name)) for name in names}
    env.filters |= {name: as_data(getattr(filters, name)) for name in FIGURES}
    env.filters |= {"format_as": format_as, "margin": as_data(margin), "times": as_data(times)}
    env.filters |= {"block_formula": block_formula, "inline_formula": inline_formula}
    env.filters |= {"canonical": canonical, "json_script": json_script}
    env.tests["none"] = lambda value: value is None or isinstance(value, Undefined)
    return env


def _undefined_as_none(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, called with None for a missing value."""

    @wraps(filter_)
    def wrapped(value: Any, *args: Any) -> Any:
        return filter_(None if isinstance(value, Undefined) else value, *args)

    return wrapped
