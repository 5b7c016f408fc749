"""The causes of the week's failed tasks: whatever fails for one reason is one problem, with one remedy."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.models import Decision, Elicitation
from arena_site.dashboard.action import list_path
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.failed_tasks import WeekTasks

NAMES_SHOWN = 3
ACCOUNT_STATUS = re.compile(r"\bHTTP (401|402)\b")
SPEND_CAP = "spend cap reached"
NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
REMEDIES = {
    "401": "The gateway refuses the key: set OPENROUTER_API_KEY to a valid one and restart the worker, then retry.",
    "402": "The gateway's account is out of credit: add credit there, then retry.",
    SPEND_CAP: "Raise the cap, then retry; or wait for next week.",
}
"""The remedies of the causes that concern every model."""


@dataclass(slots=True)
class Cause:
    """A reason for which tasks failed: an example of its text, and how many failed of each protocol."""

    key: str
    text: str
    counts: list[tuple[WeekTasks, int]] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        """The number of failed tasks of both protocols."""
        return sum(number for _, number in self.counts)

    @property
    def remedy(self) -> str:
        return REMEDIES.get(self.key, "")

    @property
    def action(self) -> str:
        return "Change the cap" if self.key == SPEND_CAP else "Retry"

    @property
    def action_path(self) -> str:
        return ACTIONS["set-cap"].path() if self.key == SPEND_CAP else self.retry_path

    @property
    def retry_path(self) -> str:
        return ACTIONS["retry"].path(kind="both" if len(self.counts) > 1 else self.counts[0][0].kind)

    @property
    def path(self) -> str:
        """The list of the failed tasks; of the first protocol, where there are both."""
        model = Decision if self.counts[0][0].kind == "decision" else Elicitation
        return list_path(model, preset="week", status__exact="failed")

    @property
    def number(self) -> int | None:
        """The number of rows of that list, if it has no others."""
        (tasks, number), *further_counts = self.counts
        return number if not further_counts and number == tasks.failed_count else None

    @property
    def names(self) -> str:
        """The first few of the tasks."""
        names: list[str] = []
        for tasks, _ in self.counts:
            names += [task.name for task in tasks.failed if task.error in self.texts]
        more = self.total - len(names[:NAMES_SHOWN])
        return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more else "")

    def explains(self, line: str) -> bool:
        """Whether a line of a run's error names this cause."""
        return cause_key(line) == self.key or any(text and line.endswith(text) for text in self.texts)


def is_explained(error: str, causes: Iterable[Cause]) -> bool:
    """Whether every line of a run's error names one of these causes."""
    causes = list(causes)
    lines = list(filter(str.strip, error.splitlines()))
    for line in lines:
        if not any(cause.explains(line) for cause in causes):
            return False
    return bool(lines)


def cause_key(error: str) -> str:
    """The same key for equal causes: the status or the cap that concerns all models, else the text."""
    if status := ACCOUNT_STATUS.search(error):
        return status[1]
    return SPEND_CAP if SPEND_CAP in error else NUMBERS.sub("#", error)


def failure_causes(protocols: Iterable[WeekTasks]) -> list[Cause]:
    """The causes of the failed tasks of both protocols, the most frequent first."""
    causes: dict[str, Cause] = {}
    for tasks in protocols:
        numbers: dict[str, int] = {}
        for error, number in tasks.errors:
            key = cause_key(error)
            numbers[key] = numbers.get(key, 0) + number
            causes.setdefault(key, Cause(key, error)).texts.add(error)
        for key, number in numbers.items():
            causes[key].counts.append((tasks, number))
    return sorted(causes.values(), key=lambda cause: -cause.total)
