"""Panels of stored forecasts, the input of every metric: one of the families, one of the reference forecasters.

A question of a panel is one entry: a question on the day it was asked, at that day's prices. A question asked on
several days counts once: each of a forecaster's k forecasts of it weighs 1/k. Resampling is by event.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from math import isnan, nan
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.letters import published
from agents.models import Elicitation, Family, Forecast
from arena_verifier.searches import UNSEEN
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes, spans
from forecast_rank.metrics.panel import Panel, Questions
from foundation.consistent_reads import consistent_reads
from markets.models import EvidenceSnippet, Question, QuestionBatch, QuestionEntry, QuestionOption
from markets.models.question import frozen_before_close
from scoring.constants import MARKET, REFERENCES, UNIFORM
from scoring.selectors.reference_forecasts import reference_vectors

Vector = Sequence[float]
"""Python's numbers, since numpy's are slower for the two or three options that most questions have."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Forecasts of one arm, under a methodology (empty: all), resolved by an instant and from one on (None: all)."""

    arm: str
    methodology: str = ""
    until: datetime | None = None
    since: datetime | None = None

    def elicitations(self) -> QuerySet[Elicitation]:
        """The published requests of the arm's forecasts, whatever has resolved."""
        tasks: QuerySet[Elicitation] = published(Elicitation.objects.filter(batch__arm=self.arm)).order_by()
        return tasks.filter(methodology__version=self.methodology) if self.methodology else tasks


@dataclass(frozen=True, slots=True)
class ResolvedEntry:
    """A resolved question on the day it was asked, with its prices and forecasts by family.

    options : those that are scored, without independent options whose market was cancelled
    happened : 1 for each option that happened, else 0
    quote, odds, no_odds : per option, NaN where there is no such price, or none at which a dollar could be bet
    asked_at : the day it was asked
    forecasts : a probability for each option in their order
    external_forecasts : those of external agents, which no ensemble includes
    frozen_at : the instant of its prices, in seconds since 1970
    batch : the question set, and the number of the batch in it that asked it
    releases : the id of the release behind each family's forecast
    """

    entry: int
    question: int
    event: str
    category: str
    exclusive: bool
    closed_at: float
    options: Sequence[str]
    happened: Vector
    quote: Vector
    odds: Vector
    no_odds: Vector
    asked_at: datetime | None = None
    forecasts: dict[str, Vector] = field(default_factory=dict)
    external_forecasts: dict[str, Vector] = field(default_factory=dict)
    frozen_at: float = nan
    batch: tuple[int, int] = (0, 0)
    releases: dict[str, int] = field(default_factory=dict)

    @property
    def days_ahead(self) -> float:
        """Days from the prices that the forecasts were asked at to the market's close; NaN where that is unknown."""
        return (self.closed_at - self.frozen_at) / 86_400


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


def resolved_entries(selection: Selection, *, without: Collection[str] = ()) -> list[ResolvedEntry]:
    """Every resolved question of the selection on each day it was asked in the arm, with its forecasts.

    `without` names categories to leave out.
    """
    entries = asked_and_resolved(selection).exclude(question__category__in=list(without))
    return entries_with_forecasts(entries, selection.arm)


def of_category(entries: Iterable[ResolvedEntry], category: str) -> list[ResolvedEntry]:
    """The entries of a category; all of them for an empty one."""
    return [entry for entry in entries if category in ("", entry.category)]


