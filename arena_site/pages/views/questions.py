"""A question with its prices and forecasts, and a forecast with its prompt and answer."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Family, Forecast, ModelCall, RefusedForecast, Trade
from agents.records import canonical
from agents.services.chain import task_record
from arena_site.pages.charts import Curve, LineChart, family_curve
from arena_site.pages.views.curves import CurveSet
from arena_site.pages.views.model_calls import usage_of, with_prompts
from markets.models import Question, QuestionEntry, QuestionOption
from markets.prompt_conditions import BLIND, PRICED
from markets.selectors.option_prices import option_prices, priced_options, question_outcome_text
from scoring.competition import CompetitionIndex, competition_index

ARMS = (PRICED, BLIND)
DAYS_SHOWN = 2
"""Days shown in full; the charts include earlier ones."""
DAYS_DRAWN = 30
BETS_SHOWN = 40
MARKET_COLOR = "#8a8f98"

CHART_COLUMNS = ("pk", "entry_id", "arm", "family_id", "probabilities")
FORECAST_COLUMNS = (
    *CHART_COLUMNS,
    "normalised",
    "rationale",
    "release__model_id",
    "score__brier",
    "score__market_brier",
)
TRADE_COLUMNS = (
    *("agent__family_id", "agent__cohort_id", "outcome__side", "market__question"),
    *("decision_id", "executed_at", "price", "amount", "implied_confidence"),
)
FORECAST_PAGE_COLUMNS = (
    *("arm", "methodology", "probabilities", "stated", "normalised", "rationale", "made_at"),
    *("question__text", "family", "release__model_id", "entry__prices", "score"),
    *("elicitation__declined", "elicitation__made_at", "elicitation__release", "elicitation__family"),
    *("elicitation__methodology__version", "elicitation__methodology__forecast", "elicitation__link"),
    *("elicitation__batch__arm", "elicitation__batch__number", "elicitation__batch__block"),
    *(f"elicitation__batch__question_set__{column}" for column in ("day", "part", "sha256")),
)


@dataclass(frozen=True, slots=True)
class ForecastOnDay:
    """A family's forecast on a day, with its score."""

    pk: int
    family: Family
    probabilities: Mapping[str, float]
    normalised: bool
    rationale: str
    model_id: str
    brier: float | None
    market_brier: float | None


@dataclass(frozen=True, slots=True)
class BetRow:
    """An agent's purchase on a market of the question."""

    family: Family
    cohort: int
    side: str
    market: str
    decision: int
    executed_at: datetime
    price: Decimal
    amount: Decimal
    implied_confidence: float | None


@dataclass(frozen=True, slots=True)
class QuestionDay:
    """A question on one day in one arm: its forecasts, and each option with its prices and probabilities."""

    entry: QuestionEntry
    arm: str
    forecasts: Sequence[ForecastOnDay]
    rows: Sequence[tuple[QuestionOption, Mapping[str, Any], list[float | None]]]
    refused: Sequence[tuple[Family, str]]
    """Families whose forecast was refused, with the reason."""
    latest: bool
    """Whether to show the rationales, which earlier days leave to the pages of their forecasts."""


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """A question: its options, the prices and all forecasts side by side, and its outcome."""
    options = priced_options("outcome__market__question").select_related("outcome__market")
    question = get_object_or_404(Question.objects.prefetch_related(Prefetch("options", options)), pk=pk)
    entries = list(
        question.entries.select_related("question_set", "duplicate")
        .only("question", "prices", "reason", "question_set__day", "duplicate__text")
        .order_by("-question_set__day", "-pk")
    )
    shown, earlier = entries[:DAYS_SHOWN], entries[DAYS_SHOWN:DAYS_DRAWN]
    forecasts = list(_forecasts(shown).values_list(*FORECAST_COLUMNS))
    before = list(_forecasts(earlier).values_list(*CHART_COLUMNS)) if earlier else []
    drawn = [*before, *(row[: len(CHART_COLUMNS)] for row in forecasts)]
    refused = _refused_forecasts(shown)
    bets = list(_bets(question).values_list(*TRADE_COLUMNS))
    known = competition_index()  # read after the rows, so that it includes all their families
    return render(
        request,
        "question.html",
        {
            "question": question,
            "outcome": question_outcome_text(question),
            "options": option_prices(question),
            "question_days": _question_days(question, shown, forecasts, refused, known),
            "histories": _histories(question, [*shown, *earlier], drawn, known.families),
            "days": len(entries),
            "days_shown": len(shown),
            "duplicate": next((entry.duplicate for entry in entries if entry.duplicate), None),
            "asked_instead": _asked_instead(question),
            "difficulties": list(question.difficulties.all()),
            "bets": [
                BetRow(known.families[family], known.cohorts[cohort].number, *bet) for family, cohort, *bet in bets
            ],
        },
    )


def _forecasts(entries: Sequence[QuestionEntry]) -> QuerySet[Forecast]:
    return Forecast.objects.filter(entry__in=[entry.pk for entry in entries]).order_by("family_id", "pk")


