"""Two families beside each other: cohort by cohort, and where they disagreed the most."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Sum, TextField
from django.db.models.functions import Cast

from agents.models import Family, Forecast, Trade
from cohorts.models import Cohort
from markets.fields import bare, stored_unit
from markets.models import Market, Question, QuestionEntry, QuestionOption, QuestionSet
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
    said, of_entry = _said(first, second, arm)
    both = {entry: (words[first.pk], words[second.pk]) for entry, words in said.items() if len(words) == 2}
    gaps = {entry: max(_gap(*words, option) for option in words[0]) for entry, words in both.items()}
    # The widest first; of equally wide ones the newest, and of its options the one that is named first.
    widest: dict[int, int] = {}
    for entry in sorted(gaps, key=lambda entry: (-gaps[entry], -entry)):
        if len(widest) == most:
            break
        widest.setdefault(of_entry[entry], entry)
    options: dict[int, dict[str, bool | None]] = defaultdict(dict)
    named = QuestionOption.objects.filter(question__in=list(widest)).order_by("index")
    for question, name, happened in named.values_list("question", "name", "happened"):
        options[question][name] = happened
    asked = QuestionEntry.objects.select_related("question", "question_set").defer("question__rules")
    entries = asked.in_bulk(list(widest.values()))
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


def _said(first: Family, second: Family, arm: str) -> tuple[dict[int, dict[int, Stated]], dict[int, int]]:
    """By entry of the newest question sets what each family stated last, and which question it asks."""
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:SETS_LOOKED_AT]
    stated = Forecast.objects.filter(family__in=[first, second], arm=arm, entry__question_set__in=list(sets))
    as_text = stated.order_by("pk").annotate(text=Cast("probabilities", TextField()))
    rows = list(as_text.values_list("entry", "question", "family", "text"))
    said: dict[int, dict[int, Stated]] = defaultdict(dict)
    of_entry: dict[int, int] = {}
    # Decoded all at once: thousands of little documents, one by one, would be most of the time.
    for (entry, question, family, _), probabilities in zip(rows, _decoded(text for *_, text in rows), strict=True):
        said[entry][family] = probabilities
        of_entry[entry] = question
    return said, of_entry


def _gap(mine: Stated, theirs: Stated, option: str) -> float:
    return round(abs(mine[option] - theirs.get(option, 0.0)), 9)


def _decoded(documents: Iterable[str]) -> list[Any]:
    """What each of many JSON documents says."""
    found: list[Any] = json.loads(f"[{','.join(documents)}]")
    return found


def opposed(first: Family, second: Family, *, most: int) -> tuple[list[Opposed], int]:
    """The markets on which they bought different sides with the most at stake, and on how many they did."""
    bought = (
        Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=[first, second])
        .order_by()
        .values_list("market", "agent__family", "outcome__side")
        .annotate(amount=Sum("amount"))
    )
    sides: dict[int, dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for market, family, side, amount in bare(bought):
        sides[market][family][side] = amount
    against = []
    for market, by_family in sides.items():
        if len(by_family) == 2:
            mine, theirs = (max(by_family[f.pk].items(), key=lambda item: item[1]) for f in (first, second))
            if mine[0] != theirs[0]:
                against.append((min(mine[1], theirs[1]), market, mine, theirs))
    against.sort(key=lambda row: (-row[0], row[1]))
    markets = Market.objects.select_related("winning_outcome").defer("description").in_bulk(
        [market for _, market, _, _ in against[:most]]
    )  # fmt: skip
    unit = stored_unit(Trade, "amount")
    rows = [
        Opposed(markets[market], mine[0], mine[1] * unit, theirs[0], theirs[1] * unit, markets[market].winning_side)
        for _, market, mine, theirs in against[:most]
    ]
    return rows, len(against)


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
