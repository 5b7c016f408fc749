"""The figures of a page, and where each of them stands in the JSON that the page names.

A figure is a <data> or a <time> element, a dash in place of one, the number of a table's rows, or a point of a chart.
Its source is a field of a JSON record. The record is the one that the figure's row names by its links, or by its
heading; without either it is any. A count or a sum of such records is a source too.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from itertools import product
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from scoring.constants import SHOWN_REFERENCES
from tests.markup import element, elements, links, visible_text
from tests.season import formats

LINKED = {
    "agent": re.compile(r"/cohorts/(?P<cohort>\d+)/(?P<family>[^/]+)/(?:trades/)?"),
    "cohort": re.compile(r"/cohorts/(?P<cohort>\d+)/"),
    "family": re.compile(r"/(?:models|agents)/(?P<family>[^/]+)/"),
    "market": re.compile(r"/markets/(?P<market>\d+)/"),
    "question": re.compile(r"/questions/(?P<question>\d+)/"),
    "decision": re.compile(r"/decisions/(?P<decision>\d+)/"),
    "pair": re.compile(r"/compare/(?P<first>[^/]+)/(?P<second>[^/]+)/"),
}
"""The fields of records that links name."""
NAMED = {"cohorts": ("cohort", "number"), "markets": ("market", "id"), "questions": ("question", "id"),
         "decisions": ("decision", "id")}  # fmt: skip
"""What the records of these lists are called elsewhere."""
OBJECTS = {"cohort", "family", "market", "question", "decision"}
"""Fields that say of what a record is; the records inside it are of the same."""
NUMBER = re.compile(r"-?\d+(\.\d+)?")
INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d:\d\d)(?:\.\d+)?Z)?")
IDENTIFIERS = {
    "id",
    "agent",
    "cohort",
    "number",
    "market",
    "question",
    "decision",
    "elicitation",
    "release",
    "universe",
}
"""Fields whose numbers are no figures."""
ROWS = "tr, dl > div, li, p, summary, h2, h3"
SHOWN_AS: dict[str, Callable[[str], str]] = {
    "count": formats.count, "dollars": formats.dollars, "signed money": formats.signed_money, "money": formats.money,
    "cost": formats.cost, "signed percent": formats.signed_percent, "percent": formats.percent,
    "signed number": formats.signed_number, "number": formats.number, "signed score": formats.signed_score,
    "score": formats.score, "fine score": formats.fine_score, "net return": formats.net_return,
    "whole share": lambda value: formats.share(value, 0), "share": formats.share, "price": formats.price,
    "seconds": formats.seconds, "skill": formats.skill, "p": lambda value: formats.p_value(float(value)),
    "bare p": lambda value: formats.p_value(float(value)).removeprefix("= "),
    "points": lambda value: formats.number(100 * Decimal(value), places=1),
    "half width": lambda value: formats.half_width(json.loads(value)).replace("± ", "±"),
    "95 % half width": lambda value: formats.plus_minus(float(value)).removeprefix("± "),
    "unsigned score": lambda value: formats.score(value).removeprefix("−"),
    "cost of a thousand": lambda value: formats.cost(1000 * Decimal(value)),
    "count of a thousand": lambda value: formats.count(1000 * Decimal(value)),
    "number of a thousand": lambda value: formats.number(1000 * float(value), places=1),
    "money of a million": lambda value: formats.money(1_000_000 * Decimal(value)),
    "day": formats.day, "minute": formats.minute,
}  # fmt: skip
"""How figures are written, by `formats`, which shares nothing with the pages' filters."""


@dataclass(frozen=True)
class Record:
    """An object of the JSON, the list or the object that it stands in, and its fields by name: of inner objects too.

    `missing` are those that are null.
    """

    list: str
    fields: dict[str, set[str]]
    missing: frozenset[str] = frozenset()


def plain_number(text: str) -> str:
    """A number, or an interval, without zeros at the end of decimals; other text as it is."""
    return re.sub(r"(?<=\d)\.0+(?=[],]|$)|(?<=\d)(\.\d*[1-9])0+(?=[],]|$)", r"\1", text)


