"""Headings of a table: known columns, percentages, and the forecasters of the wide form."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forecast_rank.files.columns import KNOWN, NUMBERS, REQUIRED
from forecast_rank.files.faults import UnreadableFile

NamedHeadings = Mapping[str, str]
"""Headings that are named for known columns, by column."""
NOT_NAMED: NamedHeadings = {}
WIDE_REQUIRED = ("question", "outcome")
_PERCENT = re.compile(r"\s*(\(\s*%\s*\)|\[\s*%\s*\]|%)\s*$")


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
        return {heading for heading, name in self.column_of.items() if name in NUMBERS} | set(self.forecasters)


def known_name(heading: str, column_headings: NamedHeadings = NOT_NAMED) -> str | None:
    """The known column that a heading names, in whatever case, with or without "(%)"; None for another.

    A column in `column_headings` has that heading alone.
    """
    name = heading.strip().lower()
    for column, heading_of_column in column_headings.items():
        if heading_of_column.strip().lower() == name:
            return column
    if name in column_headings or _PERCENT.sub("", name) in column_headings:
        return None
    if name not in KNOWN and _PERCENT.sub("", name) in NUMBERS:
        name = _PERCENT.sub("", name)
    return name if name in KNOWN else None


def check_named(column_headings: NamedHeadings) -> None:
    """Raises InvalidHeadings if a column is not known, or two have one heading."""
    if unknown := [column for column in column_headings if column not in KNOWN]:
        raise InvalidHeadings(f"columns: unknown {', '.join(unknown)}; known are {', '.join(KNOWN)}")
    lowered = [heading.strip().lower() for heading in column_headings.values()]
    if twice := sorted({heading for heading in lowered if lowered.count(heading) > 1}):
        raise InvalidHeadings(f"columns: {', '.join(map(repr, twice))} is named for two columns")


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
    if complete and (
        absent := [f"{column_headings[column]!r} for {column}" for column in column_headings if column not in names]
    ):
        raise UnreadableFile(f"{label} has no column {', '.join(absent)}; it has {', '.join(map(repr, headings[:20]))}")
    ignored = [heading for heading in headings if heading not in columns and heading.strip()]
    forecasters: dict[str, str] = {}
    if not {"forecaster", "probability"} & set(names) and set(WIDE_REQUIRED) <= set(names):
        forecasters = {heading: name for heading in ignored if (name := _PERCENT.sub("", heading.strip()))}
        ignored = [heading for heading in ignored if heading not in forecasters]
        names += [_PERCENT.sub("", heading.strip()) for heading in headings if heading in forecasters]
    if complete and not forecasters and (missing := [name for name in REQUIRED if name not in names]):
        listed = ", ".join(repr(heading[:40]) for heading in headings[:20])
        raise UnreadableFile(f"{label} has no column {', '.join(map(repr, missing))}; it has {listed or 'none'}")
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise UnreadableFile(f"{label} has more than one column {', '.join(map(repr, twice))}")
    percent = frozenset(heading for heading in (*columns, *forecasters) if _PERCENT.search(heading))
    return Headings(columns, forecasters, percent, ignored)
