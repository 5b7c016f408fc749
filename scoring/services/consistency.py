"""Consistency before resolution: the profit of risk-free portfolios against one model's forecasts of a day."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Q

from agents.models import Forecast
from forecast_rank import bounded_cluster_interval, brier
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import EventSums, bootstrap_means, percentile_interval, resample_counts
from foundation.bulk import rows_with_json
from markets.models import Market, QuestionEntry, QuestionOption
from markets.thresholds import nested_chains
from scoring.coherence import (
    exclusive_profit,
    nested_profit,
    pair_profits,
    repeated_profit,
    sum_profit,
)
from scoring.consistency import KINDS
from scoring.services.forecast_panels import ResolvedEntry, Selection, joint_panel

EXACT = 1e-9
"""Stated probabilities are decimals: a profit up to this is the noise of their sums."""
MINIMUM_EVENTS = 4
MINIMUM_MODELS = 4
"""Fewer models have no rank correlation."""
MOST_GROUPS = 2_000
"""More events than that are resampled in as many groups."""


class Option(NamedTuple):
    """An option of a question, and the side of a market that it is; no market for "None of these"."""

    name: str
    market: int | None
    side: str


@dataclass(slots=True)
class AskedQuestion:
    """A question as the checks see it: its event, its options, and whether exactly one of them happens."""

    pk: int
    event: str
    exclusive: bool
    options: list[Option] = field(default_factory=list)

    @property
    def is_list(self) -> bool:
        """True if its options are markets of their own."""
        return len({option.market for option in self.options if option.market is not None}) > 1

    @property
    def is_yes_no(self) -> bool:
        return [option.side for option in self.options] == ["YES", "NO"]


class EventMarkets(NamedTuple):
    """The title of an event, whether at most one of its markets happens, and the names of its markets' options."""

    title: str
    exclusive: bool
    names: Mapping[int, str]


@dataclass(slots=True)
class GroupProfit:
    """What one model's forecasts of one event and day lose to a portfolio.

    checks : kind and profit of each single relation that could be checked
    """

    questions: int
    profit: float
    checks: list[tuple[str, float]]

    @property
    def profit_per_question(self) -> float:
        """In dollars, at most 1."""
        return min(1.0, self.profit / self.questions) if self.questions else 0.0


Stated = Mapping[str, str]
Answers = Sequence[tuple[AskedQuestion, Stated]]


def consistency_figures(
    selection: Selection, families: Iterable[str], resolved: Sequence[ResolvedEntry] = ()
) -> dict[str, Any]:
    """The figures of each family's forecasts in the selection's arm, made by its instant, and their relation to Brier.

    forecasters : by family the number of forecasts, days and events, the mean profit per forecast with its interval,
        and for each kind of check the number of checks, of violations, and the mean profit of a check
    spearman : rank correlation of mean profit and Brier score on the `resolved` entries over the families
    """
    names = list(families)
    by_family: dict[str, list[tuple[str, GroupProfit]]] = defaultdict(list)
    days: dict[str, set[datetime]] = defaultdict(set)
    for family, day, event, group in group_profits(selection):
        by_family[family].append((event, group))
        days[family].add(day)
    rows = []
    for family in names:
        groups = by_family[family]
        if groups:
            rows.append({"family": family, "days": len(days[family]), **_family_figures(groups)})
    return {"forecasters": rows, "spearman": _relation_to_brier(names, by_family, resolved)}


def group_profits(selection: Selection) -> Iterator[tuple[str, datetime, str, GroupProfit]]:
    """Family, day, event and profit of the forecasts that count, by model, day and event."""
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, family__external=False)
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
    if selection.until is not None:
        forecasts = forecasts.filter(made_at__lte=selection.until)
    columns = ("family__slug", "entry__question_set__day", "question")
    rows = rows_with_json(forecasts.order_by("release__effective_from", "pk"), *columns, json_field="stated")
    questions = asked_questions({row[2] for row in rows})
    events = events_of(questions.values())
    answers: dict[tuple[str, datetime, str], dict[int, tuple[AskedQuestion, Stated]]] = defaultdict(dict)
    for family, day, question, stated in rows:
        asked = questions[question]
        answers[family, day, asked.event][question] = asked, stated
    for (family, day, event), group in answers.items():
        yield family, day, event, group_profit(list(group.values()), events[event])
    yield from _venue_profits(answers, questions)


