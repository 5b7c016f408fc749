"""Does it happen as often as they say, and as often as they stake?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from scoring.charts import Reliability, Scatter, mark_of, reliability_chart, scatter_chart
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.services.forecast_panels import REFERENCES
from scoring.views.references import REFERENCE_COLORS

ARMS = (PRICED, BLIND)
SHOWN_REFERENCES = REFERENCES[:3]
PARTS = ("reliability", "resolution", "uncertainty", "within_bin_variance", "within_bin_covariance")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """How calibrated one forecaster is: its diagram, its bins, and the figures of them."""

    name: str
    family: Family | None
    diagram: Reliability
    bins: Sequence[Mapping[str, Any]]
    pairs: int
    ece: float | None
    floor: float | None
    brier: float | None
    parts: Sequence[float | None]


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability of words and of bets with counts and intervals, the parts of their scores, and stakes over words."""
    there = set(Leaderboard.objects.order_by().values_list("protocol", "methodology", "category").distinct())
    chosen = _chosen(request, there)
    families = {family.slug: family for family in Family.objects.all()}
    words = Leaderboard.objects.filter(
        protocol=FORECAST, arm=chosen["arm"], methodology=chosen["methodology"], category=chosen["category"]
    ).first()
    bets = Leaderboard.objects.filter(protocol=TRADING, methodology=chosen["methodology"], category="").first()
    report = words.report if words else {}
    by_bets = list(_of_bets(bets.report.get("calibration") or {}, families)) if bets else []
    return render(
        request,
        "scoring/calibration.html",
        {
            "chosen": chosen,
            "filters": _filters(chosen, there),
            "words": list(_of_words(words, families)) if words else [],
            "bets": by_bets,
            "stakes": list(_stakes(report, families)),
            "words_computed_at": words.computed_at if words else None,
            "bets_computed_at": bets.computed_at if bets else None,
            "board": words,
        },
    )


def _chosen(request: HttpRequest, there: set[tuple[str, str, str]]) -> dict[str, str]:
    """What the address asks for. Raises Http404 for what no board is about."""
    known = {
        "arm": (ARMS, PRICED),
        "methodology": ({version for _, version, _ in there} | {""}, ALL_METHODOLOGIES),
        "category": ({category for _, _, category in there} | {""}, ""),
    }
    chosen = {name: request.GET.get(name, default) for name, (_, default) in known.items()}
    for name, (choices, _) in known.items():
        if chosen[name] not in choices:
            raise Http404(f"{name}={chosen[name]}: there is no such board")
    return chosen


def _filters(chosen: Mapping[str, str], there: set[tuple[str, str, str]]) -> list[dict[str, Any]]:
    versions = sorted({version for _, version, _ in there if version})
    categories = sorted({category for _, _, category in there if category})
    rows = [
        ("Words", "arm", [(PRICED, "with the market’s prices"), (BLIND, "without prices")]),
        ("Category", "category", [("", "all"), *((name, name) for name in categories)]),
        ("Rules", "methodology", [("", "all versions"), *((name, name) for name in versions)]),
    ]
    defaults = {"arm": PRICED, "category": "", "methodology": ""}

    def query(**other: str) -> str:
        values = {**chosen, **other}
        return "?" + urlencode({name: value for name, value in values.items() if value != defaults[name]})

    return [
        {
            "caption": caption,
            "links": [
                {"query": query(**{name: value}), "label": label, "here": chosen[name] == value}
                for value, label in links
            ],
        }
        for caption, name, links in rows
        if len(links) > (2 if name == "methodology" else 1)
    ]


def _of_words(board: Leaderboard, families: Mapping[str, Family]) -> Iterator[Calibrated]:
    curves = board.report.get("curves", {}).get("reliability", {})
    bins = curves.get("forecasters", {}) | curves.get("references", {})
    murphy = board.report.get("murphy", {})
    for entry in board.entries:
        name = entry["forecaster"]
        found = bins.get(name)
        if not found or (entry["reference"] and name not in SHOWN_REFERENCES):
            continue
        family = families.get(entry["family"])
        color = family.color if family else REFERENCE_COLORS[name]
        parts = murphy.get(name, {})
        yield Calibrated(
            entry["display_name"],
            family,
            reliability_chart(entry["display_name"], color, found, mark_of(family) if family else 0),
            found,
            sum(each["pairs"] for each in found),
            entry["ece"],
            entry["ece_noise_floor"],
            parts.get("brier", entry["brier"]),
            [parts.get(part) for part in PARTS],
        )


def _of_bets(report: Mapping[str, Any], families: Mapping[str, Family]) -> Iterator[Calibrated]:
    rows = [(families.get(slug), found) for slug, found in report.get("families", {}).items()]
    known = [(family, found) for family, found in rows if family]
    known.sort(key=lambda row: (row[0].external, row[1]["ece"]))
    market = report.get("market")
    for family, found in [*known, *([(None, market)] if market else [])]:
        name = family.display_name if family else "The prices paid"
        color = family.color if family else REFERENCE_COLORS["market"]
        yield Calibrated(
            name,
            family,
            reliability_chart(name, color, found["bins"], mark_of(family) if family else 0),
            found["bins"],
            found["n"],
            found["ece"],
            found["ece_noise_floor"],
            found["murphy"]["brier"],
            [found["murphy"][part] for part in PARTS],
        )


def _stakes(report: Mapping[str, Any], families: Mapping[str, Family]) -> Iterator[dict[str, Any]]:
    """Each family's newest bets: what it said of the side to the right, what it staked upwards."""
    figures = {row["family"]: row for row in report.get("words_and_bets", [])}
    for slug, points in sorted(report.get("spoken", {}).items()):
        family = families.get(slug)
        if family and points:
            plot: Scatter = scatter_chart(
                family.display_name,
                family.color,
                [(said, staked, won) for said, staked, won in points],
                mark_of(family),
            )
            yield {"family": family, "plot": plot, "figures": figures.get(slug)}
