"""Health endpoints: liveness, readiness and Prometheus metrics."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_q.models import Schedule
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from agents.letters import published
from agents.models import Agent, Decision, Elicitation, ModelCall
from arena_site import jobs
from arena_site.models import Backup, Worker
from arena_site.operations import operational_metrics
from arena_site.operations.conditions import UNGUARDED, WATCHED
from arena_site.operations.notices import unsent_notices
from arena_site.operations.queue_messages import queue_state
from cohorts.models import Cohort
from cohorts.weeks import week_start
from foundation.bulk import rows_by
from foundation.database_connection import check_connection
from foundation.layout import layout_id, layout_refusal
from foundation.models import Alert, Run
from foundation.version import VERSION
from markets.models import Market, Outcome, Question
from scoring.models import Leaderboard, Snapshot

OK = "ok"
Family = type[CounterMetricFamily | GaugeMetricFamily]


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Liveness: the process answers. Does not touch the database."""
    return JsonResponse({"status": OK, "version": VERSION})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: the database answers and is migrated, else 503 with the reason."""
    checks = readiness()
    ready = all(result == OK for result in checks.values())
    return JsonResponse({"status": OK if ready else "not ready", **checks}, status=200 if ready else 503)


def readiness() -> dict[str, str]:
    """The result of each check: "ok" or the fault, without the driver's message, which may hold credentials."""
    try:
        check_connection()
        if refusal := layout_refusal(connection):
            return {"database": refusal, "migrations": "unknown"}
        missing = missing_migrations()
    except DatabaseError as error:
        return {"database": f"can not be reached or read ({type(error).__name__})", "migrations": "unknown"}
    return {"database": OK, "migrations": f"not applied: {', '.join(missing)}" if missing else OK}


