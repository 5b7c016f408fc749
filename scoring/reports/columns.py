"""A column of a report, as API, archive, pages and CSV read it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column of a report.

    name : the field of an entry, of the API and of the archive
    kind : text, choice, boolean, integer, number, skill, dollars, interval; numbers, integers or intervals, which are
        by risk aversion
    meaning : its description in the OpenAPI document and in the archive's data dictionary
    unit : of the archive's UNITS; dollars have theirs
    null : whether the value may be absent
    choices : the values of a choice
    source : the key of an entry that holds it, where that is not the name
    heading, term, format : on pages: its heading, the term of the glossary behind that, and the format of its values
    interval : the name of the column with the intervals of its values
    tinted : whether pages show gains and losses in colours
    sort : its name in the address of a page that sorts by it
    """

    name: str
    kind: str
    meaning: str
    unit: str = ""
    null: bool = True
    choices: Sequence[str] = ()
    source: str = ""
    heading: str = ""
    term: str = ""
    format: str = ""
    interval: str = ""
    tinted: bool = False
    sort: str = ""

    @property
    def key(self) -> str:
        """The key of an entry that holds it."""
        return self.source or self.name


def named(columns: Iterable[ReportColumn], names: str) -> tuple[ReportColumn, ...]:
    """The columns of these names, in their order. Raises KeyError for an unknown one."""
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names.split())
