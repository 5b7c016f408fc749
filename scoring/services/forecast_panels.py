"""Panels of stored forecasts, the input of every metric: one of the families, one of the reference forecasters.

A question of a panel is one entry: a question on the day it was asked, at that day's prices. A question asked on
several days counts once: each of a forecaster's k forecasts of it weighs 1/k. Resampling is by event.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet
from forecast_rank.metrics.panel import Codes, Floats, Panel, Questions, distinct_codes, spans

from agents.models import Elicitation, Family, Forecast
from markets.models import Question, QuestionBatch, QuestionEntry, QuestionOption
from scoring.constants import ENSEMBLE, ENSEMBLE_EXTREMISED, ENSEMBLE_MEDIAN, EXTREMISING, MARKET, REFERENCES, UNIFORM


@dataclass(frozen=True, slots=True)
class Selection:
    """Forecasts of one arm, under a methodology (empty: all), resolved by an instant (None: all)."""

    arm: str
    methodology: str = ""
    until: datetime | None = None

    def elicitations(self) -> QuerySet[Elicitation]:
        """The requests of the arm's forecasts, whatever has resolved."""
        tasks = Elicitation.objects.filter(batch__arm=self.arm).order_by()
        return tasks.filter(methodology__version=self.methodology) if self.methodology else tasks


@dataclass(frozen=True)
class ResolvedEntry:
    """A resolved question on the day it was asked, with its prices and forecasts by family.

    happened : 1 for each option that happened, else 0
    quote, odds, no_odds : per option, NaN where there is no such price, or none at which a dollar could be bet
    forecasts : a probability for each option in their order
    external_forecasts : those of external agents, which no ensemble includes
    """

    entry: int
    question: int
    event: str
    category: str
    exclusive: bool
    closed_at: float
    options: Sequence[str]
    happened: Floats
    quote: Floats
    odds: Floats
    no_odds: Floats
    forecasts: dict[str, Floats] = field(default_factory=dict)
    external_forecasts: dict[str, Floats] = field(default_factory=dict)

    @cached_property
    def references(self) -> dict[str, Floats]:
        """The vector of each reference with a forecast on the entry; read once all forecasts are there."""
        size = len(self.options)
        vectors = {UNIFORM: np.full(size, 1 / size if self.exclusive else 0.5)}
        if not np.isnan(self.quote).any():
            vectors[MARKET] = self.quote / self.quote.sum() if self.exclusive else self.quote
        if self.forecasts:
            combined = ensemble_vectors(list(self.forecasts.values()), exclusive=self.exclusive)
            vectors |= zip((ENSEMBLE, ENSEMBLE_MEDIAN, ENSEMBLE_EXTREMISED), combined, strict=True)
        return vectors


class Panels(NamedTuple):
    """The forecasts of families, of references and of external agents on the same questions."""

    families: Panel
    references: Panel
    externals: Panel


def family_names(selection: Selection, *, external: bool = False) -> dict[str, str]:
    """The display names of the families on the leaderboards of a selection, by slug: external agents or all others."""
    families = selection_families(selection).filter(external=external)
    return dict(families.order_by("pk").values_list("slug", "display_name"))


def selection_families(selection: Selection) -> QuerySet[Family]:
    """Active families, and those that were asked in the selection."""
    return Family.objects.filter(Q(active=True) | Exists(selection.elicitations().filter(family=OuterRef("pk"))))


def resolved_entries(selection: Selection) -> list[ResolvedEntry]:
    """Every resolved question of the selection on each day it was asked in the arm, with its forecasts."""
    entries = asked_and_resolved(selection)
    by_id = entries_by_id(entries.order_by("question_set__day", "pk"))
    forecasts = Forecast.objects.filter(entry__in=entries.order_by().values("pk"), arm=selection.arm)
    # Where two releases of a family answered the same batch, the newer one counts.
    rows = forecasts.order_by("release__effective_from", "release", "pk")
    columns = ("entry", "family__slug", "family__external", "probabilities")
    for pk, slug, external, probabilities in rows.values_list(*columns):
        entry = by_id[pk]
        forecasts_of = entry.external_forecasts if external else entry.forecasts
        forecasts_of[slug] = forecast_vector(probabilities, entry.options)
    return list(by_id.values())


