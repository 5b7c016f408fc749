"""A question with everything that was said of it, and one forecast with the prompt and the answer behind it."""

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
from cohorts.forecasting import BLIND, PRICED
from markets.models import Question, QuestionEntry, QuestionOption
from scoring.charts import Curve, LineChart, curve_of
from scoring.questions import option_prices, outcome_text, priced_options
from scoring.roster import Roster, roster
from scoring.views.calls import latency_ms, said, spent
from scoring.views.curves import Curves

ARMS = (PRICED, BLIND)
DAYS_SHOWN = 2
"""Days that are shown whole; the charts hold those before."""
DAYS_DRAWN = 30
BETS_SHOWN = 40
MARKET_COLOR = "#8a8f98"


# What the pages take of rows that join many tables, column by column: whole rows would be most of a page's time.
DRAWN = ("pk", "entry_id", "arm", "family_id", "probabilities")
SAID = (*DRAWN, "normalised", "rationale", "release__model_id", "score__brier", "score__market_brier")
BET = (
    *("agent__family_id", "agent__cohort_id", "outcome__side", "market__question"),
    *("decision_id", "executed_at", "price", "amount", "implied_confidence"),
)
TOLD = (
    *("arm", "methodology", "probabilities", "stated", "normalised", "rationale", "made_at"),
    *("question__text", "family", "release__model_id", "entry__prices", "score"),
    *("elicitation__declined", "elicitation__made_at", "elicitation__release", "elicitation__family"),
    *("elicitation__methodology__version", "elicitation__methodology__forecast", "elicitation__link"),
    *("elicitation__sheet__arm", "elicitation__sheet__number", "elicitation__sheet__block"),
    *(f"elicitation__sheet__question_set__{column}" for column in ("day", "part", "sha256")),
)


@dataclass(frozen=True, slots=True)
class Stated:
    """What one family said of a question on a day, with what it came to."""

    pk: int
    family: Family
    probabilities: Mapping[str, float]
    normalised: bool
    rationale: str
    model_id: str
    brier: float | None
    market_brier: float | None


@dataclass(frozen=True, slots=True)
class Bet:
    """A purchase of an agent on a market that the question stands on."""

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
class Sheet:
    """A question on one day in one arm: who spoke, and by option the prices and what everybody said."""

    entry: QuestionEntry
    arm: str
    said: Sequence[Stated]
    rows: Sequence[tuple[QuestionOption, Mapping[str, Any], list[float | None]]]
    refused: Sequence[tuple[Family, str]]
    """Whose forecast was not taken, and why."""
    whole: bool
    """Of the latest day: reasons stand with it. Those of earlier days stand with their forecasts."""


@require_safe
def question(request: HttpRequest, pk: int) -> HttpResponse:
    """One question: its options, prices and everybody's probabilities side by side, why, and how it ended."""
    options = priced_options("outcome__market__question").select_related("outcome__market")
    asked = get_object_or_404(Question.objects.prefetch_related(Prefetch("options", options)), pk=pk)
    entries = list(
        asked.entries.select_related("question_set", "twin")
        .only("question", "prices", "reason", "question_set__day", "twin__text")
        .order_by("-question_set__day", "-pk")
    )
    shown, earlier = entries[:DAYS_SHOWN], entries[DAYS_SHOWN:DAYS_DRAWN]
    spoken = list(_forecasts(shown).values_list(*SAID))
    before = list(_forecasts(earlier).values_list(*DRAWN)) if earlier else []
    drawn = [*before, *(row[: len(DRAWN)] for row in spoken)]
    refused = _refused(shown)
    bets = list(_bets(asked).values_list(*BET))
    known = roster()  # read after the rows: so it knows all whom they name
    return render(
        request,
        "scoring/question.html",
        {
            "question": asked,
            "outcome": outcome_text(asked),
            "options": option_prices(asked),
            "sheets": _sheets(asked, shown, spoken, refused, known),
            "histories": _histories(asked, [*shown, *earlier], drawn, known.families),
            "days": len(entries),
            "days_shown": len(shown),
            "twin": next((entry.twin for entry in entries if entry.twin), None),
            "twin_of": _twin_of(asked),
            "difficulties": list(asked.difficulties.all()),
            "bets": [Bet(known.families[family], known.cohorts[cohort].number, *bet) for family, cohort, *bet in bets],
        },
    )


