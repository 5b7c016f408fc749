"""A forecast run: every active family is asked the day's questions in every arm, each sheet exactly once."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.db import transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

from agents.forecast_answers import Stated, judge
from agents.models import Agent, Elicitation, Forecast, ModelCall, Position, RefusedForecast, Release, Trade
from agents.models.forecast import asked_of
from agents.prompts import Prompt
from agents.services.asking import Asking
from agents.services.claims import Claim, task_claim
from agents.services.conversation import Conversation
from agents.services.enrolment import releases_playing
from agents.services.missed import record_unsubmitted
from agents.services.runs import RunReport, see_through
from cohorts.forecasting import ForecastRules
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.failpoints import reached
from markets.models import QuestionEntry, QuestionSet, QuestionSheet, Universe
from markets.models.question import day_of
from markets.services.questions import Freeze, NoQuestions, question_set_extend, question_set_freeze
from markets.sources.polymarket import Clob

Entries = Callable[[QuestionSheet], list[QuestionEntry]]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ForecastReport(RunReport):
    """What a forecast run did besides."""

    questions: int = 0
    recorded: int = 0
    refused: int = 0
    declined: int = 0


def run_forecasts(
    *,
    at: datetime,
    asking: Asking,
    clob: Clob | None,
    questions: int | None = None,
    progress: Callable[[int, int, str], None] = lambda done, of, what: None,
) -> ForecastReport:
    """Freezes the day's questions unless they are, and asks every family that has no final answer to them yet.

    `questions` may lower the day's number of chosen questions where they are frozen now.
    """
    report, began = ForecastReport(), timezone.now()
    methodology = Methodology.objects.forecasting()
    if methodology is None or methodology.forecast_rules is None:
        report.failures.append("no published methodology has a forecast protocol")
        return report
    rules = methodology.forecast_rules
    report.missed = record_missed_forecasts(at=at) + record_unsubmitted(at=at)
    sets = _sets(methodology, rules, at=at, clob=clob, questions=questions, report=report)
    report.questions = sum(asked.entries.count() for asked in sets)
    open_sets = [asked for asked in sets if asked.frozen_at <= at < asked.frozen_at + rules.retry_window]
    if len(open_sets) < len(sets):
        report.log.append(f"{len(sets) - len(open_sets)} sets of questions can not be answered at {at:%Y-%m-%d %H:%M}")
    releases = releases_asked(methodology, at)
    sheets = {asked.pk: list(asked.sheets.select_related("question_set")) for asked in open_sets}
    work = [(sheet, release) for asked in open_sets for release in releases for sheet in sheets[asked.pk]]
    entries = cache(entries_of)
    completed: list[int] = []
    for done, (sheet, release) in enumerate(work):
        progress(done, len(work), f"{release.display_name}, {sheet.arm}, sheet {sheet.number}")
        task = _elicit(sheet, release, methodology, entries=entries, asking=asking, at=at, began=began, report=report)
        completed += [task.pk] if task else []
    report.recorded = Forecast.objects.filter(elicitation__in=completed).count()
    refused = RefusedForecast.objects.filter(call__elicitation__in=completed, call__result=ModelCall.Result.ANSWERED)
    report.refused = refused.count()
    progress(len(work), len(work), "")
    return report


def record_missed_forecasts(*, at: datetime) -> int:
    """Marks what failed and can no longer be tried at `at` as missed; returns how many."""
    over = [
        task.pk
        for task in Elicitation.objects.claimable(timezone.now()).select_related(
            "sheet__question_set", "methodology", "family"
        )
        if at >= task.window_ends_at
    ]
    tasks = Elicitation.objects.claimable(timezone.now()).filter(pk__in=over)
    return tasks.update(status=Elicitation.Status.MISSED, claim_token=None, lease_until=None)


def _sets(
    methodology: Methodology,
    rules: ForecastRules,
    *,
    at: datetime,
    clob: Clob | None,
    questions: int | None,
    report: ForecastReport,
) -> list[QuestionSet]:
    """The day's sets of questions, frozen now where they are not yet."""
    universe = _universe_of_the_day(methodology, at)
    played = _played(universe, at) if universe else set()
    freeze = Freeze(
        day=day_of(at),
        methodology=methodology.version,
        rule=rules.choice(questions),
        price_rule=methodology.price_rule,
        universe=universe,
        at=at,
        clob=clob,
        priced_with=report.note_prices,
    )
    try:
        question_set_freeze(freeze, played=played)
        question_set_extend(freeze, played=played)
    except NoQuestions as error:
        report.failures.append(str(error))
    return list(QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology).order_by("part"))


def _universe_of_the_day(methodology: Methodology, at: datetime) -> Universe | None:
    """The week's universe on the day it was frozen: what is asked then is asked at its prices."""
    universe = Universe.objects.filter(week_start=week_start(at), methodology=methodology.version).first()
    if universe is None or day_of(universe.frozen_at) != day_of(at) or universe.frozen_at > at:
        return None
    return universe


