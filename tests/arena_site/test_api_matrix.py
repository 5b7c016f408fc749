"""What each list of the API does, asked of every endpoint of the router: its cases follow from each view."""

import csv
import io
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from django.db import connection, models
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django_filters import Filter

from agents.models import Forecast
from arena_site.api import ENDPOINTS, router
from forecast_rank.files.checksums import zip_checksum
from foundation.rest.filters import (
    AnyOfFilter,
    ExistingValueFilter,
    InstantFilter,
    KnownChoiceFilter,
    KnownNamesFilter,
    ReferenceFilter,
    SingleValueFilter,
    StrictBooleanFilter,
    StrictFilterBackend,
)
from foundation.rest.serializers import field_names
from scoring.exports.public_archives import published_file
from tests.arena_site.api_season import play
from tests.arena_site.endpoints import CURSORS, ENDPOINT, EXPECTED, ROW_ENDPOINT, ROWS
from tests.factories import play_week
from tests.problems import errors, problem
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

Rows = list[dict[str, Any]]
season = shared_rows(play)


@pytest.fixture(scope="module", autouse=True)
def _archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two archives, which are files."""
    with override_settings(ARENA_EXPORT_DIR=tmp_path_factory.mktemp("archives")):
        for day in ("2026-03-08", "2026-03-09"):
            published_file(day).parent.mkdir(exist_ok=True)
            published_file(day).write_bytes(b"an archive")
            zip_checksum(published_file(day)).write_text(f"{'0' * 64}  {day}.zip")
        yield


@pytest.fixture(scope="module")
def lists(season: None, _archives: None, django_db_blocker: Any) -> dict[str, Rows]:
    """The rows of each list, in its order."""
    with django_db_blocker.unblock():
        return {name: read(Client(), name) for name in EXPECTED}


@pytest.fixture(autouse=True)
def _quiet(season: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="django.request")


def read(client: Client, name: str, **query: Any) -> Rows:
    """The rows of a list, on one page unless the query says otherwise."""
    response = client.get(f"/api/v1/{name}/", {"page_size": 500, **query})
    assert response.status_code == 200, (query, response.content)
    rows: Rows = response.json()["results"]
    return rows


def key_of(name: str, row: dict[str, Any]) -> str:
    """A row's key in its address."""
    key = getattr(ENDPOINTS[name], "lookup_field", "pk")
    return str(row["id" if key == "pk" else key])


def filters_of(name: str) -> dict[str, Any]:
    filters: dict[str, Any] = StrictFilterBackend().get_filterset_class(ENDPOINTS[name]()).base_filters
    return filters


HIDDEN: dict[tuple[str, str], Callable[[dict[str, Any]], Any]] = {
    ("forecasts", "status"): lambda row: Forecast.objects.get(pk=row["id"]).question.status,
    ("receipts", "family"): lambda row: row["body"]["agent"],
    ("receipts", "received_at"): lambda row: row["body"]["received_at"],
}
"""What a list is filtered or ordered by and its rows do not show."""


def shown(name: str, field: str, row: dict[str, Any]) -> Any:
    return HIDDEN[name, field](row) if (name, field) in HIDDEN else row[field]


def test_each_endpoint_of_the_router_is_in_the_matrix() -> None:
    assert {prefix for prefix, _, _ in router.registry} == ENDPOINTS.keys() == EXPECTED.keys()
    assert [name for name, expected in EXPECTED.items() if expected.row_queries is not None] == ROWS


# --- pages ---------------------------------------------------------------------------------------------------


def links(response: Any) -> dict[str, str]:
    found = re.findall(r'<([^>]*)>; rel="(\w+)"', response.get("Link", ""))
    return {relation: address for address, relation in found}


def walk(client: Client, address: str | None, onwards: str, envelope: set[str]) -> Iterator[tuple[str, list[Any]]]:
    """The addresses and rows of the pages from one on, `next` or `previous`, each checked against its `Link`."""
    while address:
        response = client.get(address)
        body = response.json()
        assert set(body) == envelope
        relations = {"next": body["next"], "prev": body["previous"]}
        assert {relation: links(response).get(relation) for relation in relations} == relations
        assert ({"first", "last"} <= set(links(response))) == ("count" in envelope)
        yield address, body["results"]
        address = body[onwards]


GROWING = {
    ("brier-scores", "resolved_at"),
    ("brier-scores", "scored_at"),
    ("reversals", "reversed_at"),
    ("receipts", "sequence"),
}
"""Fields whose order is that of the ids, by which a field that orders nothing would order."""


def sortable(value: Any) -> Any:
    return Decimal(value) if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) else value