def asked_questions(pks: Iterable[int]) -> dict[int, AskedQuestion]:
    """These questions with their options, by id."""
    columns = ("question", "question__event_key", "question__exclusive", "name", "outcome__market", "outcome__side")
    rows = QuestionOption.objects.filter(question__in=set(pks)).order_by("question", "index").values_list(*columns)
    questions: dict[int, AskedQuestion] = {}
    for pk, event, exclusive, *option in rows:
        question = questions.setdefault(pk, AskedQuestion(pk, event, exclusive))
        question.options.append(Option(*option))
    return questions


def events_of(questions: Iterable[AskedQuestion]) -> dict[str, EventMarkets]:
    """The events of these questions by their keys, with the markets that the questions name."""
    by_market: dict[int, str] = {}
    for question in questions:
        for option in question.options:
            if option.market is not None:
                by_market[option.market] = question.event
    names: dict[str, dict[int, str]] = defaultdict(dict)
    titles: dict[str, str] = defaultdict(str)
    exclusive: dict[str, bool] = defaultdict(bool)
    markets = Market.objects.filter(pk__in=by_market).order_by("pk")
    for pk, name, text, title, is_exclusive in markets.values_list(
        "pk", "option", "question", "event_title", "event_exclusive"
    ):
        key = by_market[pk]
        names[key][pk] = name or text
        titles[key] = title
        exclusive[key] |= bool(is_exclusive)
    keys = {question.event for question in questions}
    return {key: EventMarkets(titles[key], exclusive[key], names[key]) for key in keys}


def group_profit(answers: Answers, event: EventMarkets) -> GroupProfit:
    """The best risk-free portfolio against one model's forecasts of one event and day, and each relation by itself."""
    profit, checks = 0.0, []
    statements: dict[int | None, list[float]] = defaultdict(list)
    is_complete = False
    for question, stated in answers:
        vector = [float(stated[option.name]) for option in question.options]
        if question.exclusive:
            checks.append(("sum", sum_profit(vector)))
        if question.is_list or question.is_yes_no:
            is_complete |= question.is_list and question.exclusive
            for option, probability in zip(question.options, vector, strict=True):
                if option.side != "NO":
                    statements[option.market].append(probability)
        if not (question.is_list and question.exclusive):
            profit += sum_profit(vector) if question.exclusive else 0.0
    for market, values in statements.items():
        if market is not None and len(values) > 1:
            checks.append(("same", abs(values[0] - values[1])))
    if event.exclusive:
        if len(statements) > 1 and not is_complete:
            checks.append(("most", max(0.0, sum(values[0] for values in statements.values()) - 1)))
        profit += exclusive_profit(list(statements.values()), complete=is_complete)
    else:
        chained: set[int] = set()
        listed = {market: name for market, name in event.names.items() if market in statements}
        for chain in nested_chains(event.title, listed):
            chained |= set(chain)
            profit += nested_profit([statements[market] for market in chain])
            checks += [("nested", value) for value in pair_profits([statements[market] for market in chain])]
        profit += sum(repeated_profit(values) for market, values in statements.items() if market not in chained)
    return GroupProfit(len(answers), profit if profit > EXACT else 0.0, checks)


