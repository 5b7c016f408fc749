"""The causes of the week's failed tasks: whatever fails for one reason is one problem, with one remedy."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from agents.account_errors import KEY_LIMIT
from agents.models import Decision, Elicitation
from arena_site.dashboard.action import action_path, list_path
from arena_site.dashboard.failed_tasks import WeekTasks

NAMES_SHOWN = 3
ACCOUNT_STATUS = re.compile(r"\bgateway(?:: \S+ \S+)? answered (401|402)\b")
SPEND_CAP, BOOKED = "spend cap reached", "booked and not billed yet"
NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
REMEDIES = {
    "401": "The gateway refuses the key: set OPENROUTER_API_KEY to a valid one and restart the worker, then retry.",
    "402": "The gateway's account is out of credit: add credit there, then retry.",
    KEY_LIMIT: "The gateway's key has reached a limit of its own: raise that there, then retry.",
    SPEND_CAP: "Raise the cap, then retry; or wait for next week.",
}
"""The remedies of the causes that concern every model."""
RELEASE = "Run reconcile_costs, which releases what was booked and not billed, or raise the cap; then retry."
WAIT = "The next run within the window asks again; Retry asks at once."


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
    def is_booked(self) -> bool:
        """Whether costs that are not billed yet reached the spend cap."""
        return self.key == SPEND_CAP and any(BOOKED in text for text in self.texts)

    @property
    def remedy(self) -> str:
        return RELEASE if self.is_booked else REMEDIES.get(self.key, WAIT)

    @property
    def action(self) -> tuple[str, str]:
        """The text and the address of the button against it."""
        if self.is_booked:
            return "Reconcile", action_path("reconcile_costs")
        if self.key == SPEND_CAP:
            return "Change the cap", action_path("set-cap")
        return "Retry", action_path("retry", kind="both" if len(self.counts) > 1 else self.counts[0][0].kind)

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
    """The same key for equal causes: the status or the limit that concerns all models, else the text."""
    if status := ACCOUNT_STATUS.search(error):
        return status[1]
    return next((limit for limit in (SPEND_CAP, KEY_LIMIT) if limit in error), NUMBERS.sub("#", error))


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
    return sorted(causes.values(), key=attrgetter("total"), reverse=True)
