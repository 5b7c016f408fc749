"""The models against the market: where they disagree on questions without an outcome, and how often each was closer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Avg, QuerySet

from agents.models import Forecast
from markets.models import Question, QuestionEntry, QuestionSet
from scoring.constants import ENSEMBLE, LEAST_COMPARED, MARKET
from scoring.models import ForecastScore
from scoring.selectors.disagreements import RECENT_SETS
from scoring.selectors.forecast_boards import forecast_board

if TYPE_CHECKING:
    from scoring.selectors.forecast_panels import ResolvedEntry

UNRESOLVED = (Question.Status.OPEN, Question.Status.CLOSED)


class Closeness(NamedTuple):
    """The resolved questions of a model at which the market had a price, and on how many of them it was closer.

    model, market : on how many the model's, or the market's, mean Brier score was lower
    """

    questions: int
    model: int
    market: int


@dataclass(frozen=True, slots=True)
class MarketDisagreement:
    """The option of an open question on which a model and the market's price are furthest apart.

    ensemble : the mean of the models' probabilities
    closeness : how often the model was closer than the market, where that is asked for and known
    """

    question: int
    family: str
    category: str
    day: datetime | None
    option: str
    probability: float
    price: float
    ensemble: float
    closeness: Closeness | None = None

    @property
    def gap(self) -> float:
        """The width of the difference, rounded to hide the error of binary fractions."""
        return round(abs(self.probability - self.price), 9)


def widest_disagreements(arm: str, family: str = "") -> Sequence[MarketDisagreement]:
    """The disagreements on questions without an outcome, widest first: of one family, or of the furthest on each."""
    return _latest_disagreements(_unresolved_entries(), arm, family)


def closeness(arm: str) -> dict[str, Closeness]:
    """How often each model was closer than the market, by slug; from LEAST_COMPARED questions on."""
    report = forecast_board(arm=arm, parts=("closer",)).report
    records = {}
    for slug, counts in (report.get("closer") or {}).items():
        if counts["questions"] >= LEAST_COMPARED:
            records[slug] = Closeness(**counts)
    return records


def question_disagreement(question: Question, days: Sequence[QuestionEntry], arm: str) -> MarketDisagreement | None:
    """The model furthest from the market on the first of these days, the latest first, that has forecasts."""
    from scoring.selectors.forecast_panels import forecast_vector, resolved_entry

    forecasts = Forecast.objects.counted().filter(entry__in=days, arm=arm, family__external=False).order_by("pk")
    by_day: dict[int, dict[str, Mapping[str, float]]] = defaultdict(dict)
    for day, family, probabilities in forecasts.values_list("entry", "family__slug", "probabilities"):
        by_day[day][family] = probabilities
    answered = next((day for day in days if day.pk in by_day), None)
    if answered is None:
        return None
    options = [(option.name, option.happened) for option in question.options.all()]
    entry = resolved_entry(
        answered.pk,
        question.pk,
        options,
        answered.prices,
        category=question.category,
        exclusive=question.exclusive,
        asked_at=answered.question_set.day,
    )
    for family, probabilities in by_day[answered.pk].items():
        if probabilities.keys() >= set(entry.options):
            entry.forecasts[family] = forecast_vector(probabilities, entry.options)
    if not entry.forecasts:
        return None
    return next(iter(_disagreements([entry])), None)


class QuestionScoreboard(NamedTuple):
    """How many models had a lower mean Brier score than the market on a resolved question, of how many."""

    better: int
    models: int


def scoreboard(question: Question, arm: str) -> QuestionScoreboard:
    """The models against the market on a resolved question, over the days on which both have a score."""
    forecasts = Forecast.objects.counted().filter(question=question, arm=arm, family__external=False)
    scores = ForecastScore.objects.filter(forecast__in=forecasts, market_brier__isnull=False).order_by()
    means = list(scores.values("forecast__family").annotate(own=Avg("brier"), market=Avg("market_brier")))
    return QuestionScoreboard(sum(row["own"] < row["market"] for row in means), len(means))


def _latest_disagreements(entries: QuerySet[QuestionEntry], arm: str, family: str) -> list[MarketDisagreement]:
    """The widest disagreement on the last answered day of each question among the entries, widest first."""
    from scoring.selectors.forecast_panels import entries_with_forecasts

    latest = {}
    for entry in entries_with_forecasts(entries, arm):
        if entry.forecasts:
            latest[entry.question] = entry
    return _disagreements(list(latest.values()), family) if latest else []


def _disagreements(entries: Sequence[ResolvedEntry], family: str = "") -> list[MarketDisagreement]:
    """Of each entry, which have forecasts, the model (or the family) furthest from the market, widest first.

    The market's probabilities and the ensemble are those of the boards (`reference_vectors`).
    """
    import numpy as np

    from scoring.selectors.forecast_panels import panels
    from scoring.selectors.reference_forecasts import reference_vectors

    families = sorted(set().union(*map(attrgetter("forecasts"), entries)))
    panel = panels(entries, families).families
    vectors = reference_vectors(panel, np.concatenate([entry.quote for entry in entries]))
    prices, ensemble = vectors[MARKET][panel.cell_option], vectors[ENSEMBLE][panel.cell_option]
    gaps = np.abs(panel.probability - prices).round(9)
    widest = panel.max_cells(gaps)
    questions = np.array([entry.question for entry in entries])[panel.question]
    rows: dict[int, MarketDisagreement] = {}
    for forecast in np.lexsort((panel.forecaster, questions, -widest)).tolist():
        entry, slug = entries[panel.question[forecast]], families[panel.forecaster[forecast]]
        if entry.question in rows or family not in ("", slug) or np.isnan(widest[forecast]):
            continue
        first = panel.offsets[forecast]
        option = int(np.argmax(gaps[first : panel.offsets[forecast + 1]]))
        rows[entry.question] = MarketDisagreement(
            question=entry.question,
            family=slug,
            category=entry.category,
            day=entry.asked_at,
            option=entry.options[option],
            probability=float(panel.probability[first + option]),
            price=float(prices[first + option]),
            ensemble=float(ensemble[first + option]),
        )
    return list(rows.values())


def _unresolved_entries() -> QuerySet[QuestionEntry]:
    """The entries of the newest question sets whose question has no outcome yet."""
    newest = list(QuestionSet.objects.order_by("-day", "-pk").values_list("pk", flat=True)[:RECENT_SETS])
    return QuestionEntry.objects.filter(question__status__in=UNRESOLVED, question_set__in=newest)
