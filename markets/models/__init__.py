from markets.models.market import Market, Outcome
from markets.models.operation import Alert, Run
from markets.models.price import PriceObservation
from markets.models.question import Question, QuestionEntry, QuestionOption, QuestionSet, QuestionSheet
from markets.models.universe import Universe, UniverseEntry

__all__ = [
    "Alert",
    "Market",
    "Outcome",
    "PriceObservation",
    "Question",
    "QuestionEntry",
    "QuestionOption",
    "QuestionSet",
    "QuestionSheet",
    "Run",
    "Universe",
    "UniverseEntry",
]
