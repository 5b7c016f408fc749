"""An agent's whole season at once: what it decided week by week, what it traded, and how that ended."""

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from statistics import fmean
from typing import Any

from agents.models import Agent, Decision, Instruction, JournalEntry, ModelCall, Position, Settlement, Trade
from agents.models.ledger import CENT, marked_value, to_cents, to_microshares
from agents.prompts import portfolio_parts
from arena_verifier.decisions import parse_answer
from cohorts.models import Methodology
from forecast_rank.metrics.brier import brier_score
from tests.benchmarks.generator.listings import BATCH, Listing, Week
from tests.benchmarks.generator.plan import DAY, Plan

ENDING = 3
"""Every so manieth new position is on a market that comes to its end."""
TOKENS_OUTPUT = 900
CHARACTERS_A_TOKEN = 4
REASONING = "The base rate and what is known put this well away from its price. " * 8


@dataclass(slots=True)
class State:
    """What an agent has from an instant on: cash, holdings at the season's last prices, and its record."""

    at: datetime
    cash: Decimal
    positions_value: Decimal
    positions: int
    brier: float | None
    resolved: int


@dataclass(slots=True)
class _Week:
    """A decision to be stored, with what the agent had when it was asked."""

    decision: Decision
    cash: Decimal
    holdings: list[tuple[Position, Decimal, Decimal]]
    trades: list[Trade] = field(default_factory=list)
    percentages: list[Decimal] = field(default_factory=list)


