"""A question with everything that was said of it, and one forecast with the prompt and the answer behind it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Elicitation, Family, Forecast, ModelCall, RefusedForecast, Trade
from agents.records import canonical
from agents.services.chain import task_record
from cohorts.forecasting import BLIND, PRICED
from markets.models import Market, Question, QuestionEntry, QuestionOption
from scoring.charts import Curve, LineChart, curve_of
from scoring.models import ForecastScore
from scoring.questions import option_prices, outcome_text, priced_options
from scoring.views.calls import latency_ms, said
from scoring.views.curves import Curves

ARMS = (PRICED, BLIND)
DAYS_SHOWN = 2
"""Days that are shown whole; the charts hold those before."""
DAYS_DRAWN = 30
BETS_SHOWN = 40
MARKET_COLOR = "#8a8f98"


@dataclass(frozen=True, slots=True)
class Stated:
    """What one family said of a question on a day, with what it came to."""

    forecast: Forecast
    score: ForecastScore | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A question on one day in one arm: who spoke, and by option the prices and what everybody said."""

    entry: QuestionEntry
    arm: str
    said: Sequence[Stated]
    rows: Sequence[tuple[QuestionOption, Mapping[str, Any], list[float | None]]]
    refused: Sequence[RefusedForecast]
    whole: bool
    """Of the latest day: reasons stand with it. Those of earlier days stand with their forecasts."""


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """One question: its options, prices and everybody's probabilities side by side, why, and how it ended."""
    options = priced_options().prefetch_related(Prefetch("outcome__market", Market.objects.only("question")))
    asked = get_object_or_404(
        Question.objects.select_related("market").prefetch_related(Prefetch("options", options), "difficulties"), pk=pk
    )
    entries = list(asked.entries.select_related("question_set", "twin").order_by("-question_set__day", "-pk"))
    shown = entries[:DAYS_SHOWN]
    return render(
        request,
        "scoring/question.html",
        {
            "question": asked,
            "outcome": outcome_text(asked),
            "options": option_prices(asked),
            "sheets": _sheets(asked, shown),
            "histories": _histories(asked, entries[:DAYS_DRAWN]),
            "days": len(entries),
            "days_shown": len(shown),
            "twin": next((entry.twin for entry in entries if entry.twin), None),
            "twin_of": _twin_of(asked),
            "difficulties": list(asked.difficulties.all()),
            "bets": _bets(asked),
        },
    )


def _sheets(asked: Question, entries: Sequence[QuestionEntry]) -> list[Sheet]:
    """The days and arms in which anything was said, or was said and refused; the latest day first."""
    by_sheet: dict[tuple[int, str], list[Forecast]] = defaultdict(list)
    of_days = Forecast.objects.filter(entry__in=[entry.pk for entry in entries]).defer("stated")
    for forecast in of_days.select_related("family", "release", "score").order_by("family", "pk"):
        by_sheet[forecast.entry_id, forecast.arm].append(forecast)
    refusals: dict[tuple[int, str], list[RefusedForecast]] = defaultdict(list)
    refused = RefusedForecast.objects.filter(entry__in=[entry.pk for entry in entries])
    for refusal in refused.select_related("call__elicitation__family", "call__elicitation__sheet").defer(
        "call__raw_response", "call__content", "call__elicitation__sheet__block"
    ):
        task = refusal.call.elicitation
        assert task is not None
        refusals[refusal.entry_id, task.sheet.arm].append(refusal)
    return [
        _sheet(asked, entry, arm, by_sheet[entry.pk, arm], refusals[entry.pk, arm], whole=entry == entries[0])
        for entry in entries
        for arm in ARMS
        if by_sheet[entry.pk, arm] or refusals[entry.pk, arm]
    ]


def _sheet(
    asked: Question,
    entry: QuestionEntry,
    arm: str,
    forecasts: Iterable[Forecast],
    refused: Sequence[RefusedForecast],
    *,
    whole: bool,
) -> Sheet:
    stated = [Stated(forecast, getattr(forecast, "score", None)) for forecast in forecasts]
    rows = [
        (
            option,
            entry.prices.get(option.name) or {},
            [each.forecast.probabilities.get(option.name) for each in stated],
        )
        for option in asked.options.all()
    ]
    return Sheet(entry, arm, stated, rows, refused, whole)


