"""Decision runs: each agent of the active cohorts is asked for its decision of the week, exactly once."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Max
from django.utils import timezone

from agents.models import Agent, Decision, ModelCall, Position
from agents.models.ledger import marked_value
from agents.models.task import PromptParts
from agents.prompts import portfolio_parts
from agents.sealing import seal_end
from agents.services import ledger
from agents.services.answer_storage import store_spooled_answers
from agents.services.claims import Claim, end_leases_of_killed_runs
from agents.services.conversation import Conversation, valid_calls
from agents.services.envelopes import open_envelopes, seal_answer
from agents.services.execution import store_instructions
from agents.services.gone_releases import gone_releases
from agents.services.missed import record_missed_decisions
from agents.services.model_calls import CallSettings
from agents.services.reconciliation import prepare_run
from agents.services.runs import RunReport, fail_unasked, run_task
from agents.services.verdicts import DecisionVerdict
from arena_verifier.decisions import Answer
from cohorts.models import Cohort, Methodology
from cohorts.weeks import week_start
from foundation.bulk import rows_by
from markets.models import Universe, UniverseEntry
from markets.services.order_books import capture_order_books
from markets.services.prices import is_replay
from markets.services.universes import MarketColumns, NoMarkets, freeze_universe
from markets.sources.polymarket import Clob

log = logging.getLogger(__name__)


@dataclass(slots=True)
class DecisionReport(RunReport):
    """The counts of a decision run."""

    universe: int | None = None
    fallback_holds: int = 0
    trades: int = 0
    books: int = 0
    """Order books captured at the freeze, for the costs of trades."""
    books_missing: int = 0


def run_decisions(
    *,
    at: datetime,
    settings: CallSettings,
    clob: Clob | None,
    cohort: Cohort | None = None,
    family: str | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> DecisionReport:
    """Asks every agent that is due in the week of `at` and has no final decision yet.

    `cohort` and `family` narrow the run. An agent whose decision is final or claimed by another worker is skipped.
    """
    report = DecisionReport(asking_ends_s=settings.asking_ends_s)
    if not store_spooled_answers(report.log):
        claims = Decision.objects.filter(status=Decision.Status.CLAIMED, agent__family__external=False)
        end_leases_of_killed_runs(claims, command="run_decisions", lease=settings.lease)
    report.log.write_all(prepare_run(settings, Decision.PROTOCOL, at=at))
    report.stops |= gone_releases()
    report.failures.write_all(open_envelopes(at=at).failures)
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology").order_by("number")
    if cohort is not None:
        cohorts = cohorts.filter(pk=cohort.pk)
    report.missed = record_missed_decisions(cohorts, at=at, family=family)
    deciding = [cohort for cohort in cohorts if cohort.is_deciding(at)]
    universes = _open_universes(deciding, at=at, clob=clob, report=report)
    agents = agents_to_ask([cohort for cohort in deciding if cohort.methodology_id in universes], family)
    for number, agent in enumerate(agents):
        progress(number, len(agents), f"{agent.display_name}, cohort {agent.cohort.number}")
        if report.is_paused(Decision.PROTOCOL, agent.family_id, str(agent)):
            continue
        if report.is_stopped(agent.model_id, str(agent)):
            universe = universes[agent.cohort.methodology_id]
            identity = _identity(agent, at)
            fail_unasked(report, Decision, model_id=agent.model_id, identity=identity, universe=universe)
            continue
        _ask_agent(agent, universes[agent.cohort.methodology_id], settings=settings, at=at, report=report)
    progress(len(agents), len(agents), "")
    return report


def _open_universes(
    cohorts: Iterable[Cohort], *, at: datetime, clob: Clob | None, report: DecisionReport
) -> dict[int, Universe]:
    """The week's universe by methodology id, frozen now if need be; without those outside their retry window."""
    universes: dict[int, Universe] = {}
    frozen: list[tuple[Universe, Methodology]] = []
    for methodology in {cohort.methodology_id: cohort.methodology for cohort in cohorts}.values():
        # The positions of all cohorts of the methodology, not of this run's alone: every run shares the universe.
        positions = Position.objects.open().filter(agent__cohort__methodology=methodology)
        try:
            universe = freeze_universe(
                week_start=week_start(at),
                methodology=methodology.version,
                size=methodology.universe_size,
                rule=methodology.price_rule,
                held_ids=positions.values_list("market_id", flat=True).distinct(),
                at=at,
                clob=clob,
                columns=market_columns(methodology),
                on_priced=report.add_price_failures,
                seal_end=partial(seal_end, Decision.PROTOCOL, methodology.version),
            )
        except NoMarkets as error:
            report.failures.write(str(error))
            continue
        report.universe = universe.pk
        if universe.frozen_at == at:
            frozen.append((universe, methodology))
        if at < universe.frozen_at:
            report.log.write(f"universe {universe.pk} was frozen after {at:%Y-%m-%d %H:%M}: nobody is asked")
        elif at >= universe.frozen_at + methodology.retry_window:
            report.log.write(f"the retry window of universe {universe.pk} has ended: nobody is asked")
        else:
            universes[methodology.pk] = universe
    if clob is not None and not is_replay(at):
        for universe, methodology in frozen:  # after all freezes, whose time it must not take
            _capture_books(universe, methodology, clob=clob, report=report)
    return universes


def _capture_books(universe: Universe, methodology: Methodology, *, clob: Clob, report: DecisionReport) -> None:
    """Captures the order books of a universe that was just frozen; whatever fails is counted, and the run goes on."""
    if universe.order_books.exists():
        return
    depth, rule = largest_account(methodology), methodology.price_rule
    try:
        capture = capture_order_books(universe, depth=depth, rule=rule, captured_at=timezone.now(), clob=clob)
    except DatabaseError as error:
        report.log.write(f"no order books were captured: {type(error).__name__}")
        return
    report.books += capture.books
    report.books_missing += capture.missing


