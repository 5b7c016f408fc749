"""Actors for tests: a cohort, its agents, markets with prices, and money that moves through the ledger alone.

Families, releases and methodology v1 come from the migrations. Every trade is made by `bet`, `sale` and
`resolve`, so that each invariant of the ledger holds in every test.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import factory
from django.db import transaction
from django.db.models import Max
from factory.django import DjangoModelFactory

from agents.models import (
    Agent,
    Decision,
    Elicitation,
    Envelope,
    Family,
    Forecast,
    Instruction,
    LineUp,
    ModelCall,
    Position,
    RefusedForecast,
    Registration,
    Release,
    Submission,
    Trade,
)
from agents.models.task import PromptParts
from agents.sealing import seal_end
from agents.services import ledger
from agents.services.attempts import note_attempt
from agents.services.chain import append_to_chain
from agents.services.envelopes import store_envelope
from agents.services.fact_audit import task_name
from agents.services.lineups import PROPOSED_ALERT, approve_lineup, propose_lineup
from agents.services.receipts import issue_receipt
from agents.services.resolutions import Resolution
from agents.services.reversals import reverse_settlement
from agents.services.settlement import settle_market
from agents.services.signing_keys import anchor, chain_heads, record_daily_anchor
from agents.services.verdicts import DecisionVerdict
from arena_verifier.forecasts import StatedForecast, parse_forecasts
from cohorts.models import Cohort, Methodology
from foundation.json_lines import json_line, json_number
from foundation.models import Alert, Run
from foundation.row_hashes import hash_after
from markets.models import (
    Market,
    Outcome,
    PriceObservation,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
)
from markets.models.question import NONE_OF_THESE, day_of
from markets.prompt_blocks import MARKET_COLUMNS, question_block
from markets.services.cache_versions import Scope, renew_versions, renewing
from markets.services.question_resolution import resolve_questions
from markets.services.questions import fingerprint as questions_fingerprint
from markets.services.universes import fingerprint
from scoring.constants import FORECAST
from scoring.models import (
    AgentsBoard,
    Leaderboard,
    QuestionDifficulty,
    Snapshot,
)
from scoring.services.agents_boards import empty_entry
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from scoring.services.forecast_scores import score_forecasts
from scoring.services.scores import compute_scores
from scoring.services.snapshots import record_snapshots

WEEK = datetime(2026, 3, 8, tzinfo=UTC)
"""A Sunday: the start of cohort 1."""
DECIDED = timedelta(minutes=5)
"""How long after the week's start decisions are made."""


class Competitors:
    """Rows whose creation renews the cached competition."""

    @classmethod
    def _create(cls, *args: Any, **fields: Any) -> Any:
        with renewing(Scope.COMPETITION):
            return super()._create(*args, **fields)  # type: ignore[misc]


class FamilyFactory(Competitors, DjangoModelFactory[Family]):
    """A family besides the seven of the line-up, with a release."""

    class Meta:
        model = Family
        skip_postgeneration_save = True

    slug = factory.Sequence(lambda n: f"newcomer-{n}")
    display_name = factory.Sequence(lambda n: f"Newcomer {n}")
    provider = "Acme"
    color = "#123456"
    release = factory.RelatedFactory("tests.factories.ReleaseFactory", factory_related_name="family")


class ReleaseFactory(DjangoModelFactory[Release]):
    class Meta:
        model = Release

    family = factory.SubFactory(FamilyFactory, release=None)
    model_id = factory.Sequence(lambda n: f"acme/model-{n}")
    display_name = factory.Sequence(lambda n: f"Model {n}")
    price_prompt = Decimal("0.000001")
    price_completion = Decimal("0.000004")
    effective_from = WEEK - timedelta(weeks=52)


class CohortFactory(Competitors, DjangoModelFactory[Cohort]):
    """The next week's cohort: number 1 in the week of `WEEK`, and so on."""

    class Meta:
        model = Cohort

    number = factory.LazyFunction(lambda: (Cohort.objects.aggregate(last=Max("number"))["last"] or 0) + 1)
    week_start = factory.LazyAttribute(lambda row: WEEK + (row.number - 1) * timedelta(weeks=1))
    methodology = factory.LazyFunction(Methodology.objects.current)
    started_at = factory.SelfAttribute("week_start")


