"""Does it happen as often as they say, and as often as they stake?"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from cohorts.forecasting import BLIND, PRICED
from scoring.calibrated import Calibrated, Stakes
from scoring.calibrated import calibration as calibration_of
from scoring.charts import Scatter, mark_of, reliability_chart, scatter_chart
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES
from scoring.views.references import REFERENCE_COLORS

ARMS = (PRICED, BLIND)
DEFAULTS = {"arm": PRICED, "category": "", "methodology": ALL_METHODOLOGIES}


@require_safe
def calibration(request: HttpRequest) -> HttpResponse:
    """Reliability of words and of bets with counts and intervals, the parts of their scores, and stakes over words."""
    there = set(Leaderboard.objects.order_by().values_list("protocol", "methodology", "category").distinct())
    chosen = _chosen(request, there)
    found = calibration_of(**chosen)
    return render(
        request,
        "scoring/calibration.html",
        {
            "chosen": chosen,
            "filters": _filters(chosen, there),
            "found": found,
            "words": _drawn(found.words),
            "bets": _drawn(found.bets),
            "stakes": [{"family": each.family, "plot": _plot(each), "figures": each.figures} for each in found.stakes],
            "same": _query(chosen),
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

    return [
        {
            "caption": caption,
            "links": [
                {"query": _query({**chosen, name: value}), "label": label, "here": chosen[name] == value}
                for value, label in links
            ],
        }
        for caption, name, links in rows
        if len(links) > (2 if name == "methodology" else 1)
    ]


def _query(chosen: Mapping[str, str]) -> str:
    return "?" + urlencode({name: value for name, value in chosen.items() if value != DEFAULTS[name]})


def _drawn(rows: Sequence[Calibrated]) -> list[dict[str, Any]]:
    """Each forecaster with its diagram."""
    drawn = []
    for row in rows:
        color = row.family.color if row.family else REFERENCE_COLORS[row.forecaster]
        chart = reliability_chart(row.name, color, row.bins, mark_of(row.family) if row.family else 0)
        drawn.append({"of": row, "diagram": chart})
    return drawn


def _plot(stakes: Stakes) -> Scatter:
    """Each of the newest bets: what was said of the side to the right, what was staked upwards."""
    family = stakes.family
    return scatter_chart(family.display_name, family.color, stakes.points, mark_of(family))