@dataclass(slots=True)
class _Season:
    """One agent's books while they are being made."""

    agent: Agent
    rules: Methodology
    dice: random.Random
    cash: Decimal
    open: dict[int, tuple[Position, Listing, int]] = field(default_factory=dict)
    positions: list[Position] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    weeks: list[_Week] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    bets: dict[int, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    scores: list[float] = field(default_factory=list)
    opened: int = 0

    def post(self, kind: str, amount: Decimal, at: datetime, **cause: Any) -> None:
        self.cash += amount
        self.journal.append(
            JournalEntry(
                agent=self.agent, sequence=len(self.journal) + 1, kind=kind, amount=amount, balance=self.cash,
                occurred_at=at, **cause,
            )
        )  # fmt: skip

    def note(self, at: datetime) -> None:
        """Keeps what the agent has from now on."""
        marks = [marked_value(p.shares, p.cost_basis, _last_price(one, side)) for p, one, side in self.open.values()]
        brier = fmean(self.scores) if self.scores else None
        self.states.append(State(at, self.cash, sum(marks, Decimal("0.00")), len(self.open), brier, len(self.scores)))


def season_store(plan: Plan, agent: Agent, place: int, weeks: Sequence[Week], ends: Sequence[Listing]) -> list[State]:
    """Plays and stores the season of the agent at a place among all; what it had after each event, oldest first.

    `ends` are the listings that were settled or cancelled, in that order.
    """
    rules = agent.cohort.methodology
    season = _Season(agent, rules, plan.dice("agent", place), Decimal("0.00"))
    season.post("deposit", rules.starting_balance, agent.cohort.started_at)
    season.note(agent.cohort.started_at)
    decisions, trades = plan.share(plan.size.decisions, place), plan.share(plan.size.trades, place)
    kinds = [_kind(number) for number in range(decisions)]
    active = [number for number in range(decisions) if kinds[number] != Decision.Action.HOLD]
    first, after = plan.week(agent.cohort.week_start), 0
    for number in range(decisions):
        at = plan.frozen_at(first + number)
        while after < len(ends) and _ends_at(ends[after]) <= at:
            _end(season, ends[after])
            after += 1
        size = trades // len(active) + (active.index(number) < trades % len(active)) if number in active else 0
        _decide(plan, season, weeks[first + number], number + 1, kinds[number], size, first + number, at)
    for one in ends[after:]:
        _end(season, one)
    _store(season, weeks, first)
    return season.states


def _kind(number: int) -> Decision.Action:
    """What the agent does in its weeks: buys, and sells now and then, and holds now and then."""
    if number % 9 == 5:
        return Decision.Action.HOLD
    return Decision.Action.SELL if number % 3 == 2 else Decision.Action.BET


def _decide(
    plan: Plan, season: _Season, week: Week, number: int, kind: Decision.Action, size: int, place: int, at: datetime
) -> None:
    decision = Decision(
        agent=season.agent, cohort=season.agent.cohort, week=number, universe=week.universe,
        status=Decision.Status.COMPLETED, decided_at=at, reasoning=REASONING,
    )  # fmt: skip
    holdings = [(position, position.shares, position.cost_basis) for position, _, _ in season.open.values()]
    week_record = _Week(decision, season.cash, holdings)
    season.weeks.append(week_record)
    if kind == Decision.Action.BET and season.cash < season.rules.bankruptcy_cash * 2:
        kind = Decision.Action.SELL
    if kind == Decision.Action.SELL and not season.open:
        kind = Decision.Action.BET
    for _ in range(size):
        if kind == Decision.Action.BET:
            trade = _buy(plan, season, week, place, at)
        else:
            trade = _sell(season, week_record, place, at)
        if trade is None:
            break
        trade.decision, trade.sequence = decision, len(week_record.trades) + 1
        week_record.trades.append(trade)
    decision.action = kind if week_record.trades else Decision.Action.HOLD
    season.note(at)


def _buy(plan: Plan, season: _Season, week: Week, place: int, at: datetime) -> Trade | None:
    """A purchase: of something new until there is enough of that, then of more of what is held."""
    maximum = season.rules.maximum_bet(season.cash)
    if maximum < season.rules.minimum_bet:
        return None
    wish = season.cash * Decimal(season.dice.randint(5, 30)) / 1000
    amount = min(max(wish, season.rules.minimum_bet), maximum).quantize(CENT, rounding=ROUND_DOWN)
    choice = _something_new(plan, season, week, at) or _something_held(season)
    if choice is None:
        return None
    listing, side = choice
    outcome, price = listing.outcomes[side], listing.prices[place][side]
    shares = to_microshares(amount / price)
    position = season.open[outcome.pk][0] if outcome.pk in season.open else None
    if position is None:
        position = Position(
            agent=season.agent, market=listing.market, outcome=outcome, shares=shares, cost_basis=amount, opened_at=at
        )
        season.positions.append(position)
        season.open[outcome.pk] = (position, listing, side)
        season.opened += 1
    else:
        position.shares += shares
        position.cost_basis += amount
    trade = Trade(
        agent=season.agent, position=position, market=listing.market, outcome=outcome, kind=Trade.Kind.BUY,
        shares=shares, price=price, amount=amount, cost_basis=amount,
        implied_confidence=min(float(amount / maximum), 1.0), executed_at=at,
    )  # fmt: skip
    season.bets[listing.market.pk].append((trade.implied_confidence or 0.0, side))
    season.post("buy", -amount, at, trade=trade)
    return trade


def _something_new(plan: Plan, season: _Season, week: Week, at: datetime) -> tuple[Listing, int] | None:
    wanted_count = plan.size.positions + plan.size.positions // (ENDING - 1)
    if season.opened >= wanted_count:
        return None
    ending = season.opened % ENDING == ENDING - 1
    traded_ids = {position.market_id for position in season.positions}
    for _ in range(50):
        listing = week.listed[season.dice.randrange(len(week.listed))]
        soon = not listing.is_open(at + DAY)
        if listing.market.pk not in traded_ids and not soon and (listing.ends_at is not None) == ending:
            return listing, season.dice.randrange(len(listing.outcomes))
    return None


def _something_held(season: _Season) -> tuple[Listing, int] | None:
    positions = [(one, side) for _, one, side in season.open.values() if one.market.closed_at is None]
    return positions[season.dice.randrange(len(positions))] if positions else None


def _sell(season: _Season, week_record: _Week, place: int, at: datetime) -> Trade | None:
    """A sale of a part of something held; now and then all of what will end anyway."""
    positions = [positions for positions in season.open.values() if positions[1].is_open(at)]
    if not positions:
        return None
    position, listing, side = positions[season.dice.randrange(len(positions))]
    sells_all = listing.ends_at is not None and season.dice.random() < 0.25
    percentage = Decimal(100 if sells_all else season.dice.randint(10, 40))
    share = percentage / 100
    shares = position.shares if sells_all else to_microshares(position.shares * share)
    cost = position.cost_basis if sells_all else to_cents(position.cost_basis * share)
    price = listing.prices[place][side]
    proceeds = to_cents(shares * price)
    position.shares -= shares
    position.cost_basis -= cost
    position.realized_pnl += proceeds - cost
    if sells_all:
        position.status, position.closed_at = Position.Status.CLOSED, at
        del season.open[position.outcome_id]
    trade = Trade(
        agent=season.agent, position=position, market=listing.market, outcome=listing.outcomes[side],
        kind=Trade.Kind.SELL, shares=shares, price=price, amount=proceeds, cost_basis=cost,
        realized_pnl=proceeds - cost, executed_at=at,
    )  # fmt: skip
    week_record.percentages.append(percentage)
    season.post("sell", proceeds, at, trade=trade)
    return trade


def _end(season: _Season, listing: Listing) -> None:
    """Settles what the agent holds of a market that came to its end, and scores what it bet on it."""
    at, before = _ends_at(listing), len(season.scores)
    for outcome in listing.outcomes:
        if outcome.pk in season.open:
            position, _, side = season.open.pop(outcome.pk)
            _settle(season, position, listing, side, at)
    bets = season.bets.get(listing.market.pk, [])
    if listing.winner is not None and bets:
        scores = brier_score([sure for sure, _ in bets], [side == listing.winner for _, side in bets])
        season.scores += scores.tolist()
    if bets or len(season.scores) > before:
        season.note(at)


def _settle(season: _Season, position: Position, listing: Listing, side: int, at: datetime) -> None:
    if listing.winner is None:
        kind, payout = Settlement.Kind.REFUNDED, position.cost_basis
    elif side == listing.winner:
        kind, payout = Settlement.Kind.WON, to_cents(position.shares)
    else:
        kind, payout = Settlement.Kind.LOST, Decimal("0.00")
    settlement = Settlement(
        position=position, agent=season.agent, market=listing.market, kind=kind, shares=position.shares,
        cost_basis=position.cost_basis, payout=payout, realized_pnl=payout - position.cost_basis, settled_at=at,
    )  # fmt: skip
    refunded = kind == Settlement.Kind.REFUNDED
    position.realized_pnl += settlement.realized_pnl
    position.shares, position.cost_basis = Decimal(0), Decimal(0)
    position.status = Position.Status.CANCELLED if refunded else Position.Status.SETTLED
    position.closed_at = at
    season.settlements.append(settlement)
    season.post("refund" if refunded else "payout", payout, at, settlement=settlement)


def _ends_at(listing: Listing) -> datetime:
    assert listing.ends_at is not None
    return listing.ends_at


def _last_price(listing: Listing, side: int) -> Decimal | None:
    return listing.outcomes[side].price


# --- storing ---------------------------------------------------------------------------------------------


def _store(season: _Season, weeks: Sequence[Week], first: int) -> None:
    Position.objects.bulk_create(season.positions, batch_size=BATCH)
    Decision.objects.bulk_create([week.decision for week in season.weeks], batch_size=BATCH)
    calls = [_call(season, week, weeks[first + number]) for number, week in enumerate(season.weeks)]
    ModelCall.objects.bulk_create([call for call, _ in calls], batch_size=BATCH)
    instructions = [
        Instruction(
            call=call, sequence=number, kind="BET" if call.parsed["bets"] else "SELL", payload=payload, executed=True
        )
        for call, payloads in calls
        for number, payload in enumerate(payloads, start=1)
    ]
    Instruction.objects.bulk_create(instructions, batch_size=BATCH)
    Trade.objects.bulk_create([trade for week in season.weeks for trade in week.trades], batch_size=BATCH)
    Settlement.objects.bulk_create(season.settlements, batch_size=BATCH)
    JournalEntry.objects.bulk_create(season.journal, batch_size=BATCH)
    season.agent.cash, season.agent.journal_length = season.cash, len(season.journal)


def _call(season: _Season, week_record: _Week, week: Week) -> tuple[ModelCall, list[dict[str, str]]]:
    """The request that brought a decision, its prompt as a real one's, with the instructions it gave."""
    decision, agent = week_record.decision, season.agent
    positions = [_as_it_was(*holding) for holding in week_record.holdings]
    parts = portfolio_parts(decision, Agent(cash=week_record.cash), positions=positions, entries=week.entries)
    user_prompt = decision.user_prompt(parts)
    content = json.dumps(_answer(week_record), indent=1)
    parsed = parse_answer(content).as_json()
    fingerprint = ModelCall.fingerprint(decision.system_prompt, user_prompt)
    tokens = len(user_prompt) // CHARACTERS_A_TOKEN
    call = ModelCall(
        decision=decision, sequence=1, attempt=1,
        idempotency_key=ModelCall.fingerprint(f"{decision.stable_key}:1", fingerprint),
        model=agent.model_id, returned_model=agent.model_id, provider="Made", generation_id=f"gen-{decision.pk}",
        **asdict(parts),
        prompt_sha256=fingerprint, result=ModelCall.Result.ANSWERED,
        raw_response=json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}),
        content=content, parsed=parsed, finish_reason="stop", http_status=200, tokens_input=tokens,
        tokens_output=TOKENS_OUTPUT, cost_usd=tokens * agent.price_prompt + TOKENS_OUTPUT * agent.price_completion,
        latency_ms=season.dice.randint(2_000, 90_000), sent_at=week.universe.frozen_at,
    )  # fmt: skip
    return call, [*parsed["bets"], *parsed["sells"]]


def _as_it_was(position: Position, shares: Decimal, cost_basis: Decimal) -> Position:
    return Position(
        pk=position.pk, market=position.market, outcome=position.outcome, shares=shares, cost_basis=cost_basis
    )


def _answer(week_record: _Week) -> dict[str, Any]:
    action = week_record.decision.action
    if action == Decision.Action.BET:
        bets = [{"market_id": str(t.market_id), "side": t.side, "amount": str(t.amount)} for t in week_record.trades]
        return {"action": action, "bets": bets, "reasoning": REASONING}
    if action == Decision.Action.SELL:
        sells = [
            {"position_id": str(trade.position.pk), "percentage": str(percentage)}
            for trade, percentage in zip(week_record.trades, week_record.percentages, strict=True)
        ]
        return {"action": action, "sells": sells, "reasoning": REASONING}
    return {"action": action, "reasoning": REASONING}