class AgentFactory(DjangoModelFactory[Agent]):
    """An agent of the family `slug`, or of the first that has none in the cohort, its starting balance deposited."""

    class Meta:
        model = Agent

    class Params:
        slug = None

    cohort = factory.SubFactory(CohortFactory)
    family = factory.LazyAttribute(
        lambda row: (
            Family.objects.get(slug=row.slug)
            if row.slug
            else Family.objects.exclude(agents__cohort=row.cohort).order_by("pk").first() or FamilyFactory()
        )
    )
    release = factory.LazyAttribute(lambda row: row.family.release_at(row.cohort.started_at))
    model_id = factory.SelfAttribute("release.model_id")
    display_name = factory.SelfAttribute("release.display_name")
    price_prompt = factory.SelfAttribute("release.price_prompt")
    price_completion = factory.SelfAttribute("release.price_completion")

    @classmethod
    def _create(cls, model_class: type[Agent], *args: Any, **fields: Any) -> Agent:
        with transaction.atomic():
            agent = super()._create(model_class, *args, **fields)
            ledger.deposit(agent, agent.cohort.methodology.starting_balance, at=agent.cohort.started_at)
            renew_versions(Scope.COMPETITION)
        return agent


class MarketFactory(DjangoModelFactory[Market]):
    """An open market with an outcome for each of `prices`; its kind follows from their names."""

    class Meta:
        model = Market

    class Params:
        closed = factory.Trait(status=Market.Status.CLOSED, accepts_orders=False, closed_at=WEEK + timedelta(days=2))

    prices = {"YES": "0.40", "NO": "0.60"}
    source = "polymarket"
    external_id = factory.Sequence(lambda n: str(500_000 + n))
    condition_id = factory.Sequence(lambda n: f"0x{n:064x}")
    slug = factory.Sequence(lambda n: f"question-{n}")
    question = factory.Sequence(lambda n: f"Will it happen, number {n}?")
    category = "Politics"
    event_id = factory.Sequence(lambda n: f"event-{n}")
    kind = factory.LazyAttribute(
        lambda row: Market.Kind.BINARY if set(row.prices) == {"YES", "NO"} else Market.Kind.MULTI
    )
    volume = factory.Sequence(lambda n: Decimal(1_000_000 - n))
    first_seen_at = WEEK - timedelta(days=1)
    listed_at = WEEK - timedelta(days=1)
    refreshed_at = WEEK - timedelta(days=1)

    @classmethod
    def _create(cls, model_class: type[Market], *args: Any, prices: Mapping[str, str | None], **fields: Any) -> Market:
        market = super()._create(model_class, *args, **fields)
        for index, (side, text) in enumerate(prices.items()):
            price = None if text is None else Decimal(text)
            Outcome.objects.create(
                market=market,
                index=index,
                name=side.capitalize() if market.kind == Market.Kind.BINARY else side,
                side=side,
                token_id=f"{market.external_id}{index}",
                quote=price,
                quote_at=market.refreshed_at,
                price=price,
                price_at=None if price is None else market.refreshed_at,
                price_source="" if price is None else Outcome.PriceSource.GAMMA,
            )
        return market


class PriceObservationFactory(DjangoModelFactory[PriceObservation]):
    class Meta:
        model = PriceObservation

    outcome = factory.LazyFunction(lambda: MarketFactory().outcomes.get(side="YES"))
    observed_at = factory.Sequence(lambda n: WEEK + n * timedelta(minutes=10))
    price = Decimal("0.43")
    source = Outcome.PriceSource.MIDPOINT
    reason = "midpoint agrees with Gamma"


