"""Forecast runs: each release of the line-up is asked the day's batches of questions, each exactly once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from agents.models import Agent, Elicitation, Forecast, ModelCall, Position, RefusedForecast, Release, Trade
from agents.models.task import PromptParts
from agents.sealing import seal_end
from agents.services.answer_storage import store_spooled_answers
from agents.services.claims import Claim, claim_task, end_leases_of_killed_runs
from agents.services.conditions import conditions_to_ask, evidence_gatherer
from agents.services.conversation import Conversation, valid_calls
from agents.services.envelopes import open_envelopes, seal_answer
from agents.services.gone_releases import gone_releases
from agents.services.lineups import lineup_releases
from agents.services.missed import NEVER_ASKED, record_missed_elicitations, record_unsubmitted_elicitations
from agents.services.model_calls import CallSettings
from agents.services.reconciliation import prepare_run
from agents.services.runs import RunReport, fail_unasked, run_task
from agents.services.samples import read_sample, record_sampled_forecasts
from agents.services.spending import week_spending
from agents.services.verdicts import ForecastVerdict
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from foundation.bulk import create_missing, rows_by
from foundation.failpoints import failpoint
from markets.models import EvidenceClaim, QuestionBatch, QuestionSet, Universe
from markets.models.question import day_of
from markets.selectors.sibling_questions import sibling_counts
from markets.services.evidence import EvidenceClaimed
from markets.services.prices import is_replay
from markets.services.questions import FreezeParameters, NoQuestions, extend_question_set, freeze_question_set
from markets.sources.polymarket import Clob

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules

log = logging.getLogger(__name__)
UNASKED_WITHIN = timedelta(days=14)
"""How long after its day a set's unasked elicitations are still recorded, by whichever run comes next."""


@dataclass(slots=True)
class ForecastReport(RunReport):
    """The counts of a forecast run."""

    questions: int = 0
    siblings: int = 0
    recorded: int = 0
    refused: int = 0
    declined: int = 0
    left_out: int = 0
    """Conditions that the day's sets of questions are not asked under, since their source gave nothing."""


