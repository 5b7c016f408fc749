"""Consistency before resolution, as a part of a report: risk-free profits against one model's forecasts of a day."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import starmap
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from agents.models import Forecast
from forecast_rank import bounded_cluster_interval, brier
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import EventSums, bootstrap_means, percentile_interval, resample_counts
from foundation.bulk import rows_with_json
from markets.models import Market, QuestionEntry, QuestionOption
from markets.thresholds import nested_chains
from scoring.selectors.coherence import (
    KINDS,
    exclusive_profit,
    nested_profit,
    pair_profits,
    repeated_profit,
    sum_profit,
)
from scoring.services.forecast_panels import ResolvedEntry, Selection, joint_panel

EXACT = 1e-9
"""Stated probabilities are decimals: a profit up to this is the noise of their sums."""
MINIMUM_EVENTS, MINIMUM_MODELS = 4, 4
"""Fewer events give no interval, fewer models no rank correlation."""
MOST_GROUPS = 2_000
"""More events than that are resampled in as many groups."""

Proposition = tuple[int | None, str]
"""A market and its side; none for "None of these"."""
Probabilities = Mapping[str, float | str]
"""By option, as they were stated: before any normalisation."""


class AskedOption(NamedTuple):
    """An option of a question, and the market and its side that it stands for; none for "None of these"."""

    question: int
    event: str
    exclusive: bool
    name: str
    market: int | None
    side: str | None


OPTION_COLUMNS = ("question", "question__event_key", "question__exclusive", "name", "outcome__market", "outcome__side")


class ListedMarket(NamedTuple):
    """A market as its venue lists it: the name of its option, its own question, and its event."""

    pk: int
    option: str
    question: str
    event_title: str
    event_exclusive: bool | None


class DailyForecast(NamedTuple):
    """The probabilities that a model stated of a question on a day."""

    family: str
    day: datetime
    question: int
    probabilities: Probabilities


@dataclass(slots=True)
class AskedQuestion:
    """A question as the checks see it: its event, and by option what it states. Equal questions state the same."""

    event: str
    exclusive: bool
    options: dict[str, Proposition] = field(default_factory=dict)

    @property
    def markets(self) -> set[int]:
        """The markets that its options name."""
        return {market for market, _ in self.options.values() if market is not None}

    @property
    def is_list(self) -> bool:
        """True if its options are markets of their own."""
        return len(self.markets) > 1

    @property
    def is_yes_no(self) -> bool:
        return [side for _, side in self.options.values()] == ["YES", "NO"]


class EventMarkets(NamedTuple):
    """An event's title, whether at most one of its markets happens, and the name of each market's option."""

    title: str
    exclusive: bool
    names: Mapping[int, str]


class GroupProfit(NamedTuple):
    """What a portfolio gains from one model's forecasts of one event and day, and from each relation by itself.

    profit : in dollars per question, at most 1
    checks : kind and profit of each relation
    """

    event: str
    day: datetime
    questions: int
    profit: float
    checks: Sequence[tuple[str, float]]


def consistency_report(
    resolved: Sequence[ResolvedEntry], families: Iterable[str], groups: Mapping[str, Sequence[GroupProfit]]
) -> dict[str, Any]:
    """The figures of each family's forecasts that count, resolved or not, and their relation to the Brier score.

    rows : by family, the most consistent first, the mean profit per question with its interval, and for each kind of
        check the number of checks, of violations, and the mean profit of a check
    spearman : rank correlation of mean profit and Brier score on the `resolved` entries over the families
    """
    names = list(families)
    rows = [{"family": name, **_family_figures(groups[name])} for name in names if name in groups]
    rows.sort(key=lambda row: (row["profit"], row["family"]))
    return {"rows": rows, "spearman": _relation_to_brier(names, groups, resolved)}


def stored_profits(selection: Selection) -> Mapping[str, Sequence[GroupProfit]]:
    """The profits by family, of each event and day, of the selection's forecasts that count."""
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, family__external=False)
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
    if selection.until is not None:
        forecasts = forecasts.filter(made_at__lte=selection.until)
    columns = ("pk", "family__slug", "entry__question_set__day", "question")
    rows = rows_with_json(forecasts.order_by("release__effective_from", "pk"), *columns, json_field="probabilities")
    before_scaling = dict(forecasts.filter(normalised=True).values_list("pk", "stated"))
    statements, pks = [], set()
    for pk, family, day, question, probabilities in rows:
        statements.append(DailyForecast(family, day, question, before_scaling.get(pk, probabilities)))
        pks.add(question)
    options = QuestionOption.objects.filter(question__in=pks).order_by("question", "index")
    pairs = QuestionEntry.objects.filter(question__in=pks, duplicate__in=pks).order_by()
    duplicates = pairs.values_list("question", "duplicate").distinct()
    questions = asked_questions(starmap(AskedOption, options.values_list(*OPTION_COLUMNS)), duplicates)
    markets = Market.objects.filter(pk__in=named_markets(questions.values()))
    listed = starmap(ListedMarket, markets.values_list(*ListedMarket._fields))
    return group_profits(statements, questions, event_markets(questions.values(), listed))


