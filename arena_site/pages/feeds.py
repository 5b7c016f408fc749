"""Atom feeds of the latest decisions and of the latest resolutions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.syndication.views import Feed
from django.db.models import Prefetch, Q, QuerySet
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from agents.models import Decision, Position, Trade
from arena_site.pages.filters import money, number, page_url, price, signed_money, single_line
from markets.models import Market

MAXIMUM_ITEMS = 50
REASONING_LENGTH = 1_000
"""Characters of a model's reasoning in a summary; the page has all of it."""


class AtomFeed(Feed):  # type: ignore[type-arg]
    """A feed whose titles and summaries hold text from outside."""

    feed_type = Atom1Feed
    author_name = "Forecaster Arena"

    def heading(self, item: Any) -> str:
        raise NotImplementedError

    def lines(self, item: Any) -> Sequence[str]:
        raise NotImplementedError

    def item_title(self, item: Any) -> str:
        return single_line(self.heading(item))

    def item_description(self, item: Any) -> str:
        return escape("\n".join([single_line(line) for line in self.lines(item) if line])).replace("\n", "<br>")


class DecisionFeed(AtomFeed):
    """The latest completed decisions, each with its trades and its reasoning."""

    title = "Forecaster Arena: decisions"
    subtitle = "Trades of language models on real prediction markets, with their reasoning."

    def link(self) -> str:
        return reverse("leaderboard")

    def items(self) -> QuerySet[Decision]:
        trades = Trade.objects.select_related("outcome", "market").defer("market__description").order_by("sequence")
        completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-decided_at", "-pk")
        joined = completed.select_related("agent__family", "cohort").prefetch_related(Prefetch("trades", trades))
        return joined[:MAXIMUM_ITEMS]

    def heading(self, decision: Decision) -> str:
        action = "HOLD by fallback" if decision.fallback else decision.action
        family, cohort = decision.agent.family, decision.cohort
        return f"{family.display_name}: {action}, cohort {cohort.number}, week {decision.week}"

    def lines(self, decision: Decision) -> list[str]:
        trades = [
            f"{trade.kind} {number(trade.shares)} {trade.side} at {price(trade.price)} "
            f"for {money(trade.amount)}: {trade.market.question}"
            for trade in decision.trades.all()
        ]
        return [*trades, decision.reasoning[:REASONING_LENGTH]]

    def item_link(self, decision: Decision) -> str:
        return page_url("decision", decision.pk)

    def item_pubdate(self, decision: Decision) -> datetime | None:
        return decision.decided_at

    item_updateddate = item_pubdate

    def item_categories(self, decision: Decision) -> list[str]:
        return [str(decision.action), decision.agent.family.slug]


class ResolutionFeed(AtomFeed):
    """The latest resolved and cancelled markets, of those with trades or questions."""

    title = "Forecaster Arena: resolutions"
    subtitle = "Outcomes of the markets that language models traded or forecast."

    def link(self) -> str:
        return f"{reverse('markets')}?status=resolved"

    def items(self) -> QuerySet[Market]:
        positions = Position.objects.select_related("agent__family", "agent__cohort", "outcome").order_by("pk")
        final = Market.objects.filter(
            Q(traded=True) | Q(has_questions=True), status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED)
        ).order_by("-resolved_at", "-pk")
        joined = final.select_related("winning_outcome").defer("description")
        return joined.prefetch_related(Prefetch("positions", positions))[:MAXIMUM_ITEMS]

    def heading(self, market: Market) -> str:
        return f"{market.winning_side or 'Cancelled'}: {market.question}"

    def lines(self, market: Market) -> list[str]:
        return [
            f"{position.agent.family.display_name}, cohort {position.agent.cohort.number}, {position.side}: "
            f"{signed_money(position.realized_pnl)}"
            for position in market.positions.all()
        ] or ["No agent traded it."]

    def item_link(self, market: Market) -> str:
        return page_url("market", market.pk)

    def item_pubdate(self, market: Market) -> datetime | None:
        return market.resolved_at

    item_updateddate = item_pubdate

    def item_categories(self, market: Market) -> list[str]:
        return [single_line(market.category)] if market.category else []