def written(value: Any) -> str:
    """A value of the JSON as a <data> element has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, str) and (instant := INSTANT.fullmatch(value)):
        return f"{instant[1]}{instant[2] or 'T00:00:00'}Z"
    return plain_number(str(value))


def records_of(place: str, value: Any, names: dict[str, str], around: dict[str, set[str]]) -> Iterator[Record]:
    """The objects in a JSON document, each with the names of its families and with what is around it."""
    if isinstance(value, list):
        for item in value:
            if place.endswith("points") and isinstance(item, list):  # an instant, and a value at it
                item = {"at": item[0], "value": item[1]}
            yield from records_of(place, item, names, around)
    elif isinstance(value, dict) and "next" in value:
        yield Record("listings", {"count": {str(value.get("count"))}})
        yield from records_of(place, value["results"], names, around)
    elif isinstance(value, dict):
        fields: dict[str, set[str]] = {}
        missing = set()
        for name, text in _fields(value):
            if text is None:
                missing.add(name)
                continue
            fields.setdefault(name, set()).add(text)
            if text in names:
                fields.setdefault("name", set()).add(names[text])
        called, key = NAMED.get(place, ("", ""))
        if key in value:
            fields.setdefault(called, set()).add(str(value[key]))
        if "forecaster" in value:
            fields.setdefault("family", set()).add(str(value["forecaster"]))
        around = around | {name: fields[name] for name in OBJECTS & fields.keys()}
        if not all(re.fullmatch(r"[\d.]+", name) for name in value):
            yield Record(place, around | fields, frozenset(missing))
        for name, inner in value.items():
            inside = around | {"key": {name}} if isinstance(inner, dict) else around
            yield from records_of(f"{place}.{name}", inner, names, inside)


def _fields(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, str | None]]:
    """The names of fields with their values, None for null."""
    for name, inner in value.items():
        name = f"{before}.{name}" if before and re.fullmatch(r"[\d.]+", name) else name
        if isinstance(inner, dict):
            yield from _fields(inner, name)
        elif isinstance(inner, list):
            if not any(isinstance(item, dict | list) for item in inner):
                yield name, written(inner)
                yield from ((f"{name}.{place}", written(item)) for place, item in enumerate(inner) if item is not None)
        else:
            yield name, None if inner is None else written(inner)


@dataclass(frozen=True)
class Figure:
    """A figure's exact value, "" of a dash, its text, and its place on the page."""

    value: str
    text: str
    place: str
    identity: dict[str, set[str]]
    heading: set[str]

    @cached_property
    def formats(self) -> set[str]:
        """The ways of writing by which its value gives its text."""
        found = set()
        for name, write in SHOWN_AS.items():
            try:
                if " ".join(write(self.value).split()) == self.text.replace("± ", "±"):
                    found.add(name)
            except (ArithmeticError, TypeError, ValueError):
                continue
        return found


