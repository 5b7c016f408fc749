"""The figures of a page, and where each of them stands in the JSON that the page names.

A figure is a <data> element. Its source is a field of a JSON record. The record is the one that the figure's row names
by its links, or by its heading; without either it is any. A count or a sum of such records is a source too.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.markup import elements, links, visible_text
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
}  # fmt: skip
"""How figures are written, by `formats`, which shares nothing with the pages' filters."""


@dataclass(frozen=True)
class Record:
    """An object of the JSON, the list or the object that it stands in, and its fields by name: of inner objects too."""

    list: str
    fields: dict[str, set[str]]

    def has(self, name: str, values: set[str]) -> bool:
        return bool(self.fields.get(name, set()) & values)


def plain_number(text: str) -> str:
    """A number, or an interval, without zeros at the end of decimals; other text as it is."""
    return re.sub(r"(?<=\d)\.0+(?=[],]|$)|(?<=\d)(\.\d*[1-9])0+(?=[],]|$)", r"\1", text)


def written(value: Any) -> str:
    """A value of the JSON as a <data> element has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return plain_number(str(value))


def records_of(place: str, value: Any, names: dict[str, str], around: dict[str, set[str]]) -> Iterator[Record]:
    """The objects in a JSON document, each with the names of its families and with what is around it."""
    if isinstance(value, list):
        for item in value:
            yield from records_of(place, item, names, around)
    elif isinstance(value, dict) and "next" in value:
        yield Record("listings", {"count": {str(value.get("count"))}})
        yield from records_of(place, value["results"], names, around)
    elif isinstance(value, dict):
        fields: dict[str, set[str]] = {}
        for name, text in _fields(value):
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
            yield Record(place, around | fields)
        for name, inner in value.items():
            inside = around | {"key": {name}} if isinstance(inner, dict) else around
            yield from records_of(f"{place}.{name}", inner, names, inside)


def _fields(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        name = f"{before}.{name}" if before and re.fullmatch(r"[\d.]+", name) else name
        if isinstance(inner, dict):
            yield from _fields(inner, name)
        elif isinstance(inner, list):
            if not any(isinstance(item, dict | list) for item in inner):
                yield name, written(inner)
                yield from ((f"{name}.{place}", written(item)) for place, item in enumerate(inner) if item is not None)
        elif inner is not None and not isinstance(inner, bool):
            yield name, written(inner)


def _figures_in(record: Record, figure: "Figure") -> set[str]:
    """The fields of a record that have a figure's value; one that is called as the figure's row is its row's."""
    return {
        "its row's" if name in figure.heading else name
        for name, texts in record.fields.items()
        if figure.value in texts and name not in IDENTIFIERS
    }


@dataclass(frozen=True)
class Figure:
    """A <data> element: its exact value, its text, and its place on the page."""

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
    for row in elements(page, ROWS):
        found = [node for node in elements(row, "data") if _within(node, ROWS_TAGS).mem_id == row.mem_id]
        if not found:
            continue
        identity: dict[str, set[str]] = {}
        for link in links(row, "th [href]") or links(row, "[href]"):
            for pattern in LINKED.values():
                if match := pattern.fullmatch(link.partition("#")[0].partition("?")[0]):
                    for name, text in match.groupdict().items():
                        identity.setdefault(name, set()).add(slugs.get(text, text))
        heading = {visible_text(name).removesuffix(" external") for name in elements(row, "th, th bdi")}
        met: dict[int, int] = {}
        for node in found:
            place, column = _place(row, node)
            model = names.get(column.removesuffix(" external"))
            own = identity | ({"family": {model}} if model else {})
            place = re.sub(r"\d[\d,.]*", "#", place.replace(column, "a model") if model else place)
            cell = _within(node, CELLS | {"small"}).mem_id
            met[cell] = met.get(cell, 0) + 1
            text = " ".join(node.text().split())
            yield Figure(plain_number(node.attributes["value"] or ""), text, f"{place}{met[cell]}", own, heading)


