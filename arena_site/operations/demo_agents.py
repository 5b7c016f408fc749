"""The external agents of the demo: agents of the kit, which answer their open tasks as makers' agents do."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from agents.models import Registration
from agents.services.registrations import register_external_agent
from agents.services.submission_targets import open_targets
from agents.services.submissions import record_submission
from arena_agent import Agent, Bet, Forecast, Market, Portfolio, Question, Sell
from arena_agent.answering import Answerer
from arena_agent.examples.shrinkage import Shrinkage
from arena_agent.examples.trader import Trader
from arena_agent.worker import read_task, start_answerer
from scoring.rehearsals.season import task_message

PROTOCOL = Registration.Protocol
BOLDNESS = 1.3


class Extremes(Agent):
    """An agent that takes the market's prices away from even odds, and never bets."""

    name = "extremes"
    track = "closed"

    def forecast(self, question: Question) -> Forecast:
        prices = question.market() or question.even()
        odds = {option: (price / (1 - price)) ** BOLDNESS for option, price in prices.items() if 0 < price < 1}
        bold = {option: odds[option] / (1 + odds[option]) if option in odds else prices[option] for option in prices}
        total = sum(bold.values()) if question.exclusive else 1.0
        return Forecast({option: value / total for option, value in bold.items()}, "The prices, bolder.")

    def trade(self, portfolio: Portfolio, markets: Sequence[Market]) -> Sequence[Bet | Sell]:
        return []


class DemoAgent(NamedTuple):
    """A registered agent and what gives its answers."""

    registration: Registration
    answerer: Answerer


def register_demo_agents(*, at: datetime) -> list[DemoAgent]:
    """A forecaster, a trader, and one that is both, registered from an instant on."""
    agents = []
    players = (Shrinkage(), PROTOCOL.FORECAST), (Extremes(), PROTOCOL.BOTH), (Trader(), PROTOCOL.TRADING)
    for agent, protocol in players:
        registration = register_external_agent(name=agent.name.capitalize(), protocol=protocol, at=at)
        agents.append(DemoAgent(registration, start_answerer(agent, agent.name)))
    return agents


def answer_open_tasks(agents: Sequence[DemoAgent], *, at: datetime) -> None:
    """Each agent's answer to each of its tasks that is open at an instant; a task that it can not answer is missed."""
    for registration, answerer in agents:
        for target in open_targets(registration, at=at):
            answer = answerer.answer(read_task(json.dumps(task_message(target))))
            if answer.body is not None:
                record_submission(target, registration=registration, key=target.name, body=answer.body, at=at)
