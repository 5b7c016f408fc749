"""The columns of leaderboards on pages, and the order of rows: by rank, or by the column that the address names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest

from foundation.bulk import rows_by
from scoring.constants import FORECAST, MARKET, TRADING
from scoring.reports.agents import AGENTS_COLUMNS
from scoring.reports.columns import ReportColumn, named
from scoring.reports.forecasts import FORECAST_COLUMNS
from scoring.reports.trading import TRADING_COLUMNS, WITHOUT_LARGEST_BET

PARAMETER = "sort"
FORECAST_BOARD = named(FORECAST_COLUMNS, "rank display_name adjusted_brier brier skill_percent alpha n coverage")
"""The columns of a board in their order on its page."""
TRADING_BOARD = (
    *named(TRADING_COLUMNS, "rank display_name return_percent return_after_costs"),
    WITHOUT_LARGEST_BET,
    *named(TRADING_COLUMNS, "cohorts brier win_rate cost_usd"),
)
AGENTS_BOARD = named(
    AGENTS_COLUMNS,
    "rank display_name score brier skill_percent alpha total_value win_rate answered coverage failed refused missed "
    "late",
)
OTHER_PROTOCOL = {FORECAST: ("total_value", "win_rate"), TRADING: ("brier", "skill_percent", "alpha")}
"""Columns of the agents' board that a protocol lacks."""
SCORE, ANSWERED = named(AGENTS_COLUMNS, "score answered")
TRADING_VARIANTS = {
    "score": replace(SCORE, heading="Return", term="return", format="percent", tinted=True),
    "answered": replace(ANSWERED, heading="Decisions", term=""),
}
"""Columns of the agents' board that are others in the trading protocol, by name."""


def without(columns: Iterable[ReportColumn], *names: str) -> list[ReportColumn]:
    """The columns but those of these names."""
    return [column for column in columns if column.name not in names]


def agents_board_columns(protocol: str) -> list[ReportColumn]:
    """The columns of the agents' board of a protocol."""
    columns = without(AGENTS_BOARD, *OTHER_PROTOCOL[protocol])
    return [TRADING_VARIANTS.get(column.name, column) for column in columns] if protocol == TRADING else columns


@dataclass(frozen=True, slots=True)
class BoardOrder:
    """The column by which a request sorts a leaderboard; none for the ranking itself."""

    columns: Mapping[str, ReportColumn]
    parameters: Mapping[str, str]
    column: str
    descending: bool

    @classmethod
    def from_request(cls, request: HttpRequest, columns: Iterable[ReportColumn]) -> "BoardOrder":
        """The request's order. Raises Http404 for an unknown column."""
        by_address = rows_by("sort", columns)
        parameters = request.GET.dict()
        choice = parameters.pop(PARAMETER, "")
        column = choice.removeprefix("-")
        if column and column not in by_address:
            raise Http404(f"{PARAMETER}={choice} is not one of: {', '.join(by_address)}, or one of them after a minus")
        return cls(by_address, parameters, column, choice.startswith("-"))

    def sorted(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The rows, each with an `entry`, in this order; missing values last, whatever the direction."""
        if not self.column:
            return list(rows)
        column = self.columns[self.column]
        present: list[tuple[Any, Mapping[str, Any]]] = []
        absent = []
        for row in rows:
            value = _sort_value(row["entry"], column)
            if value is None:
                absent.append(row)
            else:
                present.append((value, row))
        present.sort(key=itemgetter(0), reverse=self.descending)
        return [*map(itemgetter(1), present), *absent]

    def entry_rows(self, entries: Sequence[Mapping[str, Any]], families: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Each entry with its family, None for a reference, in this order; families by slug."""
        return self.sorted([{"entry": entry, "family": families.get(entry["family"])} for entry in entries])

    def direction(self, column: str) -> str | None:
        """`ascending` or `descending` for the column that sorts; without one, ranks ascend."""
        if not self.column and column == "rank":
            return "ascending"
        if column != self.column:
            return None
        return "descending" if self.descending else "ascending"

    def query(self, column: str) -> str:
        """The query string that sorts by a column, the other way if it sorts already."""
        value = f"-{column}" if self.direction(column) == "ascending" else column
        return "?" + urlencode({**self.parameters, PARAMETER: value})


def column_value(entry: Mapping[str, Any], column: ReportColumn) -> Any:
    """An entry's value in a column; None for the market's alpha, since alpha is measured against the market."""
    return None if column.name == "alpha" and entry["forecaster"] == MARKET else entry.get(column.key)


def _sort_value(entry: Mapping[str, Any], column: ReportColumn) -> float | str | None:
    value = column_value(entry, column)
    if value is None:
        return None
    return str(value).casefold() if column.kind == "text" else float(value)
