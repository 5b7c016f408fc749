"""A column of a report, as API and archive read it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a report.

    name : the field of an entry, of the API and of the archive
    kind : text, choice, boolean, integer, number, skill, dollars, interval; numbers, integers or intervals, which are
        by risk aversion
    meaning : its description in the OpenAPI document and in the archive's data dictionary
    unit : of the archive's UNITS; dollars have theirs
    null : whether the value may be absent
    choices : the values of a choice
    """

    name: str
    kind: str
    meaning: str
    unit: str = ""
    null: bool = True
    choices: Sequence[str] = ()


def named(columns: Iterable[Column], names: str) -> tuple[Column, ...]:
    """The columns of these names, in their order. Raises KeyError for an unknown one."""
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names.split())
