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
    known : dict of str to str
        The known column of a heading.
    forecasters : dict of str to str
        In wide form the forecaster of a heading; empty in long form.
    percent : frozenset of str
        Headings whose numbers are hundredths.
    ignored : list of str
        The other headings.
    """

    known: dict[str, str]
    forecasters: dict[str, str]
    percent: frozenset[str]
    ignored: list[str]

    @property
    def read(self) -> list[str]:
        """The headings of all columns that are read."""
        return [*self.known, *self.forecasters]

    @property
    def numbers(self) -> set[str]:
        """The headings of columns that hold numbers."""
        return {heading for heading, name in self.known.items() if name in NUMBERS} | set(self.forecasters)


def known_name(heading: str, named: NamedHeadings = NOT_NAMED) -> str | None:
    """The known column that a heading names, in whatever case, with or without "(%)"; None for another.

    A column that is `named` has that heading alone.
    """
    name = heading.strip().lower()
    for column, own in named.items():
        if own.strip().lower() == name:
            return column
    if name in named or _PERCENT.sub("", name) in named:
        return None
    if name not in KNOWN and _PERCENT.sub("", name) in NUMBERS:
        name = _PERCENT.sub("", name)
    return name if name in KNOWN else None


def check_named(named: NamedHeadings) -> None:
    """Raises InvalidHeadings if a column is not known, or two have one heading."""
    if unknown := [column for column in named if column not in KNOWN]:
        raise InvalidHeadings(f"columns: unknown {', '.join(unknown)}; known are {', '.join(KNOWN)}")
    own = [heading.strip().lower() for heading in named.values()]
    if twice := sorted({heading for heading in own if own.count(heading) > 1}):
        raise InvalidHeadings(f"columns: {', '.join(map(repr, twice))} is named for two columns")


def understand_headings(
    label: Path | str, headings: Sequence[str], *, complete: bool = True, named: NamedHeadings = NOT_NAMED
) -> Headings:
    """The meaning of the headings of the table `label`.

    The table is in wide form if it has neither a forecaster nor a probability: then each other column is a forecaster.
    With `complete` the required columns must be there.

    Raises UnreadableFile if a required column is missing, or a known one or a forecaster is there twice.
    """
    known = {heading: name for heading in headings if (name := known_name(heading, named))}
    names = [name for heading in headings if (name := known_name(heading, named))]
    if complete and (absent := [f"{named[column]!r} for {column}" for column in named if column not in names]):
        raise UnreadableFile(f"{label} has no column {', '.join(absent)}; it has {', '.join(map(repr, headings[:20]))}")
    others = [heading for heading in headings if heading not in known and heading.strip()]
    forecasters: dict[str, str] = {}
    if not {"forecaster", "probability"} & set(names) and set(WIDE_REQUIRED) <= set(names):
        forecasters = {heading: name for heading in others if (name := _PERCENT.sub("", heading.strip()))}
        others = [heading for heading in others if heading not in forecasters]
        names += [_PERCENT.sub("", heading.strip()) for heading in headings if heading in forecasters]
    if complete and not forecasters and (missing := [name for name in REQUIRED if name not in names]):
        shown = ", ".join(repr(heading[:40]) for heading in headings[:20])
        raise UnreadableFile(f"{label} has no column {', '.join(map(repr, missing))}; it has {shown or 'none'}")
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise UnreadableFile(f"{label} has more than one column {', '.join(map(repr, twice))}")
    percent = frozenset(heading for heading in (*known, *forecasters) if _PERCENT.search(heading))
    return Headings(known, forecasters, percent, others)