def run_forecasts(
    *,
    at: datetime,
    settings: CallSettings,
    clob: Clob | None,
    questions: int | None = None,
    family: str | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> ForecastReport:
    """Freezes the day's questions if need be, and asks each release without a final answer to them.

    `questions` may lower the number of questions to choose, if they are frozen by this run; `family` asks it alone.
    """
    report = ForecastReport(asking_ends_s=settings.asking_ends_s)
    if not store_spooled_answers(report.log):
        claims = Elicitation.objects.filter(status=Elicitation.Status.CLAIMED, family__external=False)
        end_leases_of_killed_runs(claims, EvidenceClaim.objects.all(), command="run_forecasts", lease=settings.lease)
    report.log.write_all(prepare_run(settings, Elicitation.PROTOCOL, at=at))
    report.stops |= gone_releases()
    methodology = Methodology.objects.forecasting()
    if methodology is None or methodology.forecast_rules is None:
        report.failures.write("no published methodology has a forecast protocol")
        return report
    rules = methodology.forecast_rules
    report.failures.write_all(open_envelopes(at=at).failures)
    completed = record_cut_elicitations(at=at, lease=settings.lease)
    report.recorded += record_sampled_forecasts(at=at)
    for pk in completed:
        report.log.write(f"elicitation {pk}: recorded what its cut answers state")
    report.missed = record_missed_elicitations(at=at) + record_unsubmitted_elicitations(at=at)
    report.missed += record_unasked_elicitations(methodology, rules, at=at, family=family)
    spending = week_spending(Elicitation.PROTOCOL, week_start(at), default_cap=settings.spend_limit)
    sets = _freeze_question_sets(
        methodology, rules, at=at, clob=clob, questions=questions, most_usd=spending.cap - spending.spent, report=report
    )
    report.questions = sum(question_set.entries.count() for question_set in sets)
    report.siblings = sibling_counts([question_set.pk for question_set in sets]).siblings
    if not is_replay(at):  # a set with evidence is frozen after it was gathered
        at = max([at, *(question_set.frozen_at for question_set in sets)])
    open_sets = [s for s in sets if s.frozen_at <= at < s.frozen_at + rules.retry_window]
    if len(open_sets) < len(sets):
        report.log.write(f"{len(sets) - len(open_sets)} sets of questions can not be answered at {at:%Y-%m-%d %H:%M}")
    releases = [release for release in releases_to_ask(methodology, at) if family in (None, release.family.slug)]
    work = list(_work(open_sets, releases, rules, report))
    for number, request in enumerate(work):
        batch, release = request.batch, request.release
        progress(number, len(work), f"{release.display_name}, {batch.arm}, batch {batch.number}")
        if report.is_paused(Elicitation.PROTOCOL, release.family_id, f"{release}, {batch}"):
            continue
        if report.is_stopped(release.model_id, f"{release}, {batch}"):
            fields = request.task_fields(methodology)
            fail_unasked(report, Elicitation, model_id=release.model_id, identity=request.identity, **fields)
            continue
        task = _elicit(request, methodology, settings=settings, at=at, report=report)
        completed += [task.pk] if task else []
    report.recorded += Forecast.objects.filter(elicitation__in=completed, samples__isnull=True).count()
    report.recorded += record_sampled_forecasts(at=at)
    refused = RefusedForecast.objects.filter(call__elicitation__in=completed, call__result__in=ModelCall.READ)
    report.refused = refused.count()
    progress(len(work), len(work), "")
    return report


@dataclass(frozen=True, slots=True)
class Request:
    """One sample to ask of a release about a batch."""

    batch: QuestionBatch
    release: Release
    sample: int
    samples: int

    @property
    def identity(self) -> dict[str, Any]:
        """The unique fields of its task."""
        return {"batch": self.batch, "release": self.release, "sample": self.sample}

    def task_fields(self, methodology: Methodology) -> dict[str, Any]:
        return {"methodology": methodology, "family": self.release.family, "samples": self.samples}


def _work(
    sets: Iterable[QuestionSet], releases: Sequence[Release], rules: ForecastRules, report: ForecastReport
) -> Iterator[Request]:
    """The requests of a run: each release, each batch of the conditions that are on, each sample."""
    conditions = rows_by("name", conditions_to_ask(rules))
    for question_set in sets:
        for name, reason in question_set.left_out.items():
            report.left_out += 1
            report.log.write(f"{question_set}: the condition {name} is not asked: {reason}")
        batches = list(question_set.batches.select_related("question_set"))
        for release, batch in product(releases, batches):
            condition = conditions.get(batch.arm)
            if condition is None:
                report.paused += 1
                report.log.write(f"{release}, {batch}: not asked: the condition is off")
                continue
            for sample in range(1, condition.samples + 1):
                yield Request(batch, release, sample, condition.samples)


def record_unasked_elicitations(
    methodology: Methodology, rules: ForecastRules, *, at: datetime, family: str | None = None
) -> int:
    """Records a missed elicitation for each one that was due, and that nobody asked for within its window."""
    ended = QuestionSet.objects.filter(
        methodology=methodology.version,
        day__gte=day_of(at) - UNASKED_WITHIN,
        frozen_at__lte=at - rules.retry_window,
    )
    missed = []
    for question_set in ended:
        releases = releases_to_ask(methodology, question_set.frozen_at)
        due = [release for release in releases if family in (None, release.family.slug)]
        for request in _work([question_set], due, rules, ForecastReport()):
            fields = {"status": Elicitation.Status.MISSED, "error": NEVER_ASKED, **request.task_fields(methodology)}
            missed.append(Elicitation(**request.identity, **fields))
    return create_missing(missed, "batch", "release", "sample")


def _freeze_question_sets(
    methodology: Methodology,
    rules: ForecastRules,
    *,
    at: datetime,
    clob: Clob | None,
    questions: int | None,
    most_usd: Decimal,
    report: ForecastReport,
) -> list[QuestionSet]:
    """The day's sets of questions, frozen now if need be, with evidence of at most that cost."""
    universe = _todays_universe(methodology, at)
    if universe is not None and universe.sealed_until is not None and at < universe.sealed_until:
        until = f"{universe.sealed_until:%Y-%m-%d %H:%M}"
        report.log.write(f"markets that agents bet on this week are not asked before {until}")
    traded = _traded_markets(universe, at) if universe else set()
    freeze = FreezeParameters(
        day=day_of(at),
        methodology=methodology.version,
        rule=rules if questions is None else rules.with_at_most(questions),
        conditions=conditions_to_ask(rules),
        price_rule=methodology.price_rule,
        universe=universe,
        at=at,
        clob=clob,
        on_priced=report.add_price_failures,
        gather=evidence_gatherer(rules, at, most_usd=most_usd),
        seal_end=partial(seal_end, Elicitation.PROTOCOL, methodology.version),
    )
    try:
        freeze_question_set(freeze, traded=traded)
        extend_question_set(freeze, traded=traded)
    except NoQuestions as error:
        report.failures.write(str(error))
    except EvidenceClaimed as claimed:
        report.unasked += 1
        report.log.write(f"the day's questions are left to a later run: {claimed}")
    return list(QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology).order_by("part"))


