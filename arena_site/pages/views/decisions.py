"""The list of decisions, and a decision with its prompt, answer, instructions and trades."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.letters import with_seals
from agents.list_filters import matching_decisions
from agents.models import Decision, Instruction, Position, Trade
from arena_site.pages.decision_trades import trades_by_decision
from arena_site.pages.lists import Dates, Filter, ListColumn, ListPage, labels
from arena_site.pages.model_calls import task_context
from arena_site.pages.positions import side_result
from foundation.bulk import rows_by
from markets.models import Market, Outcome, PriceObservation, UniverseEntry
from scoring.selectors.competition import competition_index

DECISION_COLUMNS = (
    *("status", "error", "week", "action", "fallback", "reasoning", "decided_at"),
    *("agent__model_id", "agent__family"),
    *("cohort__number", "cohort__methodology__version", "cohort__methodology__maximum_bet_fraction"),
    *("cohort__methodology__system_prompt", "cohort__methodology__user_prompt"),
    *("universe__frozen_at", "universe__sealed_until", "universe__sha256", "universe__market_block"),
    "link",
)
"""Columns of the page and of the hashed record: most others are a methodology's."""
LIST_COLUMNS = ("agent", "week", "status", "action", "fallback", "reasoning", "error", "decided_at")
TRADE_COLUMNS = (
    *("kind", "shares", "price", "amount", "realized_pnl", "implied_confidence", "position_id"),
    *("market_id", "market__question", "market__status", "market__winning_outcome", "outcome_id", "outcome__side"),
    *("journal_entry__balance", "brier_score__score"),
)
PRICE_SOURCES: dict[str, str] = dict(Outcome.PriceSource.choices)
PLAIN_ID = re.compile("[0-9]{1,18}")
"""Text that can be an id: a model may write anything."""


COLUMNS = (
    ListColumn("Model", "model", "agent__family__display_name"),
    ListColumn("Action", "action", "action"),
    ListColumn("Cohort", "cohort", "cohort__number", descending=True, number=True),
    ListColumn("Week", "week", "week", number=True),
    ListColumn("Trades", number=True),
    ListColumn("Decided", "decided", "decided_at", descending=True),
)
FALLBACK = "fallback"
ACTIONS = {**labels(Decision.Action.values), FALLBACK: "HOLD by fallback"}
DECIDED = Dates("Decided", "decided_at", "from", "to")


@require_safe
def decisions(request: HttpRequest) -> HttpResponse:
    """Decisions, filtered by words in the reasoning, model, cohort, week, action, status and day."""
    competition = competition_index()
    families, cohorts = competition.by_slug, rows_by("number", competition.cohorts.values())
    weeks = max((cohort.methodology.decision_weeks for cohort in cohorts.values()), default=0)
    listing = ListPage(
        request,
        COLUMNS,
        "-decided",
        [
            Filter("model", "Model", competition.names),
            Filter("cohort", "Cohort", labels(map(str, sorted(cohorts, reverse=True)))),
            Filter("week", "Week", labels(map(str, range(1, weeks + 1)))),
            Filter("action", "Action", ACTIONS),
            Filter("status", "Status", labels(Decision.Status.values)),
        ],
        [DECIDED],
    )
    selection = listing.selection
    rows = matching_decisions(with_seals(Decision.objects.only(*LIST_COLUMNS)), selection["q"])
    if selection["model"]:
        rows = rows.filter(agent__family=families[selection["model"]])
    if selection["cohort"]:
        rows = rows.filter(cohort=cohorts[int(selection["cohort"])])
    if selection["action"]:
        fallback = selection["action"] == FALLBACK
        rows = rows.filter(fallback=True) if fallback else rows.filter(action=selection["action"])
    rows = rows.filter(**selection.of("week", "status"))
    page = listing.page(rows)
    trades = trades_by_decision(page.object_list)
    page_rows = []
    for decision in page.object_list:
        page_rows.append((decision, competition.agents_by_id[decision.agent_id], trades.get(decision.pk, ())))
    return render(request, "decisions.html", {"page": page, "listing": listing, "rows": page_rows})


class InstructionRow(NamedTuple):
    """An instruction, the id and the size that the model wrote, and the market and side of that id, if there is one."""

    instruction: Instruction
    written_id: str
    size: str | None
    market: int | None
    question: str
    side: str


