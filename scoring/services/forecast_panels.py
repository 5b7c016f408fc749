"""Stored forecasts as panels, the one shape that every metric takes: the families', and the references' beside them.

A question of a panel is one entry: a question on the day it was asked, at that day's prices. A question asked on
several days counts once: each of a forecaster's k forecasts of it weighs 1/k. What resamples together is the event.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Elicitation, Family, Forecast
from markets.models import Question, QuestionEntry, QuestionOption, QuestionSheet
from scoring.metrics.panel import ENSEMBLE, MARKET, UNIFORM, Codes, Floats, Panel, Questions

ENSEMBLE_MEDIAN, ENSEMBLE_EXTREMISED = "ensemble_median", "ensemble_extremised"
REFERENCES = (MARKET, UNIFORM, ENSEMBLE, ENSEMBLE_MEDIAN, ENSEMBLE_EXTREMISED)
EXTREMISING = 1.5
"""By how much the log odds of the mean are multiplied: what each forecaster knows alone, the mean has watered down."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which forecasts: of one arm, under a methodology (empty: all), resolved by an instant (none: all)."""

    arm: str
    methodology: str = ""
    until: datetime | None = None


class Said(NamedTuple):
    """What one family said on an entry: the forecast's id and a probability for each option, in their order."""

    forecast: int
    vector: Floats