class UniverseFactory(DjangoModelFactory[Universe]):
    """A week's frozen universe of `markets` (all there are, unless told), at the prices of their outcomes."""

    class Meta:
        model = Universe
        django_get_or_create = ("week_start", "methodology")

    markets = None
    listed_open = None
    week_start = WEEK
    methodology = factory.LazyFunction(lambda: Methodology.objects.current().version)
    frozen_at = factory.LazyAttribute(lambda row: row.week_start + DECIDED)

    @classmethod
    def _create(
        cls,
        model_class: type[Universe],
        *args: Any,
        markets: list[Market] | None,
        listed_open: bool | None,
        **fields: Any,
    ) -> Universe:
        universe_markets = list(Market.objects.order_by("pk")) if markets is None else markets
        entries = [_entry(market, position, listed_open) for position, market in enumerate(universe_markets, start=1)]
        block = fields.setdefault("market_block", _market_block(entries))
        fields.setdefault("sha256", fingerprint(entries, block))
        universe = super()._create(model_class, *args, **fields)
        if not universe.entries.exists():
            for entry in entries:
                entry.universe = universe
            UniverseEntry.objects.bulk_create(entries)
        return universe


def _entry(market: Market, position: int, listed_open: bool | None) -> UniverseEntry:
    priced = [outcome for outcome in market.outcomes.all() if outcome.price is not None]
    return UniverseEntry(
        market=market,
        position=position,
        bettable=market.status == Market.Status.ACTIVE if listed_open is None else listed_open,
        open=market.is_open if listed_open is None else listed_open,
        prices={outcome.side: json_number(outcome.price) for outcome in priced},
        sources={outcome.side: {"source": outcome.price_source, "stale": False} for outcome in priced},
    )


def _market_block(entries: list[UniverseEntry]) -> str:
    rows = (
        [str(e.market.pk), e.market.question, e.market.category, {s: Decimal(p) for s, p in e.prices.items()}, 0, None]
        for e in entries
    )
    return "\n".join([json_line(MARKET_COLUMNS), *map(json_line, rows)])


class DecisionFactory(DjangoModelFactory[Decision]):
    """A completed HOLD of the agent's first week, unless told otherwise."""

    class Meta:
        model = Decision

    class Params:
        failed = factory.Trait(
            status=Decision.Status.FAILED, action=None, decided_at=None, reasoning="", error="HTTP 503"
        )
        missed = factory.Trait(
            status=Decision.Status.MISSED, action=None, decided_at=None, reasoning="", error="window over"
        )

    agent = factory.SubFactory(AgentFactory)
    cohort = factory.SelfAttribute("agent.cohort")
    week = 1
    universe = factory.SubFactory(
        UniverseFactory,
        week_start=factory.LazyAttribute(
            lambda row: row.factory_parent.cohort.week_start + (row.factory_parent.week - 1) * timedelta(weeks=1)
        ),
    )
    status = Decision.Status.COMPLETED
    action = Decision.Action.HOLD
    reasoning = "Nothing looks mispriced."
    decided_at = factory.LazyAttribute(
        lambda row: row.cohort.week_start + (row.week - 1) * timedelta(weeks=1) + DECIDED
    )


class ModelCallFactory(DjangoModelFactory[ModelCall]):
    """An answered call with tokens and a cost, whose text is `content`; its prompt is hashed as a real one's."""

    class Meta:
        model = ModelCall

    decision = factory.SubFactory(DecisionFactory)
    sequence = factory.LazyAttribute(lambda row: row.decision.calls.count() + 1)
    attempt = factory.SelfAttribute("sequence")
    idempotency_key = factory.LazyAttribute(
        lambda row: hashlib.sha256(f"{row.decision.pk}:{row.attempt}".encode()).hexdigest()
    )
    model = factory.SelfAttribute("decision.agent.model_id")
    returned_model = factory.SelfAttribute("model")
    portfolio_block = '{"cash": "10000.00"}'
    positions_block = '["position_id"]'
    awaiting = "none"
    result = ModelCall.Result.ANSWERED
    http_status = 200
    raw_response = factory.LazyAttribute(lambda row: completion(row.content))
    content = '{"action": "HOLD", "reasoning": "-"}'
    tokens_input = 1000
    tokens_output = 200
    cost_usd = Decimal("0.0025")
    latency_ms = 1500
    sent_at = factory.LazyAttribute(lambda row: row.decision.cohort.week_start + DECIDED)

    @classmethod
    def _create(cls, model_class: type[ModelCall], *args: Any, **fields: Any) -> ModelCall:
        if "prompt_sha256" not in fields:
            unsaved = model_class(**fields)
            fields["prompt_sha256"] = ModelCall.fingerprint(unsaved.system_prompt, unsaved.user_prompt)
        call = super()._create(model_class, *args, **fields)
        call.cost_usd = Decimal(call.cost_usd)
        return call


