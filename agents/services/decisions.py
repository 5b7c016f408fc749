"""A decision run: every agent of the active cohorts is asked once for its week, exactly once."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from agents.answers import Answer
from agents.models import Agent, Decision, JournalEntry, ModelCall, Position
from agents.prompts import Prompt, prompt_for
from agents.services import ledger
from agents.services.asking import Asking
from agents.services.claims import Claim, retry_window_ends, task_claim
from agents.services.conversation import Conversation
from agents.services.execution import carry_out
from agents.services.missed import record_missed
from agents.services.runs import RunReport, see_through
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.failpoints import reached
from markets.models import Universe, UniverseEntry
from markets.services.universes import NoMarkets, universe_freeze
from markets.sources.polymarket import Clob

log = logging.getLogger(__name__)


@dataclass(slots=True)
class DecisionReport(RunReport):
    """What a decision run did besides."""

    universe: int | None = None
    fallback_holds: int = 0
    trades: int = 0


def run_decisions(
    *,
    at: datetime,
    asking: Asking,
    clob: Clob | None,
    cohort: Cohort | None = None,
    family: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, of, what: None,
) -> DecisionReport:
    """Asks every agent that is due in the week of `at` and has no final decision yet.

    `cohort` and `family` narrow the run. An agent whose decision is final or claimed elsewhere is skipped.
    """
    report = DecisionReport()
    began = timezone.now()
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology").order_by("number")
    if cohort is not None:
        cohorts = cohorts.filter(pk=cohort.pk)
    report.missed = record_missed(cohorts, at=at, family=family)
    due = [c for c in cohorts if c.is_deciding(at)]
    universes = _universes(due, at=at, clob=clob, report=report)
    agents = [agent for c in due if c.methodology_id in universes for agent in _agents(c, family)]
    ahead = ahead_of(agents, at)
    for done, agent in enumerate(agents):
        progress(done, len(agents), f"{agent.display_name}, cohort {agent.cohort.number}")
        if agent.pk in ahead:
            report.skipped += 1
            report.log.append(f"{agent}: its ledger is already past {at:%Y-%m-%d %H:%M}")
            continue
        _decide(agent, universes[agent.cohort.methodology_id], asking=asking, at=at, began=began, report=report)
    progress(len(agents), len(agents), "")
    return report


def _universes(
    due: Iterable[Cohort], *, at: datetime, clob: Clob | None, report: DecisionReport
) -> dict[int, Universe]:
    """The universe of the week for each methodology in play, frozen now where it is not yet."""
    universes: dict[int, Universe] = {}
    for methodology in {cohort.methodology_id: cohort.methodology for cohort in due}.values():
        universe = _universe(methodology, at=at, clob=clob, report=report)
        if universe is None:
            continue
        report.universe = universe.pk
        if at < universe.frozen_at:
            report.log.append(f"universe {universe.pk} was frozen after {at:%Y-%m-%d %H:%M}: nobody is asked")
        elif at >= retry_window_ends(universe, methodology.retry_window):
            report.log.append(f"the window of universe {universe.pk} is over: nobody is asked")
        else:
            universes[methodology.pk] = universe
    return universes


def _universe(methodology: Methodology, *, at: datetime, clob: Clob | None, report: DecisionReport) -> Universe | None:
    # Of every cohort of the methodology, not of this run's alone: the universe is shared by all invocations.
    held = Position.objects.open().filter(agent__cohort__methodology=methodology)
    try:
        return universe_freeze(
            week_start=week_start(at),
            methodology=methodology.version,
            size=methodology.universe_size,
            rule=methodology.price_rule,
            held=held.values_list("market_id", flat=True).distinct(),
            at=at,
            clob=clob,
            priced_with=report.note_prices,
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


def ahead_of(agents: Iterable[Agent], at: datetime) -> set[int]:
    """Agents whose ledger holds entries after `at`: a decision of that instant can no longer be told to them."""
    entries = JournalEntry.objects.filter(agent__in=[agent.pk for agent in agents], occurred_at__gt=at)
    return set(entries.values_list("agent_id", flat=True).distinct())


def _decide(
    agent: Agent, universe: Universe, *, asking: Asking, at: datetime, began: datetime, report: DecisionReport
) -> None:
    """One agent's decision from the claim to its end, counted in `report`."""
    methodology = agent.cohort.methodology
    claim = task_claim(
        Decision,
        identity={"agent": agent, "cohort": agent.cohort, "week": agent.cohort.decision_week(at)},
        universe=universe,
        refused_retries=methodology.refused_retries,
        lease=asking.lease,
        began=began,
    )
    decision = see_through(claim, lambda held: conversation(held, at), name=str(agent), asking=asking, report=report)
    if claim is None or decision is None:
        return
    log.info("executed", extra=claim.task.about | {"action": decision.action, "fallback": decision.fallback})
    report.fallback_holds += decision.fallback
    report.trades += decision.trades.count()
    if decision.fallback:
        report.log.append(f"{agent}: held by fallback: {decision.error}")


def conversation(claim: Claim[Decision], at: datetime) -> Conversation[Decision]:
    """How a decision is asked for and carried out at `at`."""
    return Conversation(
        prompt=lambda note: prompt_of(claim.task, note),
        carry_out=lambda call: _execute(claim, call, at=at),
        give_up=lambda why: _hold(claim, why, at=at),
    )


def prompt_of(decision: Decision, retry_note: str = "") -> Prompt:
    """What the decision's agent is sent, at its portfolio as it stands."""
    universe = decision.universe
    assert universe is not None
    agent = Agent.objects.get(pk=decision.agent_id)
    positions = list(Position.objects.open().filter(agent=agent).select_related("market", "outcome").order_by("pk"))
    held = UniverseEntry.objects.filter(universe=universe, market__in=[p.market_id for p in positions])
    return prompt_for(
        agent,
        methodology=decision.cohort.methodology,
        universe=universe,
        positions=positions,
        entries={entry.market_id: entry for entry in held},
        week=decision.week,
        retry_note=retry_note,
    )


def _execute(claim: Claim[Decision], call: ModelCall, *, at: datetime) -> Decision:
    """Trades and the decision's end in one transaction, or nothing of either."""
    answer = Answer.from_json(call.parsed)
    with transaction.atomic():
        claim.renew()
        agent = ledger.agent_lock(claim.task.agent_id)
        instructions = carry_out(answer, agent=agent, decision=claim.task, call=call, at=at)
        reached("decision.traded")
        rejected = [instruction.reason for instruction in instructions if not instruction.executed]
        if instructions and len(rejected) == len(instructions):
            call.result, call.error = ModelCall.Result.REFUSED, "\n".join(rejected)
            call.save(update_fields=["result", "error"])
            return claim.finish(
                status=Decision.Status.FAILED,
                refusals=claim.task.refusals + 1,
                error=f"no instruction could be carried out: {'; '.join(rejected)}",
            )
        return claim.finish(
            status=Decision.Status.COMPLETED,
            action=answer.action,
            reasoning=answer.reasoning,
            error="",
            decided_at=at,
        )


def _hold(claim: Claim[Decision], why: str, *, at: datetime) -> Decision:
    return claim.finish(
        status=Decision.Status.COMPLETED,
        action=Decision.Action.HOLD,
        fallback=True,
        error=why,
        decided_at=at,
    )
