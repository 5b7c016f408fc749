from agents.models.agent import Agent, Family, Release
from agents.models.decision import Decision, Instruction, ModelCall
from agents.models.ledger import JournalEntry, Position, Settlement, Trade

__all__ = [
    "Agent",
    "Decision",
    "Family",
    "Instruction",
    "JournalEntry",
    "ModelCall",
    "Position",
    "Release",
    "Settlement",
    "Trade",
]
