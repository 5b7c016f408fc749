"""Agents ranked by return."""

from collections.abc import Iterable
from dataclasses import dataclass

from agents.models import Agent
from scoring.selectors.valuations import NO_RECORD, BetRecord, Valuation, bet_records, valuations

AGENT_COLUMNS = ("family", "cohort", "model_id", "status", "cash")
"""Columns of an agent that its rank and its row in a list need."""


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """An agent with its valuation, its record, and its rank among the agents given; None for external ones."""

    agent: Agent
    worth: Valuation
    record: BetRecord
    rank: int | None


def rank_agents(agents: Iterable[Agent], *, awaiting: bool = False) -> list[RankedAgent]:
    """The agents by return, external ones last; equal returns share a rank. Family and methodology must be loaded.

    `awaiting`: whether to count the positions that await their market's resolution.
    """
    agents = list(agents)
    worth = valuations(agents, awaiting=awaiting)
    scores = bet_records(agents)
    returns = {agent.pk: worth[agent.pk].pnl_percent for agent in agents}
    ranked = [returns[agent.pk] for agent in agents if not agent.family.external]

    def rank(agent: Agent) -> int | None:
        return None if agent.family.external else 1 + sum(rival_return > returns[agent.pk] for rival_return in ranked)

    ordered = sorted(agents, key=lambda agent: (agent.family.external, -returns[agent.pk], agent.family_id))
    return [RankedAgent(agent, worth[agent.pk], scores.get(agent.pk, NO_RECORD), rank(agent)) for agent in ordered]
