"""The forecasts of a question day by day, beside the market's price."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from agents.models import Family
from arena_site.pages.charts.curves import Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from markets.models import Question, QuestionEntry
from scoring.selectors.competition import last_competition_index

MARKET_COLOR = "#8a8f98"
BINARY_SIDES = ("YES", "NO")


def forecast_histories(
    question: Question,
    entries: Sequence[QuestionEntry],
    forecasts: Sequence[Any],
    families: Mapping[int, Family],
    until: datetime | None = None,
) -> list[tuple[str, Figure]]:
    """The option that is drawn and its chart, for each arm with forecasts of several days; the latest entry first.

    `until` is the instant of a past chart, whose option is the one drawn then.
    """
    if not entries:
        return []
    option = _drawn_option(question, entries[0], until)
    days = {entry.pk: entry.question_set.day for entry in reversed(entries)}
    probabilities: dict[str, dict[int, dict[datetime, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for forecast in sorted(forecasts, key=attrgetter("pk")):
        probabilities[forecast.arm][forecast.family_id][days[forecast.entry_id]] = forecast.probabilities.get(option)
    instants = sorted(set(days.values()))
    prices = {entry.question_set.day: entry.price(option) for entry in reversed(entries)}
    market = Curve("Market", MARKET_COLOR, list(map(prices.get, instants)), dashed=True)
    drawn = option if option in BINARY_SIDES else "this option"
    histories = []
    conditions = last_competition_index().conditions
    for arm in conditions.names():
        curves = [market]
        for family, by_day in sorted(probabilities[arm].items()):
            curves.append(family_curve(families[family], list(map(by_day.get, instants))))
        if len(curves) == 1 or len(instants) == 1:
            continue
        y_title = f"Probability of {drawn} (%)"
        if chart := line_chart(instants, curves, y_title=y_title, height=340, unit="fraction"):
            title = f"Each model’s probability for {drawn}, by day, {conditions.label(arm)}."
            note = "The dashed line is the market’s price at the same time."
            histories.append((option, Figure(arm, title, chart, note, at=instants[-1])))
    return histories


def _drawn_option(question: Question, latest: QuestionEntry, until: datetime | None) -> str:
    """The first of two options; of more the one that happened, or else the one with the highest price."""
    options = list(question.options.all())
    if len(options) == 2:
        return options[0].name
    is_resolved = until is None or (question.resolved_at is not None and question.resolved_at <= until)
    for option in options:
        if option.happened and is_resolved:
            return option.name
    return max(options, key=lambda option: (latest.price(option.name) or 0.0, -option.index)).name