def group_profits(
    statements: Iterable[DailyForecast],
    questions: Mapping[int, AskedQuestion],
    events: Mapping[str, EventMarkets],
) -> Mapping[str, Sequence[GroupProfit]]:
    """The profits by family, of each event and day; of two forecasts of a day on a question the later one counts."""
    answers: dict[tuple[str, datetime, str], dict[int, Probabilities]] = defaultdict(dict)
    for forecast in statements:
        question = questions[forecast.question]
        if forecast.probabilities.keys() >= question.options.keys():
            answers[forecast.family, forecast.day, question.event][forecast.question] = forecast.probabilities
    groups: dict[str, list[GroupProfit]] = defaultdict(list)
    for (family, day, event), group in answers.items():
        pairs = [(questions[pk], probabilities) for pk, probabilities in group.items()]
        profit, checks = portfolio_profit(pairs, events[event])
        per_question = min(1.0, profit / len(pairs)) if profit > EXACT else 0.0
        groups[family].append(GroupProfit(event, day, len(pairs), per_question, checks))
    return groups


def asked_questions(options: Iterable[AskedOption], duplicates: Iterable[tuple[int, int]]) -> dict[int, AskedQuestion]:
    """Questions by id from their options in order. A duplicate at another venue states what that one states."""
    questions: dict[int, AskedQuestion] = {}
    for option in options:
        question = questions.setdefault(option.question, AskedQuestion(option.event, option.exclusive))
        question.options[option.name] = option.market, option.side or ""
    for original, duplicate in duplicates:
        if questions[duplicate].options.keys() <= questions[original].options.keys():
            questions[duplicate] = questions[original]
    return questions


def named_markets(questions: Iterable[AskedQuestion]) -> set[int]:
    """The markets that any of the questions names."""
    return set().union(*[question.markets for question in questions])


def event_markets(questions: Iterable[AskedQuestion], markets: Iterable[ListedMarket]) -> dict[str, EventMarkets]:
    """The events of these questions by their keys, with the markets that the questions name."""
    event_of: dict[int, str] = {}
    events: dict[str, EventMarkets] = {}
    for question in questions:
        event_of |= dict.fromkeys(question.markets, question.event)
        events[question.event] = EventMarkets("", False, {})
    for market in markets:
        before = events[event_of[market.pk]]
        names = {**before.names, market.pk: market.option or market.question}
        exclusive = before.exclusive or bool(market.event_exclusive)
        events[event_of[market.pk]] = EventMarkets(market.event_title, exclusive, names)
    return events


def portfolio_profit(
    answers: Sequence[tuple[AskedQuestion, Probabilities]], event: EventMarkets
) -> tuple[float, list[tuple[str, float]]]:
    """The profit in dollars of the best portfolio against forecasts of one event, and of each relation by itself."""
    profit, checks = 0.0, []
    statements: dict[int | None, list[float]] = defaultdict(list)
    is_complete = False
    for question, probabilities in answers:
        values = [float(probabilities[name]) for name in question.options]
        if question.exclusive:
            checks.append(("sums", sum_profit(values)))
        if question.is_list or question.is_yes_no:
            is_complete |= question.is_list and question.exclusive
            for (market, side), value in zip(question.options.values(), values, strict=True):
                if side != "NO":
                    statements[market].append(value)
        if question.exclusive and not question.is_list:
            profit += sum_profit(values)
    for market, values in statements.items():
        if market is not None and len(values) > 1:
            checks.append(("repeats", max(values) - min(values)))
    if event.exclusive:
        if len(statements) > 1 and not is_complete:
            checks.append(("exclusions", max(0.0, sum(values[0] for values in statements.values()) - 1)))
        return profit + exclusive_profit(list(statements.values()), complete=is_complete), checks
    for market_chain in nested_chains(event.title, {pk: name for pk, name in event.names.items() if pk in statements}):
        chain = [statements.pop(market) for market in market_chain]
        profit += nested_profit(chain)
        checks += [("thresholds", value) for value in pair_profits(chain)]
    return profit + sum(map(repeated_profit, statements.values())), checks