def figures_of(page: LexborHTMLParser, slugs: dict[str, str], names: dict[str, str]) -> Iterator[Figure]:
    """The figures of a page; the slugs of families by their addresses and by their names."""
    for row in elements(element(page, "main"), ROWS):
        found = [node for node in elements(row, "data, time, td, dd") if _within(node, ROWS_TAGS).mem_id == row.mem_id]
        found = [node for node in found if node.tag not in ("td", "dd") or own_text(node) == DASH]
        if not found or _label(row).startswith(CHART):
            continue
        identity: dict[str, set[str]] = {}
        for link in links(row, "th [href]") or links(row, "[href]"):
            for pattern in LINKED.values():
                if match := pattern.fullmatch(link.partition("#")[0].partition("?")[0]):
                    for name, text in match.groupdict().items():
                        identity.setdefault(name, set()).add(slugs.get(text, text))
        heading = {visible_text(name).removesuffix(" external") for name in elements(row, "th, th bdi")}
        met: Counter[tuple[int, str]] = Counter()
        for node in found:
            place, column = _place(row, node)
            model = names.get(column.removesuffix(" external"))
            own = identity | ({"family": {model}} if model else {})
            place = re.sub(NUMBERS, "#", place.replace(column, "a model") if model else place)
            kind = "time, " if node.tag == "time" else ""
            key = (_within(node, CELLS | {"small"}).mem_id, kind)
            met[key] += 1
            value = node.attributes["datetime" if kind else "value"] if node.tag in ("data", "time") else ""
            text = " ".join(node.text().split()) if value else DASH
            yield Figure(plain_number(value or ""), text, f"{place}{kind}{met[key]}", own, heading)
    for table in elements(page, "main table"):
        number, label = str(len(elements(table, "tbody tr"))), _label(table)
        if not label.startswith(CHART) and not page.css_first(PAGED):
            yield Figure(number, formats.count(number), f"{re.sub(NUMBERS, '#', label)}{ROWS_OF}", {}, set())


SHOWN = set(SHOWN_REFERENCES)
DASH = "–"
CHART = "Data: "
"""Begins the label of the table with a chart's data."""
PAGED = "nav.pagination"
ROWS_OF = " | rows | 1"
"""Ends the place of the number of a table's rows: a count of records alone."""
NUMBERS = re.compile(r"\d[\d,.]*")
CELLS = {"td", "th", "dd", "li", "p", "summary", "h2", "h3"}
ROWS_TAGS = {"tr", "div", "li", "p", "summary", "h2", "h3"}


def _within(node: LexborNode, tags: set[str]) -> LexborNode:
    """The node or the innermost element around it, of one of these kinds."""
    around: LexborNode | None = node
    while around is not None and around.tag not in tags:
        around = around.parent
    assert around is not None
    return around


def own_text(cell: LexborNode) -> str:
    """The text of a cell without its small print."""
    return "".join(node.text() for node in cell.iter(include_text=True) if node.tag != "small").strip()


def _label(node: LexborNode) -> str:
    """The name of a table, or of the one around a row."""
    around: LexborNode | None = node
    while around is not None and around.tag != "table":
        around = around.parent
    label = around and (around.attributes.get("aria-label") or around.attributes.get("aria-labelledby"))
    return label or ""


def _place(row: LexborNode, node: LexborNode) -> tuple[str, str]:
    """Where a figure stands: in a column of a table, beside a term, or in a text; and the heading of its column."""
    around, small = node if node.tag in CELLS else node.parent, ""
    while around is not None and around.tag not in CELLS:
        small = small or ("small, " if around.tag == "small" else "")
        around = around.parent
    assert around is not None
    if around.tag in {"td", "th"}:
        table = _within(row, {"table"})
        cells = [cell.mem_id for cell in elements(row, "th, td")]
        (head, *_) = elements(table, "tr")
        column = visible_text(elements(head, "th")[cells.index(around.mem_id)])
        kind = f"{visible_text(row, 'th')}, " if visible_text(head, "th") == "Figure" else ""
        return f"{_label(table)} | {kind}{column} | {small}", column
    if around.tag == "dd":
        return f"facts | {visible_text(row, 'dt')} | {small}", ""
    return f"{around.tag} | {small}", ""


