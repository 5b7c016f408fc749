"""The problems that the dashboard lists: what its panels show to need an operator, and the open alerts besides."""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from arena_site.dashboard.actions.maintenance import SendTestAlert
from arena_site.dashboard.findings import count_of
from arena_site.dashboard.overview import Overview
from arena_site.operations.condition import Occurrence, OperatingCondition
from arena_site.operations.conditions import CONDITIONS


def concerns(overview: Overview) -> list[Occurrence]:
    """The findings of every condition and the open alerts that none of them hides, the urgent ones first."""
    problems: list[Occurrence] = []
    hidden = {SendTestAlert.KIND}
    for condition in CONDITIONS:
        findings = list(condition.show(overview)) if condition.show else []
        problems += [_complete(finding, condition) for finding in findings]
        hidden.update((condition.kind, *condition.hides) if findings else ())
    problems += [row.finding for row in overview.alerts.alerts if row.alert.kind not in hidden]
    problems += _older_alerts(overview)
    return sorted(problems, key=attrgetter("urgent"), reverse=True)


def _complete(finding: Occurrence, condition: OperatingCondition) -> Occurrence:
    """The finding with what its condition says of it."""
    return replace(
        finding,
        urgent=condition.is_urgent([finding]),
        remedy=finding.remedy or condition.remedy,
        button=finding.button or condition.button,
        action_path=finding.action_path or condition.action_path(),
    )


def _older_alerts(overview: Overview) -> Iterator[Occurrence]:
    number, path = overview.alerts.older()
    if number:
        message, remedy = f"{count_of(number, 'older alert')} not acknowledged", "Each names its own remedy."
        yield Occurrence(message, path=path, count=number, remedy=remedy, urgent=False)
