"""The board of the forecast protocol."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from markets.models import Question, QuestionOption
from scoring.charts import Curve, LineChart, Reliability, curve_of, mark_of, order_chart, reliability_chart
from scoring.models import Leaderboard
from scoring.questions import outcome_text
from scoring.roster import roster
from scoring.services.forecast_boards import FORECAST, GAMMAS
from scoring.services.forecast_panels import EXTREMISING, REFERENCES
from scoring.templatetags.arena import signed_score
from scoring.views.curves import MOST_ROWS
from scoring.views.references import REFERENCE_COLORS
from scoring.views.verdicts import verdict_of

ARMS = (PRICED, BLIND)
LATEST_QUESTIONS = 20
DAYS_SHOWN = 10
DRAWN = REFERENCES[:3]
"""The references that the charts show: the others lie close to the ensemble."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which board a reader asks for."""

    arm: str
    methodology: str
    category: str
    gamma: str

    def link(self, **other: str) -> str:
        """The query of the same page with something else chosen."""
        values = {name: getattr(self, name) for name in ("arm", "methodology", "category", "gamma")} | other
        defaults = {"arm": PRICED, "methodology": "", "category": "", "gamma": GAMMAS[0]}
        return "?" + urlencode({name: value for name, value in values.items() if value != defaults[name]})


@require_safe
def forecasts(request: HttpRequest) -> HttpResponse:
    """The ranking by Brier score with the references beside it, and all that stands beside a ranking."""
    there = list(
        Leaderboard.objects.filter(protocol=FORECAST).order_by("category").values_list("methodology", "arm", "category")
    )
    chosen = _chosen(request, there)
    board = Leaderboard.objects.filter(
        protocol=FORECAST, arm=chosen.arm, methodology=chosen.methodology, category=chosen.category
    ).first()
    families = roster().by_slug
    entries, report = (board.entries, board.report) if board else ([], {})
    names = {entry["forecaster"]: entry["display_name"] for entry in entries}
    return render(
        request,
        "scoring/forecasts.html",
        {
            "board": board,
            "chosen": chosen,
            "rows": [{"entry": entry, "family": families.get(entry["family"])} for entry in entries],
            "externals": any(entry["external"] for entry in entries),
            "report": report,
            "tabs": _tabs(chosen, there),
            "verdict": verdict_of([entry for entry in entries if entry["brier"] is not None], families),
            "market": next((entry for entry in entries if entry["forecaster"] == REFERENCES[0]), None),
            "stream": _stream(chosen, report, entries, families),
            "reliability": _reliability(report, entries, families),
            "pairs": [
                pair | {"first_name": names.get(pair["first"]), "second_name": names.get(pair["second"])}
                for pair in report.get("pairs", [])
                if pair["n"]
            ],
            "words": [row | {"row_family": families.get(row["family"])} for row in report.get("words_and_bets", [])],
            "agreement": [
                (name, _figures(line.values()))
                for name, line in report.get("agreement", {}).get("spearman", {}).items()
            ],
            "extremising": EXTREMISING,
            "questions": _latest_questions(),
        },
    )


def _figures(values: Iterable[float | None]) -> SafeString:
    """Cells of a table, put together by hand as those of charts are: every measure has one for every other."""
    return mark_safe("".join([f'<td class="n">{signed_score(value)}</td>' for value in values]))  # noqa: S308 - numbers


def _chosen(request: HttpRequest, there: Sequence[tuple[str, str, str]]) -> Chosen:
    """What the address asks for. Raises Http404 for what no board is about."""
    methodologies = {methodology for methodology, _, _ in there} | {""}
    categories = {category for _, _, category in there} | {""}
    known = {"arm": ARMS, "methodology": methodologies, "category": categories, "gamma": GAMMAS}
    values = {"arm": PRICED, "methodology": "", "category": "", "gamma": GAMMAS[0]}
    for name, choices in known.items():
        values[name] = request.GET.get(name, values[name])
        if values[name] not in choices:
            raise Http404(f"{name}={values[name]}: there is no such board")
    return Chosen(**values)


