"""The models against the market: where they disagree on questions without an outcome, and who was closer before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Avg, Q, QuerySet

from agents.models import Forecast
from markets.models import Question, QuestionEntry, QuestionSet
from scoring.constants import DISAGREEMENT_BANDS, ENSEMBLE, MARKET, QUESTIONS_LISTED
from scoring.models import ForecastScore
from scoring.selectors.disagreements import RECENT_SETS
from scoring.selectors.forecast_boards import ForecastBoard, forecast_board

if TYPE_CHECKING:
    from scoring.services.forecast_panels import ResolvedEntry

UNRESOLVED = (Question.Status.OPEN, Question.Status.CLOSED)


class Kind(NamedTuple):
    """Resolved questions of one category on which a model disagreed with the market by a like width.

    model, market : on how many of them the model's, or the market's, mean Brier score was lower
    """

    questions: int
    model: int
    market: int


@dataclass(frozen=True, slots=True)
class MarketDisagreement:
    """The option of a question, and the day, on which a model and the market's price are furthest apart.

    ensemble : the mean of the models' probabilities; None of a resolved question
    lead : mean over `forecasts` days of the market's Brier score less the model's; None without an outcome
    kind : the resolved questions of its kind; None where there is none, or for a resolved question
    """

    question: int
    family: str
    category: str
    day: datetime | None
    option: str
    probability: float
    price: float
    ensemble: float | None = None
    kind: Kind | None = None
    happened: bool | None = None
    forecasts: int | None = None
    brier: float | None = None
    market_brier: float | None = None
    lead: float | None = None

    @property
    def gap(self) -> float:
        """The width of the difference, rounded to hide the error of binary fractions."""
        return round(abs(self.probability - self.price), 9)


@dataclass(frozen=True)
class MarketRecord:
    """The disagreements of one family, or of all, now or as of an instant; each part is read when it is first used.

    Of all, a question has the model that is furthest from the market, or that of its largest win or loss.
    """

    arm: str
    family: str = ""
    until: datetime | None = None

    @cached_property
    def widest(self) -> Sequence[MarketDisagreement]:
        """The disagreements without an outcome, widest first, without their kinds."""
        return _latest_disagreements(_unresolved_entries(self.until), self.arm, self.family)

    @cached_property
    def unresolved(self) -> Sequence[MarketDisagreement]:
        """The same with their kinds."""
        kinds = {(row["family"], row["category"], row["band"]): row for row in self._stored.get("kinds", [])}
        return [replace(row, kind=_kind(row, kinds)) for row in self.widest]

    @cached_property
    def wins(self) -> Sequence[MarketDisagreement]:
        """The largest wins on resolved questions."""
        return _largest_leads(self._resolved, sign=1)

    @cached_property
    def losses(self) -> Sequence[MarketDisagreement]:
        """The largest losses on resolved questions."""
        return _largest_leads(self._resolved[::-1], sign=-1)

    @property
    def at(self) -> datetime | None:
        """The instant of the leaderboard behind the resolved questions."""
        return self._board.computed_at

    @cached_property
    def _board(self) -> ForecastBoard:
        return forecast_board(arm=self.arm, at=self.until, parts=("against_market",))

    @property
    def _stored(self) -> Mapping[str, Any]:
        return self._board.report.get("against_market") or {}

    @cached_property
    def _resolved(self) -> list[MarketDisagreement]:
        """The largest disagreements of resolved questions, the largest win first."""
        rows = []
        for values in self._stored.get("largest", []):
            if self.family in ("", values["family"]):
                rows.append(MarketDisagreement(**values | {"day": datetime.fromisoformat(values["day"])}))
        return sorted(rows, key=lambda row: (-(row.lead or 0), row.question, row.family))


def _largest_leads(rows: Sequence[MarketDisagreement], *, sign: int) -> list[MarketDisagreement]:
    """The first row of each question, of those with a lead of this sign."""
    first: dict[int, MarketDisagreement] = {}
    for row in rows:
        first.setdefault(row.question, row)
    leads = [row for row in first.values() if sign * (row.lead or 0) > 0]
    return leads[:QUESTIONS_LISTED]


def question_disagreement(
    question: Question, days: Sequence[QuestionEntry], arm: str, *, at: datetime | None = None
) -> MarketDisagreement | None:
    """The model furthest from the market on the first of these days, the latest first, that has forecasts by `at`."""
    from scoring.services.forecast_panels import forecast_vector, resolved_entry

    forecasts = Forecast.objects.counted().filter(entry__in=days, arm=arm, family__external=False).order_by("pk")
    if at is not None:
        forecasts = forecasts.filter(made_at__lte=at)
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
    from scoring.services.forecast_panels import entries_with_forecasts

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

    from scoring.services.forecast_panels import panels
    from scoring.services.reference_forecasts import reference_vectors

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


def _unresolved_entries(at: datetime | None) -> QuerySet[QuestionEntry]:
    """The entries of the newest question sets whose question has no outcome yet, or had none by an instant."""
    sets = QuestionSet.objects.all() if at is None else QuestionSet.objects.filter(frozen_at__lte=at)
    newest = list(sets.order_by("-day", "-pk").values_list("pk", flat=True)[:RECENT_SETS])
    without_outcome = Q(question__status__in=UNRESOLVED)
    if at is not None:
        without_outcome |= Q(question__resolved_at__gt=at)
    return QuestionEntry.objects.filter(without_outcome, question_set__in=newest)


def _kind(row: MarketDisagreement, kinds: Mapping[tuple[str, str, int], Mapping[str, Any]]) -> Kind | None:
    """The resolved questions of a disagreement's kind."""
    band = sum(row.gap >= edge for edge in DISAGREEMENT_BANDS)
    counts = kinds.get((row.family, row.category, band))
    return None if counts is None else Kind(counts["questions"], counts["model"], counts["market"])
