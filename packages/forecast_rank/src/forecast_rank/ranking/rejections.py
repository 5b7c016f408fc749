"""Rows that do not count, with line and reason, in groups by reason, and when they are too many."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from forecast_rank.files.faults import UnreadableFile

REASONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A row that does not count.

    Attributes
    ----------
    row : int
        Line of the file at which the row begins; in a Parquet file or a frame its number from 1.
    why : str
        With the column and the cell as written.
    kind : str
        The reason without the cell, the same for all rows of a group.
    cell : str or None
        The cell as written.
    fix : str
        How to make the row count.
    """

    row: int
    why: str
    kind: str = ""
    cell: str | None = None
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RejectionGroup:
    """Rows that are rejected for the same reason.

    Attributes
    ----------
    count : int
    why : str
        With the cell if it is one row.
    first : int
        Line of the first row.
    cell : str or None
        The cell of the first row as written.
    fix : str
        How to make the rows count.
    """

    count: int
    why: str
    first: int
    cell: str | None
    fix: str

    def __str__(self) -> str:
        if self.count == 1:
            text = f"1 row: {self.why}, at line {self.first}"
        else:
            text = f"{self.count:,} rows: {self.why}, first at line {self.first}"
            text += f" ({self.cell})" if self.cell else ""
        return f"{text}; {self.fix}" if self.fix else text


def group_rejections(rejected: Iterable[RejectedLine]) -> list[RejectionGroup]:
    """The rejected rows by reason, the largest group first."""
    groups: dict[str, list[RejectedLine]] = {}
    for line in rejected:
        groups.setdefault(line.kind or line.why, []).append(line)
    times = [
        RejectionGroup(len(lines), kind if len(lines) > 1 else first.why, first.row, first.cell, first.fix)
        for kind, lines in groups.items()
        for first in lines[:1]
    ]
    return sorted(times, key=lambda group: (-group.count, group.first))


class TooFewForecasts(ValueError):
    """More than half of the rows are rejected, or no row is left to rank; the message says why."""


class InvalidRow(UnreadableFile):
    """The first row that is rejected, with `strict`."""


def check_rejected(
    forecasts: int, rows: int, rejected: Sequence[RejectedLine], *, allow_rejected: bool, unresolved: int = 0
) -> None:
    """Raises TooFewForecasts, with the first reasons, if no forecast is left or most of the rows are rejected.

    `rows` are those of questions with an outcome, `unresolved` the others.
    """
    if forecasts and (allow_rejected or 2 * len(rejected) <= rows):
        return
    groups = group_rejections(rejected)[:REASONS_SHOWN]
    reasons = "".join(f"\n  {group}" for group in groups) + "\n--explain shows how the file was understood"
    if not forecasts:
        why = f"{len(rejected)} of {rows} rows are rejected" if rows else "the file has headings and no rows"
        if unresolved:
            others = f"; {why}" if rejected else ""
            why = f"{unresolved} rows are of questions without an outcome in any row{others}"
        raise TooFewForecasts(f"no forecast can be ranked, {why}{reasons}")
    raise TooFewForecasts(f"{len(rejected)} of {rows} rows are rejected; --allow-rejected ranks the others{reasons}")


def rejections(rejected: Sequence[RejectedLine]) -> dict[str, Any]:
    """The rejected rows as parts of a report."""
    return {
        "rejected": [{"row": line.row, "why": line.why} for line in rejected],
        "rejection_groups": [asdict(group) for group in group_rejections(rejected)],
    }