class Records:
    """Records of which a figure may be, and the sources of every value in them."""

    def __init__(self, records: list[Record], heading: frozenset[str]) -> None:
        self.records = records
        self.heading = heading

    @cached_property
    def fields(self) -> dict[str, set[str]]:
        """The fields that have each value; one that is called as the figure's row is its row's."""
        found: dict[str, set[str]] = {}
        for record in self.records:
            for name, texts in record.fields.items():
                if name not in IDENTIFIERS:
                    for text in texts:
                        found.setdefault(text, set()).add("its row's" if name in self.heading else name)
        return found

    @cached_property
    def points(self) -> set[tuple[str, str]]:
        """Each rounded number with each instant, and each day, of its record, and by itself."""
        found = set()
        for record in self.records:
            texts = {text for values in record.fields.values() for text in values}
            instants = {text for text in texts if INSTANT.fullmatch(text)}
            numbers = {_rounded(text) for text in texts if NUMBER.fullmatch(text)}
            found |= set(product(numbers, {"", *instants, *(at[:10] for at in instants)}))
        return found

    @cached_property
    def lists(self) -> dict[str, list[Record]]:
        by_list: dict[str, list[Record]] = {}
        for record in self.records:
            by_list.setdefault(record.list, []).append(record)
        return by_list

    @cached_property
    def totals(self) -> dict[str, set[str]]:
        """The counts and the sums of records that give each value."""
        found: dict[str, set[str]] = {}
        for place, records in self.lists.items():
            for kind, totals in (("count", _counts(records)), ("sum", _sums(records))):
                for value, name in totals:
                    found.setdefault(value, set()).add(f"{kind} of {place} {name}".strip())
        return found

    def lack(self, field: str) -> bool:
        """Whether the field is null or in none of them, or that no record is of the list that it counts."""
        kind, _, name = field.partition(" of ")
        if kind in ("count", "sum") and name:
            return not self.lists.get(name.split()[0])
        name = field.removeprefix("elsewhere ")
        return any(name in record.missing for record in self.records) or not any(
            name in record.fields or (field == "its row's" and self.heading & record.fields.keys())
            for record in self.records
        )


class Sources:
    """The records of a page's JSON documents."""

    def __init__(self, documents: dict[str, list[Record]]) -> None:
        self.lists = {path.split("/")[3] for path in documents}
        self.records = [record for records in documents.values() for record in records]
        self.all = Records(self.records, frozenset())
        self.own = cache(self._own)

    def of(self, figure: Figure) -> set[str]:
        """The fields that have a figure's value, and counts and sums that give it: of its row's records, or of any."""
        own = self.of_row(figure)
        if ROWS_OF in figure.place:
            return {name for name in own.totals.get(figure.value, ()) if name.startswith("count of")}
        found = own.fields.get(figure.value, set())
        if found and not figure.value.isdigit():
            return found
        found = found | own.totals.get(figure.value, set())
        if figure.value == "0":
            found |= {f"{kind} of {name}" for name in self.lists - own.lists.keys() for kind in ("count", "sum")}
        return found or {f"elsewhere {name}" for name in self.all.fields.get(figure.value, ())}

    def of_row(self, figure: Figure) -> Records:
        """The records that a figure's row names."""
        identity = frozenset((name, frozenset(texts)) for name, texts in figure.identity.items())
        return self.own(identity, frozenset(figure.heading))

    def _own(self, identity: frozenset[tuple[str, frozenset[str]]], heading: frozenset[str]) -> Records:
        linked = [record for record in self.records if _agrees(record, dict(identity))] if identity else []
        if linked or not heading:
            return Records(linked, heading) if linked else self.all
        named = [
            record for record in self.records
            if heading & record.fields.keys() or any(texts & heading for texts in record.fields.values())
        ]  # fmt: skip
        return Records(named or self.records, heading)


def _agrees(record: Record, identity: dict[str, frozenset[str]]) -> bool:
    """Whether a record has one of the names of a row's links, and no other of them."""
    common = identity.keys() & record.fields.keys()
    return bool(common) and all(record.fields[name] & identity[name] for name in common)


def _forecaster(record: Record) -> set[str]:
    return record.fields.get("forecaster", set())


def _counts(records: list[Record]) -> Iterator[tuple[str, str]]:
    """How many records there are: all, all but one, and those of a status, side or kind, or baselines;
    of a board's entries those that pages show.
    """
    yield str(len(records)), ""
    yield str(len(records) - 1), "others"
    shown = [
        record for record in records if "False" in record.fields.get("reference", ()) or SHOWN & _forecaster(record)
    ]
    yield str(len(shown)), "shown"
    for name in ("status", "side", "kind", "reference"):
        numbers = Counter(text for record in records for text in record.fields.get(name, ()))
        yield from ((str(number), name) for number in numbers.values())