def _todays_universe(methodology: Methodology, at: datetime) -> Universe | None:
    """The week's universe if it was frozen on the day of `at`: that day's questions use its prices."""
    universe = Universe.objects.filter(week_start=week_start(at), methodology=methodology.version).first()
    if universe is None or day_of(universe.frozen_at) != day_of(at) or universe.frozen_at > at:
        return None
    return universe


def _traded_markets(universe: Universe, at: datetime) -> set[int]:
    """The ids of markets that a model held at the freeze of this universe, or bet on in its run.

    A market of a sealed bet is asked by a run after the opening. What external agents hold chooses no question: the
    models' boards depend on none of them.
    """
    models = {"agent__family__external": False}
    positions = Position.objects.filter(agent__cohort__methodology__version=universe.methodology, opened_at__lte=at)
    positions = positions.filter(**models).exclude(closed_at__lte=universe.frozen_at)
    bets = Trade.objects.filter(decision__universe=universe, kind=Trade.Kind.BUY, executed_at__lte=at, **models)
    return set(bets.values_list("market", flat=True)) | set(positions.values_list("market", flat=True))


def releases_to_ask(methodology: Methodology, at: datetime) -> list[Release]:
    """The releases of the line-up in force, and on the day of decisions those of the deciding agents too."""
    releases = rows_by("pk", lineup_releases(at))
    if day_of(at) == week_start(at):
        cohorts = Cohort.objects.active(at).filter(methodology=methodology, week_start__lte=at)
        deciding = [cohort.pk for cohort in cohorts.select_related("methodology") if cohort.is_deciding(at)]
        for agent in Agent.objects.filter(cohort__in=deciding, family__external=False).select_related("release"):
            releases[agent.release_id] = agent.release
    ordered = [releases[pk] for pk in sorted(releases)]
    prefetch_related_objects(ordered, "family")
    return ordered


def _elicit(
    request: Request,
    methodology: Methodology,
    *,
    settings: CallSettings,
    at: datetime,
    report: ForecastReport,
) -> Elicitation | None:
    """Claims one release's elicitation and asks the model; None unless it completed. Counted in `report`."""
    release, sample = request.release, f", sample {request.sample}" if request.samples > 1 else ""
    label = f"{release}, {request.batch}{sample}"
    task = run_task(
        Elicitation,
        ElicitationConversation(),
        label=label,
        at=at,
        settings=settings,
        report=report,
        identity=request.identity,
        refused_retries=methodology.refused_retries,
        **request.task_fields(methodology),
    )
    if task is not None:
        log.info("recorded", extra=task.log_context | {"declined": task.declined})
        if task.declined:
            report.declined += 1
            report.log.write(f"{label}: no forecast: {task.error}", elicitation=task.pk)
    return task


