"""Existing values of the API's parameters, which complete the OpenAPI document when it is served.

A value that no row has is a 400, so that these values are part of what is valid; the committed document has none.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from django.core.cache import cache
from django.db.models import Max, Min, Model
from django.urls import resolve

from agents.models import Family
from cohorts.models import Cohort, Methodology
from foundation.rest.filters import AnyOfFilter, ExistingValueFilter, ReferenceFilter, StrictFilterBackend
from markets.models import Market
from scoring.selectors.competition import competition_index

MAX_TEXTS, MAX_IDS = 1_000, 100
"""Values that are listed; of more ids the range is stated, of more texts nothing."""
LIFETIME_S = 600
UNFILTERED: dict[str, tuple[type[Model], str]] = {
    "cohort": (Cohort, "number"),
    "family": (Family, "slug"),
    "methodology": (Methodology, "version"),
    "category": (Market, "category"),
}
"""Models and columns that parameters of views without a filter set refer to."""
Values = dict[tuple[str, str], dict[str, Any]]
"""Parts of a parameter's JSON schema, by its path and name."""


def existing_values(document: dict[str, Any]) -> Values:
    """The limits that existing rows set to the document's parameters, at most ten minutes old."""
    values: Values = cache.get_or_set("existing-values", lambda: dict(_limits_by_parameter(document)), LIFETIME_S) or {}
    return values


def with_values(document: dict[str, Any], values: Values) -> dict[str, Any]:
    """A copy of the OpenAPI document with these limits of its parameters."""
    document = deepcopy(document)
    for (path, name), limits in values.items():
        for parameter in document["paths"][path]["get"]["parameters"]:
            if parameter["name"] == name:
                schema = parameter["schema"]
                schema.get("items", schema).update(limits)
    return document


def _limits_by_parameter(document: dict[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """The limits of each path's parameter that refers to rows."""
    limits: dict[tuple[type[Model], str], dict[str, Any]] = {}
    conditions = {"enum": competition_index().conditions.names()}
    for path, operations in document["paths"].items():
        view = _list_view(path)
        for parameter in operations.get("get", {}).get("parameters", ()):
            if parameter["name"] == "arm" and not getattr(view, "filter_backends", ()):
                yield (path, "arm"), conditions
                continue
            column = _column(view, parameter["name"]) if parameter["in"] == "query" else None
            if column is not None:
                if column not in limits:
                    limits[column] = _limits(*column)
                yield (path, parameter["name"]), limits[column]


def _list_view(path: str) -> Any:
    """The view class that serves a path without parameters."""
    return None if "{" in path else resolve(path).func.cls  # type: ignore[attr-defined]


def _column(view: Any, name: str) -> tuple[type[Model], str] | None:
    """The model and its column that a view's query parameter refers to, if it does."""
    if not getattr(view, "filter_backends", ()):
        return UNFILTERED.get(name)
    single: Any = StrictFilterBackend().get_filterset_class(view()).base_filters.get(name)
    single = single.single if isinstance(single, AnyOfFilter) else single
    if isinstance(single, ReferenceFilter):
        return single.extra["queryset"].model, single.extra["to_field_name"] or "pk"
    return (view.queryset.model, str(single.field_name)) if isinstance(single, ExistingValueFilter) else None


def _limits(model: type[Model], column: str) -> dict[str, Any]:
    """The values of a column as an enumeration, or its range."""
    rows = model._default_manager.order_by()
    most = MAX_IDS if column == "pk" else MAX_TEXTS
    values = list(rows.values_list(column, flat=True).distinct()[: most + 1])
    if len(values) <= most:
        texts = sorted(value for value in values if value not in ("", None))
        return {"enum": texts} if texts else {}
    return rows.aggregate(minimum=Min("pk"), maximum=Max("pk")) if column == "pk" else {}