def missing_migrations() -> list[str]:
    """Names of the migrations that the database lacks."""
    executor = MigrationExecutor(connection)
    return [f"{m.app_label}.{m.name}" for m, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus, read from the database at each request."""
    registry = CollectorRegistry()
    registry.register(ArenaCollector())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class ArenaCollector(Collector):
    """Metrics from the database, so that every process reports the same."""

    def describe(self) -> list[Metric]:
        """No metrics: registering a collector must not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric; only `arena_database_up` where the database does not answer."""
        try:
            check_connection()
            metrics: list[Metric] = []
            for part in PARTS:
                metrics += part()
        except DatabaseError:
            yield GaugeMetricFamily("arena_database_up", "Does the database answer?", value=0)
            return
        yield GaugeMetricFamily("arena_database_up", "Does the database answer?", value=1)
        yield from metrics


MODELS_WITH_STATUS = (
    ("cohorts", Cohort), ("agents", Agent), ("decisions", Decision), ("elicitations", Elicitation),
    ("markets", Market), ("questions", Question),
)  # fmt: skip


def _counts() -> Iterator[Metric]:
    """Rows by status."""
    for name, model in MODELS_WITH_STATUS:
        counts = model._default_manager.order_by().values_list("status").annotate(n=Count("pk"))
        yield _labelled(f"arena_{name}", f"Number of {name}.", "status", counts)
    stale = operational_metrics.held_stale_outcomes().count()
    yield GaugeMetricFamily("arena_stale_prices", "Outcomes held by an agent whose price is stale.", value=stale)
    unresolved = operational_metrics.unresolved_markets().count()
    yield GaugeMetricFamily("arena_markets_awaiting", "Held markets that await their resolution.", value=unresolved)


def _calls_and_runs() -> Iterator[Metric]:
    """Model calls by result, and the last runs of each kind."""
    calls = published(ModelCall.objects.all()).order_by().values_list("result").annotate(n=Count("pk"))
    yield _labelled("arena_model_calls", "Requests to models.", "result", calls, CounterMetricFamily)
    now, ends = timezone.now(), Run.objects.exclude(finished_at=None).order_by().values_list("kind")
    successes = ends.filter(status=Run.Status.SUCCEEDED).annotate(Max("finished_at"))
    failures = ends.filter(status=Run.Status.FAILED).annotate(Max("finished_at"))
    for name, text, instants in (
        ("success", "Last run that succeeded.", successes),
        ("failure", "Last run that failed.", failures),
    ):
        yield _labelled(f"arena_run_last_{name}_timestamp_seconds", text, "kind", _timestamps(instants))
    ages = [(kind, (now - at).total_seconds()) for kind, at in successes]
    yield _labelled("arena_run_age_seconds", "Seconds since a run of this kind succeeded.", "kind", ages)


def _models_and_venues() -> Iterator[Metric]:
    """Latency, failures and cost of each model, latency and failures of each venue; 0 before the first request."""
    answer_time = "Mean time to a model's answer in the last day, in seconds."
    yield from _columns(
        "model",
        operational_metrics.model_figures(timezone.now()),
        ("failures", "Requests without an answer.", "failures", CounterMetricFamily),
        ("latency_seconds", answer_time, "latency_s", GaugeMetricFamily),
        ("cost_usd", "What models cost, in US dollars.", "cost_usd", GaugeMetricFamily),
    )
    answer_time = "Mean time to a venue's answer in the last run that asked, in seconds."
    yield from _columns(
        "venue",
        rows_by("venue", operational_metrics.venue_traffic()),
        ("failures", "Failed requests to a venue.", "failures", CounterMetricFamily),
        ("requests", "Requests to a venue.", "requests", CounterMetricFamily),
        ("latency_seconds", answer_time, "latency_s", GaugeMetricFamily),
    )


def _columns(label: str, rows: Mapping[str, Any], *columns: tuple[str, str, str, Family]) -> Iterator[Metric]:
    """A metric of each column (name, text, attribute of a row, kind), with the rows' names as labels."""
    for name, text, attribute, family in columns:
        metric = family(f"arena_{label}_{name}", text, labels=[label])
        for value, row in rows.items():
            metric.add_metric([value], getattr(row, attribute))
        yield metric


def _operation() -> Iterator[Metric]:
    """Workers, queue, schedules and alerts; each series is there at 0."""
    now = timezone.now()
    queue = queue_state(now)
    alerts = dict(Alert.objects.open().order_by().values_list("kind").annotate(n=Count("pk")))
    findings = {condition.kind: condition.findings(now) for condition in WATCHED}
    for name, text, number in (
        ("workers_alive", "Workers with a heartbeat.", Worker.objects.alive(now).count()),
        ("queue_depth", "Jobs that wait for a worker.", queue.depth),
        ("queue_oldest_age_seconds", "How long the oldest job has waited for a worker.", queue.oldest_age_s),
        ("jobs_running", "Jobs that a worker has started.", queue.at_work),
        ("schedules_paused", "Schedules that are paused.", Schedule.objects.filter(repeats=jobs.PAUSED).count()),
        ("notices_unsent", "Notices of alerts that are still to be sent.", unsent_notices().count()),
        ("open_alerts", "Alerts that are not cleared.", sum(alerts.values())),
        ("record_unguarded", "Tables of the record that lack a guard trigger.", len(findings[UNGUARDED])),
    ):
        yield GaugeMetricFamily(f"arena_{name}", text, number)
    held = [(kind, len(of_kind)) for kind, of_kind in findings.items()]
    yield _labelled("arena_condition", "Things that need an operator, found by looking.", "kind", held)
    info = GaugeMetricFamily("arena_info", "The version, and the layout of its database.", labels=["version", "layout"])
    info.add_metric([VERSION, layout_id()], 1)
    yield info
    backup = Backup.objects.first()
    age = (now - backup.taken_at).total_seconds() if backup else float("nan")
    yield GaugeMetricFamily("arena_backup_age_seconds", "Age of the newest backup; NaN where there is none.", age)
    yield _labelled("arena_open_alerts_by_kind", "Alerts that are not cleared.", "kind", alerts.items())


def _newest_data() -> Iterator[Metric]:
    """The instant of the newest data of each kind, where there is any."""
    newest = [
        ("snapshot", Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first()),
        ("market", Market.objects.newest_instant()),
        ("leaderboard", Leaderboard.objects.aggregate(newest=Max("computed_at"))["newest"]),
    ]
    yield _labelled("arena_newest_timestamp_seconds", "Instant of the newest data.", "of", _timestamps(newest))


def _pending_work() -> Iterator[Metric]:
    """Decisions that are due, and markets and prices that are late."""
    now = timezone.now()
    this_week = Decision.objects.filter(Decision.in_week(week_start(now)))
    yield _labelled(
        "arena_decisions_due",
        "This week's decisions that are not final: to be claimed, or claimed by a live worker.",
        "state",
        [
            ("claimable", this_week.claimable(now).count()),
            ("claimed", this_week.filter(status=Decision.Status.CLAIMED, lease_until__gt=now).count()),
        ],
    )
    failed = this_week.filter(status=Decision.Status.FAILED).count()
    yield GaugeMetricFamily("arena_decisions_failed_this_week", "This week's decisions that failed so far.", failed)
    stale = Outcome.objects.filter(price_stale=True, market__in=Market.objects.traded()).count()
    yield GaugeMetricFamily("arena_stale_traded_prices", "Outcomes of traded markets at a stale price.", stale)
    overdue = operational_metrics.overdue_markets(now).count()
    yield GaugeMetricFamily("arena_markets_overdue", "Traded markets unresolved 72 hours after closing.", overdue)


def _spending() -> Iterator[Metric]:
    """The week's spending and its limit, and the violations found by the last ledger verification."""
    from agents.services.spending import spending_by_protocol  # loads the venues' clients

    spends = rows_by("protocol", spending_by_protocol(week_start(timezone.now())))
    text = "What models cost this week, in US dollars: billed, or booked until the gateway tells what it billed."
    by_kind = GaugeMetricFamily("arena_spend_usd", text, labels=["protocol", "kind"])
    for protocol, spend in spends.items():
        by_kind.add_metric([protocol, "billed"], float(spend.billed))
        by_kind.add_metric([protocol, "booked"], float(spend.booked))
    yield by_kind
    costs = [(protocol, float(spend.spent)) for protocol, spend in spends.items()]
    text = "Cost that counts against a protocol's limit this week, in US dollars."
    yield _labelled("arena_spend_this_week_usd", text, "protocol", costs)
    limit = settings.ARENA_SPEND_LIMIT_USD
    yield GaugeMetricFamily("arena_spend_limit_usd", "The most a protocol may cost in a week by default.", float(limit))
    limits = [(protocol, float(spend.cap)) for protocol, spend in spends.items()]
    text = "The most a protocol may cost in a week: what an operator set, else the default."
    yield _labelled("arena_spend_cap_usd", text, "protocol", limits)
    run = operational_metrics.last_verification()
    if run is not None and "violations" in run.summary:
        text = "Violations found by the last verify_ledger."
        yield GaugeMetricFamily("arena_ledger_violations", text, run.summary["violations"])


def _database_size() -> Iterator[Metric]:
    """The database's size, and the estimated rows of its large tables."""
    size = operational_metrics.database_bytes()
    yield GaugeMetricFamily("arena_database_bytes", "Size of the database on disk.", size)
    rows = operational_metrics.table_rows()
    yield _labelled("arena_table_rows", "Estimated rows of a large table.", "table", rows)


PARTS = (
    _counts, _calls_and_runs, _models_and_venues, _operation, _newest_data, _pending_work, _spending, _database_size,
)  # fmt: skip


def _timestamps(instants: Any) -> list[tuple[str, float]]:
    return [(name, at.timestamp()) for name, at in instants if at is not None]


def _labelled(
    name: str,
    text: str,
    label: str,
    figures: Iterable[tuple[str, Any]],
    family: Family = GaugeMetricFamily,
) -> Metric:
    metric = family(name, text, labels=[label])
    for value, figure in figures:
        metric.add_metric([value], figure)
    return metric
