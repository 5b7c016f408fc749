"""What a model is sent: its portfolio and positions at the run's frozen prices, and the run's market block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from agents.models import Agent, Position
from cohorts.models import Methodology
from markets.blocks import decimal_text, json_line
from markets.models import Universe, UniverseEntry

POSITION_COLUMNS = (
    "position_id", "market_id", "question", "side", "shares", "entry_price", "price", "value", "pnl",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of one request. `user` is the whole user message, byte for byte as it is sent."""

    system: str
    user: str
    retry_note: str = ""
    portfolio: str = ""
    positions: str = ""
    awaiting: str = ""


def prompt_for(
    agent: Agent,
    *,
    methodology: Methodology,
    universe: Universe,
    positions: Sequence[Position],
    entries: Mapping[int, UniverseEntry],
    week: int,
    retry_note: str = "",
) -> Prompt:
    """The prompt of `agent` in a run. `positions` are its open ones, `entries` the universe's by market id."""
    lines = [json_line(POSITION_COLUMNS)]
    awaiting: list[str] = []
    held = Decimal("0.00")
    for position in positions:
        entry = entries.get(position.market_id)
        price = entry.price(position.side) if entry else None
        value = position.value_at(price)
        held += value
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
    total = agent.cash + held
    portfolio = json_line(
        {
            "cash": f"{agent.cash:.2f}",
            "max_bet": f"{methodology.maximum_bet_shown(agent.cash):.2f}",
            "positions_value": f"{held:.2f}",
            "total_value": f"{total:.2f}",
            "pnl": f"{total - methodology.starting_balance:.2f}",
            "week": week,
            "date": universe.frozen_at.date().isoformat(),
        }
    )
    parts = {
        "portfolio": portfolio,
        "positions": "\n".join(lines),
        "awaiting": ", ".join(awaiting) or "none",
        "markets": universe.market_block,
    }
    return Prompt(
        system=methodology.system_prompt,
        portfolio=portfolio,
        positions=parts["positions"],
        awaiting=parts["awaiting"],
        retry_note=retry_note,
        user=methodology.user_prompt.format(**parts) + retry_note,
    )
