"""Two families beside each other: cohort by cohort, and where they disagreed the most."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Sum, TextField
from django.db.models.functions import Cast

from agents.models import Elicitation, Family, Forecast, Trade
from cohorts.models import Cohort
from markets.fields import bare, stored_unit
from markets.models import Market, Outcome, Question, QuestionEntry, QuestionOption, QuestionSet, QuestionSheet
from scoring.metrics.pairs import paired_tests
from scoring.metrics.panel import from_arrays
from scoring.roster import roster

SETS_LOOKED_AT = 7
"""The newest question sets that disagreements are looked for in."""
POINTS = 5.0
"""The difference in return, in percentage points, that a comparison should be able to find."""


@dataclass(frozen=True, slots=True)
class ReturnTest:
    """The paired comparison of two families' returns on the cohorts that both played, in percentage points."""

    cohorts: int
    difference: float
    se: float | None
    p: float | None
    p_holm: float | None
    cohorts_more: float | None
    pairs: int


class Meeting(NamedTuple):
    """A cohort that both played, with what each made of it, in percent."""

    cohort: Cohort
    first_return: float
    second_return: float


Stated = Mapping[str, float]
"""The probability of each option that was named."""


Stake = tuple[Any, int]
"""An amount as the database gives it, and the key of the outcome that it was put on."""
NOTHING: Stake = (0, 0)


class Disagreement(NamedTuple):
    """An option of a question on a day, and what each said of it."""

    question: Question
    day: Any
    option: str
    first: float
    second: float
    price: float | None
    happened: bool | None

    @property
    def gap(self) -> float:
        return self.first - self.second


class Opposed(NamedTuple):
    """A market on which they bought different sides, with what each staked."""

    market: Market
    first_side: str
    first_amount: Any
    second_side: str
    second_amount: Any
    winner: str | None


def meetings(
    first: Family, second: Family, returns: Mapping[str, Mapping[str, float]]
) -> tuple[list[Meeting], ReturnTest | None]:
    """The cohorts that both played, newest first, and the test of their difference among all pairs of families.

    `returns` are those of the trading board: of each family's slug by the cohort's number, as JSON has it. Of external
    agents none but these two take part.
    """
    known = roster()
    apart = {family.slug for family in known.families.values() if family.external} - {first.slug, second.slug}
    families = [slug for slug in returns if slug not in apart]
    numbers = sorted({int(number) for slug in families for number in returns[slug]})
    mine, theirs = returns.get(first.slug, {}), returns.get(second.slug, {})
    both = sorted((int(number) for number in mine.keys() & theirs.keys()), reverse=True)
    if not both:
        return [], None
    cohorts = {cohort.number: cohort for cohort in known.cohorts.values()}
    found = [Meeting(cohorts[number], mine[str(number)], theirs[str(number)]) for number in both]
    table = np.array([[returns[slug].get(str(number), np.nan) for number in numbers] for slug in families])
    return found, _tested(table, families.index(first.slug), families.index(second.slug))


def _tested(returns: Any, first: int, second: int) -> ReturnTest:
    """Cohorts stand for questions: the same paired test as of scores, corrected for all pairs of families."""
    panel = from_arrays(np.where(np.isnan(returns), np.nan, 0.5)[:, :, None], np.zeros((returns.shape[1], 1)))
    tests = paired_tests(panel, returns[panel.forecaster, panel.question], difference=POINTS)
    low, high = sorted((first, second))
    row = int(np.flatnonzero((tests.first == low) & (tests.second == high))[0])
    sign = 1 if first == low else -1
    return ReturnTest(
        cohorts=int(tests.n[row]),
        difference=sign * float(tests.difference[row]),
        se=_known(tests.se[row]),
        p=_known(tests.p[row]),
        p_holm=_known(tests.p_holm[row]),
        cohorts_more=_known(tests.questions_more[row]),
        pairs=len(tests.n),
    )