class InstructionFactory(DjangoModelFactory[Instruction]):
    """A bet that was rejected."""

    class Meta:
        model = Instruction

    call = factory.SubFactory(ModelCallFactory)
    sequence = factory.LazyAttribute(lambda row: row.call.instructions.count() + 1)
    kind = "BET"
    payload = {"market_id": "1", "side": "YES", "amount": "20"}
    executed = False
    reason = "bets[0].amount: 20 is below the minimum of 50.00"


def completion(content: str) -> str:
    """The body of a gateway's answer with a text."""
    return json.dumps({"choices": [{"message": {"content": content}}]})


def state_answer(decision: Decision, *rejected: Mapping[str, str]) -> ModelCall:
    """The call whose answer says what a completed decision says: its trades as instructions, then rejected bets."""
    instructions = []
    for trade in decision.trades.select_related("outcome").order_by("sequence"):
        bought = trade.kind == Trade.Kind.BUY
        bet = {"market_id": str(trade.market_id), "side": trade.outcome.side, "amount": str(trade.amount)}
        instructions.append(bet if bought else {"position_id": str(trade.position_id), "percentage": "50"})
    name = {"BET": "bets", "SELL": "sells"}.get(decision.action or "")
    answer = {"action": decision.action, "reasoning": decision.reasoning}
    if name:
        answer[name] = [*instructions, *rejected]
    content = json.dumps(answer)
    call = ModelCallFactory(decision=decision, content=content, parsed=decision.parse(content))
    for payload in instructions:
        InstructionFactory(call=call, kind=decision.action, payload=payload, executed=True, reason="")
    for payload in rejected:
        InstructionFactory(call=call, payload=payload)
    return call


class RegistrationFactory(DjangoModelFactory[Registration]):
    """Leave for an external family, both protocols, that nobody knows the token of."""

    class Meta:
        model = Registration

    family = factory.SubFactory(FamilyFactory, external=True, active=False, track="closed")
    protocol = Registration.Protocol.BOTH
    token_sha256 = factory.Sequence(lambda n: f"{n:064x}")
    registered_at = WEEK - timedelta(days=1)


class SubmissionFactory(DjangoModelFactory[Submission]):
    """A HOLD that an external agent submitted."""

    class Meta:
        model = Submission

    registration = factory.SubFactory(RegistrationFactory)
    key = factory.Sequence(lambda n: f"key-{n}")
    request_sha256 = "0" * 64
    call = factory.LazyAttribute(
        lambda row: ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(family=row.registration.family)))
    )
    status = 201
    response = {"protocol": "trading", "action": "HOLD"}
    received_at = WEEK + DECIDED


def submit_hold(decision: Decision, at: datetime = WEEK + DECIDED) -> Submission:
    """A HOLD as another answer to a decision, with its receipt, after an attempt that was late."""
    submission: Submission = SubmissionFactory(call=ModelCallFactory(decision=decision))
    place = {"agent": decision.agent, "universe": decision.universe}
    note_attempt(place, "late", registration=submission.registration, key="late", reason="", at=at)
    issue_receipt(submission, task=task_name(submission), answer="", at=at)
    return submission


FAR_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def seal_hold(agent: Agent, until: datetime = FAR_FUTURE) -> Envelope:
    """The sealed envelope of an agent's HOLD, on a universe of its own."""
    universe = UniverseFactory(methodology=f"sealed {agent.pk}", sealed_until=until)
    claim = {"lease_id": uuid.uuid4(), "lease_until": WEEK, "action": None, "reasoning": "", "decided_at": None}
    decision = DecisionFactory(agent=agent, week=5, universe=universe, status=Decision.Status.CLAIMED, **claim)
    call = ModelCallFactory(decision=decision)
    envelope = store_envelope(decision, call, DecisionVerdict("HOLD").as_json(), universe.frozen_at)
    Decision.objects.filter(pk=decision.pk).update(status="answered", lease_id=None, lease_until=None)
    return envelope


