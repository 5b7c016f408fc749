"""The list of questions, a question with its prices and forecasts, and a forecast with its prompt and answer."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.letters import published, sealed_freezes
from agents.models import Forecast, RefusedForecast, Trade
from arena_site.pages.charts.forecast_history import forecast_histories
from arena_site.pages.lists import Dates, Filter, ListColumn, ListPage, labels, stored_categories
from arena_site.pages.model_calls import task_context
from foundation.clock import now
from markets.models import EvidenceSnippet, Question, QuestionEntry, QuestionOption, QuestionSet
from markets.selectors.list_filters import matching_questions
from markets.selectors.option_prices import (
    OptionPrice,
    leading_option,
    priced_options,
    question_outcome_text,
    shown_option_prices,
)
from markets.sources.registry import source_choices
from scoring.selectors.competition import competition_index, last_competition_index
from scoring.selectors.market_disagreements import question_disagreement, scoreboard

DAYS_SHOWN = 2
"""Days shown in full; the charts include earlier ones."""
DAYS_DRAWN = 30
BETS_SHOWN = 40
ROWS_OPEN = 8
"""Options, and purchases, that stand on a question's page; where there are more, the others are folded away."""
RULES_OPEN = 600
"""Characters of a venue's rules; longer ones are folded away."""
REFUSAL_COLUMNS = ("entry_id", "call__elicitation__batch__arm", "call__elicitation__family_id", "reason")

SAMPLING_COLUMNS = ("samples_asked", "samples_read", "spread", "searches")
CHART_COLUMNS = ("pk", "entry_id", "arm", "family_id", "probabilities")
FORECAST_COLUMNS = (
    *(*CHART_COLUMNS, "normalised", "rationale", *SAMPLING_COLUMNS, "excluded"),
    *("release__model_id", "score__brier", "score__market_brier"),
)
TRADE_COLUMNS = (
    *("agent__family_id", "agent__cohort_id", "outcome__side", "market_id", "market__question"),
    *("decision_id", "executed_at", "price", "amount", "implied_confidence"),
)
FORECAST_PAGE_COLUMNS = (
    *("arm", "methodology", "probabilities", "stated", "normalised", "rationale", "made_at", "excluded"),
    *SAMPLING_COLUMNS,
    *("question__text", "question__status", "family", "release__model_id", "entry__prices", "score"),
    *("elicitation__declined", "elicitation__made_at", "elicitation__release", "elicitation__family"),
    *("elicitation__methodology__version", "elicitation__methodology__forecast", "elicitation__link"),
    *("elicitation__batch__arm", "elicitation__batch__number", "elicitation__batch__block"),
    *(f"elicitation__batch__question_set__{column}" for column in ("day", "part", "sha256")),
)

COLUMNS = (
    ListColumn("Question", "question", "text"),
    ListColumn("Market price", number=True),
    ListColumn("Status", "status", "status"),
    ListColumn("Asked", "asked", "first_asked_at", descending=True),
    ListColumn("Closes", "closes", "closes_at"),
    ListColumn("Resolved", "resolved", "resolved_at", descending=True),
    ListColumn("Forecasts", number=True),
)
ASKED, CLOSING = (
    Dates("Asked", "first_asked_at", "asked_from", "asked_to"),
    Dates("Closes", "closes_at", "closes_from", "closes_to"),
)