def entries_with_forecasts(entries: QuerySet[QuestionEntry], arm: str) -> list[ResolvedEntry]:
    """These entries by the day they were asked, with the forecasts of an arm that count."""
    forecasts = Forecast.objects.counted().filter(entry__in=entries.order_by().values("pk"), arm=arm)
    # Where two releases of a family answered the same batch, the newer one counts.
    forecasts = forecasts.order_by("release__effective_from", "release", "pk")
    columns = ("entry", "release", "family__slug", "family__external")
    with consistent_reads():  # a question that resolves meanwhile would be there in part
        by_id = entries_by_id(entries.order_by("question_set__day", "pk"))
        rows = list(forecasts.values_list(*columns, "probabilities"))
    for *key, probabilities in rows:
        (pk, release), (slug, external) = key[:2], key[2:]
        entry = by_id[pk]
        forecasts_of = entry.external_forecasts if external else entry.forecasts
        forecasts_of[slug] = forecast_vector(probabilities, entry.options)
        entry.releases[slug] = release
    return list(by_id.values())


def entries_by_id(entries: QuerySet[QuestionEntry]) -> dict[int, ResolvedEntry]:
    """These entries by id, in their order, without forecasts; of an open question all options count as not happened."""
    options = _options(entries.order_by().values("question"))
    columns = ("event_key", "category", "exclusive", "closed_at")
    freeze = ("question_set", "batch", "question_set__frozen_at", "question_set__day")
    names = ("pk", "question", *freeze, *(f"question__{name}" for name in columns))
    resolved = {}
    for row in entries.values_list(*names, "prices"):
        (pk, question), batch, frozen_at, asked_at, prices = row[:2], row[2:4], row[4], row[5], row[-1]
        fields = dict(zip(columns, row[6:-1], strict=True))
        entry = resolved_entry(pk, question, options[question], prices, **fields)
        resolved[pk] = replace(entry, batch=batch, frozen_at=frozen_at.timestamp(), asked_at=asked_at)
    return resolved


def asked_and_resolved(selection: Selection) -> QuerySet[QuestionEntry]:
    """The entries of resolved questions that count: asked in the arm, before the close, no evidence an outcome."""
    return _resolved(selection).filter(frozen_before_close()).exclude(_shown_outcome(selection.arm))


class Exclusions(NamedTuple):
    """Resolved questions whose evidence stated the outcome, and forecasts of others that do not count."""

    after_close: int
    """Questions of which a day was frozen at or after their close."""
    questions: int
    of_hosts: int
    """Forecasts that were shown a page of an excluded host."""
    unseen: int
    """Forecasts by searches of which no result is known."""


def left_out(selection: Selection, category: str = "") -> Exclusions:
    """What was asked in the selection's arm and does not count there; in one category if named."""
    of_category = Q(question__category=category) if category else Q()
    resolved = _resolved(selection).filter(of_category).order_by()
    number = partial(Count, "question", distinct=True)
    left = resolved.aggregate(
        after_close=number(filter=~frozen_before_close()), questions=number(filter=Q(_shown_outcome(selection.arm)))
    )
    entries = asked_and_resolved(selection).filter(of_category).order_by()
    excluded = Forecast.objects.filter(entry__in=entries.values("pk"), arm=selection.arm).exclude(excluded="")
    counts = excluded.aggregate(unseen=Count("pk", filter=Q(excluded=UNSEEN)), all=Count("pk"))
    return Exclusions(**left, of_hosts=counts["all"] - counts["unseen"], unseen=counts["unseen"])


def _shown_outcome(arm: str) -> Exists:
    """Whether a snippet of an entry states the outcome, and the arm's prompts showed it."""
    batches = QuestionBatch.objects.filter(
        question_set=OuterRef("entry__question_set"), number=OuterRef("entry__batch"), arm=arm
    ).exclude(evidence_block="")
    snippets = EvidenceSnippet.objects.filter(entry=OuterRef("pk"), states_outcome=True)
    return Exists(snippets.filter(Exists(batches)))