def entries_by_id(entries: QuerySet[QuestionEntry]) -> dict[int, ResolvedEntry]:
    """These entries of resolved questions by id, in their order, without forecasts."""
    options = _options(entries.order_by().values("question"))
    columns = ("event_key", "category", "exclusive", "closed_at")
    rows = entries.values_list("pk", "question", "prices", *(f"question__{column}" for column in columns))
    return {
        pk: resolved_entry(pk, question, options[question], prices, **dict(zip(columns, question_columns, strict=True)))
        for pk, question, prices, *question_columns in rows
    }


def asked_and_resolved(selection: Selection) -> QuerySet[QuestionEntry]:
    """The entries of resolved questions that were asked in the selection's arm."""
    batches = QuestionBatch.objects.filter(
        question_set=OuterRef("question_set"), number=OuterRef("batch"), arm=selection.arm
    )
    entries = QuestionEntry.objects.filter(Exists(batches), question__status=Question.Status.RESOLVED)
    if selection.methodology:
        entries = entries.filter(question_set__methodology=selection.methodology)
    if selection.until is not None:
        entries = entries.filter(question__resolved_at__lte=selection.until)
    return entries


def last_forecasts(entries: Iterable[ResolvedEntry]) -> list[ResolvedEntry]:
    """Each question once, with the last forecast of each family: fitted models take a question as one item."""
    last: dict[int, ResolvedEntry] = {}
    for entry in entries:
        before = last.get(entry.question, entry)
        forecasts = before.forecasts | entry.forecasts
        external = before.external_forecasts | entry.external_forecasts
        last[entry.question] = replace(entry, entry=entry.question, forecasts=forecasts, external_forecasts=external)
    return list(last.values())


def panels(entries: Sequence[ResolvedEntry], families: Collection[str], externals: Collection[str] = ()) -> Panels:
    """The panels of these entries, with a row of each name even if it has no forecast."""
    questions = _questions(entries)

    def panel(names: Collection[str], vectors: Sequence[Mapping[str, Floats]]) -> Panel:
        rows = [(i, j, own[name]) for j, own in enumerate(vectors) for i, name in enumerate(names) if name in own]
        return _panel(names, rows, entries, questions)

    return Panels(
        panel(families, [entry.forecasts for entry in entries]),
        panel(REFERENCES, [entry.references for entry in entries]),
        panel(externals, [entry.external_forecasts for entry in entries]),
    )


def single_forecasts_panel(rows: Sequence[tuple[ResolvedEntry, Floats]]) -> Panel:
    """A panel of one nameless forecaster with one question per row, for scores of single forecasts."""
    entries = [entry for entry, _ in rows]
    return _panel([""], [(0, j, vector) for j, (_, vector) in enumerate(rows)], entries, _questions(entries))


