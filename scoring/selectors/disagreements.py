"""The largest disagreements of two families: opposite sides that they bought, different probabilities they stated."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Sum

from agents.models import Elicitation, Family, Forecast, Trade
from markets.models import Market, Outcome, Question, QuestionBatch, QuestionEntry, QuestionOption, QuestionSet

LIMIT = 10
"""Markets and questions that are listed."""
RECENT_SETS = 7
"""The newest question sets, whose forecasts are compared."""
Vector = Mapping[str, float]
"""The stated probability of each option."""
Stake = tuple[Decimal, int]
"""An amount, and the id of the outcome that it was put on."""
NO_STAKE: Stake = (Decimal(0), 0)
Row = Sequence[Any]


class PositionDisagreement(NamedTuple):
    """A market on which two families bought different sides, with the stakes of both."""

    market: Market
    first_side: str
    first_amount: Decimal
    second_side: str
    second_amount: Decimal
    winner: str | None


class PositionDisagreements(NamedTuple):
    """The markets with the largest stakes on different sides, and the number of all such markets."""

    largest: Sequence[PositionDisagreement]
    markets: int


class Disagreement(NamedTuple):
    """An option of a question on a day, and the probabilities that two families stated.

    `happened` is None while the question is open, and for good where it, or the market of the option, was cancelled.
    """

    question: Question
    day: datetime
    option: str
    first: float
    second: float
    price: float | None
    happened: bool | None
    cancelled: bool


def position_disagreements(first: Family, second: Family) -> PositionDisagreements:
    """The markets on which the larger stakes of two families are on different sides."""
    stakes = _largest_stakes((first.pk, second.pk))
    first_stakes, second_stakes = stakes[first.pk], stakes[second.pk]
    keys = []
    for key in first_stakes.keys() & second_stakes.keys():
        if first_stakes[key][1] != second_stakes[key][1]:
            keys.append(key)
    keys.sort(key=lambda market: (-min(first_stakes[market][0], second_stakes[market][0]), market))
    columns = ("side", "market__question", "market__status", "market__winning_outcome", "market__resolved_at")
    outcomes = Outcome.objects.filter(market__in=keys[:LIMIT]).select_related("market").only("market", *columns)
    sides, markets = {}, {}
    for outcome in outcomes.order_by():
        sides[outcome.pk], markets[outcome.market_id] = outcome.side, outcome.market
    largest = []
    for key in keys[:LIMIT]:
        (amount, outcome_id), (other_amount, other_outcome_id), market = (
            first_stakes[key],
            second_stakes[key],
            markets[key],
        )
        winner = sides.get(market.winning_outcome_id or 0) if market.resolved_at is not None else None
        stakes_of_both = (sides[outcome_id], amount, sides[other_outcome_id], other_amount)
        largest.append(PositionDisagreement(market, *stakes_of_both, winner))
    return PositionDisagreements(largest, len(keys))


def disagreements(first: Family, second: Family, arm: str) -> list[Disagreement]:
    """The questions of the newest sets with the most different probabilities, each once."""
    vectors, questions = _vectors((first.pk, second.pk), arm)
    rows = _widest_gaps(vectors[first.pk], vectors[second.pk], questions)
    columns = ("prices", "question__text", "question__resolved_at", "question_set__day")
    related = ("question", "question_set")
    entries = QuestionEntry.objects.select_related(*related).only(*related, *columns).in_bulk([row[0] for row in rows])
    options = QuestionOption.objects.filter(question__in=[entry.question_id for entry in entries.values()]).order_by()
    happened = {(pk, name): value for pk, name, value in options.values_list("question", "name", "happened")}
    listed = []
    for key, *gap in rows:
        entry, (option, first_probability, second_probability) = entries[key], gap
        quoted = (entry.prices.get(option) or {}).get("price")
        price = None if quoted is None else float(quoted)
        resolved_at = entry.question.resolved_at
        final = resolved_at is not None
        outcome = happened[entry.question_id, option] if final else None
        values = (entry.question, entry.question_set.day, option, first_probability, second_probability, price)
        listed.append(Disagreement(*values, outcome, cancelled=final and outcome is None))
    return listed


def _largest_stakes(families: Iterable[int]) -> dict[int, dict[int, Stake]]:
    """The largest stake of each family on one side, by market; of equal ones that on the first outcome."""
    stakes: dict[int, dict[int, Stake]] = {family: {} for family in families}
    purchases = Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=list(stakes))
    rows = purchases.order_by().values("agent__family", "market", "outcome").annotate(amount=Sum("amount"))
    bought = rows.values_list("agent__family", "market", "outcome", "amount", named=True)
    for row in bought:
        largest, outcome = stakes[row.agent__family].get(row.market, NO_STAKE)
        if row.amount > largest or (row.amount == largest and row.outcome < outcome):
            stakes[row.agent__family][row.market] = (row.amount, row.outcome)
    return stakes


def _vectors(families: Iterable[int], arm: str) -> tuple[dict[int, dict[int, Vector]], dict[int, int]]:
    """The last vector of each family by entry of the newest question sets, and the question of each entry."""
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:RECENT_SETS]
    batches = QuestionBatch.objects.filter(question_set__in=sets, arm=arm).order_by().values("pk")
    tasks = Elicitation.objects.filter(
        batch__in=batches, family__in=list(families), status=Elicitation.Status.COMPLETED
    )
    forecasts = Forecast.objects.counted().filter(elicitation__in=tasks.order_by()).order_by("pk")
    vectors: dict[int, dict[int, Vector]] = defaultdict(dict)
    questions: dict[int, int] = {}
    for row in forecasts.values_list("family", "entry", "question", "probabilities", named=True):
        vectors[row.family][row.entry] = row.probabilities
        questions[row.entry] = row.question
    return vectors, questions


def _widest_gaps(
    first_vectors: Mapping[int, Vector], second_vectors: Mapping[int, Vector], questions: Mapping[int, int]
) -> list[Row]:
    """The entries of the widest gaps, each question once: entry, option, and both probabilities.

    Of equally wide gaps the newest entry, and of its options the first.
    """
    gaps = []
    for entry in first_vectors.keys() & second_vectors.keys():
        gaps.append((_gap(first_vectors[entry], second_vectors[entry]), entry))
    widest: dict[int, tuple[float, int]] = {}
    for gap, entry in sorted(gaps, reverse=True):
        if len(widest) == LIMIT:
            break
        widest.setdefault(questions[entry], (gap, entry))
    options: dict[int, list[str]] = defaultdict(list)
    names = QuestionOption.objects.filter(question__in=list(widest)).order_by("index")
    for question, name in names.values_list("question", "name"):
        options[question].append(name)
    rows: list[Row] = []
    for question, (gap, entry) in widest.items():
        first, second = first_vectors[entry], second_vectors[entry]
        option = next(name for name in options[question] if _gap(first, second, name) == gap)
        rows.append([entry, option, first.get(option, 0.0), second.get(option, 0.0)])
    return rows


def _gap(first_vector: Vector, second_vector: Vector, *options: str) -> float:
    """The widest difference on some options, by default on all, rounded to hide the error of binary fractions."""
    compared = options or first_vector.keys() | second_vector.keys()
    return round(max([abs(first_vector.get(option, 0.0) - second_vector.get(option, 0.0)) for option in compared]), 9)
