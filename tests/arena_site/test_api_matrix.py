"""What each list of the API does, asked of every endpoint of the router: its cases follow from each view."""

import csv
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django_filters import Filter

from agents.models import Forecast
from arena_site.api import ENDPOINTS, router
from forecast_rank.files.checksums import zip_checksum
from foundation.rest.filters import (
    AnyOfFilter,
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

season = shared_rows(play)


@pytest.fixture(autouse=True)
def _archives(season: None, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two archives, which are files."""
    settings.ARENA_EXPORT_DIR = tmp_path
    for day in ("2026-03-08", "2026-03-09"):
        published_file(day).parent.mkdir(exist_ok=True)
        published_file(day).write_bytes(b"an archive")
        zip_checksum(published_file(day)).write_text(f"{'0' * 64}  {day}.zip")
    caplog.set_level(logging.ERROR, logger="django.request")


def read(client: Client, name: str, **query: Any) -> list[dict[str, Any]]:
    """The rows of a list, on one page unless the query says otherwise."""
    response = client.get(f"/api/v1/{name}/", {"page_size": 500, **query})
    assert response.status_code == 200, (query, response.content)
    rows: list[dict[str, Any]] = response.json()["results"]
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


@ENDPOINT
def test_pages_hold_each_row_once_and_lead_on_and_back(client: Client, name: str) -> None:
    envelope = {"next", "previous", "results"} | ({"count"} if name not in CURSORS else set())
    orderings = ENDPOINTS[name].orderings if name in CURSORS else ()
    for order in ("", *orderings, *(f"-{field}" for field in orderings)):
        query = {"ordering": order} if order else {}
        rows = read(client, name, **query)
        assert len(rows) > 1
        size = 2 if name in CURSORS else -(-len(rows) // 3)
        address = f"/api/v1/{name}/?{urlencode(query | {'page_size': size})}"
        addresses, pages = zip(*walk(client, address, "next", envelope), strict=True)
        assert list(pages) == [rows[start : start + size] for start in range(0, len(rows), size)]
        if not order:
            assert [page for _, page in walk(client, addresses[-1], "previous", envelope)] == list(pages[::-1])
    if name not in CURSORS:
        assert client.get(f"/api/v1/{name}/?page_size=1").json()["count"] == len(rows)


# --- formats and fields --------------------------------------------------------------------------------------


def as_json(cell: str, like: Any) -> Any:
    """The value that a cell of CSV stands for, given that of the JSON."""
    if like is None:
        return None if cell == "" else cell
    return cell.removeprefix("'") if isinstance(like, str) else json.loads(cell)


@ENDPOINT
def test_csv_has_the_rows_and_keys_of_the_json(client: Client, name: str) -> None:
    rows = read(client, name)
    by_parameter = client.get(f"/api/v1/{name}/?page_size=500&format=csv")
    by_header = client.get(f"/api/v1/{name}/?page_size=500", headers={"accept": "text/csv"})
    assert by_parameter["Content-Type"] == by_header["Content-Type"] == "text/csv; charset=utf-8"
    assert by_parameter.content == by_header.content
    lines = list(csv.DictReader(io.StringIO(by_parameter.content.decode())))
    for row, line in zip(rows, lines, strict=True):
        assert list(line) == list(row)
        assert {key: as_json(line[key], value) for key, value in row.items()} == row


@ENDPOINT
def test_fields_selects_each_field(client: Client, name: str) -> None:
    rows = read(client, name)
    known = field_names(ENDPOINTS[name].serializer_class)
    assert [tuple(row) for row in rows] == [known] * len(rows)
    for field in known:
        assert read(client, name, fields=field) == [{field: row[field]} for row in rows]


@ROW_ENDPOINT
def test_row_has_an_address_with_all_that_its_list_shows(client: Client, name: str) -> None:
    for row in read(client, name)[:2]:
        address = f"/api/v1/{name}/{key_of(name, row)}/"
        detail = client.get(address).json()
        assert {field: detail[field] for field in row} == row
        for field in detail:
            assert client.get(address, {"fields": field}).json() == {field: detail[field]}
        assert errors(client.get(address, {"page_size": 1})) == {"page_size": ["unknown parameter; known are fields"]}
        assert errors(client.get(address, {"format": "csv"})) == {"format": ["csv is unknown; known are json"]}


# --- order and filters ---------------------------------------------------------------------------------------


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
def test_list_comes_in_its_order_and_in_each_that_it_offers(client: Client, name: str) -> None:
    rows = read(client, name)
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


@ROW_ENDPOINT
def test_each_filter_selects_its_rows(client: Client, name: str) -> None:
    rows = read(client, name)
    for parameter, single in filters_of(name).items():
        field, _, lookup = parameter.partition("__")
        if isinstance(single, AnyOfFilter) or field in ("search", "updated_since"):
            continue
        texts = []
        for row in rows:
            value = shown(name, field, row)
            texts.append(None if value is None else as_text(value, single))
        seen = sorted({text for text in texts if text is not None})
        divided = False
        for value in some_values(single, seen):
            selected = [row for row, text in zip(rows, texts, strict=True) if text and matches(lookup, value, text)]
            assert read(client, name, **{parameter: value}) == selected, (parameter, value)
            divided = divided or len(selected) < len(rows)
        assert divided, f"{parameter}: each value selects all rows, as no filter would"
        if isinstance(single, SingleValueFilter):
            values = some_values(single, seen)
            for few in (values[:1], values[:2]):
                selected = [row for row, text in zip(rows, texts, strict=True) if text in few]
                assert read(client, name, **{f"{parameter}__in": ",".join(few)}) == selected, (parameter, few)


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
    for parameter in filters_of(name) if name in ROWS else ():
        if parameter != "search":  # any text can be looked for
            refused[parameter] = ("no-such-thing", "Enter a whole number" if parameter in WHOLE else "no-such-thing")
    for parameter, (value, complaint) in refused.items():
        messages = errors(client.get(address, {parameter: value}))
        assert list(messages) == [parameter]
        assert complaint in messages[parameter][0]
        if parameter.endswith("__in"):
            assert "9" * 30 in errors(client.get(address, {parameter: "9" * 30}))[parameter][0]


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


def queries(client: Client, path: str, **query: Any) -> int:
    """The queries of a response, without those of a request that is refused at once."""

    def count(status: int, **query: Any) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path, query).status_code == status
        return len(captured)

    return count(200, **query) - count(400, mood="bad")


@ENDPOINT
def test_list_and_row_need_the_same_queries_for_any_number_of_rows(client: Client, name: str) -> None:
    expected, address = EXPECTED[name], f"/api/v1/{name}/"
    rows = read(client, name)
    assert [queries(client, address, page_size=size) for size in (1, 499)] == [expected.list_queries] * 2
    if name in ROWS:
        some_rows = [*rows[:6], *rows[-6:]]
        assert max(queries(client, f"{address}{key_of(name, row)}/") for row in some_rows) == expected.row_queries


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
    assert queries(client, "/api/v1/performance/", **query) <= 13