def _forecasts(entries: Sequence[QuestionEntry]) -> QuerySet[Forecast]:
    return Forecast.objects.filter(entry__in=[entry.pk for entry in entries]).order_by("family_id", "pk")


def _refused(entries: Sequence[QuestionEntry]) -> list[tuple[int, str, int, str]]:
    """What was refused of these days, with its entry, its arm and its family."""
    refused = RefusedForecast.objects.filter(entry__in=[entry.pk for entry in entries])
    task = "call__elicitation"
    return list(refused.values_list("entry_id", f"{task}__sheet__arm", f"{task}__family_id", "reason"))


def _sheets(
    asked: Question,
    entries: Sequence[QuestionEntry],
    spoken: Sequence[tuple[Any, ...]],
    refused: Sequence[tuple[int, str, int, str]],
    known: Roster,
) -> list[Sheet]:
    """The days and arms in which anything was said, or was said and refused; the latest day first."""
    by_sheet: dict[tuple[int, str], list[Stated]] = defaultdict(list)
    for pk, entry_id, arm, family, *stated in spoken:
        by_sheet[entry_id, arm].append(Stated(pk, known.families[family], *stated))
    refusals: dict[tuple[int, str], list[tuple[Family, str]]] = defaultdict(list)
    for entry_id, arm, family, reason in refused:
        refusals[entry_id, arm].append((known.families[family], reason))
    return [
        _sheet(asked, entry, arm, by_sheet[entry.pk, arm], refusals[entry.pk, arm], whole=entry is entries[0])
        for entry in entries
        for arm in ARMS
        if by_sheet[entry.pk, arm] or refusals[entry.pk, arm]
    ]


def _sheet(
    asked: Question,
    entry: QuestionEntry,
    arm: str,
    stated: Sequence[Stated],
    refused: Sequence[tuple[Family, str]],
    *,
    whole: bool,
) -> Sheet:
    rows = [
        (option, entry.prices.get(option.name) or {}, [each.probabilities.get(option.name) for each in stated])
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


def _histories(
    asked: Question,
    entries: Sequence[QuestionEntry],
    spoken: Sequence[tuple[Any, ...]],
    families: Mapping[int, Family],
) -> list[History]:
    """A chart for each arm, of the first option of two, else of the one that happened or was the likeliest at last."""
    option = _drawn_option(asked, entries[0]) if entries else ""
    days = {entry.pk: entry.question_set.day for entry in reversed(entries)}
    stated: dict[str, dict[int, dict[datetime, float | None]]] = defaultdict(lambda: defaultdict(dict))
    for _, entry, arm, family, probabilities in sorted(spoken, key=itemgetter(0)):
        stated[arm][family][days[entry]] = probabilities.get(option)
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
    return Question.objects.filter(entries__twin=asked).order_by("-entries__pk").only("text").first()


def _bets(asked: Question) -> QuerySet[Trade]:
    """The purchases on the markets that the question stands on, the latest first: bets beside words."""
    markets = [option.outcome.market_id for option in asked.options.all() if option.outcome]
    bought = Trade.objects.filter(market__in=markets, kind=Trade.Kind.BUY)
    return bought.order_by("-executed_at", "-pk")[:BETS_SHOWN]


@require_safe
def forecast(request: HttpRequest, pk: int) -> HttpResponse:
    """One forecast: what was stated, what it scored, and the whole request that it is an answer to."""
    task = "elicitation"
    beside = (f"{task}__methodology", f"{task}__sheet__question_set", f"{task}__link")
    found = Forecast.objects.select_related("question", "family", "release", "entry", "score", *beside)
    forecast = get_object_or_404(found.only(*TOLD), pk=pk)
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
    together = len(record["forecasts"]) if record else elicitation.forecasts.count()
    prices = forecast.entry.prices
    return render(
        request,
        "scoring/forecast.html",
        {
            "forecast": forecast,
            "question": forecast.question,
            "family": forecast.family,
            "day": elicitation.sheet.question_set.day,
            "score": getattr(forecast, "score", None),
            "rows": [
                (option, prices.get(option.name) or {}, forecast.probabilities.get(option.name),
                 forecast.stated.get(option.name))
                for option in forecast.question.options.all()
            ],
            "calls": said(calls),
            "spent": spent(calls),
            "refused": list(refused.values_list("entry__question_id", "entry__question__text", "reason")),
            "beside": together - 1,
            "latency_ms": latency_ms(calls),
            "link": link,
            "record": canonical(record) if record else None,
        },
    )  # fmt: skip
