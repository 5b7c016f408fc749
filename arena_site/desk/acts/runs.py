"""Having jobs done now: rung through the queue, so that no page waits for a model or a market."""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from agents.models import Decision, Elicitation
from agents.services.asking import spent_in_week
from agents.services.enrolment import NobodyToEnrol, cohort_start, releases_playing
from agents.services.estimate import estimate_forecasts, estimate_run
from arena_site import jobs
from arena_site.desk.act import Act, Asked, Done, Preview, list_path, nothing, row_path, unchanged
from arena_site.models import Worker
from cohorts.models import Cohort
from cohorts.services import START_WITHIN
from cohorts.weeks import week_start
from markets.models import Run
from markets.services.universes import NoMarkets
from scoring.exports.files import CSV, FORMATS
from scoring.exports.selection import Selection
from scoring.models import Export
from scoring.services.exports import export_request

BY_HAND = "asked for by hand"
NO_WORKER = "No worker has been seen in the last two minutes: it waits in the queue until one is there."


def no_worker() -> str:
    """A warning where nobody is there to do what is rung."""
    seen = Worker.objects.aggregate(at=Max("seen_at"))["at"]
    there = seen is not None and seen > timezone.now() - Worker.GONE_AFTER
    return "" if there else NO_WORKER


class Ring(Act):
    """Has a worker do a job. Where the same waits already, or a run of it is under way, nothing is rung."""

    permission = "arena_site.run_jobs"
    usual_reason = BY_HAND
    function: ClassVar[str]
    kind: ClassVar[str]
    """Its command, by which its runs are known."""
    would: ClassVar[str]

    def target(self, asked: Asked) -> str:
        return self.kind

    def target_path(self, asked: Asked) -> str:
        return list_path(Run, kind=self.kind)

    def arguments(self, asked: Asked) -> tuple[Any, ...]:
        return ()

    def state(self, asked: Asked) -> dict[str, Any]:
        last = Run.objects.filter(kind=self.kind).order_by("-started_at").first()
        return {"last run": last and f"{last.pk}, {last.status}"}

    def under_way(self) -> Run | None:
        """A run of the kind that has not ended, by whomever it was begun."""
        since = timezone.now() - Run.LONGEST
        running = Run.objects.filter(kind=self.kind, status=Run.Status.RUNNING, started_at__gt=since)
        return running.order_by("-started_at").first()

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if run := self.under_way():
            return nothing(f"A run is under way since {run.started_at:%H:%M:%S} UTC.")
        return Preview(self.would, warning=no_worker())

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        runs = list_path(Run, kind=self.kind)
        if run := self.under_way():
            since = f"{run.started_at:%H:%M:%S} UTC"
            return unchanged(f"Nothing was rung: a run is under way since {since}.", row_path(run))
        if not jobs.ring(self.function, *self.arguments(asked)):
            return unchanged("Nothing was rung: the same waits in the queue already.", runs)
        return Done(f"Rung; its run appears here. {no_worker()}".strip(), path=runs)


class Sync(Ring):
    name, title, confirm = "sync", "Sync markets now", "Yes, sync now"
    about = "The catalogue, outside its five minutes."
    function, kind = "sync", "sync_markets"
    would = "A worker walks the catalogue of every source and refreshes each market that money or a question needs."


class Resolutions(Ring):
    name, title, confirm = "resolutions", "Check resolutions now", "Yes, check now"
    about = "Settles what came to its end, and scores it."
    function, kind = "resolutions", "check_resolutions"
    would = "A worker looks up every awaited market at its venue, settles those that are final, and scores the bets."


class Snapshots(Ring):
    name, title, confirm = "snapshot", "Take a snapshot now", "Yes, take it"
    about = "Every portfolio, at this instant of the grid."
    function, kind = "snapshots", "take_snapshots"
    would = "A worker marks every portfolio for the last instant of the ten-minute grid; who has that one keeps it."


class Scores(Ring):
    name, title, confirm = "scores", "Recompute scores", "Yes, recompute"
    about = "Brier rows, forecast scores and every board."
    function, kind = "scores", "compute_scores"
    would = "A worker scores what has resolved and has no score yet, and computes every board afresh."


class Ledger(Ring):
    name, title, confirm = "ledger", "Prove the ledger", "Yes, prove it"
    about = "Every balance, payout, forecast and hash, recomputed."
    function, kind = "ledger", "verify_ledger"
    would = "A worker recomputes the whole ledger from the rows it rests on. It reads only."


class Decisions(Ring):
    name, title, confirm = "decisions", "Run or resume the week's decisions", "Yes, ask them"
    about = "Asks each agent that has no final decision this week."
    function, kind = "decisions", "run_decisions"

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if run := self.under_way():
            return nothing(f"A run is under way since {run.started_at:%H:%M:%S} UTC.")
        if at >= week_start(at) + START_WITHIN:
            return nothing("The week's window closed on Monday 00:00 UTC: nobody can be asked before Sunday 00:05.")
        try:
            estimate = estimate_run(at=at)
        except NoMarkets as error:
            return nothing(f"Nobody can be asked: {error}.")
        if not estimate.agents:
            return nothing("Nobody is due: every decision of the week is final, or no cohort decides this week.")
        lines = [f"{agent.display_name} ({agent.model_id}), cohort {agent.cohort.number}" for agent in estimate.agents]
        says = f"{len(estimate.agents)} would be asked, {estimate.skipped} have decided. {_money(estimate.cost_usd)}"
        return Preview(says, lines, _warnings(Decision.PROTOCOL, estimate.cost_usd, at))