class SnapshotFactory(DjangoModelFactory[Snapshot]):
    """An agent's untouched portfolio, ten minutes after the agent's last snapshot."""

    class Meta:
        model = Snapshot

    agent = factory.SubFactory(AgentFactory)
    taken_at = factory.LazyAttribute(
        lambda row: row.agent.cohort.week_start + row.agent.snapshots.count() * timedelta(minutes=10)
    )
    cash = factory.SelfAttribute("agent.cash")
    positions_value = Decimal("0.00")
    total_value = factory.LazyAttribute(lambda row: row.cash + row.positions_value)
    pnl = factory.LazyAttribute(lambda row: row.total_value - row.agent.cohort.methodology.starting_balance)
    pnl_percent = factory.LazyAttribute(lambda row: row.pnl / row.agent.cohort.methodology.starting_balance * 100)
    resolved_bets = 0
    open_positions = 0
    stale_positions = 0

    @classmethod
    def _create(cls, model_class: type[Snapshot], *args: Any, **fields: Any) -> Snapshot:
        record_snapshots([model_class(*args, **fields)])
        return model_class._default_manager.get(agent=fields["agent"], taken_at=fields["taken_at"])


class RunFactory(DjangoModelFactory[Run]):
    class Meta:
        model = Run

    kind = "sync_markets"
    at = factory.Sequence(lambda n: WEEK + n * timedelta(minutes=5))
    started_at = factory.SelfAttribute("at")
    finished_at = factory.LazyAttribute(lambda row: row.at + timedelta(seconds=20))
    status = Run.Status.SUCCEEDED
    summary = {"seen": 500}


class QuestionFactory(DjangoModelFactory[Question]):
    """A question on the sides of one market, or on the YES of each of several, with none of these if exclusive."""

    class Meta:
        model = Question

    markets = factory.LazyFunction(lambda: [MarketFactory()])
    source = "polymarket"
    market = factory.LazyAttribute(lambda row: row.markets[0] if len(row.markets) == 1 else None)
    event_key = factory.LazyAttribute(lambda row: row.markets[0].event_key)
    options_sha256 = factory.Sequence(lambda n: f"{n:064x}")
    text = factory.LazyAttribute(lambda row: row.markets[0].question)
    category = factory.LazyAttribute(lambda row: row.markets[0].category)
    exclusive = True
    first_asked_at = WEEK + DECIDED

    @classmethod
    def _create(cls, model_class: type[Question], *args: Any, markets: Sequence[Market], **fields: Any) -> Question:
        question = super()._create(model_class, *args, **fields)
        options: list[tuple[str, Outcome | None]]
        if len(markets) == 1:
            options = [(outcome.side, outcome) for outcome in markets[0].outcomes.all()]
        else:
            options = [(market.question, market.outcomes.get(side="YES")) for market in markets]
            options += [(NONE_OF_THESE, None)] if question.exclusive else []
        QuestionOption.objects.bulk_create(
            QuestionOption(question=question, index=index, name=name, outcome=outcome)
            for index, (name, outcome) in enumerate(options)
        )
        return question


