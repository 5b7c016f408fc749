"""Where two families stood furthest apart: sides that they bought against each other, probabilities that they stated.

To find these, all that both ever bought and lately stated is gone through. So it is kept with the boards, by how far
both had come; where one has moved on since, it is found anew.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

from django.db.models import Sum, TextField
from django.db.models.functions import Cast

from agents.models import Agent, Elicitation, Family, Forecast, Trade
from markets.fields import bare, stored_unit
from markets.models import Outcome, QuestionEntry, QuestionOption, QuestionSet, QuestionSheet
from scoring.models import Contrast

MOST = 10
"""Markets and questions that are named."""
SETS_LOOKED_AT = 7
"""The newest question sets that disagreements are looked for in."""
Stated = Mapping[str, float]
"""The probability of each option that was named."""
Stake = tuple[Any, int]
"""An amount as the database gives it, and the key of the outcome that it was put on."""
NOTHING: Stake = (0, 0)
Pair = tuple[int, int]
"""The keys of two families, the lower one first."""
Row = Sequence[Any]
FORM = 1
"""Of what is kept: what is of an older one is found anew, although the two are where they were."""


class Contested(NamedTuple):
    """A market, as far as is said of it here."""

    pk: int
    question: str
    status: str


class Asked(NamedTuple):
    """A question, as far as is said of it here."""

    pk: int
    text: str


class Opposed(NamedTuple):
    """A market on which they bought different sides, with what each staked."""

    market: Contested
    first_side: str
    first_amount: Decimal
    second_side: str
    second_amount: Decimal
    winner: str | None


class Disagreement(NamedTuple):
    """An option of a question on a day, and what each said of it."""

    question: Asked
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


def opposed(first: Family, second: Family) -> tuple[list[Opposed], int]:
    """The markets on which they bought different sides with the most at stake, and on how many they did."""
    pair = _pair(first, second)
    content = _kept(Contrast.BETS, pair, _how_far_moved(_moves(pair), pair))
    if content is None:
        staked = _staked(pair)
        content = _against(staked[pair[0]], staked[pair[1]])
    rows: list[Row] = content["rows"]
    sides: dict[int | None, str] = {}
    markets: dict[int, tuple[Contested, int | None]] = {}
    shown = ("pk", "side", "market__winning_outcome", "market", "market__question", "market__status")
    outcomes = Outcome.objects.filter(market__in=[row[0] for row in rows]).order_by()
    for outcome, side, winner, *market in outcomes.values_list(*shown):
        sides[outcome] = side
        markets[market[0]] = (Contested._make(market), winner)
    found = []
    for key, *stakes in rows:
        (mine, amount), (theirs, other_amount) = _turned(stakes, first, pair)
        contested, winner = markets[key]
        decided = sides.get(winner)
        found.append(Opposed(contested, sides[mine], Decimal(amount), sides[theirs], Decimal(other_amount), decided))
    return found, content["number"]


def disagreements(first: Family, second: Family, arm: str) -> list[Disagreement]:
    """Where they stated the most different probabilities in the newest question sets, each question once."""
    pair = _pair(first, second)
    answered = _answered(pair, arm)
    content = _kept(arm, pair, _how_far_answered(answered, pair))
    if content is None:
        said, of_entry = _said(answered)
        content = {"rows": _apart(said[pair[0]], said[pair[1]], of_entry)}
    rows: list[Row] = content["rows"]
    asked = QuestionEntry.objects.filter(pk__in=[row[0] for row in rows]).order_by()
    shown = ("pk", "prices", "question_set__day", "question", "question__text")
    entries = {key: (prices, day, Asked(*of)) for key, prices, day, *of in asked.values_list(*shown)}
    options = QuestionOption.objects.filter(question__in=[entry[2].pk for entry in entries.values()]).order_by()
    happened = {(question, name): came for question, name, came in options.values_list("question", "name", "happened")}
    found = []
    for key, option, *said_of_it in rows:
        prices, day, question = entries[key]
        quoted = (prices.get(option) or {}).get("price")
        mine, theirs = _turned(said_of_it, first, pair)
        price = None if quoted is None else float(quoted)
        came = happened[question.pk, option]
        found.append(Disagreement(question, day, option, mine, theirs, price, came))
    return found


def _pair(first: Family, second: Family) -> Pair:
    low, high = sorted((first.pk, second.pk))
    return low, high


def _turned(of_both: Sequence[Any], first: Family, pair: Pair) -> Sequence[Any]:
    """What is kept of a pair, that of `first` first."""
    return of_both if first.pk == pair[0] else of_both[::-1]


def _kept(kind: str, pair: Pair, come: str) -> dict[str, Any] | None:
    """What is on record, if both are still where they were then."""
    found = Contrast.objects.filter(kind=kind, first=pair[0], second=pair[1], come=come).order_by()
    content: dict[str, Any] | None = next(iter(found.values_list("content", flat=True)), None)
    return content


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


def keep_opposed() -> int:
    """Keeps what is not on record of bets, for each pair of the line-up; returns of how many."""
    pairs = _pairs()
    moves = _moves({key for pair in pairs for key in pair})
    come = {pair: _how_far_moved(moves, pair) for pair in pairs}
    lacking = _lacking(Contrast.BETS, come)
    if not lacking:
        return 0
    staked = _staked({key for pair in lacking for key in pair})
    return _keep(Contrast.BETS, {pair: (come[pair], _against(*(staked[key] for key in pair))) for pair in lacking})


def keep_disagreements(arm: str) -> int:
    """Keeps what is not on record of an arm's newest forecasts, for each pair of the line-up; returns of how many."""
    pairs = _pairs()
    answered = _answered({key for pair in pairs for key in pair}, arm)
    come = {pair: _how_far_answered(answered, pair) for pair in pairs}
    lacking = _lacking(arm, come)
    if not lacking:
        return 0
    said, of_entry = _said(answered)
    made = {pair: {"rows": _apart(said[pair[0]], said[pair[1]], of_entry)} for pair in lacking}
    return _keep(arm, {pair: (come[pair], content) for pair, content in made.items()})


