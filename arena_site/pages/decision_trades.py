"""The trades of decisions, for lists of them: each with its market, side and stake."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

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


def trades_by_decision(decisions: Iterable[int]) -> dict[int, Sequence[TradeSummary]]:
    """The trades of each decision that has any, the largest first: one query."""
    rows = Trade.objects.filter(decision__in=list(decisions)).order_by("-amount", "sequence").values_list(*COLUMNS)
    trades: dict[int, list[TradeSummary]] = defaultdict(list)
    for row in rows:
        trade = TradeSummary._make(row)
        trades[trade.decision].append(trade)
    return dict(trades)