def ask(
    question: Question,
    answers: Mapping[str, Sequence[float]] | None = None,
    *,
    day: datetime = WEEK,
    arm: str = "priced",
    asks: Mapping[str, tuple[str | None, str | None]] | None = None,
    methodology: str = "v2",
    cost: str = "0.01",
    cost_source: str = ModelCall.CostSource.COMPUTED,
) -> QuestionEntry:
    """The question on a batch of its own among the day's, with what families (by slug) said in one arm.

    Mid prices are those of the outcomes, rest for none of these; `asks` gives options an ask and a NO ask.
    """
    version = Methodology.objects.get(version=methodology)
    parts = QuestionSet.objects.filter(day=day_of(day), methodology=methodology)
    entry = QuestionEntry.objects.filter(question_set__in=parts, question=question).first()
    if entry is None:
        # A part of its own: what is frozen takes no more questions.
        entry = QuestionEntry(
            question=question, position=1, batch=1, reason=QuestionEntry.Reason.SELECTED,
            prices=_question_prices(question, asks or {}),
            closes_on=question.closes_at.date() if question.closes_at else None,
        )  # fmt: skip
        frozen_at = day + DECIDED
        entry.question_set = parts.create(
            day=day_of(day), methodology=methodology, part=parts.count(), frozen_at=frozen_at,
            sealed_until=seal_end(FORECAST, methodology, frozen_at), sha256=questions_fingerprint([entry]),
        )  # fmt: skip
        entry.save()
        rules = version.forecast_rules
        assert rules is not None
        for condition in rules.conditions:
            block, evidence = question_block([entry], condition, rules), "[]" if condition.has_evidence else ""
            QuestionBatch.objects.create(
                question_set=entry.question_set, arm=condition.name, number=1, block=block, evidence_block=evidence
            )
    batch = QuestionBatch.objects.get(question_set=entry.question_set, arm=arm)
    options = [option.name for option in question.options.all()]
    for slug, vector in (answers or {}).items():
        probabilities = dict(zip(options, vector, strict=True))
        family = Family.objects.get(slug=slug)
        _answer(entry, batch, version, family, probabilities, at=day + DECIDED, cost=(cost, cost_source))
    return entry


def _question_prices(question: Question, asks: Mapping[str, tuple[str | None, str | None]]) -> dict[str, Any]:
    options = list(question.options.select_related("outcome"))
    mids = {row.name: row.outcome.price for row in options if row.outcome is not None}
    remainder = max(Decimal(0), 1 - sum((price or Decimal(0) for price in mids.values()), Decimal(0)))
    prices = {}
    for option in options:
        mid, (ask, no_ask) = mids.get(option.name, remainder), asks.get(option.name, (None, None))
        text = None if mid is None else json_number(mid)
        prices[option.name] = {"price": text, "ask": ask, "no_ask": no_ask, "stale": False}
    return prices


def _answer(
    entry: QuestionEntry, batch: QuestionBatch, methodology: Methodology, family: Family,
    probabilities: Mapping[str, float], *, at: datetime, cost: tuple[str, str],
) -> Forecast:  # fmt: skip
    release = family.release_at(at)
    assert release is not None
    task = Elicitation.objects.create(
        batch=batch, methodology=methodology, release=release, family=family,
        status=Elicitation.Status.COMPLETED, made_at=at,
    )  # fmt: skip
    rationale = f"{family.display_name} has its reasons."
    stated_forecast = StatedForecast(
        str(entry.question_id), tuple((name, Decimal(str(value))) for name, value in probabilities.items()), rationale
    )
    answer = {"question_id": str(entry.question_id), "probabilities": probabilities, "rationale": rationale}
    content = json.dumps({"forecasts": [answer]})
    call = ModelCall.objects.create(
        parsed=[stated_forecast.as_json()], content=content, http_status=200,
        raw_response=completion(content),
        elicitation=task, sequence=1, attempt=1, idempotency_key=f"{task.pk:064x}", model=release.model_id,
        prompt_sha256=ModelCall.fingerprint(task.system_prompt, task.user_prompt(PromptParts())),
        result=ModelCall.Result.ANSWERED,
        tokens_input=1000, tokens_output=200, cost_usd=Decimal(cost[0]), cost_source=cost[1], sent_at=at,
    )  # fmt: skip
    return Forecast.objects.create(
        elicitation=task, call=call, entry=entry, question=entry.question, family=family, release=release,
        methodology=methodology.version, arm=batch.arm, probabilities=probabilities,
        stated={name: str(value) for name, value in probabilities.items()},
        rationale=rationale, made_at=at,
    )  # fmt: skip


