"""Errors of a whole file, and faults of single rows."""

from dataclasses import dataclass


class UnreadableFile(ValueError):
    """The file as a whole cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a row does not count.

    Attributes
    ----------
    problem : str
        "is outside [0, 1]" of a column, otherwise the whole reason.
    column : str or None
        The column whose cell is at fault.
    cell : str or None
        The cell as written; None until it is looked up, and in a fault of the whole row.
    fix : str
        How to make the row count.
    group : str
        The reason without figures of the row; the column and the problem if not given.
    """

    problem: str
    column: str | None = None
    cell: str | None = None
    fix: str = ""
    group: str = ""

    @property
    def why(self) -> str:
        """The reason with the column and its cell."""
        return " ".join(part for part in (self.column, self.cell, self.problem) if part)

    @property
    def kind(self) -> str:
        """The reason without the cell and without figures, the same for all rows of a group."""
        return self.group or " ".join(part for part in (self.column, self.problem) if part)