@require_safe
def questions(request: HttpRequest) -> HttpResponse:
    """Questions that models were asked, filtered by words in their text, status, category, venue, model and day."""
    competition = competition_index()
    listing = ListPage(
        request,
        COLUMNS,
        "-asked",
        [
            Filter("status", "Status", labels(Question.Status.values)),
            Filter("category", "Category", labels(stored_categories(Question.objects.all()))),
            Filter("source", "Venue", dict(source_choices())),
            Filter("model", "Forecast by", competition.names, "any model"),
        ],
        [ASKED, CLOSING],
    )
    selection = listing.selection
    rows = matching_questions(Question.objects.defer("rules"), selection["q"])
    rows = rows.filter(**selection.of("status", "category", "source"))
    if selection["model"]:
        forecasts = Forecast.objects.filter(question=OuterRef("pk"), family=competition.by_slug[selection["model"]])
        rows = rows.filter(Exists(forecasts.order_by()))
    page = listing.page(rows.prefetch_related(Prefetch("options", _options())))
    forecasts = Forecast.objects.filter(question__in=page.object_list).order_by()
    counts = dict(forecasts.values_list("question").annotate(Count("pk")))
    page_rows = []
    for question in page.object_list:
        outcome, number = question_outcome_text(question), counts.get(question.pk, 0)
        page_rows.append((question, leading_option(question), outcome, number))
    return render(request, "questions.html", {"page": page, "listing": listing, "rows": page_rows})


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """A question: its options, the prices and all forecasts side by side, and its outcome."""
    options = Prefetch("options", _options("outcome__market__question"))
    question = get_object_or_404(Question.objects.prefetch_related(options), pk=pk)
    entries = _entries(question)
    latest, earlier = entries[:DAYS_SHOWN], entries[DAYS_SHOWN:DAYS_DRAWN]
    forecasts = list(_forecasts(latest).values_list(*FORECAST_COLUMNS, named=True))
    before = list(_forecasts(earlier).values_list(*CHART_COLUMNS, named=True)) if earlier else []
    refused = published(RefusedForecast.objects.filter(entry__in=latest))
    refusals = list(refused.values_list(*REFUSAL_COLUMNS, named=True))
    bets = list(_bets(question).values_list(*TRADE_COLUMNS, named=True))
    competition = competition_index()  # read after the rows, so that it includes all their families
    drawn = entries[:DAYS_DRAWN]
    histories = forecast_histories(question, drawn, [*before, *forecasts], competition.families)
    return TemplateResponse(
        request,
        "question.html",
        {
            "question": question,
            "families": competition.families,
            "cohorts": competition.cohorts,
            "outcome": question_outcome_text(question),
            "options": _options_in_order(question),
            "scoreboard": _scoreboard(question, latest),
            "rows_open": ROWS_OPEN,
            "rules_open": RULES_OPEN,
            "cancelled_options": _has_cancelled_options(question),
            "question_days": _question_days(question, latest, forecasts, refusals),
            "snippets": _latest_snippets(latest),
            "histories": histories,
            "shared_figure": next((figure for _, figure in histories), None),
            "days": len(entries),
            "days_shown": len(latest),
            "difficulties": list(question.difficulties.all()),
            "bets": bets,
            "sealed_until": _sealed_until(latest),
        },
    )


def _scoreboard(question: Question, days: Sequence[QuestionEntry]) -> dict[str, Any] | None:
    """The model furthest from the market, and how many models did better than it; None without forecast and price."""
    conditions = last_competition_index().conditions
    arm = conditions.board()
    row = question_disagreement(question, days, arm)
    if row is None or question.status == Question.Status.CANCELLED:
        return None
    is_resolved = question.status == Question.Status.RESOLVED
    happened = next(option.happened for option in question.options.all() if option.name == row.option)
    return {
        "row": row,
        "name": last_competition_index().by_slug[row.family].display_name,
        "phrase": conditions.phrase(arm),
        "happened": happened,
        "counts": scoreboard(question, arm) if is_resolved and happened is not None else None,
    }


def _latest_snippets(entries: Sequence[QuestionEntry]) -> list[EvidenceSnippet]:
    """The evidence of the last of these days that has any."""
    with_evidence = [entry.pk for entry in entries if entry.question_set.evidence_sha256]
    if not with_evidence:
        return []
    by_entry: dict[int, list[EvidenceSnippet]] = defaultdict(list)
    for snippet in EvidenceSnippet.objects.filter(entry__in=with_evidence).order_by("position"):
        by_entry[snippet.entry_id].append(snippet)
    return next((by_entry[pk] for pk in with_evidence if pk in by_entry), [])


def _options_in_order(question: Question) -> list[OptionPrice]:
    """The options with their prices; of many the dearest first."""
    options = shown_option_prices(question)
    if len(options) > ROWS_OPEN:
        options.sort(key=lambda row: -1 if row.price is None else row.price, reverse=True)
    return options


def _has_cancelled_options(question: Question) -> bool:
    """Whether a resolved question has options without an outcome, because their markets were cancelled."""
    resolved = question.status == Question.Status.RESOLVED
    return resolved and any(option.happened is None for option in question.options.all())


def _sealed_until(entries: Sequence[QuestionEntry]) -> datetime | None:
    """The end of the last seal on the forecasts of these days."""
    sets = sealed_freezes(QuestionSet, now()).filter(pk__in=[entry.question_set_id for entry in entries])
    last: datetime | None = sets.aggregate(last=Max("sealed_until"))["last"]
    return last