def _resolved(selection: Selection) -> QuerySet[QuestionEntry]:
    """The entries of resolved questions that were asked in the selection's arm."""
    batches = QuestionBatch.objects.filter(
        question_set=OuterRef("question_set"), number=OuterRef("batch"), arm=selection.arm
    )
    entries = QuestionEntry.objects.filter(Exists(batches), question__status=Question.Status.RESOLVED)
    if selection.methodology:
        entries = entries.filter(question_set__methodology=selection.methodology)
    if selection.until is not None:
        entries = entries.filter(question__resolved_at__lte=selection.until)
    if selection.since is not None:
        entries = entries.filter(question__resolved_at__gte=selection.since)
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
    columns = _entry_columns(entries)
    family_panel = _vector_panel(families, columns, [entry.forecasts for entry in entries])
    external_panel = _vector_panel(externals, columns, [entry.external_forecasts for entry in entries])
    return Panels(family_panel, _reference_panel(columns, family_panel), external_panel)


def joint_panel(entries: Sequence[ResolvedEntry], names: Collection[str]) -> Panel:
    """The panel of the named families and external agents together."""
    vectors = [entry.forecasts | entry.external_forecasts for entry in entries]
    return _vector_panel(names, _entry_columns(entries), vectors)


def joint_panel_with_lines(entries: Sequence[ResolvedEntry], names: Collection[str]) -> Panel:
    """The panel of the named families, external agents, market and uniform together."""
    vectors = []
    for entry in entries:
        size, quote = len(entry.options), np.asarray(entry.quote, dtype=np.float64)
        lines: dict[str, Vector] = {UNIFORM: [1 / size if entry.exclusive else 0.5] * size}
        if not np.isnan(quote).any():
            lines[MARKET] = (quote / quote.sum() if entry.exclusive else quote).tolist()
        vectors.append({**entry.forecasts, **entry.external_forecasts, **lines})
    return _vector_panel(names, _entry_columns(entries), vectors)


def single_forecasts_panel(rows: Sequence[tuple[ResolvedEntry, Vector]]) -> Panel:
    """A panel of one nameless forecaster with one question per row, for scores of single forecasts."""
    entries, vectors = [], []
    for entry, vector in rows:
        entries.append(entry)
        vectors.append({"": vector})
    return _vector_panel([""], _entry_columns(entries), vectors)


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
    asked_at: datetime | None = None,
) -> ResolvedEntry:
    """An entry with its prices in columns: the ask where there is one, else the mid; NaN where no bet can be made."""
    scored = scored_options(options)
    names = [name for name, _ in scored]
    quote, odds, no_odds = [], [], []
    for name in names:
        quotes = prices.get(name) or {}
        mid, ask, no_ask = (_number(quotes.get(key)) for key in ("price", "ask", "no_ask"))
        quote.append(mid)
        odds.append(_bettable(mid if isnan(ask) else ask))
        no_odds.append(_bettable(1 - mid if isnan(no_ask) else no_ask))
    if exclusive and not any(mid > 0 for mid in quote):
        quote = [nan] * len(names)  # nothing can be brought to a sum of 1
    return ResolvedEntry(
        entry=entry,
        question=question,
        event=event_key,
        category=category,
        exclusive=exclusive,
        closed_at=nan if closed_at is None else closed_at.timestamp(),
        options=names,
        happened=[float(bool(happened)) for _, happened in scored],
        quote=quote,
        odds=odds,
        no_odds=no_odds,
        asked_at=asked_at,
    )


def scored_options(options: Sequence[tuple[str, bool | None]]) -> Sequence[tuple[str, bool | None]]:
    """The options of a question that have an outcome; all of them while none has."""
    return [option for option in options if option[1] is not None] or options


def _options(questions: Any) -> dict[int, list[tuple[str, bool | None]]]:
    """The options of questions with what happened, in their order."""
    rows = QuestionOption.objects.filter(question__in=questions).order_by("question", "index")
    options: dict[int, list[tuple[str, bool | None]]] = defaultdict(list)
    for question, name, happened in rows.values_list("question", "name", "happened"):
        options[question].append((name, happened))
    return options


def _number(text: str | None) -> float:
    return nan if text is None else float(text)


def _bettable(odds: float) -> float:
    return odds if 0 < odds < 1 else nan


