"""The trades of decisions, for lists of them: each with its market, side and stake."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from agents.models import Trade

COLUMNS = ("decision", "kind", "amount", "outcome__side", "market", "market__question")


class TradeSummary(NamedTuple):
    """Columns of a trade, its side and its market."""

    decision: int
    kind: str
    amount: Decimal
    side: str
    market: int
    question: str

    @property
    def is_sale(self) -> bool:
        return self.kind == Trade.Kind.SELL


def trades_by_decision(decisions: Iterable[Any]) -> dict[int, Sequence[TradeSummary]]:
    """The trades of each decision that has any, the largest first: one query."""
    of_decisions = Trade.objects.filter(decision__in=list(map(attrgetter("pk"), decisions)))
    rows = of_decisions.order_by("-amount", "sequence").values_list(*COLUMNS)
    trades: dict[int, list[TradeSummary]] = defaultdict(list)
    for row in rows:
        trade = TradeSummary._make(row)
        trades[trade.decision].append(trade)
    return dict(trades)