def _options(*columns: str) -> QuerySet[QuestionOption]:
    """Options with their prices, the columns that name their markets' pages at the venue, and further `columns`."""
    addresses = (f"outcome__market__{column}" for column in ("source", "external_id", "slug"))
    return priced_options(*addresses, *columns).select_related("outcome__market")


def _entries(question: Question) -> list[QuestionEntry]:
    """The days on which the question was asked, the latest first."""
    return list(
        question.entries.select_related("question_set")
        .only("question", "prices", "reason", "question_set__day", "question_set__evidence_sha256")
        .order_by("-question_set__day", "-pk")
    )


def _forecasts(entries: Sequence[QuestionEntry]) -> QuerySet[Forecast]:
    return Forecast.objects.filter(entry__in=entries).order_by("family_id", "pk")


def _question_days(
    question: Question,
    entries: Sequence[QuestionEntry],
    forecasts: Sequence[Any],
    refusals: Sequence[Any],
) -> list[dict[str, Any]]:
    """The days and arms with forecasts or refused ones, the latest day first.

    Each has its forecasts, each option with its prices and probabilities, and the families whose forecast was refused.
    """
    by_day: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for forecast in forecasts:
        by_day[forecast.entry_id, forecast.arm].append(forecast)
    refused: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    for refusal in refusals:
        key = (refusal.entry_id, refusal.call__elicitation__batch__arm)
        refused[key].append((refusal.call__elicitation__family_id, refusal.reason))
    days = []
    for entry, arm in product(entries, last_competition_index().conditions.names()):
        key = (entry.pk, arm)
        if by_day[key] or refused[key]:
            day = {
                "entry": entry,
                "arm": arm,
                "forecasts": by_day[key],
                "rows": _option_rows(question, entry, by_day[key]),
                "refused": refused[key],
                "latest": entry is entries[0],
            }
            days.append(day)
    return days


def _option_rows(
    question: Question, entry: QuestionEntry, forecasts: Sequence[Any]
) -> list[tuple[QuestionOption, Any, list[float | None]]]:
    """Each option with its prices of a day and its probability in each forecast."""
    rows = []
    for option in question.options.all():
        probabilities = [forecast.probabilities.get(option.name) for forecast in forecasts]
        rows.append((option, entry.prices.get(option.name) or {}, probabilities))
    return rows


def _bets(question: Question) -> QuerySet[Trade]:
    """The latest purchases on the question's markets."""
    markets = [option.outcome.market_id for option in question.options.all() if option.outcome]
    bought = Trade.objects.filter(market__in=markets, kind=Trade.Kind.BUY)
    return bought.order_by("-executed_at", "-pk")[:BETS_SHOWN]


@require_safe
def forecast(request: HttpRequest, pk: int) -> HttpResponse:
    """A forecast: its probabilities, its score, and the model calls behind it."""
    task = "elicitation"
    joined = (f"{task}__methodology", f"{task}__batch__question_set", f"{task}__link")
    forecasts = Forecast.objects.select_related("question", "family", "release", "entry", "score", *joined)
    forecast = get_object_or_404(forecasts.only(*FORECAST_PAGE_COLUMNS), pk=pk)
    elicitation = forecast.elicitation
    elicitation.family, elicitation.release = forecast.family, forecast.release
    context = task_context(elicitation)
    calls, record = [call.pk for call, _ in context["calls"]], context["record"]
    refused = RefusedForecast.objects.filter(call__in=calls).order_by("call__sequence", "entry_id")
    batch_size = len(record["forecasts"]) if record else elicitation.forecasts.count()
    rows = []
    for option in forecast.question.options.all():
        prices = forecast.entry.prices.get(option.name) or {}
        probability, answer = forecast.probabilities.get(option.name), forecast.stated.get(option.name)
        rows.append((option, prices, probability, answer))
    return render(
        request,
        "forecast.html",
        {
            **context,
            "forecast": forecast,
            "question": forecast.question,
            "family": forecast.family,
            "day": elicitation.batch.question_set.day,
            "score": getattr(forecast, "score", None),
            "rows": rows,
            "refused": list(refused.values_list("entry__question_id", "entry__question__text", "reason")),
            "others_in_batch": batch_size - 1,
        },
    )  # fmt: skip