def _family_figures(groups: Sequence[GroupProfit]) -> dict[str, Any]:
    values: list[float] = []
    events: list[str] = []
    profits: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for group in groups:
        values += [group.profit] * group.questions
        events += [group.event] * group.questions
        for kind, profit in group.checks:
            profits[kind].append(profit)
    interval = bounded_cluster_interval(values, events)
    checks = {}
    for kind, of_kind in profits.items():
        violations = sum(profit > EXACT for profit in of_kind)
        checks[kind] = {"checks": len(of_kind), "violations": violations, "profit": fmean(of_kind) if of_kind else None}
    return {
        "forecasts": len(values),
        "days": len({group.day for group in groups}),
        "events": len(set(events)),
        "profit": fmean(values),
        "profit_ci": interval and list(interval),
        "checks": checks,
    }


def _relation_to_brier(
    names: Sequence[str], groups: Mapping[str, Sequence[GroupProfit]], resolved: Sequence[ResolvedEntry]
) -> dict[str, Any]:
    """Spearman's rank correlation over the families, with the 95 % interval of resampled events.

    There is none below four events that a profit was left on: nearly equal profits would be ranked by two or three.
    """
    panel = joint_panel(resolved, names)
    place: dict[str, int] = {}
    for event in [*panel.questions.event_names, *(group.event for name in names for group in groups.get(name, ()))]:
        place.setdefault(event, len(place) % MOST_GROUPS)
    shape = len(names), min(max(len(place), 1), MOST_GROUPS)
    profits, errors = (EventSums(np.zeros(shape), np.zeros(shape)) for _ in range(2))
    places = np.array([place[event] for event in panel.questions.event_names], dtype=np.int64)
    cells = panel.forecaster, places[panel.questions.event[panel.question]]
    np.add.at(errors.sums, cells, panel.weight * brier(panel))
    np.add.at(errors.weights, cells, panel.weight)
    for row, name in enumerate(names):
        for group in groups.get(name, ()):
            profits.sums[row, place[group.event]] += group.profit * group.questions
            profits.weights[row, place[group.event]] += group.questions
    has_both = (errors.weights.sum(axis=1) > 0) & (profits.weights.sum(axis=1) > 0)
    events = len(panel.questions.event_names)
    result: dict[str, Any] = {"value": None, "interval": None, "models": int(has_both.sum()), "events": events}
    if result["models"] < MINIMUM_MODELS:
        return result
    value = _spearman(profits.means[None, has_both], errors.means[None, has_both])[0]
    if np.isfinite(value):
        result["value"] = float(value)
        with_profit = int((profits.sums > 0).any(axis=0).sum())
        if min(events, with_profit) >= MINIMUM_EVENTS:
            counts = resample_counts(shape[1])
            draws = _spearman(
                bootstrap_means(profits, counts)[:, has_both], bootstrap_means(errors, counts)[:, has_both]
            )
            low, high = percentile_interval(draws[:, None])[0].tolist()
            result["interval"] = [low, high] if low < high else None
    return result


def _spearman(first: Floats, second: Floats) -> Floats:
    """Spearman's correlation of each row of two tables; NaN where one of them is constant."""
    from scipy.stats import rankdata

    centred = []
    for table in (first, second):
        ranks = rankdata(np.nan_to_num(table), axis=1)
        centred.append(ranks - ranks.mean(axis=1, keepdims=True))
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.divide((centred[0] * centred[1]).sum(axis=1), scale, out=np.full(len(scale), np.nan), where=scale > 0)