def end_question(question: Question, *winners: str, at: datetime = WEEK + timedelta(days=30)) -> Question:
    """The question at its end: its markets resolved so that these options happened; with none it was cancelled."""
    by_market: dict[Market, str] = {}
    for option in question.options.select_related("outcome__market"):
        if option.outcome is not None and (option.name in winners or option.outcome.market not in by_market):
            by_market[option.outcome.market] = option.outcome.side if option.name in winners else ""
    for market, side in by_market.items():
        resolve(market, (side or "NO") if winners else None, at=at)
    resolve_questions(at=at)
    question.refresh_from_db()
    return question


def bet(
    agent: Agent,
    market: Market | None = None,
    side: str = "YES",
    amount: str | Decimal = "500.00",
    *,
    price: str | Decimal | None = None,
    week: int = 1,
) -> Trade:
    """A purchase in the agent's decision of `week`, at the side's own price unless one is given."""
    outcome = (market or MarketFactory()).outcomes.get(side=side)
    terms = {"amount": Decimal(amount), "price": outcome.price if price is None else Decimal(price)}
    return _trade(ledger.buy, agent, outcome, Decision.Action.BET, week, **terms)


def sale(
    position: Position, percentage: str | Decimal = "100", *, price: str | Decimal | None = None, week: int = 2
) -> Trade:
    """A sale out of `position` in its agent's decision of `week`."""
    terms = {"percentage": Decimal(percentage), "price": position.outcome.price if price is None else Decimal(price)}
    return _trade(ledger.sell, position.agent, position, Decision.Action.SELL, week, **terms)


def _trade(execute: Callable[..., Trade], agent: Agent, traded: Any, action: str, week: int, **terms: Any) -> Trade:
    stored_decision = Decision.objects.filter(agent=agent, week=week).first()
    decision = stored_decision or DecisionFactory(agent=agent, week=week, action=action)
    with transaction.atomic():
        owner = ledger.lock_agent(agent.pk)
        assert decision.decided_at is not None
        at = ledger.following_instant([owner], decision.decided_at, same=True)
        trade = execute(owner, traded, decision=decision, at=at, **terms)
    agent.refresh_from_db()
    return trade


def resolve(
    market: Market,
    side: str | None,
    *,
    at: datetime = WEEK + timedelta(days=30),
    settle: Callable[..., int | None] = settle_market,
) -> Market:
    """The market at its end, its positions settled: `side` won, or with None it was cancelled."""
    resolution = Resolution(None if side is None else market.outcomes.get(side=side))
    if settle(market, resolution, at=at) is None:
        raise ValueError(f"market {market.pk} has that end already, or is final")
    market.refresh_from_db()
    return market


def reverse_to(market: Market, side: str | None, *, at: datetime = WEEK + timedelta(days=30)) -> Market:
    """A final market with another end, its positions made good."""
    return resolve(market, side, at=at, settle=partial(reverse_settlement, by="operator", reason="a slip"))


def _external_family(slug: str) -> Family:
    name = slug.capitalize()
    values = {"display_name": name, "external": True, "active": False, "track": "closed", "color": "#123456"}
    return Family.objects.get_or_create(slug=slug, defaults=values)[0]


def play_week() -> Cohort:
    """The next cohort, played: two agents bet, sold and were paid, with all that is recorded of it and a board."""
    cohort = CohortFactory()
    for agent in (AgentFactory(cohort=cohort), AgentFactory(cohort=cohort)):
        won = bet(agent, market := MarketFactory())
        open_trade = bet(agent, MarketFactory(), amount="300.00")
        state_answer(won.decision, {"market_id": "1", "side": "YES", "amount": "20"})
        sale(open_trade.position, "50")
        resolve(market, "YES")
        agent.refresh_from_db()
        SnapshotFactory(agent=agent, taken_at=cohort.week_start + timedelta(days=31))
        PriceObservationFactory(outcome=won.outcome)
    for side in ("NO", "YES"):  # reversed by mistake, and back
        reverse_to(market, side)
    UniverseFactory(week_start=cohort.week_start + timedelta(weeks=9), methodology=f"v{cohort.number}")
    RunFactory()
    _forecast_week(cohort)
    compute_scores(at=WEEK + timedelta(days=31), forecast_leaderboards=False)
    guests = [_external_family(slug) for slug in ("visitor", "rival")]
    entries = [empty_entry(guest.slug, guest.display_name, external=True) for guest in guests]
    board = {"entries": entries, "report": {}, "computed_at": WEEK}
    AgentsBoard.objects.update_or_create(track="closed", protocol="forecast", defaults=board)
    chain_all()
    monday = cohort.week_start + timedelta(days=1)
    record_daily_anchor(anchor(heads=chain_heads(), at=monday), at=monday)
    return cohort


