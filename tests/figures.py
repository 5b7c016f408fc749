"""A page as a reader sees it: the rows of its tables and its facts, each read once, and what nobody read.

A table is known by what its region is labelled with. Small print stands apart from what it explains, so that both are
compared. Whoever compares a page says of every column what stands there; a column or a fact that nobody speaks for is
a fault, and so is a number in small print that is not expected.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

WORDS = None
"""Stands for what is no figure: a name, a date, a picture."""
ANY = "…"
"""Stands for small print that is no figure of its own."""
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

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(link for cell in self.cells.values() for link in cell.links)

    def target(self, pattern: str) -> tuple[str, ...]:
        """What the first link of the row that looks so leads to."""
        for link in self.links:
            found = re.fullmatch(pattern, link.partition("#")[0])
            if found:
                return found.groups()
        raise AssertionError(f"no link like {pattern} among {self.links}")


def text(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def _cell(markup: str) -> Cell:
    small = " ".join(text(part) for part in re.findall(r"<small.*?</small>", markup, re.S))
    rest = re.sub(r"<small.*?</small>|<span class=\"badge stale\">.*?</span>|<svg.*?</svg>", "", markup, flags=re.S)
    return Cell(text(rest), small, tuple(html.unescape(link) for link in re.findall(r'href="([^"]*)"', markup)))


@dataclass
class Page:
    """One page. `faults` says where a figure is another than was expected, and what nobody compared."""

    address: str
    markup: str
    faults: list[str] = field(default_factory=list)
    compared: int = 0

    def __post_init__(self) -> None:
        self.tables: dict[str, list[Row]] = {}
        for start in re.finditer(r"<table", self.markup):
            region = re.findall(r'role="region" aria-label(?:ledby)?="([^"]*)"', self.markup[: start.start()])
            table = self.markup[start.start() : self.markup.index("</table>", start.start())]
            head, *rows = re.findall(r"<tr.*?</tr>", table, re.S)
            names = [text(cell) for cell in re.findall(r"<th.*?</th>", head, re.S)]
            read = [
                Row(dict(zip(names, map(_cell, re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S)), strict=True)))
                for row in rows
            ]
            label = html.unescape(region[-1]) if region else ""
            self.tables[label if label not in self.tables else f"{label}, {len(self.tables)}"] = read
        self.facts: dict[str, Cell] = {}
        met = Counter[str]()
        for name, value in re.findall(r"<dt[^>]*>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", self.markup, re.S):
            label = text(name)
            met[label] += 1
            self.facts[label if met[label] == 1 else f"{label}, {met[label]}"] = _cell(value)

    def table(
        self, label: str, of: Callable[[Row], Any], rules: Mapping[str, Rule], *, rows: int | None = None
    ) -> None:
        """Compares each row of a table with what `of` finds for it; the table is then done with.

        There must be `rows` of them, where that is said.
        """
        read = self.tables.pop(label, [])
        if rows is not None and len(read) != rows:
            self.faults.append(f"{self.address} {label}: {len(read)} rows, not {rows}")
        for row in read:
            about = of(row)
            for name, cell in row.cells.items():
                if name not in rules:
                    self.faults.append(f"{self.address} {label}: nobody compares {name!r} ({cell.text})")
                    continue
                rule = rules[name]
                first = next(iter(row.cells.values())).text[:30]
                self._compare(f"{label}: {name} of {first}", cell, rule and rule(about))

    def fact(self, name: str, expected: Expected) -> None:
        """Compares one of the facts that head a page."""
        if name not in self.facts:
            self.faults.append(f"{self.address}: there is no {name!r}")
        else:
            self._compare(name, self.facts.pop(name), expected)

    def words(self, *names: str) -> None:
        """These tables and facts hold no figure that the API has, too."""
        for name in names:
            self.tables.pop(name, None)
            self.facts.pop(name, None)

    def close(self) -> list[str]:
        """All faults, what nobody compared among them."""
        left = [f"{self.address}: nobody compares the table {label!r}" for label in self.tables]
        left += [f"{self.address}: nobody compares {name!r} ({cell.text})" for name, cell in self.facts.items()]
        return [*self.faults, *left]

    def _compare(self, where: str, cell: Cell, expected: Expected) -> None:
        if expected is WORDS:
            return
        main, small = expected if isinstance(expected, tuple) else (expected, "")
        self.compared += 1
        if (cell.text, cell.small if small != ANY else ANY) != (text(main), text(small)):
            said = f"{cell.text!r} {cell.small!r}".removesuffix(" ''")
            self.faults.append(f"{self.address} {where}: the page says {said}, the API {(text(main), text(small))}")


def by(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[Any, Mapping[str, Any]]:
    """Rows of the API by these of their fields."""
    return {tuple(str(row[key]) for key in keys): row for row in rows}
