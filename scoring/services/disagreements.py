"""The largest disagreements of two families: opposite sides that they bought, different probabilities that they stated.

To find them takes all trades and recent forecasts of both, 10 to 20 ms of a comparison (50,000 forecasts). So they are
stored with the leaderboards under a version of these inputs; where a family has moved on since, they are computed.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

from django.db.models import Sum, TextField
from django.db.models.functions import Cast

from agents.models import Agent, Elicitation, Family, Forecast, Trade
from markets.foundation.raw_sql import raw_rows, stored_unit
from markets.models import Outcome, QuestionBatch, QuestionEntry, QuestionOption, QuestionSet
from scoring.models import StoredDisagreement

LIMIT = 10
"""Markets and questions that are listed."""
RECENT_SETS = 7
"""The newest question sets, whose forecasts are compared."""
Vector = Mapping[str, float]
"""The stated probability of each option."""
Stake = tuple[Any, int]
"""An amount as the database stores it, and the id of the outcome that it was put on."""
NO_STAKE: Stake = (0, 0)
Pair = tuple[int, int]
"""The ids of two families, the lower one first."""
Row = Sequence[Any]
FORMAT = 1
"""The format of stored content, a part of the inputs' version: content of an older format is computed anew."""


class MarketLabel(NamedTuple):
    """The columns of a market that a disagreement shows."""

    pk: int
    question: str
    status: str


class QuestionLabel(NamedTuple):
    """The columns of a question that a disagreement shows."""

    pk: int
    text: str


class PositionDisagreement(NamedTuple):
    """A market on which two families bought different sides, with the stakes of both."""

    market: MarketLabel
    first_side: str
    first_amount: Decimal
    second_side: str
    second_amount: Decimal
    winner: str | None


class Disagreement(NamedTuple):
    """An option of a question on a day, and the probabilities that two families stated."""

    question: QuestionLabel
    day: Any
    option: str
    first: float
    second: float
    price: float | None
    happened: bool | None

    @property
    def gap(self) -> float:
        return self.first - self.second


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def position_disagreements(first: Family, second: Family) -> tuple[list[PositionDisagreement], int]:
    """The markets with the largest stakes on different sides, and the number of all such markets."""
    pair = _pair(first, second)
    content = _stored_content(StoredDisagreement.TRADES, pair, _trades_version(_journal_lengths(pair), pair))
    if content is None:
        stakes = _largest_stakes(pair)
        content = _opposite_sides(stakes[pair[0]], stakes[pair[1]])
    rows: list[Row] = content["rows"]
    sides: dict[int | None, str] = {}
    markets: dict[int, tuple[MarketLabel, int | None]] = {}
    shown = ("pk", "side", "market__winning_outcome", "market", "market__question", "market__status")
    outcomes = Outcome.objects.filter(market__in=[row[0] for row in rows]).order_by()
    for outcome, side, winner, *market in outcomes.values_list(*shown):
        sides[outcome] = side
        markets[market[0]] = (MarketLabel._make(market), winner)
    listed = []
    for key, *stakes_of_both in rows:
        (side, amount), (other_side, other_amount) = _ordered(stakes_of_both, first, pair)
        market_label, winner = markets[key]
        winning_side = sides.get(winner)
        listed.append(
            PositionDisagreement(
                market_label, sides[side], Decimal(amount), sides[other_side], Decimal(other_amount), winning_side
            )
        )
    return listed, content["number"]


def disagreements(first: Family, second: Family, arm: str) -> list[Disagreement]:
    """The questions of the newest sets with the most different probabilities, each once."""
    pair = _pair(first, second)
    answered = _answered(pair, arm)
    content = _stored_content(arm, pair, _answers_version(answered, pair))
    if content is None:
        vectors, questions = _vectors(answered)
        content = {"rows": _widest_gaps(vectors[pair[0]], vectors[pair[1]], questions)}
    rows: list[Row] = content["rows"]
    asked = QuestionEntry.objects.filter(pk__in=[row[0] for row in rows]).order_by()
    shown = ("pk", "prices", "question_set__day", "question", "question__text")
    entries = {key: (prices, day, QuestionLabel(*label)) for key, prices, day, *label in asked.values_list(*shown)}
    options = QuestionOption.objects.filter(question__in=[entry[2].pk for entry in entries.values()]).order_by()
    happened = {
        (question, name): value for question, name, value in options.values_list("question", "name", "happened")
    }
    listed = []
    for key, option, *probabilities in rows:
        prices, day, question = entries[key]
        quoted = (prices.get(option) or {}).get("price")
        own, other = _ordered(probabilities, first, pair)
        price = None if quoted is None else float(quoted)
        listed.append(Disagreement(question, day, option, own, other, price, happened[question.pk, option]))
    return listed


