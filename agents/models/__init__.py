from agents.models.agent import Agent, Family, Release
from agents.models.call import Instruction, ModelCall
from agents.models.chain import Chain, ChainLink
from agents.models.decision import Decision
from agents.models.forecast import Elicitation, Forecast, RefusedForecast
from agents.models.ledger import JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.lineup import LineUp, LineUpEntry
from agents.models.registration import Registration, Submission
from agents.models.task import Task

__all__ = [
    "Agent",
    "Chain",
    "ChainLink",
    "Decision",
    "Elicitation",
    "Family",
    "Forecast",
    "Instruction",
    "JournalEntry",
    "LineUp",
    "LineUpEntry",
    "ModelCall",
    "Position",
    "RefusedForecast",
    "Registration",
    "Release",
    "Reversal",
    "Settlement",
    "Submission",
    "Task",
    "Trade",
]
