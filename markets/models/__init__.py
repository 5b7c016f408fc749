"""Markets, questions, prices and universes."""

from markets.models.cache_version import CacheVersion
from markets.models.evidence import EvidenceSnippet
from markets.models.market import Market, Outcome
from markets.models.order_book import OrderBook
from markets.models.price import PriceObservation
from markets.models.question import Question, QuestionBatch, QuestionEntry, QuestionOption, QuestionSet
from markets.models.universe import Universe, UniverseEntry
from markets.models.venue_traffic import VenueTraffic