def _pairs() -> list[Pair]:
    """Those of external agents, of whom there may be many, are found as they are asked for."""
    return list(combinations(Family.objects.filter(external=False).order_by("pk").values_list("pk", flat=True), 2))


def _lacking(kind: str, come: Mapping[Pair, str]) -> list[Pair]:
    kept = Contrast.objects.filter(kind=kind).values_list("first", "second", "come")
    known = {(first, second): so_far for first, second, so_far in kept}
    return [pair for pair, so_far in come.items() if known.get(pair) != so_far]


def _keep(kind: str, made: Mapping[Pair, tuple[str, dict[str, Any]]]) -> int:
    rows = [
        Contrast(kind=kind, first_id=first, second_id=second, come=come, content=content)
        for (first, second), (come, content) in made.items()
    ]
    Contrast.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["kind", "first", "second"], update_fields=["come", "content"]
    )
    return len(rows)


# ── bets ──────────────────────────────────────────────────────────────────────────────────────────


def _moves(families: Iterable[int]) -> dict[int, int]:
    """Of each family that played, how many entries its agents' journals have: no trade is without one."""
    played = Agent.objects.filter(family__in=list(families)).order_by()
    return dict(played.values_list("family").annotate(entries=Sum("journal_length")))


def _how_far_moved(moves: Mapping[int, int], pair: Pair) -> str:
    return " ".join(str(number) for number in (FORM, *(moves.get(key, 0) for key in pair)))


def _staked(families: Iterable[int]) -> dict[int, dict[int, Stake]]:
    """Of each family, by market, what it put on the side that it put the most on: the first of those that got equal."""
    staked: dict[int, dict[int, Stake]] = {family: {} for family in families}
    bought = (
        Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=list(staked))
        .order_by()
        .values_list("agent__family", "market", "outcome")
        .annotate(amount=Sum("amount"))
    )
    for family, market, outcome, amount in bare(bought):
        amount_before, before = staked[family].get(market, NOTHING)
        if amount > amount_before or (amount == amount_before and outcome < before):
            staked[family][market] = (amount, outcome)
    return staked