@require_safe
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """A decision with its reasoning, instructions, trades and model calls."""
    joined = Decision.objects.select_related("agent__family", "cohort__methodology", "universe", "link")
    decision = get_object_or_404(with_seals(joined.only(*DECISION_COLUMNS)), pk=pk)
    if decision.is_sealed:
        return render(request, "sealed_answer.html", {"decision": decision})
    trades = list(decision.trades.order_by("sequence").values_list(*TRADE_COLUMNS, named=True))
    context = task_context(decision)
    calls = [call.pk for call, _ in context["calls"]]
    instructions = Instruction.objects.filter(call__in=calls).order_by("call__sequence", "sequence")
    return render(
        request,
        "decision.html",
        {
            **context,
            "decision": decision,
            "agent": decision.agent,
            "family": decision.agent.family,
            "cohort": decision.cohort,
            "instructions": _instruction_rows(list(instructions), trades),
            "trades": _trade_rows(decision, trades),
            "weeks": list(Decision.objects.filter(agent=decision.agent_id).order_by("week").values_list("week", "pk")),
        },
    )


def _instruction_rows(instructions: Sequence[Instruction], trades: Sequence[Any]) -> list[InstructionRow]:
    """The instructions with the markets that they name; those without a trade are looked up, all at once."""
    written = []
    for instruction in instructions:
        key = "position_id" if instruction.kind == "SELL" else "market_id"
        written.append((instruction, key, str(instruction.payload.get(key))))
    targets: dict[tuple[str, str], tuple[int, str, str]] = {}
    for trade in trades:
        targets["market_id", str(trade.market_id)] = (trade.market_id, trade.market__question, "")
        position = (trade.market_id, trade.market__question, trade.outcome__side)
        targets["position_id", str(trade.position_id)] = position
    missing: dict[str, set[str]] = {"market_id": set(), "position_id": set()}
    for _, key, text in written:
        if (key, text) not in targets and PLAIN_ID.fullmatch(text):
            missing[key].add(text)
    markets = Market.objects.filter(pk__in=missing["market_id"]).order_by()
    for pk, question in markets.values_list("pk", "question"):
        targets["market_id", str(pk)] = (pk, question, "")
    positions = Position.objects.filter(pk__in=missing["position_id"]).order_by()
    columns = ("pk", "market_id", "market__question", "outcome__side")
    for row in positions.values_list(*columns, named=True):
        targets["position_id", str(row.pk)] = (row.market_id, row.market__question, row.outcome__side)
    return [_instruction_row(instruction, text, targets.get((key, text))) for instruction, key, text in written]


def _instruction_row(instruction: Instruction, written_id: str, target: tuple[int, str, str] | None) -> InstructionRow:
    market, question, side = target or (None, "", "")
    payload = instruction.payload
    if instruction.kind == "SELL":
        return InstructionRow(instruction, written_id, payload.get("percentage"), market, question, side)
    return InstructionRow(
        instruction, written_id, payload.get("amount"), market, question, str(payload.get("side", ""))
    )


def _trade_rows(decision: Decision, trades: Sequence[Any]) -> list[dict[str, Any]]:
    """The trades with their results, the sources of their prices, and the largest bets that were legal."""
    universe = decision.universe
    entries: dict[int, Any] = {}
    observations: dict[int, PriceObservation] = {}
    if universe is not None and trades:
        of_trades = UniverseEntry.objects.filter(universe=universe, market__in={trade.market_id for trade in trades})
        entries = {market: entry for market, *entry in of_trades.values_list("market_id", "position", "sources")}
        observations = PriceObservation.objects.latest({trade.outcome_id for trade in trades}, universe.frozen_at)
    rows = []
    for trade in trades:
        position, sources = entries.get(trade.market_id, (None, {}))
        source = sources.get(trade.outcome__side, {})
        name, balance = source.get("source") or "", trade.journal_entry__balance
        bought = trade.kind == Trade.Kind.BUY and balance is not None
        rows.append(
            {
                "trade": trade,
                "universe_position": position,
                "source": PRICE_SOURCES.get(name, name),
                "stale": bool(source.get("stale")),
                "observation": observations.get(trade.outcome_id),
                "limit": decision.methodology.maximum_bet(balance + trade.amount) if bought else None,
                "result": side_result(trade.market__status, won=trade.market__winning_outcome == trade.outcome_id),
            }
        )
    return rows