def _sums(records: list[Record]) -> Iterator[tuple[str, str]]:
    sums: dict[str, Decimal | None] = {}
    for record in records:
        for name, texts in record.fields.items():
            text = next(iter(texts))
            before = sums.get(name, Decimal(0))
            if name not in IDENTIFIERS and before is not None:
                sums[name] = before + Decimal(text) if NUMBER.fullmatch(text) else None
    yield from ((plain_number(str(total)), name) for name, total in sums.items() if total is not None)


DRAWN_ALONE = {"returns", "leads"}
"""Charts of what no list of the JSON has: changes added up, and a report's arrays."""
ARMS = ("priced", "blind")
UNITS: dict[str, Callable[[Any], str]] = {
    "money": formats.money, "price": formats.price, "fraction": formats.share, "score": formats.score,
    "percent": formats.signed_percent,
}  # fmt: skip
"""The formats of charts' tables; of leads, drawn with fewer digits than the table has, it shows too little."""


def chart_faults(page: LexborHTMLParser, sources: Sources, names: dict[str, str]) -> Iterator[str]:
    """Where the points of a page's charts are not those of its JSON, or not those of the table beside them."""
    bets = Counter(text for record in sources.records if record.list == "trades" for text in record.fields["kind"])
    for script in elements(page, "figure.chart script[id$=-data]"):
        key, data = (script.attributes["id"] or "").removesuffix("-data"), json.loads(script.text())
        for line in data.get("curves") or data["panels"] if key not in DRAWN_ALONE else ():
            name = line["name"]
            if key in ARMS:
                identity = {"family": {names[name]}, "arm": {key}} if name in names else {}
            else:
                identity = {"family": {names.get(name, name.lower())}}
            points = sources.of_row(Figure("", "", "", identity, {name})).points
            drawn = _points(data, line)
            for before, (number, at) in zip([None, *drawn], drawn, strict=False):
                carried_on = before is not None and before[0] == number
                if not carried_on and not {(_rounded(number), at), (_rounded(number), at[:10])} & points:
                    yield f"{key}: the point {number} of {name} {at} is not in the JSON"
        marks = {kind: len(elements(page, f"#{key} a > path.{kind.lower()}")) for kind in bets}
        if key == "prices" and marks != bets:
            yield f"{key}: {marks} marks of trades, the JSON has {dict(bets)}"
        if data.get("unit") in UNITS and not _is_table_of(page, key, data):
            yield f"{key}: the table beside the chart is not that of its points"


def _points(data: dict[str, Any], line: dict[str, Any]) -> list[tuple[float, str]]:
    """The numbers that a line or a panel of a chart draws, with their instants on an axis of time."""
    if "panels" in data:
        return [(number, "") for point in line["points"] for number in point[:2]]
    at = [_instant(place) if data["axis"] == "time" else "" for place in data["positions"]]
    return [(number, place) for number, place in zip(line["values"], at, strict=True) if number is not None]


def _is_table_of(page: LexborHTMLParser, key: str, data: dict[str, Any]) -> bool:
    """Whether the table of a chart has its curves' values, the newest first, all or some at even distances."""
    head, *rows = [list(map(visible_text, elements(row, "th, td"))) for row in elements(page, f"#{key} table tr")]
    columns = [list(map(UNITS[data["unit"]], reversed(curve["values"]))) for curve in data["curves"]]
    if data["axis"] == "time":
        columns = [[formats.minute(_instant(place)) for place in reversed(data["positions"])], *columns]
    cells = list(zip(*(row[-len(columns) :] for row in rows), strict=True))
    step = -(-len(data["positions"]) // len(rows))
    is_named = head[1:] == [curve["name"] for curve in data["curves"]]
    return is_named and cells == [tuple(column[::step]) for column in columns]


def _instant(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")


def _rounded(number: Any) -> str:
    return f"{float(number):.4f}"