@dataclass(frozen=True, slots=True)
class AskedEntry:
    """A resolved question on the day it was asked: its options, what happened, the prices, and who said what.

    quote, odds, no_odds : per option, NaN where there is no such price, or none at which a dollar could be bet
    apart : what external agents said, which no ensemble takes up
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
    said: dict[str, Said] = field(default_factory=dict)
    apart: dict[str, Said] = field(default_factory=dict)


class Panels(NamedTuple):
    """The families' forecasts, the references' on the very same questions, and what the rows are.

    forecasts : (F,), ids of the forecasts in `families`
    entries : (Q,), ids of the entries
    """

    families: Panel
    references: Panel
    forecasts: list[int]
    entries: list[int]


def family_slugs(selection: Selection, *, external: bool = False) -> list[str]:
    """Who stands on the boards of a selection: every active family, and whoever was asked; or those from outside."""
    return list(on_board(selection).filter(external=external).order_by("pk").values_list("slug", flat=True))


def on_board(selection: Selection) -> QuerySet[Family]:
    """Everybody who stands on the boards of a selection."""
    asked = Elicitation.objects.filter(sheet__arm=selection.arm, family=OuterRef("pk"))
    if selection.methodology:
        asked = asked.filter(methodology__version=selection.methodology)
    return Family.objects.filter(Q(active=True) | Exists(asked.order_by()))


def asked_entries(selection: Selection) -> list[AskedEntry]:
    """Every resolved question of the selection on each day it was asked in the arm, with what families said."""
    sheets = QuestionSheet.objects.filter(
        question_set=OuterRef("question_set"), number=OuterRef("sheet"), arm=selection.arm
    )
    entries = QuestionEntry.objects.filter(Exists(sheets), question__status=Question.Status.RESOLVED)
    if selection.methodology:
        entries = entries.filter(question_set__methodology=selection.methodology)
    if selection.until is not None:
        entries = entries.filter(question__resolved_at__lte=selection.until)
    options = _options(entries.order_by().values("question"))
    asked = {
        pk: asked_entry(pk, question, options[question], prices, **about)
        for pk, question, prices, about in _columns(entries)
    }
    said = Forecast.objects.filter(entry__in=entries.order_by().values("pk"), arm=selection.arm)
    # Where two releases of a family answered the same sheet, the newer one speaks for it.
    rows = said.order_by("release__effective_from", "release", "pk")
    columns = ("pk", "entry", "family__slug", "family__external", "probabilities")
    for pk, entry, slug, external, probabilities in rows.values_list(*columns):
        where = asked[entry].apart if external else asked[entry].said
        where[slug] = Said(pk, _vector(probabilities, asked[entry].options))
    return list(asked.values())


def last_words(asked: Iterable[AskedEntry]) -> list[AskedEntry]:
    """Each question once, with the last that each family said of it: what is fitted takes a question for one item."""
    last: dict[int, AskedEntry] = {}
    for entry in asked:
        before = last.get(entry.question)
        said = (before.said if before else {}) | entry.said
        apart = (before.apart if before else {}) | entry.apart
        last[entry.question] = replace(entry, entry=entry.question, said=said, apart=apart)
    return list(last.values())


def panels(asked: Sequence[AskedEntry], families: Sequence[str]) -> Panels:
    """The panels of these entries; a family that said nothing is in them all the same."""
    questions = _questions(asked)
    times = Counter((slug, entry.question) for entry in asked for slug in entry.said)
    place = {slug: who for who, slug in enumerate(families)}
    own = [
        _Row(place[slug], j, said.vector, 1 / times[slug, entry.question], said.forecast)
        for j, entry in enumerate(asked)
        for slug, said in sorted(entry.said.items(), key=lambda item: place.get(item[0], -1))
        if slug in place
    ]
    spoken = [(who, j, vector) for j, entry in enumerate(asked) for who, vector in _reference_vectors(entry)]
    often = Counter((who, asked[j].question) for who, j, _ in spoken)
    guests = [_Row(who, j, vector, 1 / often[who, asked[j].question]) for who, j, vector in spoken]
    return Panels(
        _panel(families, own, asked, questions),
        _panel(REFERENCES, guests, asked, questions),
        [row.forecast for row in own],
        [entry.entry for entry in asked],
    )


def external_panel(asked: Sequence[AskedEntry], externals: Sequence[str]) -> Panel:
    """What external agents said of the same entries."""
    outside = [replace(entry, said=entry.apart) for entry in asked]
    return panels(outside, externals).families


def one_by_one(rows: Sequence[tuple[AskedEntry, Floats]]) -> Panel:
    """A panel of one nameless forecaster with a question of its own for each row: to score forecasts one by one."""
    asked = [entry for entry, _ in rows]
    return _panel([""], [_Row(0, j, vector) for j, (_, vector) in enumerate(rows)], asked, _questions(asked))


def combined(vectors: Sequence[Floats], *, exclusive: bool) -> tuple[Floats, Floats, Floats]:
    """What a crowd of vectors says: their mean, the median per option, and the mean extremised.

    The last two are brought to a sum of 1 where options are exclusive; a median of nothing but zeros gives the mean.

    Examples
    --------
    >>> crowd = [np.array([0.9, 0.1]), np.array([0.6, 0.4]), np.array([0.6, 0.4])]
    >>> [vector.round(4).tolist() for vector in combined(crowd, exclusive=True)]
    [[0.7, 0.3], [0.6, 0.4], [0.7809, 0.2191]]
    """
    table = np.stack(vectors)
    mean, median = table.mean(axis=0), np.median(table, axis=0)
    sure, unsure = mean**EXTREMISING, (1 - mean) ** EXTREMISING
    extremised = sure / (sure + unsure)
    if not exclusive:
        return mean, median, extremised
    return mean, median / median.sum() if median.sum() > 0 else mean, extremised / extremised.sum()


# ── from rows to arrays ───────────────────────────────────────────────────────────────────────────


class _Row(NamedTuple):
    forecaster: int
    question: int
    vector: Floats
    weight: float = 1.0
    forecast: int = 0


def asked_entry(
    entry: int,
    question: int,
    options: Sequence[tuple[str, bool | None]],
    prices: Mapping[str, Any],
    *,
    event: str = "",
    category: str = "",
    exclusive: bool = True,
    closed_at: datetime | None = None,
) -> AskedEntry:
    """An entry with its prices in columns: the ask where there is one, else the mid; NaN where no bet can be made."""
    names = [name for name, _ in options]
    quote, ask, no_ask = (
        np.array([_number(prices, name, key) for name in names]) for key in ("price", "ask", "no_ask")
    )
    odds, no_odds = (
        _bettable(np.where(np.isnan(ask), quote, ask)),
        _bettable(np.where(np.isnan(no_ask), 1 - quote, no_ask)),
    )
    if exclusive and not np.nansum(quote) > 0:
        quote = np.full(len(names), np.nan)  # nothing can be brought to a sum of 1
    return AskedEntry(
        entry=entry,
        question=question,
        event=event,
        category=category,
        exclusive=exclusive,
        closed_at=np.nan if closed_at is None else closed_at.timestamp(),
        options=names,
        happened=np.array([float(bool(happened)) for _, happened in options]),
        quote=quote,
        odds=odds,
        no_odds=no_odds,
    )


def _columns(entries: Any) -> Iterable[tuple[int, int, Any, dict[str, Any]]]:
    columns = {"event": "event_key", "category": "category", "exclusive": "exclusive", "closed_at": "closed_at"}
    paths = [f"question__{column}" for column in columns.values()]
    by_day = entries.order_by("question_set__day", "pk")
    for pk, question, prices, *about in by_day.values_list("pk", "question", "prices", *paths):
        yield pk, question, prices, dict(zip(columns, about, strict=True))


def _options(questions: Any) -> dict[int, list[tuple[str, bool | None]]]:
    """The options of questions with what happened, in their order."""
    rows = QuestionOption.objects.filter(question__in=questions).order_by("question", "index")
    options: dict[int, list[tuple[str, bool | None]]] = defaultdict(list)
    for question, name, happened in rows.values_list("question", "name", "happened"):
        options[question].append((name, happened))
    return options


def _number(prices: Mapping[str, Any], option: str, key: str) -> float:
    text = (prices.get(option) or {}).get(key)
    return np.nan if text is None else float(text)


def _bettable(odds: Floats) -> Floats:
    return np.where((odds > 0) & (odds < 1), odds, np.nan)


def _vector(probabilities: Mapping[str, float], options: Sequence[str]) -> Floats:
    return np.array([probabilities[name] for name in options], dtype=np.float64)


def _reference_vectors(entry: AskedEntry) -> Iterable[tuple[int, Floats]]:
    """What each reference that has something to say, says, by its place."""
    if not np.isnan(entry.quote).any():
        yield 0, entry.quote / entry.quote.sum() if entry.exclusive else entry.quote
    size = len(entry.options)
    yield 1, np.full(size, 1 / size if entry.exclusive else 0.5)
    if entry.said:
        yield from enumerate(combined([s.vector for s in entry.said.values()], exclusive=entry.exclusive), start=2)


def _codes(names: Iterable[str]) -> tuple[Codes, list[str]]:
    place: dict[str, int] = {}
    codes = [place.setdefault(name, len(place)) for name in names]
    return np.array(codes, dtype=np.int64), list(place)


def _questions(asked: Sequence[AskedEntry]) -> Questions:
    event, event_names = _codes(entry.event for entry in asked)
    category, category_names = _codes(entry.category for entry in asked)
    return Questions(
        offsets=_offsets([len(entry.options) for entry in asked]),
        outcome=_joined(entry.happened for entry in asked),
        exclusive=np.array([entry.exclusive for entry in asked], dtype=bool),
        event=event,
        category=category,
        closed_at=np.array([entry.closed_at for entry in asked], dtype=np.float64),
        names=[str(entry.entry) for entry in asked],
        option_names=[name for entry in asked for name in entry.options],
        event_names=event_names,
        category_names=category_names,
    )


def _panel(names: Sequence[str], rows: Sequence[_Row], asked: Sequence[AskedEntry], questions: Questions) -> Panel:
    """The panel of rows that are in the order of their questions, then their forecasters."""

    def seen(column: Callable[[AskedEntry], Floats]) -> Floats:
        return _joined(column(asked[row.question]) for row in rows)

    return Panel(
        questions=questions,
        forecasters=list(names),
        forecaster=np.array([row.forecaster for row in rows], dtype=np.int64),
        question=np.array([row.question for row in rows], dtype=np.int64),
        offsets=_offsets([len(row.vector) for row in rows]),
        probability=_joined(row.vector for row in rows),
        odds=seen(lambda entry: entry.odds),
        no_odds=seen(lambda entry: entry.no_odds),
        weight=np.array([row.weight for row in rows], dtype=np.float64),
        made_at=np.full(len(rows), np.nan),
        quote=seen(lambda entry: entry.quote),
    )


def _offsets(sizes: Sequence[int]) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def _joined(parts: Iterable[Floats]) -> Floats:
    columns = list(parts)
    return np.concatenate(columns) if columns else np.zeros(0)