def _pair(first: Family, second: Family) -> Pair:
    low, high = sorted((first.pk, second.pk))
    return low, high


def _ordered(of_both: Sequence[Any], first: Family, pair: Pair) -> Sequence[Any]:
    """The stored values of a pair, those of `first` first."""
    return of_both if first.pk == pair[0] else of_both[::-1]


def _stored_content(kind: str, pair: Pair, version: str) -> dict[str, Any] | None:
    """The stored content, if it is of this version of the inputs."""
    rows = StoredDisagreement.objects.filter(kind=kind, first=pair[0], second=pair[1], inputs_version=version)
    content: dict[str, Any] | None = next(iter(rows.order_by().values_list("content", flat=True)), None)
    return content


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


def store_position_disagreements() -> int:
    """Stores the missing disagreements of trades for each pair of the line-up; returns how many."""
    versions = _trades_versions()
    missing = _missing(StoredDisagreement.TRADES, versions)
    return _store(StoredDisagreement.TRADES, versions, _trades_content(missing))


def store_forecast_disagreements(arm: str) -> int:
    """Stores the missing disagreements of an arm's newest forecasts for each pair of the line-up; returns how many."""
    answered, versions = _answers_versions(arm)
    missing = _missing(arm, versions)
    return _store(arm, versions, _forecasts_content(answered, missing))


def disagreement_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each stored disagreement of the current inputs that differs from what is computed."""
    for kind in StoredDisagreement.objects.order_by("kind").values_list("kind", flat=True).distinct():
        if kind == StoredDisagreement.TRADES:
            answered: dict[int, int] = {}
            versions = _trades_versions()
        else:
            answered, versions = _answers_versions(kind)
        rows = StoredDisagreement.objects.filter(kind=kind)
        current = {(row.first_id, row.second_id): row for row in rows}
        pairs = [
            pair for pair, version in versions.items() if pair in current and current[pair].inputs_version == version
        ]
        computed = _trades_content(pairs) if kind == StoredDisagreement.TRADES else _forecasts_content(answered, pairs)
        wrong = {pair: content for pair, content in computed.items() if content != current[pair].content}
        for pair in sorted(wrong):
            yield f"disagreement {current[pair]}: its content is not that of the {kind} it is of"
        if repair:
            _store(kind, versions, wrong)


def _pairs() -> list[Pair]:
    """The pairs of the line-up. Those of external agents, which may be many, are computed when read."""
    return list(combinations(Family.objects.filter(external=False).order_by("pk").values_list("pk", flat=True), 2))


def _trades_versions() -> dict[Pair, str]:
    pairs = _pairs()
    lengths = _journal_lengths({family for pair in pairs for family in pair})
    return {pair: _trades_version(lengths, pair) for pair in pairs}


def _answers_versions(arm: str) -> tuple[dict[int, int], dict[Pair, str]]:
    pairs = _pairs()
    answered = _answered({family for pair in pairs for family in pair}, arm)
    return answered, {pair: _answers_version(answered, pair) for pair in pairs}


def _missing(kind: str, versions: Mapping[Pair, str]) -> list[Pair]:
    rows = StoredDisagreement.objects.filter(kind=kind).values_list("first", "second", "inputs_version")
    stored = {(first, second): version for first, second, version in rows}
    return [pair for pair, version in versions.items() if stored.get(pair) != version]


def _trades_content(pairs: Sequence[Pair]) -> dict[Pair, dict[str, Any]]:
    stakes = _largest_stakes({family for pair in pairs for family in pair}) if pairs else {}
    return {pair: _opposite_sides(stakes[pair[0]], stakes[pair[1]]) for pair in pairs}


def _forecasts_content(answered: Mapping[int, int], pairs: Sequence[Pair]) -> dict[Pair, dict[str, Any]]:
    vectors, questions = _vectors(answered) if pairs else ({}, {})
    return {pair: {"rows": _widest_gaps(vectors[pair[0]], vectors[pair[1]], questions)} for pair in pairs}


def _store(kind: str, versions: Mapping[Pair, str], contents: Mapping[Pair, dict[str, Any]]) -> int:
    rows = [
        StoredDisagreement(
            kind=kind, first_id=pair[0], second_id=pair[1], inputs_version=versions[pair], content=content
        )
        for pair, content in contents.items()
    ]
    StoredDisagreement.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["kind", "first", "second"],
        update_fields=["inputs_version", "content"],
    )
    return len(rows)


# ── trades ────────────────────────────────────────────────────────────────────────────────────────


def _journal_lengths(families: Iterable[int]) -> dict[int, int]:
    """The number of journal entries of each family's agents, which every trade adds to."""
    agents = Agent.objects.filter(family__in=list(families)).order_by()
    return dict(agents.values_list("family").annotate(entries=Sum("journal_length")))