def _forecast_week(cohort: Cohort) -> None:
    """A question that stays open and one that ends, forecast and scored; boards once, without the slow fits."""
    answers = {"gpt-5.1": [0.6, 0.4]}
    ask(QuestionFactory(), answers, day=cohort.week_start)
    question = QuestionFactory()
    entry = ask(question, answers, day=cohort.week_start)
    _refuse(entry, entry.forecasts.get().call)
    if not Leaderboard.objects.filter(protocol=FORECAST).exists():
        refresh_forecast_leaderboards(at=WEEK)
    end_question(question, "YES")
    score_forecasts(at=WEEK + timedelta(days=31))
    QuestionDifficulty.objects.create(question=question, arm="priced", difficulty=0.5)


def _refuse(entry: QuestionEntry, answered: ModelCall) -> None:
    """An answer to the same question after the one that counts, refused whole."""
    content = json.dumps({"forecasts": [{"question_id": str(entry.question_id), "probabilities": {"YES": 2, "NO": 0}}]})
    call = ModelCall.objects.create(
        elicitation=answered.elicitation, sequence=2, attempt=2, idempotency_key=f"{answered.pk:063x}r",
        model=answered.model, prompt_sha256=answered.prompt_sha256, result=ModelCall.Result.REFUSED, content=content,
        parsed=[forecast.as_json() for forecast in parse_forecasts(content)], http_status=200,
        raw_response=completion(content), sent_at=answered.sent_at,
    )  # fmt: skip
    reason = f'question {entry.question_id}: "YES" is given 2, which is outside [0, 1]'
    RefusedForecast.objects.create(call=call, entry=entry, stated={"YES": "2", "NO": "0"}, reason=reason)


def approved(*releases: Release, at: datetime, from_: datetime | None = None) -> LineUp:
    """A line-up of these releases and of the others' as they were: from the week after `at` on, or from an instant."""
    before = LineUp.objects.in_force(at)
    entries = before.entries.select_related("release__family") if before else []
    releases_by_family = {entry.family_id: entry.release for entry in entries} | {
        release.family_id: release for release in releases
    }
    line_up = propose_lineup(releases=list(releases_by_family.values()), by="ann", reason="a test", at=at)
    if from_ is None:
        approve_lineup(line_up, by="ann", reason="a test", at=at)
    else:
        decision = {"status": "approved", "decided_at": at, "effective_from": from_}
        LineUp.objects.filter(pk=line_up.pk).update(**decision, row_sha256=hash_after(line_up, decision))
    return line_up


def line_up(*models: str) -> LineUp:
    """A line-up of these models alone, in force before the first week: fewer to ask than the migrations have."""
    at = WEEK - timedelta(weeks=2)
    releases = [Release.objects.get(model_id=model) for model in models]
    proposed = propose_lineup(releases=releases, by="ann", reason="a short test", at=at)
    assert approve_lineup(proposed, by="ann", reason="a short test", at=at)
    Alert.objects.filter(kind=PROPOSED_ALERT).delete()
    return proposed


def chain_all() -> None:
    """Adds what factories completed to its chain, as completing it for real does at once; sound but for the moment.

    A decision that came without an answer is given the one that states it.
    """
    for decision in Decision.objects.filter(status=Decision.Status.COMPLETED, fallback=False, calls=None):
        state_answer(decision)
    for task in (Decision, Elicitation):
        for completed in task.objects.filter(status=task.Status.COMPLETED, link=None).order_by("pk"):
            with transaction.atomic():
                append_to_chain(completed)