CELLS = {"td", "th", "dd", "li", "p", "summary", "h2", "h3"}
ROWS_TAGS = {"tr", "div", "li", "p", "summary", "h2", "h3"}


def _within(node: LexborNode, tags: set[str]) -> LexborNode:
    """The innermost element of one of these kinds around a node."""
    around = node.parent
    while around is not None and around.tag not in tags:
        around = around.parent
    assert around is not None
    return around


def _place(row: LexborNode, node: LexborNode) -> tuple[str, str]:
    """Where a figure stands: in a column of a table, beside a term, or in a text; and the heading of its column."""
    around, small = node.parent, ""
    while around is not None and around.tag not in CELLS:
        small = small or ("small, " if around.tag == "small" else "")
        around = around.parent
    assert around is not None
    if around.tag in {"td", "th"}:
        table = _within(row, {"table"})
        cells = [cell.mem_id for cell in elements(row, "th, td")]
        (head, *_) = elements(table, "tr")
        column = visible_text(elements(head, "th")[cells.index(around.mem_id)])
        label = table.attributes.get("aria-label") or table.attributes.get("aria-labelledby")
        kind = f"{visible_text(row, 'th')}, " if visible_text(head, "th") == "Figure" else ""
        return f"{label} | {kind}{column} | {small}", column
    if around.tag == "dd":
        return f"facts | {visible_text(row, 'dt')} | {small}", ""
    return f"{around.tag} | {small}", ""


@dataclass
class Sources:
    """The records of a page's JSON documents."""

    records: list[Record] = field(default_factory=list)
    lists: set[str] = field(default_factory=set)

    def add(self, path: str, documents: list[Any], names: dict[str, str]) -> None:
        self.lists.add(path.split("/")[3])
        for document in documents:
            self.records += records_of(path.split("/")[3], document, names, {})

    def of(self, figure: Figure) -> set[str]:
        """The fields that have a figure's value, and counts and sums that give it: of its row's records, or of any."""
        own = self._own(figure)
        found = {name for record in own for name in _figures_in(record, figure)}
        if found and not figure.value.isdigit():
            return found
        by_list: dict[str, list[Record]] = {}
        for record in own:
            by_list.setdefault(record.list, []).append(record)
        if figure.value == "0":
            found |= {f"{kind} of {name}" for name in self.lists - by_list.keys() for kind in ("count", "sum")}
        for place, records in by_list.items():
            found |= {f"count of {place} {name}".strip() for name in _counts(records, figure.value)}
            found |= {f"sum of {place} {name}" for name in _sums(records, figure.value)}
        return found or {f"elsewhere {name}" for record in self.records for name in _figures_in(record, figure)}

    def _own(self, figure: Figure) -> list[Record]:
        linked = [record for record in self.records if _agrees(record, figure.identity)]
        named = [
            record for record in linked or self.records
            if figure.heading & record.fields.keys() or any(texts & figure.heading for texts in record.fields.values())
        ]  # fmt: skip
        return named if named and not linked else linked or self.records


def _agrees(record: Record, identity: dict[str, set[str]]) -> bool:
    """Whether a record has one of the names of a row's links, and no other of them."""
    common = identity.keys() & record.fields.keys()
    return bool(common) and all(record.has(name, identity[name]) for name in common)


def _counts(records: list[Record], value: str) -> set[str]:
    """How the number of records is a value: of all, of all but one, or of those of a status, side or kind."""
    found = {""} if str(len(records)) == value else {"others"} if str(len(records) - 1) == value else set()
    for name in ("status", "side", "kind"):
        for text in {text for record in records for text in record.fields.get(name, ())}:
            if str(sum(record.has(name, {text}) for record in records)) == value:
                found.add(name)
    return found


def _sums(records: list[Record], value: str) -> Iterator[str]:
    for name in {name for record in records for name in record.fields} - IDENTIFIERS:
        texts = [next(iter(record.fields[name])) for record in records if name in record.fields]
        if all(NUMBER.fullmatch(text) for text in texts) and plain_number(str(sum(map(Decimal, texts)))) == value:
            yield name
