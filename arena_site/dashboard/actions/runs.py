"""Actions that enqueue a job, start a cohort or build an archive, so that no page waits for a model or a venue."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.models import Decision, Elicitation
from agents.services.cohort_start import NoEligibleFamilies, start_cohort
from agents.services.cost_estimate import estimate_forecasts, estimate_run, plan_costs
from agents.services.decisions import cohorts_with_open_window
from agents.services.lineups import lineup_releases
from agents.services.release_check import UnusableLineUp
from agents.services.spending import week_spending
from arena_site import jobs
from arena_site.dashboard.action import Action, ActionResult, FormData, Preview, list_path, row_path
from arena_site.models import Worker
from cohorts.models import Cohort
from cohorts.services import is_left_to_a_person
from cohorts.weeks import week_start
from foundation.bulk import rows_by
from foundation.models import Run
from markets.models import Universe
from markets.services.universes import NoMarkets

MANUAL = "manual run"
JOBS = rows_by("function", jobs.JOBS)
NO_WORKER = "No worker has been seen in the last minute: the job waits in the queue for the next one."


def worker_warning() -> str:
    """A warning where no worker is alive to run what is enqueued."""
    alive = Worker.objects.alive(timezone.now()).exists()
    return "" if alive else NO_WORKER


class EnqueueJob(Action):
    """Enqueues a job, unless the same is queued already or a run of it is under way. Named after its command."""

    confirm_label = "Yes, queue it"
    permission = "arena_site.run_jobs"
    default_reason = MANUAL

    def __init__(self, function: str) -> None:
        job = JOBS[function]
        self.function, self.title, self.description = job.function, job.title, job.description
        self.kind = job.command
        """The kind of its runs; empty if it leaves none."""
        self.name = job.command or job.function

    def target(self, data: FormData) -> str:
        return self.kind or self.name

    def target_path(self, data: FormData) -> str:
        return list_path(Run, kind=self.kind) if self.kind else ""

    def state(self, data: FormData) -> dict[str, Any]:
        last = Run.objects.as_seen(timezone.now()).filter(kind=self.kind).order_by("-started_at").first()
        return {"last run": last and f"{last.pk}, {last.status}"}

    def obstacle(self, data: FormData, at: datetime) -> str:
        run = Run.objects.under_way(timezone.now()).filter(kind=self.kind).order_by("-started_at").first()
        return f"A run has been under way since {run.started_at:%H:%M:%S} UTC." if run else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview("A worker does this now rather than on schedule.", warning=worker_warning())

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        message = "Queued. The run will appear here." if self.kind else "Queued."
        return enqueued(jobs.enqueue(self.function), message)


def enqueued(queued: int, message: str) -> ActionResult:
    """The result of enqueueing so many jobs."""
    if not queued:
        return ActionResult("Nothing was queued: the same job waits in the queue already.", changed=False)
    return ActionResult(f"{message} {worker_warning()}".strip())


class RunDecisions(EnqueueJob):
    def effect(self, data: FormData, at: datetime) -> Preview:
        costs = cost_sentence(at)
        if Cohort.objects.active().exists() and not cohorts_with_open_window(at):
            frozen_at = Universe.objects.filter(week_start=week_start(at)).aggregate(last=Max("frozen_at"))["last"]
            frozen = f" 24 hours after their prices were frozen ({frozen_at:%A %H:%M} UTC)" if frozen_at else ""
            return Preview(
                f"The window of this week's decisions closed{frozen}; the next one opens on Sunday 00:05, and Monday "
                f"00:10 records what was missed. {costs}",
                possible=False,
            )
        try:
            estimate = estimate_run(at=at)
        except NoMarkets as error:
            return Preview(f"No agent can be asked: {error}. {costs}", possible=False)
        if not estimate.decisions:
            reason = "No decision is due: all of this week are final or paused, or no cohort decides this week."
            return Preview(f"{reason} {costs}", possible=False)
        lines = list(map(str, estimate.decisions))
        number, cost = len(lines), f"${estimate.cost_usd:.2f}"
        summary = f"{number} would be asked, {estimate.skipped} have decided. Expected cost: {cost}. {costs}"
        return Preview(summary, lines, _warnings(Decision.PROTOCOL, estimate.cost_usd, at))

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        return enqueued(jobs.enqueue(self.function, True), "Queued. The run will appear here.")


class RunForecasts(EnqueueJob):
    def effect(self, data: FormData, at: datetime) -> Preview:
        estimate, costs = estimate_forecasts(at=at), cost_sentence(at)
        if not estimate.releases:
            reason = "No forecast is due: all of today are answered or paused, or no methodology asks for any."
            return Preview(f"{reason} {costs}", possible=False)
        lines = list(map(str, estimate.releases))
        frozen = "" if estimate.frozen else f" The day's questions are frozen first; the cost is of {estimate.basis}."
        summary = f"{len(lines)} models would be asked. Expected cost: ${estimate.cost_usd:.2f}.{frozen} {costs}"
        return Preview(summary, lines, _warnings(Elicitation.PROTOCOL, estimate.cost_usd, at))


def cost_sentence(at: datetime) -> str:
    """The cost of the coming line-up as a sentence of the forms."""
    return f"The coming line-up costs {plan_costs(at=at)}."


def _warnings(protocol: str, expected: Decimal, at: datetime) -> str:
    spending = week_spending(protocol, week_start(at))
    over = f"{spending.amounts} are spent: the cap may stop the run early."
    if spending.is_reached:
        over = f"{spending.message}: no model is asked. {spending.remedy}"
    return " ".join(filter(None, [over if spending.spent + expected > spending.cap else "", worker_warning()]))


class StartCohort(Action):
    name, title, confirm_label = "start_cohort", "Start this week's cohort", "Yes, start it"
    description = "Creates one agent for each family of the line-up."
    permission = "arena_site.run_jobs"
    default_reason = MANUAL

    def target(self, data: FormData) -> str:
        return "this week's cohort"

    def state(self, data: FormData) -> dict[str, Any]:
        newest = Cohort.objects.order_by("-number").first()
        return {"newest cohort": newest and newest.number, "agents": newest.agents.count() if newest else 0}

    def obstacle(self, data: FormData, at: datetime) -> str:
        cohort = Cohort.objects.filter(week_start=week_start(at)).first()
        return f"Cohort {cohort.number} of this week exists, with {cohort.agents.count()} agents." if cohort else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        week = week_start(at)
        names = [f"{release.family}: {release.model_id}" for release in lineup_releases(at)]
        if not names:
            return Preview("The approved line-up names no active family.", possible=False)
        late = "No schedule asks for its decisions this late: run them from here once it has started."
        warning = late if is_left_to_a_person(at) else ""
        cohort = f"A cohort for the week of {week:%d %B %Y}, each agent with its starting balance"
        summary = f"{cohort}. {cost_sentence(at)}"
        return Preview(summary, names, warning)

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        try:
            exists = Cohort.objects.filter(week_start=week_start(at)).exists()
            catalogue = None if exists else clients.model_catalogue()
            result = start_cohort(at=at, catalogue=catalogue, replace=settings.ARENA_LINEUP == "auto")
        except (NoEligibleFamilies, GatewayFailure, UnusableLineUp) as error:
            return ActionResult(f"Nothing was started: {error}.", changed=False)
        message = f"Cohort {result.cohort.number} has started with {result.agents} agents."
        return ActionResult(message, path=row_path(result.cohort)) if result.created else None