def _trades_version(lengths: Mapping[int, int], pair: Pair) -> str:
    return " ".join(str(number) for number in (FORMAT, *(lengths.get(family, 0) for family in pair)))


def _largest_stakes(families: Iterable[int]) -> dict[int, dict[int, Stake]]:
    """Of each family, by market, its largest stake on one side; of equal ones that on the first outcome."""
    stakes: dict[int, dict[int, Stake]] = {family: {} for family in families}
    bought = (
        Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=list(stakes))
        .order_by()
        .values_list("agent__family", "market", "outcome")
        .annotate(amount=Sum("amount"))
    )
    for family, market, outcome, amount in raw_rows(bought):
        largest, its_outcome = stakes[family].get(market, NO_STAKE)
        if amount > largest or (amount == largest and outcome < its_outcome):
            stakes[family][market] = (amount, outcome)
    return stakes


def _opposite_sides(own: Mapping[int, Stake], other: Mapping[int, Stake]) -> dict[str, Any]:
    """The number of markets on which two bought different sides, and the sides and stakes of the largest ones."""
    markets = [market for market, stake in own.items() if market in other and stake[1] != other[market][1]]
    markets.sort(key=lambda market: (-min(own[market][0], other[market][0]), market))
    unit = stored_unit(Trade, "amount")
    rows = [
        [market, *([outcome, str(amount * unit)] for amount, outcome in (own[market], other[market]))]
        for market in markets[:LIMIT]
    ]
    return {"number": len(markets), "rows": rows}


# ── forecasts ─────────────────────────────────────────────────────────────────────────────────────


def _answered(families: Iterable[int], arm: str) -> dict[int, int]:
    """The family of each elicitation that was completed for a batch of the newest question sets."""
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:RECENT_SETS]
    batches = QuestionBatch.objects.filter(question_set__in=sets, arm=arm).order_by().values("pk")
    asked = Elicitation.objects.filter(batch__in=batches, family__in=list(families)).order_by()
    return dict(asked.filter(status=Elicitation.Status.COMPLETED).values_list("pk", "family"))


def _answers_version(answered: Mapping[int, int], pair: Pair) -> str:
    """A hash of the elicitations that the two have completed, whose forecasts never change."""
    batches = sorted(elicitation for elicitation, family in answered.items() if family in pair)
    return sha256(repr((FORMAT, batches)).encode()).hexdigest()


def _vectors(answered: Mapping[int, int]) -> tuple[dict[int, dict[int, Vector]], dict[int, int]]:
    """The last vector of each family by entry, and the question of each entry."""
    stated = Forecast.objects.filter(elicitation__in=list(answered)).order_by("pk")
    as_text = stated.annotate(text=Cast("probabilities", TextField()))
    texts: dict[int, dict[int, str]] = defaultdict(dict)
    questions: dict[int, int] = {}
    for elicitation, entry, question, text in raw_rows(as_text.values_list("elicitation", "entry", "question", "text")):
        texts[answered[elicitation]][entry] = text
        questions[entry] = question
    vectors: dict[int, dict[int, Vector]] = defaultdict(dict)
    for family, by_entry in texts.items():
        # Decoded together: thousands of small documents, one by one, would take most of the time.
        vectors[family] = dict(zip(by_entry, json.loads(f"[{','.join(by_entry.values())}]"), strict=True))
    return vectors, questions


def _widest_gaps(own: Mapping[int, Vector], other: Mapping[int, Vector], questions: Mapping[int, int]) -> list[Row]:
    """The entries of the widest gaps, each question once: entry, option, and both probabilities.

    Of equally wide gaps the newest entry, and of its options the first.
    """
    gaps = [(_gap(own[entry], other[entry]), entry) for entry in own.keys() & other.keys()]
    widest: dict[int, tuple[float, int]] = {}
    for gap, entry in sorted(gaps, reverse=True):
        if len(widest) == LIMIT:
            break
        widest.setdefault(questions[entry], (gap, entry))
    options: dict[int, list[str]] = defaultdict(list)
    named = QuestionOption.objects.filter(question__in=list(widest)).order_by("index")
    for question, name in named.values_list("question", "name"):
        options[question].append(name)
    rows: list[Row] = []
    for question, (gap, entry) in widest.items():
        option = next(name for name in options[question] if _gap(own[entry], other[entry], name) == gap)
        rows.append([entry, option, own[entry].get(option, 0.0), other[entry].get(option, 0.0)])
    return rows


def _gap(own: Vector, other: Vector, *options: str) -> float:
    """The widest difference on some options, by default on all, rounded to hide the error of binary fractions."""
    compared = options or own.keys() | other.keys()
    return round(max([abs(own.get(option, 0.0) - other.get(option, 0.0)) for option in compared]), 9)
