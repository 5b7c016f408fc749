"""Participation in the forecast protocol: requests, declined ones, refused forecasts and cost of each family."""

from collections import Counter, defaultdict
from typing import Any

from django.db.models import Count, Q, Sum

from agents.models import ModelCall, RefusedForecast
from scoring.services.forecast_panels import Selection

NO_PARTICIPATION = {"cost_usd": "0.000000", "declined": 0, "refused": 0, "asked": 0}


def participation_by_family(selection: Selection) -> dict[str, dict[str, Any]]:
    """The cost of each family's forecasts and how often it was asked, declined and was refused, by slug."""
    tasks = selection.elicitations()
    calls = ModelCall.objects.filter(elicitation__in=tasks)
    participation: dict[str, dict[str, Any]] = defaultdict(NO_PARTICIPATION.copy)
    by_slug = tasks.values_list("family__slug")
    for slug, tasks_of_family, declined in by_slug.annotate(Count("pk"), declined=Count("pk", filter=Q(declined=True))):
        participation[slug] |= {"asked": tasks_of_family, "declined": declined}
    for slug, cost in calls.order_by().values_list("elicitation__family__slug").annotate(Sum("cost_usd")):
        participation[slug]["cost_usd"] = f"{cost:.6f}"
    for (slug, _), refused in refused_forecasts(selection).items():
        participation[slug]["refused"] += refused
    return participation


def refused_forecasts(selection: Selection, by: str = "call__elicitation__batch__arm") -> Counter[tuple[str, str]]:
    """The number of refused forecasts by family and another column."""
    refused = RefusedForecast.objects.filter(
        call__elicitation__in=selection.elicitations(), call__result__in=ModelCall.READ
    )
    rows = refused.order_by().values_list("call__elicitation__family__slug", by).annotate(Count("pk"))
    return Counter({(slug, column): count for slug, column, count in rows})