def _played(universe: Universe, at: datetime) -> set[int]:
    """Markets that an agent bet on in the run of this universe, or held then."""
    bets = Trade.objects.filter(decision__universe=universe, kind=Trade.Kind.BUY, executed_at__lte=at)
    held = Position.objects.filter(agent__cohort__methodology__version=universe.methodology, opened_at__lte=at)
    held = held.exclude(closed_at__lte=universe.frozen_at)
    return set(bets.values_list("market", flat=True)) | set(held.values_list("market", flat=True))


def releases_asked(methodology: Methodology, at: datetime) -> list[Release]:
    """Who is asked: the line-up in force, and on the day of decisions those that decide as well."""
    releases = {release.pk: release for release in releases_playing(at)}
    if day_of(at) == week_start(at):
        cohorts = Cohort.objects.active(at).filter(methodology=methodology, week_start__lte=at)
        deciding = [cohort.pk for cohort in cohorts.select_related("methodology") if cohort.is_deciding(at)]
        for agent in Agent.objects.filter(cohort__in=deciding, family__external=False).select_related("release"):
            releases[agent.release_id] = agent.release
    asked = [releases[pk] for pk in sorted(releases)]
    prefetch_related_objects(asked, "family")
    return asked


def _elicit(
    sheet: QuestionSheet,
    release: Release,
    methodology: Methodology,
    *,
    entries: Entries,
    asking: Asking,
    at: datetime,
    began: datetime,
    report: ForecastReport,
) -> Elicitation | None:
    """One release's answer to one sheet, from the claim to its end, counted in `report`; None unless it completed."""
    claim = task_claim(
        Elicitation,
        identity={"sheet": sheet, "release": release},
        refused_retries=methodology.refused_retries,
        lease=asking.lease,
        began=began,
        methodology=methodology,
        family=release.family,
    )
    name = f"{release}, {sheet}"
    task = see_through(claim, lambda held: conversation(held, at, entries), name=name, asking=asking, report=report)
    if claim is None or task is None:
        return None
    log.info("recorded", extra=claim.task.about | {"declined": task.declined})
    if task.declined:
        report.declined += 1
        report.log.append(f"{name}: no forecast: {task.error}")
    return task


def entries_of(sheet: QuestionSheet) -> list[QuestionEntry]:
    """The questions that answers to a sheet are judged by. They are frozen with it: a run may read them once."""
    return list(sheet.entries.prefetch_related("question__options"))


def conversation(claim: Claim[Elicitation], at: datetime, entries: Entries = entries_of) -> Conversation[Elicitation]:
    """How a sheet is put and what is recorded of the answer at `at`; `entries` gives the questions of the sheet."""
    return Conversation(
        prompt=lambda note: prompt_of(claim.task, note),
        carry_out=lambda call: _record(claim, call, entries(claim.task.sheet), at=at),
        give_up=lambda why: claim.finish(status=Elicitation.Status.COMPLETED, declined=True, error=why, made_at=at),
    )


def prompt_of(task: Elicitation, note: str = "") -> Prompt:
    """What the sheet's release is sent."""
    return Prompt(system=task.system_prompt, retry_note=note, user=task.prompt_text() + note)


def _record(claim: Claim[Elicitation], call: ModelCall, entries: list[QuestionEntry], *, at: datetime) -> Elicitation:
    """Every forecast that can be taken and the task's end in one transaction, or nothing of either."""
    task = claim.task
    stated = [Stated.from_json(said) for said in call.parsed]
    judged = judge(stated, [asked_of(entry) for entry in entries])
    with transaction.atomic():
        claim.renew()
        refused = [verdict.reason for verdict in judged if verdict.probabilities is None]
        RefusedForecast.objects.bulk_create(
            RefusedForecast(call=call, entry=entry, stated=verdict.stated, reason=verdict.reason)
            for entry, verdict in zip(entries, judged, strict=True)
            if verdict.probabilities is None
        )
        if len(refused) == len(judged):
            call.result, call.error = ModelCall.Result.REFUSED, "\n".join(refused)
            call.save(update_fields=["result", "error"])
            return claim.finish(
                status=Elicitation.Status.FAILED,
                refusals=task.refusals + 1,
                error=f"no forecast could be taken: {'; '.join(refused)}",
            )
        Forecast.objects.bulk_create(
            Forecast(
                elicitation=task,
                call=call,
                entry=entry,
                question=entry.question,
                family_id=task.family_id,
                release_id=task.release_id,
                methodology=task.methodology.version,
                arm=task.sheet.arm,
                probabilities=verdict.probabilities,
                stated=verdict.stated,
                normalised=verdict.normalised,
                rationale=verdict.rationale,
                made_at=at,
            )
            for entry, verdict in zip(entries, judged, strict=True)
            if verdict.probabilities is not None
        )
        reached("elicitation.recorded")
        return claim.finish(status=Elicitation.Status.COMPLETED, error="", made_at=at)
