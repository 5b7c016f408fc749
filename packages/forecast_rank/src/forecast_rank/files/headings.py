"""Headings of a table: known columns, percentages, and the forecasters of the wide form."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path

from forecast_rank.files.columns import KNOWN, NUMBERS, REQUIRED
from forecast_rank.files.faults import UnreadableFile

NamedHeadings = Mapping[str, str]
"""Headings that are named for known columns, by column."""
NOT_NAMED: NamedHeadings = {}
WIDE_REQUIRED = ("question", "outcome")
LISTED = 20
"""Headings of a table that a message lists."""
_BRACKETS = {")": "(", "]": "["}


class InvalidHeadings(ValueError):
    """Headings are named for columns that are not known; the message begins with "columns"."""


@dataclass(frozen=True, slots=True)
class Headings:
    """The meaning of a table's headings.

    Attributes
    ----------
    column_of : dict of str to str
        The known column of a heading.
    forecasters : dict of str to str
        In wide form the forecaster of a heading; empty in long form.
    percent : frozenset of str
        Headings whose numbers are hundredths.
    ignored : list of str
        The other headings.
    """

    column_of: dict[str, str]
    forecasters: dict[str, str]
    percent: frozenset[str]
    ignored: list[str]

    @property
    def read(self) -> list[str]:
        """The headings of all columns that are read."""
        return [*self.column_of, *self.forecasters]

    @property
    def numbers(self) -> set[str]:
        """The headings of columns that hold numbers."""
        headings = set(self.forecasters)
        for heading, name in self.column_of.items():
            if name in NUMBERS:
                headings.add(heading)
        return headings


def known_name(heading: str, column_headings: NamedHeadings = NOT_NAMED) -> str | None:
    """The known column that a heading names, in whatever case, with or without "(%)"; None for another.

    A column in `column_headings` has that heading alone.
    """
    name = heading.strip().lower()
    for column, heading_of_column in column_headings.items():
        if heading_of_column.strip().lower() == name:
            return column
    plain = without_percent(name)
    if name in column_headings or plain in column_headings:
        return None
    if name not in KNOWN and plain in NUMBERS:
        name = plain
    return name if name in KNOWN else None


def without_percent(heading: str) -> str:
    """The heading without outer spaces, and without a "%", "(%)" or "[%]" at its end."""
    text = heading.strip()
    if text.endswith("%"):
        return text[:-1].rstrip()
    opening = _BRACKETS.get(text[-1:])
    inside = text[:-1].rstrip()
    if opening and inside.endswith("%") and (before := inside[:-1].rstrip()).endswith(opening):
        return before[:-1].rstrip()
    return text


def has_percent(heading: str) -> bool:
    """Whether the numbers below the heading are hundredths."""
    return without_percent(heading) != heading.strip()


def check_named(column_headings: NamedHeadings) -> None:
    """Raises InvalidHeadings if a column is not known, or two have one heading."""
    unknown = ", ".join(column for column in column_headings if column not in KNOWN)
    if unknown:
        raise InvalidHeadings(f"columns: unknown {unknown}; known are {', '.join(KNOWN)}")
    repeated = _repeated(heading.strip().lower() for heading in column_headings.values())
    if repeated:
        raise InvalidHeadings(f"columns: {_quoted(repeated)} is named for two columns")


def understand_headings(
    label: Path | str, headings: Sequence[str], *, complete: bool = True, column_headings: NamedHeadings = NOT_NAMED
) -> Headings:
    """The meaning of the headings of the table `label`.

    The table is in wide form if it has neither a forecaster nor a probability: then each other column is a forecaster.
    With `complete` the required columns must be there.

    Raises UnreadableFile if a required column is missing, or a known one or a forecaster is there twice.
    """
    columns: dict[str, str] = {}
    names: list[str] = []
    for heading in headings:
        if name := known_name(heading, column_headings):
            columns[heading] = name
            names.append(name)
    if complete:
        _check_present(label, headings, names, column_headings)
    is_wide = not {"forecaster", "probability"} & set(names) and set(WIDE_REQUIRED) <= set(names)
    forecasters: dict[str, str] = {}
    ignored: list[str] = []
    for heading in headings:
        if heading in columns or not heading.strip():
            continue
        forecaster = without_percent(heading)
        if is_wide and forecaster:
            forecasters[heading] = forecaster
            names.append(forecaster)
        else:
            ignored.append(heading)
    missing = list(filterfalse(names.__contains__, REQUIRED))
    if complete and not forecasters and missing:
        listed = _quoted(heading[:40] for heading in headings[:LISTED])
        raise UnreadableFile(f"{label} has no column {_quoted(missing)}; it has {listed or 'none'}")
    repeated = _repeated(names)
    if repeated:
        listed = _quoted(name[:40] for name in repeated[:LISTED])
        raise UnreadableFile(f"{label} has more than one column {listed}")
    percent = frozenset(filter(has_percent, (*columns, *forecasters)))
    return Headings(columns, forecasters, percent, ignored)


def _check_present(
    label: Path | str, headings: Sequence[str], names: Sequence[str], column_headings: NamedHeadings
) -> None:
    """Raises UnreadableFile if a column that has a heading of its own is not among the `names`."""
    absent = []
    for column, heading in column_headings.items():
        if column not in names:
            absent.append(f"{heading!r} for {column}")
    if absent:
        listed = _quoted(heading[:40] for heading in headings[:LISTED])
        raise UnreadableFile(f"{label} has no column {', '.join(absent)}; it has {listed}")


def _repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, in order."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