def forecast_vector(probabilities: Mapping[str, float], options: Sequence[str]) -> Vector:
    """A forecast's probabilities in the order of the options."""
    return [probabilities[name] for name in options]


class _EntryColumns(NamedTuple):
    """Entries in columns: the questions of a panel, the ids of what they ask, and the prices of all their options."""

    questions: Questions
    ids: Codes
    quote: Floats
    odds: Floats
    no_odds: Floats


def _entry_columns(entries: Sequence[ResolvedEntry]) -> _EntryColumns:
    def column(name: str) -> list[Any]:
        return list(map(attrgetter(name), entries))

    event, event_names = _codes(column("event"))
    category, category_names = _codes(column("category"))
    questions = Questions(
        offsets=np.cumsum([0, *map(len, column("options"))]),
        outcome=_joined(column("happened")),
        exclusive=np.array(column("exclusive"), dtype=bool),
        event=event,
        category=category,
        closed_at=np.array(column("closed_at"), dtype=np.float64),
        names=list(map(str, column("entry"))),
        option_names=list(chain.from_iterable(column("options"))),
        event_names=event_names,
        category_names=category_names,
    )
    ids = np.array(column("question"), dtype=np.int64)
    return _EntryColumns(questions, ids, _joined(column("quote")), _joined(column("odds")), _joined(column("no_odds")))


def _codes(names: Sequence[str]) -> tuple[Codes, list[str]]:
    """Codes by sorted name, as `forecast_rank` numbers the names of a file: the same sums and resamples."""
    sorted_names = sorted(set(names))
    place = {name: code for code, name in enumerate(sorted_names)}
    return np.array([place[name] for name in names], dtype=np.int64), sorted_names


def _vector_panel(names: Collection[str], columns: _EntryColumns, vectors: Sequence[Mapping[str, Vector]]) -> Panel:
    """The panel of the named forecasters' vectors, given by name for each entry."""
    forecasters: list[int] = []
    entries: list[int] = []
    probabilities: list[Vector] = []
    for j, vector_by_name in enumerate(vectors):
        for i, name in enumerate(names):
            if name in vector_by_name:
                forecasters.append(i)
                entries.append(j)
                probabilities.append(vector_by_name[name])
    forecaster, entry = np.array(forecasters, dtype=np.int64), np.array(entries, dtype=np.int64)
    return _panel(names, columns, forecaster, entry, _joined(probabilities))


def _reference_panel(columns: _EntryColumns, families: Panel) -> Panel:
    by_name = reference_vectors(families, columns.quote)
    vectors, questions = np.stack([by_name[name] for name in REFERENCES]), columns.questions
    entry, forecaster = np.nonzero(~np.isnan(vectors[:, questions.offsets[:-1]]).T)
    sizes = questions.sizes[entry]
    probability = vectors[np.repeat(forecaster, sizes), spans(questions.offsets[entry], sizes)]
    return _panel(REFERENCES, columns, forecaster, entry, probability)


def _panel(
    names: Collection[str], columns: _EntryColumns, forecaster: Codes, entry: Codes, probability: Floats
) -> Panel:
    """The panel of forecasts on entries, in the order of their entries, then their forecasters."""
    sizes = columns.questions.sizes[entry]
    cells = spans(columns.questions.offsets[entry], sizes)
    _, pair = distinct_codes(forecaster + len(names) * distinct_codes(columns.ids)[1][entry])
    return Panel(
        questions=columns.questions,
        forecasters=list(names),
        forecaster=forecaster,
        question=entry,
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        probability=probability,
        odds=columns.odds[cells],
        no_odds=columns.no_odds[cells],
        weight=1 / np.bincount(pair)[pair] if len(entry) else np.zeros(0),
        made_at=np.full(len(entry), np.nan),
        quote=columns.quote[cells],
    )


def _joined(vectors: Iterable[Vector]) -> Floats:
    return np.fromiter(chain.from_iterable(vectors), dtype=np.float64)