def _against(mine: Mapping[int, Stake], theirs: Mapping[int, Stake]) -> dict[str, Any]:
    """On how many markets the two bought different sides, and each side with its stake where the most was at stake."""
    against = [market for market, stake in mine.items() if market in theirs and stake[1] != theirs[market][1]]
    against.sort(key=lambda market: (-min(mine[market][0], theirs[market][0]), market))
    unit = stored_unit(Trade, "amount")
    rows = [
        [market, *([outcome, str(amount * unit)] for amount, outcome in (mine[market], theirs[market]))]
        for market in against[:MOST]
    ]
    return {"number": len(against), "rows": rows}


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def _answered(families: Iterable[int], arm: str) -> dict[int, int]:
    """The sheets of the newest question sets that the families have answered, as elicitations with their family."""
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:SETS_LOOKED_AT]
    sheets = QuestionSheet.objects.filter(question_set__in=sets, arm=arm).order_by().values("pk")
    asked = Elicitation.objects.filter(sheet__in=sheets, family__in=list(families)).order_by()
    return dict(asked.filter(status=Elicitation.Status.COMPLETED).values_list("pk", "family"))


def _how_far_answered(answered: Mapping[int, int], pair: Pair) -> str:
    """Which sheets both have answered: what was stated on one is fixed."""
    sheets = sorted(elicitation for elicitation, family in answered.items() if family in pair)
    return sha256(repr((FORM, sheets)).encode()).hexdigest()


def _said(answered: Mapping[int, int]) -> tuple[dict[int, dict[int, Stated]], dict[int, int]]:
    """Of each family, by entry, what it stated last there; and which question each entry asks."""
    stated = Forecast.objects.filter(elicitation__in=list(answered)).order_by("pk")
    as_text = stated.annotate(text=Cast("probabilities", TextField()))
    texts: dict[int, dict[int, str]] = defaultdict(dict)
    of_entry: dict[int, int] = {}
    for elicitation, entry, question, text in bare(as_text.values_list("elicitation", "entry", "question", "text")):
        texts[answered[elicitation]][entry] = text
        of_entry[entry] = question
    said: dict[int, dict[int, Stated]] = defaultdict(dict)
    for family, by_entry in texts.items():
        # Decoded all at once: thousands of little documents, one by one, would be most of the time.
        said[family] = dict(zip(by_entry, json.loads(f"[{','.join(by_entry.values())}]"), strict=True))
    return said, of_entry


def _apart(mine: Mapping[int, Stated], theirs: Mapping[int, Stated], of_entry: Mapping[int, int]) -> list[Row]:
    """The entries of the widest gaps, each question once: entry, option, and what each said of it.

    Of equally wide ones the newest, and of its options the one that comes first.
    """
    gaps = [(_gap(mine[entry], theirs[entry]), entry) for entry in mine.keys() & theirs.keys()]
    widest: dict[int, tuple[float, int]] = {}
    for gap, entry in sorted(gaps, reverse=True):
        if len(widest) == MOST:
            break
        widest.setdefault(of_entry[entry], (gap, entry))
    options: dict[int, list[str]] = defaultdict(list)
    named = QuestionOption.objects.filter(question__in=list(widest)).order_by("index")
    for question, name in named.values_list("question", "name"):
        options[question].append(name)
    rows: list[Row] = []
    for question, (gap, entry) in widest.items():
        option = next(name for name in options[question] if _gap(mine[entry], theirs[entry], name) == gap)
        rows.append([entry, option, mine[entry].get(option, 0.0), theirs[entry].get(option, 0.0)])
    return rows


def _gap(mine: Stated, theirs: Stated, *options: str) -> float:
    """The widest difference between the two on some options, on all without any; binary fractions' dust left out."""
    named = options or mine.keys() | theirs.keys()
    return round(max([abs(mine.get(option, 0.0) - theirs.get(option, 0.0)) for option in named]), 9)
