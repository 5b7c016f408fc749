"""A decision run: every agent of the active cohorts is asked once for its week, exactly once."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from agents.answers import Answer, Bet, Sell
from agents.models import Agent, Decision, JournalEntry, ModelCall, Position
from agents.prompts import Prompt, prompt_for
from agents.services import ledger
from agents.services.asking import Asking, Unanswered, ask
from agents.services.claims import Claim, ClaimLost, decision_claim, retry_window_ends
from agents.services.execution import carry_out
from agents.services.missed import record_missed
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from markets.failpoints import reached
from markets.models import Universe, UniverseEntry
from markets.services.universes import NoMarkets, universe_freeze
from markets.sources.polymarket import Clob

log = logging.getLogger(__name__)


@dataclass(slots=True)
class DecisionReport:
    """What a run did. `failures` holds a line for each decision that failed and each upstream that gave nothing."""

    universe: int | None = None
    asked: int = 0
    completed: int = 0
    fallback_holds: int = 0
    failed: int = 0
    missed: int = 0
    skipped: int = 0
    trades: int = 0
    cost_usd: Decimal = Decimal(0)
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


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
    ahead = _ahead_of(agents, at)
    first_call = ModelCall.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for done, agent in enumerate(agents):
        progress(done, len(agents), f"{agent.display_name}, cohort {agent.cohort.number}")
        if agent.pk in ahead:
            report.skipped += 1
            report.log.append(f"{agent}: its ledger is already past {at:%Y-%m-%d %H:%M}")
            continue
        _decide(agent, universes[agent.cohort.methodology_id], asking=asking, at=at, began=began, report=report)
    progress(len(agents), len(agents), "")
    asked = ModelCall.objects.filter(pk__gt=first_call, decision__agent__in=[agent.pk for agent in agents])
    report.cost_usd = sum(asked.values_list("cost_usd", flat=True), Decimal(0))
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
        )
    except NoMarkets as error:
        report.failures.append(str(error))
        return None


def _agents(cohort: Cohort, family: str | None) -> list[Agent]:
    agents = (
        Agent.objects.playing().filter(cohort=cohort).select_related("cohort__methodology", "family").order_by("family")
    )
    return list(agents.filter(family__slug=family) if family else agents)


def _ahead_of(agents: list[Agent], at: datetime) -> set[int]:
    """Agents whose ledger holds entries after `at`: a decision of that instant can no longer be told to them."""
    entries = JournalEntry.objects.filter(agent__in=[agent.pk for agent in agents], occurred_at__gt=at)
    return set(entries.values_list("agent_id", flat=True).distinct())


def _decide(
    agent: Agent, universe: Universe, *, asking: Asking, at: datetime, began: datetime, report: DecisionReport
) -> None:
    """One agent's decision from the claim to its end, counted in `report`."""
    methodology = agent.cohort.methodology
    claim = decision_claim(
        agent,
        week=agent.cohort.decision_week(at),
        universe=universe,
        refused_retries=methodology.refused_retries,
        lease=asking.lease,
        began=began,
    )
    if claim is None:
        report.skipped += 1
        return
    report.asked += 1
    log.info("claimed", extra=claim.about)
    reached("decision.claimed")
    try:
        outcome = _outcome(claim, asking=asking, at=at)
    except ClaimLost as lost:
        report.asked -= 1
        report.skipped += 1
        report.log.append(f"{agent}: {lost}")
        log.info("lost", extra=claim.about | {"reason": str(lost)})
        return
    reached("decision.finished")
    if outcome.status == Decision.Status.COMPLETED:
        log.info("executed", extra=claim.about | {"action": outcome.action, "fallback": outcome.fallback})
    report.completed += outcome.status == Decision.Status.COMPLETED
    report.fallback_holds += outcome.fallback
    report.trades += outcome.trades.count()
    if outcome.status == Decision.Status.FAILED:
        log.info("failed", extra=claim.about | {"reason": outcome.error})
        report.failed += 1
        report.failures.append(f"{agent}: {outcome.error}")
    elif outcome.fallback:
        report.log.append(f"{agent}: held by fallback: {outcome.error}")


def _outcome(claim: Claim, *, asking: Asking, at: datetime) -> Decision:
    """The decision at its end, or failed for now. Raises ClaimLost if it is no longer ours."""
    try:
        return _converse(claim, asking=asking, at=at)
    except Unanswered as reason:
        return _fail(claim, str(reason))