def ensemble_vectors(vectors: Sequence[Floats], *, exclusive: bool) -> tuple[Floats, Floats, Floats]:
    """The mean of vectors, their median per option, and the extremised mean.

    Where options are exclusive, the last two are divided by their sums; a median of zeros gives the mean.

    Examples
    --------
    >>> crowd = [np.array([0.9, 0.1]), np.array([0.6, 0.4]), np.array([0.6, 0.4])]
    >>> [vector.round(4).tolist() for vector in ensemble_vectors(crowd, exclusive=True)]
    [[0.7, 0.3], [0.6, 0.4], [0.7809, 0.2191]]
    """
    table = np.sort(np.stack(vectors), axis=0)
    # Several times as fast as numpy's median on so few numbers.
    mean, median = table.mean(axis=0), (table[(len(table) - 1) // 2] + table[len(table) // 2]) / 2
    sure, unsure = mean**EXTREMISING, (1 - mean) ** EXTREMISING
    extremised = sure / (sure + unsure)
    if not exclusive:
        return mean, median, extremised
    return mean, median / median.sum() if median.sum() > 0 else mean, extremised / extremised.sum()


# ── from rows to arrays ───────────────────────────────────────────────────────────────────────────


def resolved_entry(
    entry: int,
    question: int,
    options: Sequence[tuple[str, bool | None]],
    prices: Mapping[str, Any],
    *,
    event_key: str = "",
    category: str = "",
    exclusive: bool = True,
    closed_at: datetime | None = None,
) -> ResolvedEntry:
    """An entry with its prices in columns: the ask where there is one, else the mid; NaN where no bet can be made."""
    names = [name for name, _ in options]
    quote, ask, no_ask = (
        np.array([float((prices.get(name) or {}).get(key) or "nan") for name in names])
        for key in ("price", "ask", "no_ask")
    )
    odds = _bettable(np.where(np.isnan(ask), quote, ask))
    no_odds = _bettable(np.where(np.isnan(no_ask), 1 - quote, no_ask))
    if exclusive and not np.nansum(quote) > 0:
        quote = np.full(len(names), np.nan)  # nothing can be brought to a sum of 1
    return ResolvedEntry(
        entry=entry,
        question=question,
        event=event_key,
        category=category,
        exclusive=exclusive,
        closed_at=np.nan if closed_at is None else closed_at.timestamp(),
        options=names,
        happened=np.array([float(bool(happened)) for _, happened in options]),
        quote=quote,
        odds=odds,
        no_odds=no_odds,
    )


def _options(questions: Any) -> dict[int, list[tuple[str, bool | None]]]:
    """The options of questions with what happened, in their order."""
    rows = QuestionOption.objects.filter(question__in=questions).order_by("question", "index")
    options: dict[int, list[tuple[str, bool | None]]] = defaultdict(list)
    for question, name, happened in rows.values_list("question", "name", "happened"):
        options[question].append((name, happened))
    return options


def _bettable(odds: Floats) -> Floats:
    return np.where((odds > 0) & (odds < 1), odds, np.nan)


def forecast_vector(probabilities: Mapping[str, float], options: Sequence[str]) -> Floats:
    """A forecast's probabilities in the order of the options."""
    return np.array([probabilities[name] for name in options], dtype=np.float64)


def _codes(names: Iterable[str]) -> tuple[Codes, list[str]]:
    place: dict[str, int] = {}
    codes = [place.setdefault(name, len(place)) for name in names]
    return np.array(codes, dtype=np.int64), list(place)


def _questions(entries: Sequence[ResolvedEntry]) -> Questions:
    event, event_names = _codes(entry.event for entry in entries)
    category, category_names = _codes(entry.category for entry in entries)
    return Questions(
        offsets=np.cumsum([0, *(len(entry.options) for entry in entries)]),
        outcome=_joined(entry.happened for entry in entries),
        exclusive=np.array([entry.exclusive for entry in entries], dtype=bool),
        event=event,
        category=category,
        closed_at=np.array([entry.closed_at for entry in entries], dtype=np.float64),
        names=[str(entry.entry) for entry in entries],
        option_names=[name for entry in entries for name in entry.options],
        event_names=event_names,
        category_names=category_names,
    )


def _panel(
    names: Collection[str],
    rows: Sequence[tuple[int, int, Floats]],
    entries: Sequence[ResolvedEntry],
    questions: Questions,
) -> Panel:
    """The panel of rows of (forecaster, entry, vector), in the order of their entries, then their forecasters."""
    forecaster = np.array([i for i, _, _ in rows], dtype=np.int64)
    entry = np.array([j for _, j, _ in rows], dtype=np.int64)
    sizes = questions.sizes[entry]
    cells = spans(questions.offsets[entry], sizes)
    asked = np.array([entry.question for entry in entries], dtype=np.int64)
    _, pair = distinct_codes(forecaster + len(names) * distinct_codes(asked)[1][entry])
    return Panel(
        questions=questions,
        forecasters=list(names),
        forecaster=forecaster,
        question=entry,
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        probability=_joined(vector for _, _, vector in rows),
        odds=_joined(entry.odds for entry in entries)[cells],
        no_odds=_joined(entry.no_odds for entry in entries)[cells],
        weight=1 / np.bincount(pair)[pair] if len(rows) else np.zeros(0),
        made_at=np.full(len(rows), np.nan),
        quote=_joined(entry.quote for entry in entries)[cells],
    )


def _joined(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])