def assert_ordered(keys: list[Any], *, descending: bool, field: str) -> None:
    present = [key for key in keys if key is not None]
    assert keys[: len(present)] == present, f"{field}: nulls come last"
    is_text = all(isinstance(key, str) and not key.endswith("Z") for key in present)
    if connection.vendor == "sqlite" or not is_text:  # PostgreSQL sorts text by the rules of a language
        assert present == sorted(present, reverse=descending), field


@ENDPOINT
def test_list_comes_page_by_page_in_its_order_and_in_each_that_it_offers(
    client: Client, name: str, lists: dict[str, Rows]
) -> None:
    rows = lists[name]
    assert len(rows) > 1
    envelope = {"next", "previous", "results"} | ({"count"} if name not in CURSORS else set())
    size = 2 if name in CURSORS else -(-len(rows) // 3)
    addresses, pages = zip(*walk(client, f"/api/v1/{name}/?page_size={size}", "next", envelope), strict=True)
    assert list(pages) == [rows[start : start + size] for start in range(0, len(rows), size)]
    assert [page for _, page in walk(client, addresses[-1], "previous", envelope)] == list(pages[::-1])
    if name not in CURSORS:
        assert client.get(f"/api/v1/{name}/?page_size=1").json()["count"] == len(rows)
    if order := EXPECTED[name].order:
        field = order.removeprefix("-")
        assert_ordered([sortable(row[field]) for row in rows], descending=order[0] == "-", field=field)
    for field in getattr(ENDPOINTS[name], "orderings", ()):
        for sign in ("", "-"):
            ordered = read(client, name, ordering=sign + field)
            keys = [sortable(shown(name, field, row)) for row in ordered]
            assert_ordered(keys, descending=sign == "-", field=field)
            assert len(set(keys)) > 1, f"{field}: all rows are alike"
            ids = [row.get("id") for row in ordered]
            is_told = field == "id" or None in ids or (name, field) in GROWING
            assert is_told or ids != sorted(ids, reverse=sign == "-"), f"{field}: by id the order is the same"


# --- formats and fields --------------------------------------------------------------------------------------


def as_json(cell: str, like: Any) -> Any:
    """The value that a cell of CSV stands for, given that of the JSON."""
    if like is None:
        return None if cell == "" else cell
    return cell.removeprefix("'") if isinstance(like, str) else json.loads(cell)


def selections(name: str, fields: Iterable[str]) -> list[list[str]]:
    """Each field by itself, but those that are columns of the model, which are read alike, together."""
    model = getattr(getattr(ENDPOINTS[name], "queryset", None), "model", None)
    columns = {column.name for column in model._meta.concrete_fields if not column.is_relation} if model else set()
    apart = [[field] for field in fields if field not in columns]
    together = [field for field in fields if field in columns]
    return [*apart, together] if together else apart


@ENDPOINT
def test_csv_and_a_choice_of_fields_have_the_values_of_the_json(
    client: Client, name: str, lists: dict[str, Rows]
) -> None:
    rows = lists[name]
    by_parameter = client.get(f"/api/v1/{name}/?page_size=500&format=csv")
    by_header = client.get(f"/api/v1/{name}/?page_size=500", headers={"accept": "text/csv"})
    assert by_parameter["Content-Type"] == by_header["Content-Type"] == "text/csv; charset=utf-8"
    assert by_parameter.content == by_header.content
    lines = list(csv.DictReader(io.StringIO(by_parameter.content.decode())))
    for row, line in zip(rows, lines, strict=True):
        assert list(line) == list(row)
        assert {key: as_json(line[key], value) for key, value in row.items()} == row
    known = field_names(ENDPOINTS[name].serializer_class)
    assert [tuple(row) for row in rows] == [known] * len(rows)
    for fields in selections(name, known):
        assert read(client, name, fields=",".join(fields)) == [{field: row[field] for field in fields} for row in rows]


@ROW_ENDPOINT
def test_row_has_an_address_with_all_that_its_list_shows(client: Client, name: str, lists: dict[str, Rows]) -> None:
    for row in lists[name][:2]:
        address = f"/api/v1/{name}/{key_of(name, row)}/"
        detail = client.get(address).json()
        assert {field: detail[field] for field in row} == row
    for fields in selections(name, detail):
        assert client.get(address, {"fields": ",".join(fields)}).json() == {field: detail[field] for field in fields}
    assert errors(client.get(address, {"page_size": 1})) == {"page_size": ["unknown parameter; known are fields"]}
    assert errors(client.get(address, {"format": "csv"})) == {"format": ["csv is unknown; known are json"]}


# --- filters -------------------------------------------------------------------------------------------------


NEVER, ALWAYS = "0001-01-02T00:00:00Z", "9999-12-30T00:00:00Z"


def some_values(single: Filter, seen: list[str]) -> list[str]:
    """Values of a filter: of those that rows have, and one that none has if there is such a value."""
    if isinstance(single, KnownChoiceFilter):
        return list(dict(single.extra["choices"]))
    if isinstance(single, StrictBooleanFilter):
        return ["true", "false"]
    if isinstance(single, InstantFilter):
        return [*seen[:3], NEVER, ALWAYS]
    if isinstance(single, ReferenceFilter):
        keys = single.extra["queryset"].values_list(single.extra["to_field_name"] or "pk", flat=True)
        return [*seen[:3], *sorted(set(map(str, keys)) - set(seen))[:1]]
    if isinstance(single, KnownNamesFilter):
        return list(single.names())
    return seen


def as_text(value: Any, single: Filter) -> str:
    if isinstance(single, StrictBooleanFilter):
        return "true" if value else "false"
    return str(value)


def matches(lookup: str, value: str, text: str) -> bool:
    if lookup in ("gte", "lt"):
        at, bound = datetime.fromisoformat(text), datetime.fromisoformat(value)
        return at >= bound if lookup == "gte" else at < bound
    return text == value


def selected_rows(rows: Rows, texts: Sequence[str | None], lookup: str, values: Iterable[str]) -> Rows:
    """The rows whose text is one of the values, or within the bound that is the only one."""
    pairs = zip(rows, texts, strict=True)
    return [row for row, text in pairs if text and any(matches(lookup, value, text) for value in values)]


@ROW_ENDPOINT
def test_each_filter_selects_its_rows(client: Client, name: str, lists: dict[str, Rows]) -> None:
    """By a value that some rows have and others not; where there is none, by one of all rows and one of no row."""
    rows = lists[name]
    for parameter, single in filters_of(name).items():
        field, _, lookup = parameter.partition("__")
        if isinstance(single, AnyOfFilter) or field in ("search", "updated_since"):
            continue
        texts = []
        for row in rows:
            value = shown(name, field, row)
            texts.append(None if value is None else as_text(value, single))

        select = partial(selected_rows, rows, texts, lookup)
        values = some_values(single, sorted({text for text in texts if text is not None}))
        dividing = [value for value in values if 0 < len(select([value])) < len(rows)]
        by_number = {len(select([value])): value for value in values}
        assert dividing or 0 in by_number, f"{parameter}: each value selects all rows, as no filter would"
        for value in dividing[:1] or by_number.values():
            assert read(client, name, **{parameter: value}) == select([value]), (parameter, value)
        if isinstance(single, SingleValueFilter):
            pairs = [pair for pair in combinations(dividing, 2) if len(select(pair)) < len(rows)]
            few = pairs[0] if pairs else dividing[:1] or values[-1:]
            assert read(client, name, **{f"{parameter}__in": ",".join(few)}) == select(few), (parameter, few)


@ROW_ENDPOINT
def test_each_reference_status_and_time_of_a_row_can_be_filtered_by(name: str) -> None:
    view, filters = ENDPOINTS[name], filters_of(name)
    model = view.queryset.model
    columns = {field.name: field for field in model._meta.concrete_fields}
    for field in field_names(view.serializer_class):
        column = columns.get(field)
        if isinstance(column, models.DateTimeField):
            assert {f"{field}__gte", f"{field}__lt"} <= filters.keys(), field
        elif isinstance(column, models.ForeignKey) or field in ("cohort", "family", "market", "methodology"):
            assert field in filters or field == model._meta.pk.name, field
        elif column is not None and (column.choices or isinstance(column, models.BooleanField)):
            assert field in filters, field
    for field in ("status", "kind", "agent", "cohort", "family", "market", "release", "decision", "question"):
        assert field not in filters or f"{field}__in" in filters, field


# --- refusals ------------------------------------------------------------------------------------------------


@ENDPOINT
def test_wrong_parameter_is_a_400_that_names_it(client: Client, name: str) -> None:
    view, address = ENDPOINTS[name], f"/api/v1/{name}/"
    serializers = (view.serializer_class, *getattr(view, "other_serializer_classes", ()))
    known = list(dict.fromkeys(field for serializer in serializers for field in field_names(serializer)))
    refused = {
        "colour": ("red", "unknown parameter; known are "),
        "page_size": ("501", "501 is no whole number from 1 to 500"),
        "fields": (f"{known[0]},mood", f"unknown field mood; known are {', '.join(known)}"),
        "format": ("xlsx", "xlsx is unknown; known are json, csv"),
    }
    if name not in CURSORS:
        refused["page"] = ("0", "0 is no whole number")
    if orderings := getattr(view, "orderings", ()):
        refused["ordering"] = ("-mood", f"unknown field -mood; known are {', '.join(orderings)}")
    for parameter, (value, complaint) in refused.items():
        messages = errors(client.get(address, {parameter: value}))
        assert list(messages) == [parameter]
        assert complaint in messages[parameter][0]


@ROW_ENDPOINT
def test_wrong_values_of_filters_are_one_400_that_names_each(client: Client, name: str) -> None:
    """A text of a column is looked up after the form of all filters was valid, so it is tried by itself."""
    filters = {key: single for key, single in filters_of(name).items() if key != "search"}  # any text can be sought
    texts = [key for key in filters if isinstance(getattr(filters[key], "single", filters[key]), ExistingValueFilter)]
    several = [parameter for parameter in filters if parameter.endswith("__in")]
    for value, parameters in (("no-such-thing", list(filters)), ("9" * 30, several)):
        together = [parameter for parameter in parameters if parameter not in texts]
        for wrong in (together, *([parameter] for parameter in parameters if parameter in texts)):
            messages = errors(client.get(f"/api/v1/{name}/", dict.fromkeys(wrong, value))) if wrong else {}
            assert messages.keys() == set(wrong)
            for parameter, (complaint,) in messages.items():
                assert ("Enter a whole number" if parameter in WHOLE else value) in complaint, parameter


WHOLE = ("week", "part")


@ENDPOINT
def test_what_is_not_there_is_a_404_and_nothing_can_be_written(client: Client, name: str) -> None:
    address = f"/api/v1/{name}/"
    problem(client.get(f"{address}no/such/row/"), 404)
    if name in ROWS:
        problem(client.get(f"{address}123456789012345678/"), 404)
    if name in CURSORS:
        for cursor in ("x", "cD1ub25zZW5zZQ==", "bz0tMQ=="):
            detail = problem(client.get(address, {"cursor": cursor}), 404)["detail"]
            assert detail == "the cursor was not issued by this list in this order"
    else:
        assert problem(client.get(address, {"page": 99}), 404)["detail"] == "there is no page 99"
    for method in ("post", "put", "patch", "delete"):
        response = getattr(client, method)(address)
        assert problem(response, 405)["detail"] == f'Method "{method.upper()}" not allowed.'
        assert response["Allow"] == "GET, HEAD, OPTIONS"


# --- queries and conditional requests ------------------------------------------------------------------------


def queries(client: Client, path: str, status: int = 200, **query: Any) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path, query).status_code == status
    return len(captured)


