"""The seals of tasks: while an external agent may still answer a task, nobody reads what its competitors answered.

A seal begins with the freeze and ends with the last window of the agents that take part.
"""

from datetime import datetime

from agents.models import Agent, Elicitation, Family, Registration
from agents.models.family import EXTERNAL_WINDOW
from cohorts.models import Methodology
from cohorts.weeks import week_start


def seal_end(protocol: str, version: str, frozen_at: datetime) -> datetime | None:
    """The end of the seal on the tasks of a freeze: of the longest window of those that may answer; None without any.

    It is stored with the freeze: what is registered or revoked later changes nothing.
    """
    registrations = Registration.objects.live(frozen_at).covering(protocol)
    if protocol == Elicitation.PROTOCOL:
        tracks = set(registrations.order_by().values_list("family__track", flat=True))
    else:
        participants = Agent.objects.playing().filter(cohort__methodology__version=version)
        agents = participants.filter(family__in=registrations.values("family"))
        tracks = set()
        for agent in agents.select_related("cohort__methodology", "family"):
            if agent.cohort.is_deciding(week_start(frozen_at)):
                tracks.add(agent.family.track)
    if not tracks:
        return None
    windows = [EXTERNAL_WINDOW]
    if Family.Track.OPEN in tracks:
        windows.append(Methodology.objects.get(version=version).open_window)
    return frozen_at + max(windows)
