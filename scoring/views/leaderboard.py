"""The front page: who leads, by what, how sure."""

from datetime import datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Agent, Decision, Family
from cohorts.models import Methodology
from cohorts.weeks import WEEK, week_start
from scoring.models import Leaderboard, Snapshot
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.views.curves import family_curves

DECISIONS_AFTER = timedelta(minutes=5)
"""How long after a week's start its decision run is scheduled."""
LATEST_DECISIONS = 10


def next_decision_run(at: datetime) -> datetime:
    """The first scheduled decision run after `at`."""
    this_week = week_start(at) + DECISIONS_AFTER
    return this_week if at < this_week else this_week + WEEK


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The ranking of families with its uncertainty, their value over time, and what was decided last."""
    now = timezone.now()
    board = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES).first()
    entries = board.entries if board else []
    families = {family.slug: family for family in Family.objects.all()}
    agents = list(Agent.objects.select_related("family", "cohort"))
    curves = family_curves(agents)
    methodology = Methodology.objects.current()
    decisions = (
        Decision.objects.filter(status=Decision.Status.COMPLETED)
        .select_related("agent__family", "cohort")
        .order_by("-decided_at", "-pk")
    )
    return render(
        request,
        "scoring/leaderboard.html",
        {
            "board": board,
            "rows": [{"entry": entry, "family": families[entry["family"]]} for entry in entries],
            "most_cohorts": max((entry["cohorts"] for entry in entries), default=0),
            "curves": curves,
            "chart": curves.chart(methodology.starting_balance),
            "methodology": methodology,
            "cohorts": len({agent.cohort_id for agent in agents}),
            "decisions": decisions[:LATEST_DECISIONS],
            "next_run": next_decision_run(now),
            "newest_snapshot": Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first(),
        },
    )
