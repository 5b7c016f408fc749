"""The language of the pages' templates: Jinja's, for they hold thousands of figures. The admin keeps Django's."""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.template import defaultfilters as django_filters
from django.templatetags.static import static
from django.utils.html import json_script
from jinja2 import ChainableUndefined, Environment, Undefined

from agents.models.agent import EXTERNAL_WINDOW
from agents.services.settlement import ALARM_AFTER
from arena_site.by_hand import ends_by_hand
from scoring.templatetags import arena

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
CONSTANTS = {"EXTERNAL_MINUTES": EXTERNAL_WINDOW // MINUTE, "ALARM_HOURS": ALARM_AFTER // HOUR}
"""How long external agents may answer, and how long a market may stay closed before an operator is called."""
FUNCTIONS = (arena.path, arena.chart_rows, arena.bin_rows, ends_by_hand, static)
DJANGO_FILTERS = (
    *("capfirst", "date", "default", "default_if_none", "linebreaks", "pluralize", "timesince", "urlencode"),
)


def environment(**options: Any) -> Environment:
    """Everything that the templates use beyond the language itself. What is missing is written as nothing."""
    options |= {"autoescape": True, "undefined": ChainableUndefined, "keep_trailing_newline": True}
    made = Environment(**options)  # noqa: S701 - autoescape is on
    made.globals |= {**{function.__name__: function for function in FUNCTIONS}, **CONSTANTS}
    filters = {name: getattr(django_filters, name) for name in DJANGO_FILTERS}
    filters |= arena.register.filters | {"json_script": json_script}
    made.filters |= {name: nothing_as_none(function) for name, function in filters.items()}
    made.tests["none"] = lambda value: value is None or isinstance(value, Undefined)
    return made


def nothing_as_none(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that is told None where the template names what there is none of."""

    @wraps(filter_)
    def filtered(value: Any, *args: Any) -> Any:
        return filter_(None if isinstance(value, Undefined) else value, *args)

    return filtered