class ElicitationConversation(Conversation[Elicitation]):
    """The conversation about a batch of questions, whose forecasts are recorded."""

    def prompt(self, task: Elicitation, retry_note: str = "") -> PromptParts:
        """The batch's prompt; after a cut answer, of the questions that lack a forecast alone."""
        block = ""
        if task.pk and task.calls.filter(late=False, result=ModelCall.Result.CUT).exists():
            heading, *lines = task.batch.block.split("\n")
            answered = {row.forecast.question_id for row in _read_answers(task).valid}
            missing = [line for line in lines if json.loads(line)[0] not in answered]
            if 0 < len(missing) < len(lines):
                block = "\n".join([heading, *missing])
        return PromptParts(retry_note=retry_note, questions_block=block)

    def is_answered(self, task: Elicitation) -> bool:
        verdict = _read_answers(task)
        return bool(verdict.rows) and not verdict.refused

    def record_answer(self, claim: Claim[Elicitation], call: ModelCall, at: datetime) -> Elicitation:
        return _record_forecasts(claim, at=at)

    def give_up(self, claim: Claim[Elicitation], reason: str, at: datetime) -> Elicitation:
        if _read_answers(claim.task).valid:
            return _record_forecasts(claim, at=at)
        with transaction.atomic():
            claim.renew()
            return _end(claim, ForecastVerdict(declined=True, error=reason), at)


def record_cut_elicitations(*, at: datetime, lease: timedelta) -> list[int]:
    """Completes elicitations whose window has ended by `at` with the forecasts of their cut answers; their ids."""
    cut = ModelCall.objects.filter(late=False, result=ModelCall.Result.CUT, parsed__isnull=False)
    tasks = Elicitation.objects.claimable(timezone.now()).filter(pk__in=cut.values("elicitation"))
    recorded = []
    for task in tasks.select_related("batch__question_set", "methodology", "family"):
        if at < task.window_ends_at or not _read_answers(task).valid:
            continue
        identity = {"batch": task.batch, "release": task.release, "sample": task.sample}
        claim = claim_task(Elicitation, identity=identity, refused_retries=task.refusals, lease=lease)
        if claim is not None:
            recorded.append(_record_forecasts(claim, at=at).pk)
    return recorded


def _read_answers(task: Elicitation) -> ForecastVerdict:
    """The verdict on the task's answers: the forecast for each entry of the batch; empty if none was read."""
    return ForecastVerdict(rows=read_sample(task, list(task.batch.entries.prefetch_related("question__options"))))


def _record_forecasts(claim: Claim[Elicitation], *, at: datetime) -> Elicitation:
    """Records the valid forecasts of the answers and completes the elicitation in one transaction, or seals them.

    If every forecast is invalid, the elicitation fails and the model may answer again.
    """
    verdict = _read_answers(claim.task)
    with transaction.atomic():
        claim.renew()
        if not verdict.valid:
            verdict.store_refused()
            return claim.refuse(verdict.rows[0].call, verdict.refusals, "no forecast could be taken", at)
        return _end(claim, verdict, at)


def _end(claim: Claim[Elicitation], verdict: ForecastVerdict, at: datetime) -> Elicitation:
    """Carries a verdict out; seals it while an external agent may still answer the same."""
    if claim.task.is_sealed_at(at):
        return seal_answer(claim, valid_calls(claim.task)[-1], verdict.as_json(), at)
    verdict.carry_out(claim.task, at=at)
    failpoint("elicitation.recorded")
    return claim.finish(status=Elicitation.Status.COMPLETED, made_at=at, **verdict.fields)