class Forecasts(Ring):
    name, title, confirm = "forecasts", "Run or resume the day's forecasts", "Yes, ask them"
    about = "Asks each family for the sheets of the day it has not answered."
    function, kind = "forecasts", "run_forecasts"

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if run := self.under_way():
            return nothing(f"A run is under way since {run.started_at:%H:%M:%S} UTC.")
        estimate = estimate_forecasts(at=at)
        if not estimate.asked:
            return nothing("Nobody is due: every sheet of the day is answered, or no methodology asks for forecasts.")
        lines = [f"{release}: {sheets} sheet{'s' if sheets != 1 else ''}" for release, sheets in estimate.asked]
        frozen = "" if estimate.frozen else " The day's questions are frozen first; the cost is that of the last day."
        says = f"{len(lines)} models would be asked. {_money(estimate.cost_usd)}{frozen}"
        return Preview(says, lines, _warnings(Elicitation.PROTOCOL, estimate.cost_usd, at))


def _money(expected: Decimal) -> str:
    return f"Expected cost: ${expected:.2f}."


def _warnings(protocol: str, expected: Decimal, at: datetime) -> str:
    spent, cap = spent_in_week(protocol, week_start(at)), settings.ARENA_SPEND_LIMIT_USD
    said = []
    if spent + expected > cap:
        said.append(f"${spent:.2f} of this week's ${cap:.2f} are spent: the cap may stop it before its end.")
    return " ".join(filter(None, [*said, no_worker()]))


class StartCohort(Act):
    name, title, confirm = "start-cohort", "Start this week's cohort", "Yes, start it"
    about = "One agent for each family of the line-up."
    permission = "arena_site.run_jobs"
    usual_reason = BY_HAND

    def target(self, asked: Asked) -> str:
        return "this week's cohort"

    def state(self, asked: Asked) -> dict[str, Any]:
        newest = Cohort.objects.order_by("-number").first()
        return {"newest cohort": newest and newest.number, "agents": newest.agents.count() if newest else 0}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        week = week_start(at)
        if known := Cohort.objects.filter(week_start=week).first():
            agents = known.agents.count()
            return nothing(f"Cohort {known.number} of the week of {week:%d %B %Y} is there, with {agents} agents.")
        names = [f"{release.family}: {release.model_id}" for release in releases_playing(at)]
        if not names:
            return nothing("No line-up in force names a family that is active: nobody to enrol.")
        late = at >= week + START_WITHIN
        warning = "The week began over a day ago: decisions are asked for on its Sunday alone." if late else ""
        says = f"A cohort for the week of {week:%d %B %Y}, each agent with its starting balance:"
        return Preview(says, names, warning)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        try:
            with transaction.atomic():
                started = cohort_start(at=at)
        except NobodyToEnrol as error:
            return unchanged(f"Nothing was started: {error}.")
        path = row_path(started.cohort)
        if not started.created:
            return unchanged(f"Cohort {started.cohort.number} of this week was there already.", path)
        return Done(f"Cohort {started.cohort.number} has started with {started.agents} agents.", path=path)


class ExportForm(forms.Form):
    cohort = forms.ModelChoiceField(
        Cohort.objects.all(), required=False, empty_label="everything", to_field_name="number"
    )
    formats = forms.MultipleChoiceField(
        choices=[(name, name) for name in FORMATS], initial=[CSV], widget=forms.CheckboxSelectMultiple
    )


class BuildExport(Act):
    name, title, confirm = "export", "Build an archive", "Yes, build it"
    about = "Every table with its proof, for anyone to fetch."
    permission = "arena_site.run_jobs"
    usual_reason = BY_HAND
    form = ExportForm

    def target(self, asked: Asked) -> str:
        return f"cohort {asked['cohort'].number}" if asked["cohort"] else "everything"

    def target_path(self, asked: Asked) -> str:
        return list_path(Export)

    def state(self, asked: Asked) -> dict[str, Any]:
        newest = Export.objects.order_by("-pk").first()
        return {"newest export": newest and f"{newest.pk}, {newest.status}"}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        return Preview(
            f"A worker builds {self.target(asked)} as {', '.join(asked['formats'])}. One under way, or younger than an "
            "hour, is given instead.",
            warning=no_worker(),
        )

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        # On the real clock: it is the archive's age that says whether it is given again.
        selection = Selection(asked["cohort"].number if asked["cohort"] else None)
        export, created = export_request(selection=selection, formats=tuple(asked["formats"]), by=by, at=timezone.now())
        rung = export.status == Export.Status.QUEUED and jobs.ring("export", export.pk)
        path = row_path(export)
        if not created:
            return unchanged(f"{str(export).capitalize()} is there already: {export.status}.", path)
        return Done(f"{str(export).capitalize()} is {'rung' if rung else 'waiting'}. {no_worker()}".strip(), path=path)
