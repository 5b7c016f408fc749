"""Figures of HTML pages: the text of a number in a <data> element, whose value is the number as the API's JSON has it.

Attributes, drawings, sentences and feeds have the text alone, by `filters`; so have figures that a page derives and
no JSON has.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Any

from jinja2 import Undefined
from markupsafe import Markup, escape

from arena_site.pages import filters
from scoring.leaderboard_keys import skill_percent


def exact(value: Any) -> str:
    """A number, or an interval in brackets, as the API's JSON writes it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(exact, value))}]"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def data_element(value: Any, text: str) -> Markup:
    """The text of a value, which the element keeps exactly."""
    return Markup(f'<data value="{escape(exact(value))}">{escape(text)}</data>')  # noqa: S704 - escaped


def as_data(write: Callable[..., str]) -> Callable[..., str]:
    """A filter that writes its value so in a <data> element; a dash for a missing one."""

    @wraps(write)
    def element(value: Any, *args: Any) -> str:
        missing = value is None or value == "" or isinstance(value, Undefined)
        return filters.DASH if missing else data_element(value, write(value, *args))

    return element


def skill(bss_uniform: Any) -> str:
    """The skill over equal probabilities, in percent as the API has it."""
    missing = bss_uniform is None or isinstance(bss_uniform, Undefined)
    return filters.DASH if missing else data_element(skill_percent(bss_uniform), filters.skill(bss_uniform))


_format_as = as_data(filters.format_as)


def format_as(value: Any, kind: str, *args: int) -> str:
    """A number of the kind of this name, for tables whose rows or columns differ in kind."""
    return skill(value) if kind == "skill" else _format_as(value, kind, *args)


def times(value: Any, factor: int, kind: str, *args: int) -> str:
    """The text of a multiple of a value, such as what a thousand of a thing cost."""
    return filters.format_as(value * factor, kind, *args)


def margin(standard_error: float) -> str:
    """The text of half the width of the 95 % interval that a standard error gives."""
    return filters.score(filters.NORMAL_95 * standard_error)
