"""Two families beside each other: cohort by cohort, and where they disagreed the most."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, Q, Sum

from agents.models import Agent, Family, Forecast, Trade
from markets.models import Market, Question, QuestionEntry, QuestionOption, QuestionSet
from scoring.metrics.pairs import paired_tests
from scoring.metrics.panel import from_arrays
from scoring.valuations import valuations

SETS_LOOKED_AT = 14
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
    """A cohort that both played, with what each made of it."""

    cohort: Any
    first: Agent
    second: Agent
    first_return: float
    second_return: float


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


def meetings(first: Family, second: Family) -> tuple[list[Meeting], ReturnTest | None]:
    """The cohorts that both played, newest first, and the test of their difference among all pairs of families."""
    agents = list(
        Agent.objects.filter(Q(family__external=False) | Q(family__in=[first, second]))
        .select_related("family")
        .prefetch_related("cohort__methodology")
        .order_by("cohort__number", "family")
    )
    worth = valuations(agents)
    by_place = {(agent.family_id, agent.cohort.number): agent for agent in agents}
    numbers = sorted({agent.cohort.number for agent in agents})
    families = sorted({agent.family_id for agent in agents})
    both = [n for n in numbers if (first.pk, n) in by_place and (second.pk, n) in by_place]
    found = [
        Meeting(
            by_place[first.pk, n].cohort,
            by_place[first.pk, n],
            by_place[second.pk, n],
            worth[by_place[first.pk, n].pk].return_percent,
            worth[by_place[second.pk, n].pk].return_percent,
        )
        for n in reversed(both)
    ]
    returns = np.full((len(families), len(numbers)), np.nan)
    for agent in agents:
        place = families.index(agent.family_id), numbers.index(agent.cohort.number)
        returns[place] = worth[agent.pk].return_percent
    return found, _tested(returns, families.index(first.pk), families.index(second.pk)) if both else None


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
    sets = QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:SETS_LOOKED_AT]
    said: dict[int, dict[int, Mapping[str, float]]] = defaultdict(dict)
    of_entry: dict[int, int] = {}
    stated = Forecast.objects.filter(family__in=[first, second], arm=arm, entry__question_set__in=list(sets))
    columns = ("entry", "question", "family", "probabilities")
    for entry, question, family, probabilities in stated.order_by("pk").values_list(*columns):
        said[entry][family] = probabilities
        of_entry[entry] = question
    options = QuestionOption.objects.filter(question__in=set(of_entry.values()))
    places = {(question, name): index for question, name, index in options.values_list("question", "name", "index")}
    # The widest first; of equally wide ones the newest, and of its options the one that is named first.
    gaps = sorted(
        (-round(abs(stated - words[second.pk].get(option, 0.0)), 9), -entry, places[of_entry[entry], option], option)
        for entry, words in said.items()
        if len(words) == 2
        for option, stated in words[first.pk].items()
    )
    widest: dict[int, tuple[int, str]] = {}
    for _, entry, _, option in gaps:
        if len(widest) == most:
            break
        widest.setdefault(of_entry[-entry], (-entry, option))
    entries = QuestionEntry.objects.select_related("question", "question_set").defer("question__rules").in_bulk(
        [entry for entry, _ in widest.values()]
    )  # fmt: skip
    found: dict[int, Disagreement] = {}
    for question, (pk, option) in widest.items():
        asked = entries[pk]
        quoted = (asked.prices.get(option) or {}).get("price")
        mine, theirs = said[pk][first.pk][option], said[pk][second.pk].get(option, 0.0)
        price = None if quoted is None else float(quoted)
        found[question] = Disagreement(asked.question, asked.question_set.day, option, mine, theirs, price, None)
    return _ended(list(found.values()))


def _ended(found: Sequence[Disagreement]) -> list[Disagreement]:
    """With what happened, where that is known."""
    questions = Question.objects.filter(pk__in=[each.question.pk for each in found])
    happened = {(pk, name): h for pk, name, h in questions.values_list("pk", "options__name", "options__happened")}
    return [each._replace(happened=happened.get((each.question.pk, each.option))) for each in found]


def opposed(first: Family, second: Family, *, most: int) -> tuple[list[Opposed], int]:
    """The markets on which they bought different sides with the most at stake, and on how many they did."""
    bought = (
        Trade.objects.filter(kind=Trade.Kind.BUY, agent__family__in=[first, second])
        .order_by()
        .values_list("market", "agent__family", "outcome__side")
        .annotate(amount=Sum("amount"), number=Count("pk"))
    )
    sides: dict[int, dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for market, family, side, amount, _ in bought:
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
    rows = [
        Opposed(markets[market], *mine, *theirs, markets[market].winning_side)
        for _, market, mine, theirs in against[:most]
    ]
    return rows, len(against)


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
