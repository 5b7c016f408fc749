"""A trader: sells what has won or lost enough, else bets on the likeliest sides that it does not hold."""

from collections.abc import Sequence
from decimal import Decimal

from arena_agent import Agent, Bet, Market, Portfolio, Sell

TAKE_PROFIT, STOP_LOSS = Decimal("0.95"), Decimal("0.10")
LOWEST, HIGHEST = 0.70, 0.93
BETS = 3


class Trader(Agent):
    name = "trader"
    track = "closed"

    def trade(self, portfolio: Portfolio, markets: Sequence[Market]) -> Sequence[Bet | Sell]:
        sales = []
        for position in portfolio.positions:
            if position.price is not None and not STOP_LOSS < position.price < TAKE_PROFIT:
                sales.append(Sell(position))  # all of it; a decision holds sales or bets, never both
        return sales or self._bets(portfolio, markets)

    def _bets(self, portfolio: Portfolio, markets: Sequence[Market]) -> list[Bet]:
        held = {position.market for position in portfolio.positions}
        candidates = []
        for market in markets:
            for side, price in market.prices.items():
                if market.id not in held and price is not None and LOWEST < price < HIGHEST:
                    candidates.append((price, market, side))
        candidates.sort(key=lambda candidate: -candidate[0])
        amount = (portfolio.max_bet / BETS).quantize(Decimal("0.01"))
        bets = []
        for price, market, side in candidates[:BETS]:
            if amount >= 50:
                bets.append(Bet(market, side, amount, f"a favourite at {price:.2f}"))
        return bets
