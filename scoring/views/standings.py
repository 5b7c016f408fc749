"""Agents beside each other: their worth, their record, their place."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.models import Agent
from scoring.valuations import NO_RECORD, Record, Valuation, records, valuations


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent with its worth and its record; `rank` is among those it stands with."""

    agent: Agent
    worth: Valuation
    record: Record
    rank: int | None = None


def standings(agents: Iterable[Agent], *, awaiting: bool = False) -> list[Standing]:
    """The agents (family and the cohort's methodology loaded) by value; equal values share a rank.

    External ones come last, without a rank. `awaiting` is whether to count what awaits its resolution.
    """
    agents = list(agents)
    worth = valuations(agents, awaiting=awaiting)
    scores = records([agent.pk for agent in agents])
    returns = {agent.pk: worth[agent.pk].pnl_percent for agent in agents}
    ranked = [returns[agent.pk] for agent in agents if not agent.family.external]

    def rank(agent: Agent) -> int | None:
        if agent.family.external:
            return None
        return 1 + sum(other > returns[agent.pk] for other in ranked)

    ordered = sorted(agents, key=lambda agent: (agent.family.external, -returns[agent.pk], agent.family_id))
    return [Standing(agent, worth[agent.pk], scores.get(agent.pk, NO_RECORD), rank(agent)) for agent in ordered]