def _tabs(chosen: Chosen, there: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Rows of links to the other boards, each row with its caption."""
    categories = sorted({category for _, arm, category in there if category and arm == chosen.arm})
    versions = sorted({version for version, _, _ in there if version})
    rows: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("Arm", "arm", [(PRICED, "with the market’s prices"), (BLIND, "without prices")]),
        ("Category", "category", [("", "all"), *((name, name) for name in categories)]),
    ]
    if len(versions) > 1:
        rows.insert(1, ("Methodology", "methodology", [("", "all"), *((name, name) for name in versions)]))
    return [
        {
            "caption": caption,
            "links": [
                {"query": chosen.link(**{name: value}), "label": label, "here": getattr(chosen, name) == value}
                for value, label in links
            ],
        }
        for caption, name, links in rows
        if len(links) > 1
    ]


@dataclass(frozen=True, slots=True)
class Stream:
    """Averaged returns as questions close: the chart, its data as a table's rows, and links to other risk aversions."""

    chart: LineChart | None
    curves: Sequence[Curve]
    rows: Sequence[tuple[int, list[Decimal | float | None]]]
    links: Sequence[dict[str, Any]]


def _stream(
    chosen: Chosen, report: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]
) -> Stream | None:
    found = report.get("curves", {}).get("average_return", {}).get(chosen.gamma)
    if not found or not found["questions"]:
        return None
    lines = found["forecasters"] | found["references"]
    curves = [
        _curve(entry, families, [None if v is None else round(v, 4) for v in lines[entry["forecaster"]]])
        for entry in entries
        if entry["n"] and (entry["forecaster"] in DRAWN or not entry["reference"]) and not entry["external"]
    ]
    asked = list(enumerate(found["questions"]))[::-1]
    rows = [(number, [curve.values[i] for curve in curves]) for i, number in asked[:: -(-len(asked) // MOST_ROWS)]]
    links = [{"query": chosen.link(gamma=gamma), "gamma": gamma, "here": gamma == chosen.gamma} for gamma in GAMMAS]
    chart = order_chart(found["questions"], curves, baseline=Decimal(1), unit="score")
    return Stream(chart, curves, rows, links)


def _curve(entry: Mapping[str, Any], families: Mapping[str, Family], values: Sequence[float | None]) -> Curve:
    family = families.get(entry["family"])
    if family:
        return curve_of(family, values)
    return Curve(entry["display_name"], REFERENCE_COLORS[entry["forecaster"]], values, dashed=True)


def _reliability(
    report: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]
) -> list[Reliability]:
    found = report.get("curves", {}).get("reliability", {})
    bins = found.get("forecasters", {}) | found.get("references", {})
    shown = [
        (entry, families.get(entry["family"]))
        for entry in entries
        if bins.get(entry["forecaster"]) and (entry["forecaster"] in DRAWN or not entry["reference"])
    ]
    return [
        reliability_chart(
            entry["display_name"],
            family.color if family else REFERENCE_COLORS[entry["forecaster"]],
            bins[entry["forecaster"]],
            mark_of(family) if family else 0,
        )
        for entry, family in shown
    ]


def _latest_questions() -> list[dict[str, Any]]:
    shown = ("text", "category", "exclusive", "status", "first_asked_at", "closes_at")
    latest = list(Question.objects.only(*shown).order_by("-pk")[:LATEST_QUESTIONS])
    resolved = [question.pk for question in latest if question.status == Question.Status.RESOLVED]
    options = QuestionOption.objects.filter(question__in=resolved, happened=True)
    happened: dict[int, list[str]] = defaultdict(list)
    for question_id, name in options.values_list("question_id", "name"):
        happened[question_id].append(name)
    return [{"question": question, "outcome": outcome_text(question, happened[question.pk])} for question in latest]
