"""A page's figures: the rows of its tables and its facts, each compared once, and those that no test compared.

A table is known by the label of the group around it. Small print is read apart from the figure beside it. A test
says for every column what it expects; a column or a fact without an expectation is a fault, and so is unexpected small
print.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.markup import elements, links, visible_text

NO_FIGURE = None
"""Stands for a cell that holds no figure: a name, a date, a picture."""
ANY_SMALL_PRINT = "…"
BADGES = re.compile(" (external|happened|cancelled|won)$")
Expected = str | tuple[str, str] | None
Rule = Callable[[Any], Expected] | None


@dataclass(frozen=True)
class Cell:
    text: str
    small: str
    links: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    cells: Mapping[str, Cell]

    def target(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """The variable parts of the row's first link that matches a pattern."""
        for link in (link for cell in self.cells.values() for link in cell.links):
            if match := pattern.fullmatch(link.partition("#")[0]):
                return tuple(match.groups())
        raise AssertionError(f"no link like {pattern.pattern} in {self.cells}")

    def texts(self, *columns: str) -> tuple[str, ...]:
        """The texts of these cells without the badges behind them."""
        return tuple(BADGES.sub("", self.cells[column].text) for column in columns)


def one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(node: LexborNode) -> Cell:
    small = " ".join(visible_text(part) for part in elements(node, "small"))
    figure = node.clone()
    for part in figure.css("small, .badge.stale, svg"):
        part.decompose()
    return Cell(visible_text(figure), small, tuple(links(node, "[href]")))


def _group_label(table: LexborNode) -> str:
    """The label of the group around a table."""
    node = table.parent
    while node is not None:
        if node.attributes.get("role") == "group":
            return node.attributes.get("aria-label") or node.attributes.get("aria-labelledby") or ""
        node = node.parent
    return ""


def _definition(term: LexborNode) -> LexborNode | None:
    """The <dd> that follows a <dt> at once."""
    node = term.next
    while node is not None and node.tag == "-text" and not node.text().strip():
        node = node.next
    return node if node is not None and node.tag == "dd" else None


@dataclass
class Page:
    """One page; `faults` lists the figures that differ from what was expected."""

    address: str
    html: LexborHTMLParser
    faults: list[str] = field(default_factory=list)
    compared: int = 0

    def __post_init__(self) -> None:
        self.tables: dict[str, list[Row]] = {}
        for table in elements(self.html, "table"):
            head, *rows = elements(table, "tr")
            names = [visible_text(cell) for cell in elements(head, "th")]
            label = _group_label(table)
            self.tables[label if label not in self.tables else f"{label}, {len(self.tables)}"] = [
                Row(dict(zip(names, map(_cell, elements(row, "th, td")), strict=True))) for row in rows
            ]
        self.facts: dict[str, Cell] = {}
        met = Counter[str]()
        for term in elements(self.html, "dt"):
            if (value := _definition(term)) is not None:
                label = visible_text(term)
                met[label] += 1
                self.facts[label if met[label] == 1 else f"{label}, {met[label]}"] = _cell(value)

    @cached_property
    def text(self) -> str:
        return visible_text(self.html)

    @cached_property
    def labels(self) -> set[str]:
        """The accessible names of its elements."""
        return {node.attributes["aria-label"] or "" for node in self.html.css("[aria-label]")}

    def table(
        self,
        label: str,
        objects: Any,
        rules: Mapping[str, Rule],
        key: re.Pattern[str] | str | Callable[[Row], Any] | None = None,
        *,
        no_figure: Sequence[str] = (),
        complete: bool = True,
    ) -> None:
        """Compares each row of a table with its object, of which there are as many, unless not `complete`.

        `key` says which of `objects` it is: by the row's link to a page, by the text in a column, or by a function of
        the row. Without it they are in the table's order. The columns `no_figure` are not compared.
        """
        rows, in_order = self.tables.pop(label, []), iter(objects)
        rules = {**rules, **dict.fromkeys(no_figure, NO_FIGURE)}
        if complete and len(rows) != len(objects):
            self.faults.append(f"{self.address} {label}: {len(rows)} rows, not {len(objects)}")
        for row in rows:
            if key is None:
                subject = next(in_order)
            elif callable(key):
                subject = objects[key(row)]
            else:
                subject = objects[row.texts(key) if isinstance(key, str) else row.target(key)]
            first = next(iter(row.cells.values())).text[:30]
            for name, cell in row.cells.items():
                if name not in rules:
                    self.faults.append(f"{self.address} {label}: no expectation for {name!r} ({cell.text})")
                    continue
                rule = rules[name]
                self._compare(f"{label}: {name} of {first}", cell, rule and rule(subject))

    def fact(self, name: str, expected: Expected) -> None:
        """Compares one of the facts at the head of a page."""
        if name not in self.facts:
            self.faults.append(f"{self.address}: there is no {name!r}")
        else:
            self._compare(name, self.facts.pop(name), expected)

    def skip(self, *names: str) -> None:
        """Drops tables and facts that hold no figure of the API."""
        for name in names:
            self.tables.pop(name, None)
            self.facts.pop(name, None)

    def assert_compared(self, at_least: int) -> None:
        """Every figure was compared and is as expected, and there were so many."""
        missing_expectations = [f"{self.address}: no expectation for the table {label!r}" for label in self.tables]
        missing_expectations += [
            f"{self.address}: no expectation for {name!r} ({cell.text})" for name, cell in self.facts.items()
        ]
        assert not (self.faults + missing_expectations), "\n".join(self.faults + missing_expectations)
        assert self.compared >= at_least

    def _compare(self, where: str, cell: Cell, expected: Expected) -> None:
        if expected is NO_FIGURE:
            return
        main, small = expected if isinstance(expected, tuple) else (expected, "")
        self.compared += 1
        if (cell.text, cell.small if small != ANY_SMALL_PRINT else small) != (one_line(main), one_line(small)):
            self.faults.append(f"{self.address} {where}: {cell.text!r} {cell.small!r}, the API has {(main, small)}")


def by(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[Any, Mapping[str, Any]]:
    """The API's rows, keyed by the texts of these fields."""
    return {tuple(str(row[key]) for key in keys): row for row in rows}
