"""The portfolio blocks of a decision's prompt."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from agents.models import Agent, Decision, Position
from agents.models.ledger import marked_value
from agents.models.task import PromptParts
from foundation.json_lines import decimal_text, json_line
from markets.models import UniverseEntry

POSITION_COLUMNS = (
    "position_id", "market_id", "question", "side", "shares", "entry_price", "price", "value", "pnl",
)  # fmt: skip


def portfolio_parts(
    decision: Decision,
    agent: Agent,
    *,
    positions: Sequence[Position],
    entries: Mapping[int, UniverseEntry],
    retry_note: str = "",
) -> PromptParts:
    """The agent's cash and open `positions` at the universe's prices; `entries` by market id."""
    universe, methodology = decision.universe, decision.methodology
    assert universe is not None
    lines = [json_line(POSITION_COLUMNS)]
    awaiting: list[str] = []
    positions_value = Decimal("0.00")
    for position in positions:
        entry = entries.get(position.market_id)
        price = entry.price(position.side) if entry else None
        value = marked_value(position.shares, position.cost_basis, price)
        positions_value += value
        entry_price = position.entry_price
        lines.append(
            json_line(
                [
                    str(position.pk),
                    str(position.market_id),
                    position.market.question,
                    position.side,
                    f"{position.shares:.6f}",
                    decimal_text(entry_price) if entry_price is not None else None,
                    decimal_text(price) if price is not None else None,
                    f"{value:.2f}",
                    f"{value - position.cost_basis:.2f}",
                ]
            )
        )
        if entry is None or not entry.open:
            awaiting.append(str(position.pk))
    total = agent.cash + positions_value
    portfolio = json_line(
        {
            "cash": f"{agent.cash:.2f}",
            "max_bet": f"{methodology.maximum_bet_shown(agent.cash):.2f}",
            "positions_value": f"{positions_value:.2f}",
            "total_value": f"{total:.2f}",
            "pnl": f"{total - methodology.starting_balance:.2f}",
            "week": decision.week,
            "date": universe.frozen_at.date().isoformat(),
        }
    )
    return PromptParts(portfolio, "\n".join(lines), ", ".join(awaiting) or "none", retry_note)