def _refused_forecasts(entries: Sequence[QuestionEntry]) -> list[tuple[int, str, int, str]]:
    """Entry, arm, family and reason of the refused forecasts."""
    refused = RefusedForecast.objects.filter(entry__in=[entry.pk for entry in entries])
    task = "call__elicitation"
    return list(refused.values_list("entry_id", f"{task}__batch__arm", f"{task}__family_id", "reason"))


def _question_days(
    question: Question,
    entries: Sequence[QuestionEntry],
    forecasts: Sequence[tuple[Any, ...]],
    refused: Sequence[tuple[int, str, int, str]],
    known: CompetitionIndex,
) -> list[QuestionDay]:
    """The days and arms with forecasts or refused ones, the latest day first."""
    rows: dict[tuple[int, str], list[ForecastOnDay]] = defaultdict(list)
    for pk, entry_id, arm, family, *columns in forecasts:
        rows[entry_id, arm].append(ForecastOnDay(pk, known.families[family], *columns))
    refusals: dict[tuple[int, str], list[tuple[Family, str]]] = defaultdict(list)
    for entry_id, arm, family, reason in refused:
        refusals[entry_id, arm].append((known.families[family], reason))
    return [
        QuestionDay(
            entry,
            arm,
            rows[entry.pk, arm],
            [
                (
                    option,
                    entry.prices.get(option.name) or {},
                    [forecast.probabilities.get(option.name) for forecast in rows[entry.pk, arm]],
                )
                for option in question.options.all()
            ],
            refusals[entry.pk, arm],
            latest=entry is entries[0],
        )
        for entry in entries
        for arm in ARMS
        if rows[entry.pk, arm] or refusals[entry.pk, arm]
    ]


@dataclass(frozen=True, slots=True)
class ForecastHistory:
    """The forecasts of one option day by day in one arm, with the market's price."""

    arm: str
    option: str
    chart: LineChart
    curves: CurveSet


def _histories(
    question: Question,
    entries: Sequence[QuestionEntry],
    forecasts: Sequence[tuple[Any, ...]],
    families: Mapping[int, Family],
) -> list[ForecastHistory]:
    """A chart for each arm."""
    option = _drawn_option(question, entries[0]) if entries else ""
    days = {entry.pk: entry.question_set.day for entry in reversed(entries)}
    stated: dict[str, dict[int, dict[datetime, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for _, entry, arm, family, probabilities in sorted(forecasts, key=itemgetter(0)):
        stated[arm][family][days[entry]] = probabilities.get(option)
    instants = sorted(set(days.values()))
    market = {entry.question_set.day: entry.price(option) for entry in reversed(entries)}
    histories = []
    for arm in ARMS:
        curves = CurveSet(
            instants,
            [
                Curve("Market", MARKET_COLOR, [market.get(day) for day in instants], dashed=True),
                *(
                    family_curve(families[family], [by_day.get(day) for day in instants])
                    for family, by_day in sorted(stated[arm].items())
                ),
            ],
            unit="fraction",
        )
        chart = curves.chart(height=300) if stated[arm] and len(instants) > 1 else None
        if chart:
            histories.append(ForecastHistory(arm, option, chart, curves))
    return histories


def _drawn_option(question: Question, latest: QuestionEntry) -> str:
    """The first of two options; of more the one that happened, or else the one with the highest price."""
    options = list(question.options.all())
    if len(options) == 2:
        return options[0].name
    happened = [option.name for option in options if option.happened]
    return happened[0] if happened else max(options, key=lambda o: (latest.price(o.name) or 0.0, -o.index)).name


def _asked_instead(question: Question) -> Question | None:
    """The duplicate at the other venue that was asked instead of this question."""
    return Question.objects.filter(entries__duplicate=question).order_by("-entries__pk").only("text").first()


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
    found = Forecast.objects.select_related("question", "family", "release", "entry", "score", *joined)
    forecast = get_object_or_404(found.only(*FORECAST_PAGE_COLUMNS), pk=pk)
    elicitation = forecast.elicitation
    elicitation.family, elicitation.release = forecast.family, forecast.release
    calls: list[ModelCall] = list(elicitation.calls.order_by("sequence"))
    for call in calls:
        call.elicitation = elicitation
    refused = RefusedForecast.objects.filter(call__in=[call.pk for call in calls]).order_by(
        "call__sequence", "entry_id"
    )
    link = getattr(elicitation, "link", None)
    record = task_record(elicitation, next((c for c in calls if c.pk == link.call_id), None)) if link else None
    batch_size = len(record["forecasts"]) if record else elicitation.forecasts.count()
    prices = forecast.entry.prices
    return render(
        request,
        "forecast.html",
        {
            "forecast": forecast,
            "question": forecast.question,
            "family": forecast.family,
            "day": elicitation.batch.question_set.day,
            "score": getattr(forecast, "score", None),
            "rows": [
                (option, prices.get(option.name) or {}, forecast.probabilities.get(option.name),
                 forecast.stated.get(option.name))
                for option in forecast.question.options.all()
            ],
            "calls": with_prompts(calls),
            "usage": usage_of(calls),
            "refused": list(refused.values_list("entry__question_id", "entry__question__text", "reason")),
            "others_in_batch": batch_size - 1,
            "link": link,
            "record": canonical(record) if record else None,
        },
    )  # fmt: skip