def _venue_profits(
    answers: Mapping[tuple[str, datetime, str], Mapping[int, tuple[AskedQuestion, Stated]]],
    questions: Mapping[int, AskedQuestion],
) -> Iterator[tuple[str, datetime, str, GroupProfit]]:
    """The profit from each pair of one question at two venues that one model answered on one day.

    A question set asks only one of a pair; both are answered on one day where two sets, of two methodologies or of
    traded markets, each ask one.
    """
    pairs = QuestionEntry.objects.filter(duplicate__isnull=False).order_by().values_list("question", "duplicate")
    by_day: dict[tuple[str, datetime], dict[int, Stated]] = defaultdict(dict)
    for (family, day, _), group in answers.items():
        by_day[family, day] |= {question: stated for question, (_, stated) in group.items()}
    for first, second in sorted(set(pairs.filter(Q(question__in=questions), Q(duplicate__in=questions)))):
        names = {option.name for option in questions[first].options} & {o.name for o in questions[second].options}
        for (family, day), stated in by_day.items():
            if names and first in stated and second in stated:
                gaps = [abs(float(stated[first][name]) - float(stated[second][name])) for name in sorted(names)]
                profit = max(gaps) if questions[first].is_yes_no else sum(gaps)
                yield family, day, questions[first].event, GroupProfit(0, profit, [("venues", profit)])


def _family_figures(groups: Sequence[tuple[str, GroupProfit]]) -> dict[str, Any]:
    forecasts = sum(group.questions for _, group in groups)
    values: list[float] = []
    events: list[str] = []
    profits: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for event, group in groups:
        values += [group.profit_per_question] * group.questions
        events += [event] * group.questions
        for kind, profit in group.checks:
            profits[kind].append(profit)
    interval = bounded_cluster_interval(values, events)
    checks = {}
    for kind, of_kind in profits.items():
        violations = sum(profit > EXACT for profit in of_kind)
        mean = sum(of_kind) / len(of_kind) if of_kind else None
        checks[kind] = {"checks": len(of_kind), "violations": violations, "profit": mean}
    return {
        "forecasts": forecasts,
        "events": len(set(events)),
        "profit": fmean(values),
        "profit_ci": interval and list(interval),
        "checks": checks,
    }


def _relation_to_brier(
    names: Sequence[str], by_family: Mapping[str, Sequence[tuple[str, GroupProfit]]], resolved: Sequence[ResolvedEntry]
) -> dict[str, Any]:
    """Spearman's rank correlation over the families, with the 95 % interval of resampled events."""
    panel = joint_panel(resolved, names)
    scores = brier(panel)
    places: dict[str, int] = {}
    for event in [*panel.questions.event_names, *(event for groups in by_family.values() for event, _ in groups)]:
        places.setdefault(event, len(places) % MOST_GROUPS)
    shape = len(names), min(max(len(places), 1), MOST_GROUPS)
    errors = EventSums(np.zeros(shape), np.zeros(shape))
    event_codes = np.array([places[event] for event in panel.questions.event_names], dtype=np.int64)
    if len(panel.question):
        cells = panel.forecaster, event_codes[panel.questions.event[panel.question]]
        np.add.at(errors.sums, cells, panel.weight * scores)
        np.add.at(errors.weights, cells, panel.weight)
    profits = EventSums(np.zeros(shape), np.zeros(shape))
    for row, name in enumerate(names):
        for event, group in by_family.get(name, ()):
            profits.sums[row, places[event]] += group.profit_per_question * group.questions
            profits.weights[row, places[event]] += group.questions
    present = (errors.weights.sum(axis=1) > 0) & (profits.weights.sum(axis=1) > 0)
    result: dict[str, Any] = {
        "value": None,
        "interval": None,
        "models": int(present.sum()),
        "events": len(panel.questions.event_names),
    }
    if present.sum() < MINIMUM_MODELS:
        return result
    value = _spearman(profits.means[None, present], errors.means[None, present])[0]
    if np.isfinite(value):
        result["value"] = float(value)
        if result["events"] >= MINIMUM_EVENTS:
            counts = resample_counts(shape[1])
            draws = _spearman(bootstrap_means(profits, counts)[:, present], bootstrap_means(errors, counts)[:, present])
            low, high = percentile_interval(draws[:, None])[0].tolist()
            result["interval"] = [low, high] if low < high else None
    return result


def _spearman(first: Floats, second: Floats) -> Floats:
    """Spearman's correlation of each row of two tables; NaN where one of them is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(np.nan_to_num(table), axis=1) for table in (first, second)]
    centred = [table - table.mean(axis=1, keepdims=True) for table in ranks]
    scale = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.divide((centred[0] * centred[1]).sum(axis=1), scale, out=np.full(len(scale), np.nan), where=scale > 0)
