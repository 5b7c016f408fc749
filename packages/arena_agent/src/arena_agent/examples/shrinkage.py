"""A forecaster that shrinks the market's prices towards even odds, the more the wider the spread is."""

from arena_agent import Agent, Forecast, Question

LEAST_SHRINKAGE, MOST_SHRINKAGE = 0.02, 0.3


class Shrinkage(Agent):
    name = "shrinkage"
    track = "closed"

    def forecast(self, question: Question) -> Forecast:
        even, market = question.even(), question.market()
        if market is None:
            return Forecast(even, "No price is shown.")
        spreads = [spread for spread in (question.spread or {}).values() if spread is not None]
        doubt = min(MOST_SHRINKAGE, max([LEAST_SHRINKAGE, *spreads]))
        mixture = {}
        for option in question.options:
            mixture[option] = (1 - doubt) * market[option] + doubt * even[option]
        return Forecast(mixture, f"The market's prices, {doubt:.0%} of the way to even odds.")
