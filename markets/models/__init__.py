"""Markets, questions, prices and universes."""

from markets.models.market import Market, Outcome
from markets.models.operation import CacheVersion, VenueTraffic
from markets.models.price import PriceObservation
from markets.models.question import (
    EvidenceClaim,
    EvidenceSnippet,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
)
from markets.models.universe import OrderBook, Universe, UniverseEntry