@dataclass(frozen=True, slots=True)
class History:
    """What everybody said of one option day by day in one arm, beside the market's price."""

    arm: str
    option: str
    chart: LineChart
    curves: Curves


def _histories(asked: Question, entries: Sequence[QuestionEntry]) -> list[History]:
    """A chart for each arm, of the first option of two, else of the one that happened or was the likeliest at last."""
    option = _drawn_option(asked, entries[0]) if entries else ""
    days = {entry.pk: entry.question_set.day for entry in reversed(entries)}
    stated: dict[str, dict[int, dict[datetime, float | None]]] = defaultdict(lambda: defaultdict(dict))
    rows = Forecast.objects.filter(entry__in=days).order_by("family", "pk")
    for entry, arm, family, probabilities in rows.values_list("entry", "arm", "family", "probabilities"):
        stated[arm][family][days[entry]] = probabilities.get(option)
    families = Family.objects.in_bulk({family for said in stated.values() for family in said})
    instants = sorted(set(days.values()))
    market = {entry.question_set.day: entry.price(option) for entry in reversed(entries)}
    histories = []
    for arm in ARMS:
        curves = Curves(
            instants,
            [
                Curve("Market", MARKET_COLOR, [market.get(day) for day in instants], dashed=True),
                *(
                    curve_of(families[family], [said.get(day) for day in instants])
                    for family, said in sorted(stated[arm].items())
                ),
            ],
            unit="share",
        )
        chart = curves.chart(height=300) if stated[arm] and len(instants) > 1 else None
        if chart:
            histories.append(History(arm, option, chart, curves))
    return histories


def _drawn_option(asked: Question, latest: QuestionEntry) -> str:
    options = list(asked.options.all())
    if len(options) == 2:
        return options[0].name
    happened = [option.name for option in options if option.happened]
    return happened[0] if happened else max(options, key=lambda o: (latest.price(o.name) or 0.0, -o.index)).name


def _twin_of(asked: Question) -> Question | None:
    """The question that was asked in place of this one, at the other venue."""
    entry = QuestionEntry.objects.filter(twin=asked).select_related("question").order_by("-pk").first()
    return entry.question if entry else None


def _bets(asked: Question) -> Sequence[Trade]:
    """The purchases on the markets that the question stands on, the latest first: bets beside words."""
    markets = Q(market__in=[option.outcome.market_id for option in asked.options.all() if option.outcome])
    trades = Trade.objects.filter(markets, kind=Trade.Kind.BUY).order_by("-executed_at", "-pk")
    return list(
        trades.select_related("agent__family", "agent__cohort", "outcome", "market").defer("market__description")[
            :BETS_SHOWN
        ]
    )


@require_safe
def forecast(request: HttpRequest, pk: int) -> HttpResponse:
    """One forecast: what was stated, what it scored, and the whole request that it is an answer to."""
    forecast = get_object_or_404(
        Forecast.objects.select_related("question", "family", "release", "entry__question_set", "score"), pk=pk
    )
    task = Elicitation.objects.with_costs().select_related(
        "sheet__question_set", "methodology", "release", "family", "link"
    )
    elicitation = task.get(pk=forecast.elicitation_id)
    refused = RefusedForecast.objects.select_related("entry__question").defer("entry__question__rules")
    calls: list[ModelCall] = list(
        elicitation.calls.order_by("sequence").prefetch_related(Prefetch("refused_forecasts", refused))
    )
    for call in calls:
        call.elicitation = elicitation
    link = getattr(elicitation, "link", None)
    prices = forecast.entry.prices
    return render(
        request,
        "scoring/forecast.html",
        {
            "forecast": forecast,
            "question": forecast.question,
            "family": forecast.family,
            "entry": forecast.entry,
            "elicitation": elicitation,
            "score": getattr(forecast, "score", None),
            "rows": [
                (option, prices.get(option.name) or {}, forecast.probabilities.get(option.name),
                 forecast.stated.get(option.name))
                for option in forecast.question.options.all()
            ],
            "calls": said(calls),
            "refused": [refusal for call in calls for refusal in call.refused_forecasts.all()],  # type: ignore[attr-defined]
            "beside": elicitation.forecasts.count() - 1,
            "latency_ms": latency_ms(calls),
            "link": link,
            "record": canonical(task_record(elicitation, next((c for c in calls if c.pk == link.call_id), None)))
            if link
            else None,
        },
    )  # fmt: skip
