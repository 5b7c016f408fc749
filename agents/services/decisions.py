"""Decision runs: each agent of the active cohorts is asked for its decision of the week, exactly once."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from agents.answers import Answer
from agents.models import Agent, Decision, JournalEntry, ModelCall, Position
from agents.prompts import Prompt, build_prompt, portfolio_parts
from agents.services import ledger
from agents.services.claims import Claim, claim_task, retry_window_end
from agents.services.conversation import Conversation
from agents.services.execution import execute_answer
from agents.services.missed import record_missed_decisions
from agents.services.model_calls import CallSettings
from agents.services.runs import RunReport, run_task
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.foundation.failpoints import failpoint
from markets.models import Universe, UniverseEntry
from markets.services.universes import NoMarkets, freeze_universe
from markets.sources.polymarket import Clob

log = logging.getLogger(__name__)


@dataclass(slots=True)
class DecisionReport(RunReport):
    """The counts of a decision run."""

    universe: int | None = None
    fallback_holds: int = 0
    trades: int = 0


def run_decisions(
    *,
    at: datetime,
    settings: CallSettings,
    clob: Clob | None,
    cohort: Cohort | None = None,
    family: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, caption: None,
) -> DecisionReport:
    """Asks every agent that is due in the week of `at` and has no final decision yet.

    `cohort` and `family` narrow the run. An agent whose decision is final or claimed by another worker is skipped.
    """
    report = DecisionReport()
    report.store_spooled_answers()
    run_started = timezone.now()
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology").order_by("number")
    if cohort is not None:
        cohorts = cohorts.filter(pk=cohort.pk)
    report.missed = record_missed_decisions(cohorts, at=at, family=family)
    deciding = [cohort for cohort in cohorts if cohort.is_deciding(at)]
    universes = _open_universes(deciding, at=at, clob=clob, report=report)
    agents = [agent for cohort in deciding if cohort.methodology_id in universes for agent in _agents(cohort, family)]
    ahead = agents_with_later_entries(agents, at)
    for done, agent in enumerate(agents):
        progress(done, len(agents), f"{agent.display_name}, cohort {agent.cohort.number}")
        if agent.pk in ahead:
            report.skipped += 1
            report.log.append(f"{agent}: its ledger is already past {at:%Y-%m-%d %H:%M}")
            continue
        universe = universes[agent.cohort.methodology_id]
        _ask_agent(agent, universe, settings=settings, at=at, run_started=run_started, report=report)
    progress(len(agents), len(agents), "")
    return report


def _open_universes(
    cohorts: Iterable[Cohort], *, at: datetime, clob: Clob | None, report: DecisionReport
) -> dict[int, Universe]:
    """The week's universe by methodology id, frozen now if need be; without those outside their retry window."""
    universes: dict[int, Universe] = {}
    for methodology in {cohort.methodology_id: cohort.methodology for cohort in cohorts}.values():
        universe = _freeze_universe(methodology, at=at, clob=clob, report=report)
        if universe is None:
            continue
        report.universe = universe.pk
        if at < universe.frozen_at:
            report.log.append(f"universe {universe.pk} was frozen after {at:%Y-%m-%d %H:%M}: nobody is asked")
        elif at >= retry_window_end(universe, methodology.retry_window):
            report.log.append(f"the retry window of universe {universe.pk} has ended: nobody is asked")
        else:
            universes[methodology.pk] = universe
    return universes


def _freeze_universe(
    methodology: Methodology, *, at: datetime, clob: Clob | None, report: DecisionReport
) -> Universe | None:
    # The positions of all cohorts of the methodology, not of this run's alone: every run shares the universe.
    positions = Position.objects.open().filter(agent__cohort__methodology=methodology)
    try:
        return freeze_universe(
            week_start=week_start(at),
            methodology=methodology.version,
            size=methodology.universe_size,
            rule=methodology.price_rule,
            held=positions.values_list("market_id", flat=True).distinct(),
            at=at,
            clob=clob,
            on_priced=report.add_price_failures,
        )
    except NoMarkets as error:
        report.failures.append(str(error))
        return None


