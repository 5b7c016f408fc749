"""The grid of states: each family's tasks in the last weeks of decisions, and in the last days of forecasts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, QuerySet, Value, When

from agents.models import Decision, Elicitation
from agents.models.task import Status
from arena_site.dashboard.action import list_path
from markets.models import QuestionSet, Universe

RUNS_SHOWN = 5
FALLBACK = "fallback"
STATES = (
    (Status.FAILED, "bad", "✗"), (Status.MISSED, "bad", "–"), (Status.CLAIMED, "now", "…"),
    (Status.ANSWERED, "now", "✉"), (FALLBACK, "warn", "!"), (Status.COMPLETED, "good", "✓"),
)  # fmt: skip
"""States with their class and mark: a cell shows the first that occurs in it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A family's tasks in one run: the worst state, how many there are, and their list."""

    css_class: str
    mark: str
    count: int
    title: str
    path: str


class StateGrid:
    """The cells of each family in the last runs, which are the times of rows that tasks refer to."""

    def __init__(self, rows: QuerySet[Any], column: str) -> None:
        last = rows.order_by(f"-{column}").values_list(column, flat=True).distinct()[:RUNS_SHOWN]
        self.keys: dict[datetime, list[int]] = {run: [] for run in sorted(last)}
        self.run_of: dict[int, datetime] = {}
        for key, run in rows.filter(**{f"{column}__in": list(self.keys)}).values_list("pk", column):
            self.keys[run].append(key)
            self.run_of[key] = run
        self._cells: defaultdict[int, dict[datetime, Cell]] = defaultdict(dict)

    @property
    def runs(self) -> list[datetime]:
        return list(self.keys)

    @property
    def families(self) -> set[int]:
        return set(self._cells)

    def cells(self, family: int | None) -> list[Cell | None]:
        """A family's cell in each run, oldest first."""
        of_family = self._cells.get(family, {}) if family is not None else {}
        return list(map(of_family.get, self.keys))

    def fill(self, tasks: Iterable[tuple[int, int, str]], path: Callable[[int, str], str]) -> None:
        """Fills the cells from tasks (family, key, state); `path` lists those of a family and keys."""
        counts: defaultdict[tuple[int, datetime], Counter[str]] = defaultdict(Counter)
        for family, key, state in tasks:
            counts[family, self.run_of[key]][state] += 1
        for (family, run), states in counts.items():
            present = [state for state in STATES if states[state[0]]]
            _, css_class, mark = present[0]
            numbers = ", ".join(f"{states[state]} {state}" for state, _, _ in present)
            keys = ",".join(map(str, self.keys[run]))
            title = f"{run:%d %B %Y}: {numbers}"
            self._cells[family][run] = Cell(css_class, mark, states.total(), title, path(family, keys))


def _state(fallback: str) -> Case:
    """A task's status, or FALLBACK where the column of this name is true."""
    return Case(When(**{fallback: True}, then=Value(FALLBACK)), default="status")


def decision_grid() -> StateGrid:
    """The decisions of the last weeks that have a universe."""
    grid = StateGrid(Universe.objects.all(), "week_start")
    tasks = Decision.objects.filter(universe__in=list(grid.run_of)).order_by()
    grid.fill(
        tasks.values_list("agent__family", "universe", _state("fallback")),
        lambda family, keys: list_path(Decision, agent__family__id__exact=family, universe__id__in=keys),
    )
    return grid


def forecast_grid() -> StateGrid:
    """The question batches of the last days that have questions."""
    grid = StateGrid(QuestionSet.objects.all(), "day")
    tasks = Elicitation.objects.filter(batch__question_set__in=list(grid.run_of)).order_by()
    grid.fill(
        tasks.values_list("family", "batch__question_set", _state("declined")),
        lambda family, keys: list_path(Elicitation, family__id__exact=family, batch__question_set__id__in=keys),
    )
    return grid
