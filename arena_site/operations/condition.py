"""A state of the arena that needs an operator, and a thing of which it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from arena_site.dashboard.action import action_path
from foundation.models import Alert
from foundation.services.alerts import listing

if TYPE_CHECKING:
    from arena_site.dashboard.overview import Overview


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A thing of which a condition holds. What it leaves empty is as its condition says.

    subject, name : the item of an alert
    path, count : the page that shows it, which lists `count` rows if one is given
    button, action_path : the text and the address of the dashboard's button against it
    """

    message: str
    subject: str = ""
    name: str = ""
    path: str = ""
    count: int | None = None
    button: str = ""
    action_path: str = ""
    remedy: str = ""
    urgent: bool | None = None


@dataclass(frozen=True, slots=True)
class OperatingCondition:
    """A state that needs an operator: its kind, where it holds, and what to do.

    find : finds it at an instant by looking, which raises and clears its alerts; None where a service raises them
    show : finds it in the panels of the dashboard; None where its open alerts alone tell of it there
    button, action : the text of the dashboard's button against it, and the name of the action that this opens, or a
        function that returns the action's address for an alert of the kind, empty where there is none
    hides : the kinds of alerts, besides its own, that the dashboard leaves out while `show` finds this
    name : its item of `doctor`; empty where that has others
    alert : the subject of its only alert, which tells of all findings in `summary`; empty where each has its own
    """

    kind: str
    find: Callable[[datetime], Iterable[Occurrence]] | None = None
    show: Callable[[Overview], Iterable[Occurrence]] | None = None
    remedy: str = ""
    button: str = ""
    action: str | Callable[[Alert], str] = ""
    urgent: bool = True
    hides: tuple[str, ...] = ()
    name: str = ""
    alert: str = ""
    summary: str = ""
    path: str = "/admin/#infrastructure"

    def findings(self, now: datetime) -> list[Occurrence]:
        """Where it holds now; none of a condition that nobody finds by looking."""
        return list(self.find(now)) if self.find else []

    def message(self, findings: Sequence[Occurrence]) -> str:
        """The text on these findings together."""
        if self.summary:
            return self.summary.format(listing(list(map(attrgetter("name"), findings))))
        return " ".join(map(attrgetter("message"), findings))

    def remedy_of(self, findings: Sequence[Occurrence]) -> str:
        own = findings[0].remedy if findings else ""
        return " ".join(filter(None, [self.remedy, own]))

    def is_urgent(self, findings: Iterable[Occurrence]) -> bool:
        return any(self.urgent if finding.urgent is None else finding.urgent for finding in findings)

    def action_path(self, alert: Alert | None = None) -> str:
        """The address of the action against it, or against one alert of it; empty where there is none."""
        if isinstance(self.action, str):
            return action_path(self.action) if self.action else ""
        return self.action(alert) if alert else ""