def disagreements(first: Family, second: Family, arm: str, *, most: int) -> list[Disagreement]:
    """Where they stated the most different probabilities in the newest question sets, each question once."""
    both, of_entry = _said(first, second, arm)
    gaps = {entry: _gap(*words, *words[0]) for entry, words in both.items()}
    # The widest first; of equally wide ones the newest, and of its options the one that is named first.
    widest: dict[int, int] = {}
    for _, entry in sorted([(gap, entry) for entry, gap in gaps.items()], reverse=True):
        if len(widest) == most:
            break
        widest.setdefault(of_entry[entry], entry)
    options: dict[int, dict[str, bool | None]] = defaultdict(dict)
    named = QuestionOption.objects.filter(question__in=list(widest)).order_by("index")
    for question, name, happened in named.values_list("question", "name", "happened"):
        options[question][name] = happened
    asked = QuestionEntry.objects.select_related("question", "question_set")
    entries = asked.only("prices", "question__text", "question_set__day").in_bulk(list(widest.values()))
    found = []
    for question, entry in widest.items():
        mine, theirs = both[entry]
        option = next(name for name in options[question] if name in mine and _gap(mine, theirs, name) == gaps[entry])
        quoted = (entries[entry].prices.get(option) or {}).get("price")
        found.append(
            Disagreement(
                entries[entry].question,
                entries[entry].question_set.day,
                option,
                mine[option],
                theirs.get(option, 0.0),
                None if quoted is None else float(quoted),
                options[question][option],
            )
        )
    return found


def _said(first: Family, second: Family, arm: str) -> tuple[dict[int, tuple[Stated, Stated]], dict[int, int]]:
    """By entry of the newest question sets what the two stated last, where both did, and which question it asks."""
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:SETS_LOOKED_AT]
    sheets = QuestionSheet.objects.filter(question_set__in=sets, arm=arm).order_by().values_list("pk", flat=True)
    asked = Elicitation.objects.filter(sheet__in=list(sheets), family__in=[first, second]).order_by()
    by = dict(asked.values_list("pk", "family"))
    stated = Forecast.objects.filter(elicitation__in=list(by)).order_by("pk")
    as_text = stated.annotate(text=Cast("probabilities", TextField()))
    said: dict[int, dict[int, str]] = {first.pk: {}, second.pk: {}}
    of_entry: dict[int, int] = {}
    for elicitation, entry, question, text in bare(as_text.values_list("elicitation", "entry", "question", "text")):
        said[by[elicitation]][entry] = text
        of_entry[entry] = question
    mine, theirs = said[first.pk], said[second.pk]
    both = [entry for entry in mine if entry in theirs]
    # Decoded all at once: thousands of little documents, one by one, would be most of the time.
    words = [_decoded(of[entry] for entry in both) for of in (mine, theirs)]
    return dict(zip(both, zip(*words, strict=True), strict=True)), of_entry


def _gap(mine: Stated, theirs: Stated, *options: str) -> float:
    """The widest difference between the two on some options, without what is only of binary fractions."""
    return round(max([abs(mine[option] - theirs.get(option, 0.0)) for option in options]), 9)


def _decoded(documents: Iterable[str]) -> list[Any]:
    """What each of many JSON documents says."""
    found: list[Any] = json.loads(f"[{','.join(documents)}]")
    return found


def opposed(first: Family, second: Family, *, most: int) -> tuple[list[Opposed], int]:
    """The markets on which they bought different sides with the most at stake, and on how many they did."""
    mine, theirs = _staked(first, second)
    against = [market for market, stake in mine.items() if market in theirs and stake[1] != theirs[market][1]]
    against.sort(key=lambda market: (-min(mine[market][0], theirs[market][0]), market))
    named = against[:most]
    markets = Market.objects.only("question", "status", "winning_outcome").in_bulk(named)
    sides = dict(Outcome.objects.filter(market__in=named).values_list("pk", "side"))
    unit = stored_unit(Trade, "amount")
    found = []
    for key in named:
        (amount, outcome), (other_amount, other_outcome), market = mine[key], theirs[key], markets[key]
        bought = (sides[outcome], amount * unit, sides[other_outcome], other_amount * unit)
        winner = market.winning_outcome_id
        found.append(Opposed(market, *bought, None if winner is None else sides[winner]))
    return found, len(against)


def _staked(*families: Family) -> list[dict[int, Stake]]:
    """Of each family, by market, what it put on the side that it put the most on: the first of those that got equal."""
    bought = (
        Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=families)
        .order_by()
        .values_list("agent__family", "market", "outcome")
        .annotate(amount=Sum("amount"))
    )
    staked: dict[int, dict[int, Stake]] = {family.pk: {} for family in families}
    for family, market, outcome, amount in bare(bought):
        amount_before, before = staked[family].get(market, NOTHING)
        if amount > amount_before or (amount == amount_before and outcome < before):
            staked[family][market] = (amount, outcome)
    return list(staked.values())


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