def _agents(cohort: Cohort, family: str | None) -> list[Agent]:
    agents = (
        Agent.objects.playing()
        .filter(cohort=cohort, family__external=False)
        .select_related("cohort__methodology", "family")
        .order_by("family")
    )
    return list(agents.filter(family__slug=family) if family else agents)


def agents_with_later_entries(agents: Iterable[Agent], at: datetime) -> set[int]:
    """The ids of agents whose journal has entries after `at`: a decision of that instant would rewrite history."""
    entries = JournalEntry.objects.filter(agent__in=[agent.pk for agent in agents], occurred_at__gt=at)
    return set(entries.values_list("agent_id", flat=True).distinct())


def _ask_agent(
    agent: Agent,
    universe: Universe,
    *,
    settings: CallSettings,
    at: datetime,
    run_started: datetime,
    report: DecisionReport,
) -> None:
    """Claims one agent's decision, asks the model, executes the answer, and counts the result in `report`."""
    claim = claim_task(
        Decision,
        identity={"agent": agent, "cohort": agent.cohort, "week": agent.cohort.decision_week(at)},
        universe=universe,
        refused_retries=agent.cohort.methodology.refused_retries,
        lease=settings.lease,
        run_started=run_started,
    )
    decision = run_task(
        claim, lambda claim: decision_conversation(claim, at), label=str(agent), settings=settings, report=report
    )
    if claim is None or decision is None:
        return
    log.info("executed", extra=claim.task.log_context | {"action": decision.action, "fallback": decision.fallback})
    report.fallback_holds += decision.fallback
    report.trades += decision.trades.count()
    if decision.fallback:
        report.log.append(f"{agent}: held by fallback: {decision.error}")


def decision_conversation(claim: Claim[Decision], at: datetime) -> Conversation[Decision]:
    """The conversation about a decision, whose answer is executed at `at`."""
    return Conversation(
        prompt=lambda retry_note: decision_prompt(claim.task, retry_note),
        execute_answer=lambda call: _execute_answer(claim, call, at=at),
        give_up=lambda reason: _hold_by_fallback(claim, reason, at=at),
    )


def decision_prompt(decision: Decision, retry_note: str = "") -> Prompt:
    """The decision's prompt with the agent's portfolio as it is now."""
    agent = Agent.objects.get(pk=decision.agent_id)
    positions = list(Position.objects.open().filter(agent=agent).select_related("market", "outcome").order_by("pk"))
    market_ids = [position.market_id for position in positions]
    entries = UniverseEntry.objects.filter(universe=decision.universe, market__in=market_ids)
    by_market = {entry.market_id: entry for entry in entries}
    parts = portfolio_parts(decision, agent, positions=positions, entries=by_market, retry_note=retry_note)
    return build_prompt(decision, parts)


def _execute_answer(claim: Claim[Decision], call: ModelCall, *, at: datetime) -> Decision:
    """Makes the trades and completes the decision in one transaction.

    If every instruction is rejected, the decision fails and the model may answer again.
    """
    answer = Answer.from_json(call.parsed)
    with transaction.atomic():
        claim.renew()
        agent = ledger.lock_agent(claim.task.agent_id)
        instructions = execute_answer(answer, agent=agent, decision=claim.task, call=call, at=at)
        failpoint("decision.traded")
        reasons = [instruction.reason for instruction in instructions if not instruction.executed]
        if instructions and len(reasons) == len(instructions):
            call.result, call.error = ModelCall.Result.REFUSED, "\n".join(reasons)
            call.save(update_fields=["result", "error"])
            return claim.finish(
                status=Decision.Status.FAILED,
                refusals=claim.task.refusals + 1,
                error=f"no instruction could be carried out: {'; '.join(reasons)}",
            )
        return claim.finish(
            status=Decision.Status.COMPLETED,
            action=answer.action,
            reasoning=answer.reasoning,
            error="",
            decided_at=at,
        )


def _hold_by_fallback(claim: Claim[Decision], reason: str, *, at: datetime) -> Decision:
    return claim.finish(
        status=Decision.Status.COMPLETED,
        action=Decision.Action.HOLD,
        fallback=True,
        error=reason,
        decided_at=at,
    )