@ENDPOINT
def test_list_and_row_need_the_same_queries_for_any_number_of_rows(
    client: Client, name: str, lists: dict[str, Rows]
) -> None:
    """Beyond those of a request that is refused at once."""
    expected, address = EXPECTED[name], f"/api/v1/{name}/"
    refused = queries(client, address, 400, mood="bad")
    client.get(address)  # which caches what all rows share
    counts = [queries(client, address, page_size=size) - refused for size in (1, 499)]
    assert counts == [expected.list_queries] * 2
    if name in ROWS:
        addresses = [f"{address}{key_of(name, row)}/" for row in (*lists[name][:6], *lists[name][-6:])]
        refused = queries(client, addresses[0], 400, mood="bad")
        assert max(queries(client, path) for path in addresses) - refused == expected.row_queries


@ENDPOINT
def test_unchanged_list_is_a_304_and_head_has_its_headers(client: Client, name: str) -> None:
    address = f"/api/v1/{name}/"
    first = client.get(address)
    assert first["Cache-Control"] == "no-cache"
    repeated = client.get(address, headers={"if-none-match": first["ETag"]})
    assert (repeated.status_code, repeated.content, repeated["ETag"]) == (304, b"", first["ETag"])
    foreign = client.get(address, headers={"if-none-match": first["ETag"], "origin": "https://notebook.example"})
    assert (foreign.status_code, foreign["Access-Control-Allow-Origin"]) == (304, "*")
    assert client.get(address, headers={"if-none-match": '"another"'}).content == first.content
    head = client.head(address)
    assert (head.status_code, head.content, {**head.headers}) == (200, b"", {**first.headers})


WITHOUT_WEEKS = {
    "agents-board", "comparisons/conditions", "methodologies", "families", "releases", "forecast-leaderboards",
    "envelopes", "receipts", "attempts", "exports",
}  # fmt: skip
"""Lists to which another week adds nothing."""


def test_changed_list_has_another_etag(client: Client) -> None:
    before = {name: client.get(f"/api/v1/{name}/")["ETag"] for name in EXPECTED}
    play_week()
    responses = {name: client.get(f"/api/v1/{name}/", headers={"if-none-match": etag}) for name, etag in before.items()}
    assert {name for name, response in responses.items() if response.status_code == 304} == WITHOUT_WEEKS
    assert {name for name, response in responses.items() if response["ETag"] == before[name]} == WITHOUT_WEEKS


@pytest.mark.parametrize("query", [{}, {"range": "1D"}, {"family": "gpt-5.1"}])
def test_curves_cost_no_more_queries_for_more_points(client: Client, query: dict[str, str]) -> None:
    refused = queries(client, "/api/v1/performance/", 400, mood="bad")
    assert queries(client, "/api/v1/performance/", **query) - refused <= 13