def largest_account(methodology: Methodology) -> Decimal:
    """The largest cash and the largest position of an agent, in dollars together: no trades in a book are larger."""
    agents = Agent.objects.playing().filter(cohort__methodology=methodology)
    cash: Decimal = agents.aggregate(cash=Max("cash"))["cash"] or Decimal(0)
    largest = Decimal(0)
    positions = Position.objects.open().filter(agent__cohort__methodology=methodology).order_by()
    for row in positions.values_list("shares", "cost_basis", "outcome__price", named=True):
        largest = max(largest, marked_value(row.shares, row.cost_basis, row.outcome__price))
    return cash + largest


def market_columns(methodology: Methodology) -> MarketColumns:
    """The columns of a methodology's MARKETS block."""
    rules = methodology.trading_rules
    return MarketColumns(rules.market_columns, rules.rules_characters)


def cohorts_with_open_window(at: datetime) -> list[Cohort]:
    """The cohorts that decide in the week of `at` and whose agents may be asked now, its universe frozen or not."""
    cohorts = Cohort.objects.active().filter(week_start__lte=at).select_related("methodology").order_by("number")
    frozen = dict(Universe.objects.filter(week_start=week_start(at)).values_list("methodology", "frozen_at"))
    cohorts_to_ask = []
    for cohort in cohorts:
        frozen_at = frozen.get(cohort.methodology.version, at)
        if cohort.is_deciding(at) and frozen_at <= at < frozen_at + cohort.methodology.retry_window:
            cohorts_to_ask.append(cohort)
    return cohorts_to_ask


def agents_to_ask(cohorts: Iterable[Cohort], family: str | None) -> list[Agent]:
    """The active agents of these cohorts, or only those of a family; external ones answer by themselves."""
    agents = Agent.objects.playing().filter(cohort__in=[cohort.pk for cohort in cohorts], family__external=False)
    agents = agents.select_related("cohort__methodology", "family", "release").order_by("cohort__number", "family")
    return list(agents.filter(family__slug=family) if family else agents)


def _identity(agent: Agent, at: datetime) -> dict[str, Any]:
    return {"agent": agent, "cohort": agent.cohort, "week": agent.cohort.decision_week(at)}


def _ask_agent(
    agent: Agent, universe: Universe, *, settings: CallSettings, at: datetime, report: DecisionReport
) -> None:
    """Claims one agent's decision, asks the model, executes the answer, and counts the result in `report`."""
    decision = run_task(
        Decision,
        DecisionConversation(),
        label=str(agent),
        at=at,
        settings=settings,
        report=report,
        identity=_identity(agent, at),
        refused_retries=agent.cohort.methodology.refused_retries,
        universe=universe,
    )
    if decision is None:
        return
    log.info("executed", extra=decision.log_context | {"action": decision.action, "fallback": decision.fallback})
    report.fallback_holds += decision.fallback
    report.trades += decision.trades.count()
    if decision.fallback:
        report.log.write(f"{agent}: held by fallback: {decision.error}", decision=decision.pk)


class DecisionConversation(Conversation[Decision]):
    """The conversation about a decision, whose answer is executed."""

    def prompt(self, task: Decision, retry_note: str = "") -> PromptParts:
        agent = Agent.objects.get(pk=task.agent_id)
        positions = list(Position.objects.open().filter(agent=agent).select_related("market", "outcome").order_by("pk"))
        market_ids = [position.market_id for position in positions]
        entries = UniverseEntry.objects.filter(universe=task.universe, market__in=market_ids)
        by_market = rows_by("market_id", entries)
        return portfolio_parts(task, agent, positions=positions, entries=by_market, retry_note=retry_note)

    def record_answer(self, claim: Claim[Decision], call: ModelCall, at: datetime) -> Decision:
        """Makes the trades and completes the decision in one transaction, or seals the answer.

        If every instruction is rejected, the decision fails and the model may answer again.
        """
        answer = Answer.from_json(call.parsed)
        with transaction.atomic():
            claim.renew()
            agent = ledger.lock_agent(claim.task.agent_id)
            assert claim.task.universe is not None
            verdict = DecisionVerdict.judged(answer, agent=agent, universe=claim.task.universe)
            if verdict.refusals:
                store_instructions(verdict.instructions, call)
                return claim.refuse(call, verdict.refusals, "no instruction could be carried out", at)
            return self._end(claim, call, verdict, agent, at)

    def give_up(self, claim: Claim[Decision], reason: str, at: datetime) -> Decision:
        """Holds by fallback."""
        verdict = DecisionVerdict(Decision.Action.HOLD, fallback=True, error=reason)
        with transaction.atomic():
            claim.renew()
            agent = ledger.lock_agent(claim.task.agent_id)
            return self._end(claim, valid_calls(claim.task)[-1], verdict, agent, at)

    @staticmethod
    def _end(claim: Claim[Decision], call: ModelCall, verdict: DecisionVerdict, agent: Agent, at: datetime) -> Decision:
        """Carries a verdict out for a locked agent; seals it while an external agent may still answer the same."""
        at = ledger.following_instant([agent], at)
        if claim.task.is_sealed_at(at):
            return seal_answer(claim, call, verdict.as_json(), at)
        verdict.carry_out(claim.task, call, agent=agent, at=at)
        return claim.finish(status=Decision.Status.COMPLETED, decided_at=at, **verdict.fields)
