"""Bases of the REST API: read-only view sets and serializers, strict filters, ordering and pagination.

`arena_site.api` knows all endpoints and imports their modules, so these can not import it.
"""

from markets.foundation.rest.filters import (
    INSTANT_SCHEMA,
    InstantField,
    KnownChoiceFilter,
    ReferenceFilter,
    StrictFilterSet,
    check_parameters,
    past_instant,
)
from markets.foundation.rest.pagination import StrictCursorPagination, StrictPagination
from markets.foundation.rest.serializers import (
    FIELDS_PARAMETER,
    DecimalStringField,
    MoneyStringField,
    NullableCharField,
    ReadSerializer,
    StrictSerializer,
    field_names,
    limit_related_fields,
    requested_fields,
    select_fields,
)
from markets.foundation.rest.viewsets import (
    PROBLEM_SCHEMA,
    JsonOnlyNegotiation,
    ReadOnlyViewSet,
    extend_schema,
    query_parameter,
)
