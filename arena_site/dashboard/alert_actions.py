"""The dashboard's actions against alerts whose form an alert's items fill in; empty where there is nothing to do."""

from collections import defaultdict
from operator import attrgetter

from arena_site import jobs
from arena_site.dashboard.action import action_path
from foundation.models import Alert
from markets.models import Market


def path_to_settle(alert: Alert) -> str:
    """The settlement of the first market of an alert about overdue ones."""
    subjects = list(map(attrgetter("subject"), alert.concerned))
    markets = dict(Market.objects.filter(external_id__in=subjects).values_list("external_id", "pk"))
    market = next(filter(None, map(markets.get, subjects)), None)
    return action_path("settle", market=market) if market else ""


def path_to_reverse(alert: Alert) -> str:
    """The reversal of the market whose result has changed."""
    subject = alert.concerned[0].subject if alert.concerned else ""
    source, _, external_id = subject.partition(": ")[0].partition(" ")
    market = Market.objects.filter(source=source, external_id=external_id).values_list("pk", flat=True).first()
    return action_path("reverse", market=market) if market else ""


def path_to_retry(alert: Alert) -> str:
    """The retry of the tasks that failed."""
    tasks: defaultdict[str, list[str]] = defaultdict(list)
    for item in alert.concerned:
        kind, _, key = item.subject.partition(" ")
        tasks[kind].append(key)
    return action_path("retry", **tasks)


def path_to_rerun(alert: Alert) -> str:
    """The job whose run failed; empty for a run that no job begins."""
    commands = set(map(attrgetter("command"), jobs.JOBS))
    return action_path(alert.subject) if alert.subject in commands else ""


def path_to_approve(alert: Alert) -> str:
    """The approval of the line-up that is proposed."""
    return action_path("approve-line-up", line_up=alert.subject)