def _converse(claim: Claim, *, asking: Asking, at: datetime) -> Decision:
    """Asks until there is an answer that counts, going on from whatever calls are stored already."""
    decision = claim.decision
    methodology = decision.cohort.methodology
    while True:
        calls = list(decision.calls.filter(late=False))
        last = calls[-1] if calls else None
        if last is not None and last.result == ModelCall.Result.ANSWERED:
            return _execute(claim, last, at=at)
        if last is not None and last.result == ModelCall.Result.DECLINED:
            return _hold(claim, last.error, at=at)
        malformed = _malformed_in_a_row(calls)
        if malformed > methodology.malformed_retries:
            assert last is not None
            return _hold(claim, f"malformed {malformed} times, at last: {_last_reason(calls)}", at=at)
        judged = sum(call.result in (ModelCall.Result.MALFORMED, ModelCall.Result.REFUSED) for call in calls)
        prompt = _prompt(decision, _retry_note(calls, methodology))
        ask(asking, claim, prompt, attempt=judged + 1)


def _prompt(decision: Decision, retry_note: str) -> Prompt:
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


def _malformed_in_a_row(calls: list[ModelCall]) -> int:
    """Malformed answers since the last well-formed one; a failed transport in between changes nothing."""
    count = 0
    for call in calls:
        if call.result == ModelCall.Result.MALFORMED:
            count += 1
        elif call.result == ModelCall.Result.REFUSED:
            count = 0
    return count


def _retry_note(calls: list[ModelCall], methodology: Methodology) -> str:
    judged = [c for c in calls if c.result in (ModelCall.Result.MALFORMED, ModelCall.Result.REFUSED)]
    if not judged:
        return ""
    note = methodology.malformed_note if judged[-1].result == ModelCall.Result.MALFORMED else methodology.refused_note
    reason = _quoted(judged[-1].error)
    return note.format(reason=reason, reasons=reason)


def _quoted(reason: str) -> str:
    """A reason with every line marked as quotation, so that an echoed answer can not pose as the frame."""
    return "\n".join(f"> {line}" for line in reason.splitlines())


def _last_reason(calls: list[ModelCall]) -> str:
    return next(call.error for call in reversed(calls) if call.result == ModelCall.Result.MALFORMED)


def _execute(claim: Claim, call: ModelCall, *, at: datetime) -> Decision:
    """Trades and the decision's end in one transaction, or nothing of either."""
    answer = _answer(call)
    with transaction.atomic():
        claim.renew()
        agent = ledger.agent_lock(claim.decision.agent_id)
        instructions = carry_out(answer, agent=agent, decision=claim.decision, call=call, at=at)
        reached("decision.traded")
        rejected = [instruction.reason for instruction in instructions if not instruction.executed]
        if instructions and len(rejected) == len(instructions):
            call.result, call.error = ModelCall.Result.REFUSED, "\n".join(rejected)
            call.save(update_fields=["result", "error"])
            claim.finish(
                status=Decision.Status.FAILED,
                refusals=claim.decision.refusals + 1,
                error=f"no instruction could be carried out: {'; '.join(rejected)}",
            )
        else:
            claim.finish(
                status=Decision.Status.COMPLETED,
                action=answer.action,
                reasoning=answer.reasoning,
                error="",
                decided_at=at,
            )
    return Decision.objects.get(pk=claim.decision.pk)


def _answer(call: ModelCall) -> Answer:
    said = call.parsed
    return Answer(
        action=said["action"],
        bets=tuple(Bet(bet["market_id"], bet["side"], Decimal(bet["amount"])) for bet in said["bets"]),
        sells=tuple(Sell(sale["position_id"], Decimal(sale["percentage"])) for sale in said["sells"]),
        reasoning=said["reasoning"],
    )


def _hold(claim: Claim, why: str, *, at: datetime) -> Decision:
    claim.finish(
        status=Decision.Status.COMPLETED,
        action=Decision.Action.HOLD,
        fallback=True,
        error=why,
        decided_at=at,
    )
    return Decision.objects.get(pk=claim.decision.pk)


def _fail(claim: Claim, why: str) -> Decision:
    claim.finish(status=Decision.Status.FAILED, error=why)
    return Decision.objects.get(pk=claim.decision.pk)
