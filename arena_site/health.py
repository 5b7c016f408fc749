"""What machines ask: is it alive, is it ready, how is it doing."""

from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Max, Q, Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from agents.models import Agent, Decision, ModelCall, Position
from cohorts.models import Cohort
from markets.models import Alert, Market, Outcome, Run
from scoring.models import Leaderboard, Snapshot

OK = "ok"


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Alive: the process answers. Asks nothing of the database."""
    return JsonResponse({"status": OK})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Ready: the database answers and is migrated; else 503 with what is wrong."""
    checks = readiness()
    ready = all(said == OK for said in checks.values())
    return JsonResponse({"status": OK if ready else "not ready", **checks}, status=200 if ready else 503)


def readiness() -> dict[str, str]:
    """Each check with "ok" or what is wrong. A driver's own words stay out: they may hold credentials."""
    try:
        executor = MigrationExecutor(connection)
        missing = [f"{m.app_label}.{m.name}" for m, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    except DatabaseError as error:
        return {"database": f"can not be reached or read ({type(error).__name__})", "migrations": "unknown"}
    return {"database": OK, "migrations": f"not applied: {', '.join(missing)}" if missing else OK}


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The arena's state for Prometheus, read from the database now."""
    registry = CollectorRegistry()
    registry.register(ArenaCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class ArenaCollector(Collector):
    """Counts and times out of the database, the same whichever process is asked."""

    def describe(self) -> list[Metric]:
        """Nothing up front: registering a collector must not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric; only `arena_database_up` where the database does not answer."""
        try:
            read = [*_states(), *_work(), *_freshness()]
        except DatabaseError:
            yield GaugeMetricFamily("arena_database_up", "Does the database answer?", value=0)
            return
        yield GaugeMetricFamily("arena_database_up", "Does the database answer?", value=1)
        yield from read


def _states() -> Iterator[Metric]:
    """How many there are of what moves through states."""
    for name, model in (("cohorts", Cohort), ("agents", Agent), ("decisions", Decision), ("markets", Market)):
        counts = model._default_manager.order_by().values_list("status").annotate(n=Count("pk"))
        yield _labelled(f"arena_{name}", f"Number of {name}.", "status", counts)
    stale = Outcome.objects.filter(price_stale=True, positions__status=Position.Status.OPEN).distinct().count()
    yield GaugeMetricFamily("arena_stale_prices", "Outcomes held by an agent whose price is stale.", value=stale)
    waiting = Market.objects.awaiting_resolution().filter(followed=True).count()
    yield GaugeMetricFamily("arena_markets_awaiting", "Held markets that await their resolution.", value=waiting)
    alerts = Alert.objects.filter(cleared_at=None).order_by().values_list("kind").annotate(n=Count("pk"))
    yield _labelled("arena_open_alerts", "Alerts that nobody has cleared.", "kind", alerts)


def _work() -> Iterator[Metric]:
    """What models were asked and what it cost, and the age of each job's last runs."""
    calls = CounterMetricFamily("arena_model_calls", "Requests to models.", labels=["result"])
    spent = CounterMetricFamily("arena_model_cost_usd", "What models cost, in US dollars.", labels=["model"])
    for result, number in ModelCall.objects.order_by().values_list("result").annotate(n=Count("pk")):
        calls.add_metric([result], number)
    for model, dollars in ModelCall.objects.order_by().values_list("model").annotate(cost=Sum("cost_usd")):
        spent.add_metric([model], float(dollars))
    yield calls
    yield spent
    runs = Run.objects.order_by().values_list("kind").annotate(
        good=Max("finished_at", filter=Q(status=Run.Status.SUCCEEDED)),
        bad=Max("finished_at", filter=Q(status=Run.Status.FAILED)),
    )  # fmt: skip
    good = GaugeMetricFamily("arena_run_last_success_timestamp_seconds", "Last run that succeeded.", labels=["kind"])
    bad = GaugeMetricFamily("arena_run_last_failure_timestamp_seconds", "Last run that failed.", labels=["kind"])
    for kind, succeeded, failed in runs:
        for metric, at in ((good, succeeded), (bad, failed)):
            if at is not None:
                metric.add_metric([kind], at.timestamp())
    yield good
    yield bad


def _freshness() -> Iterator[Metric]:
    """When the newest of each kind of data is from; left out where there is none."""
    newest: dict[str, Any] = {
        "snapshot": Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first(),
        "market": Market.objects.newest_instant(),
        "leaderboard": Leaderboard.objects.aggregate(newest=Max("computed_at"))["newest"],
    }
    metric = GaugeMetricFamily("arena_newest_timestamp_seconds", "Instant of the newest data.", labels=["of"])
    for name, at in newest.items():
        if at is not None:
            metric.add_metric([name], at.timestamp())
    yield metric


def _labelled(name: str, text: str, label: str, counts: Any) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=[label])
    for value, number in counts:
        metric.add_metric([value], number)
    return metric
