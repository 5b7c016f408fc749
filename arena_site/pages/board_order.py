"""The order of a leaderboard's rows: by rank, or by the column that the address names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest

from scoring.constants import MARKET

PARAMETER = "sort"
NAME = "display_name"
"""The column that sorts as text; all others are numbers."""
FORECAST_COLUMNS = {
    "rank": "rank",
    "name": NAME,
    "adjusted": "adjusted_brier",
    "brier": "brier",
    "skill": "bss_uniform",
    "alpha": "alpha",
    "questions": "n",
    "coverage": "coverage",
}
"""Fields of an entry by their names in the address."""
AGENT_COLUMNS = {
    "rank": "rank", "name": NAME, "score": "score", "brier": "brier", "skill": "bss_uniform", "alpha": "alpha",
    "value": "total_value", "wins": "win_rate", "answered": "answered", "coverage": "coverage", "failed": "failed",
    "refused": "refused", "missed": "missed", "late": "late",
}  # fmt: skip
TRADING_COLUMNS = {
    "rank": "rank", "name": NAME, "return": "return_percent", "without-largest-bet": "return_without_largest_bet",
    "after-costs": "return_after_costs", "cohorts": "cohorts", "bet-sizing": "brier",
    "wins": "win_rate", "cost": "cost_usd",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardOrder:
    """The column by which a request sorts a leaderboard; none for the ranking itself."""

    columns: Mapping[str, str]
    parameters: Mapping[str, str]
    column: str
    descending: bool

    @classmethod
    def from_request(cls, request: HttpRequest, columns: Mapping[str, str]) -> "BoardOrder":
        """The request's order. Raises Http404 for an unknown column."""
        parameters = request.GET.dict()
        choice = parameters.pop(PARAMETER, "")
        column = choice.removeprefix("-")
        if column and column not in columns:
            raise Http404(f"{PARAMETER}={choice} is not one of: {', '.join(columns)}, or one of them after a minus")
        return cls(columns, parameters, column, choice.startswith("-"))

    def sorted(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The rows, each with an `entry`, in this order; missing values last, whatever the direction."""
        if not self.column:
            return list(rows)
        field = self.columns[self.column]
        present: list[tuple[Any, Mapping[str, Any]]] = []
        absent = []
        for row in rows:
            value = _value(row["entry"], field)
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


def _value(entry: Mapping[str, Any], field: str) -> float | str | None:
    """An entry's value in a column; None for the market's alpha, since alpha is measured against the market."""
    value = entry.get(field)
    if value is None or (field == "alpha" and entry["forecaster"] == MARKET):
        return None
    return str(value).casefold() if field == NAME else float(value)
