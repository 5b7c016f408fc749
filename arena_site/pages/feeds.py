"""Atom feeds of the latest decisions and of the latest resolutions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from django.contrib.syndication.views import Feed
from django.db.models import Q
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from agents.models import Decision, Position, Trade
from arena_site.pages.citations import PUBLISHER, publisher
from arena_site.pages.filters import money, number, page_url, price, signed_money, single_line
from markets.models import Market
from scoring.selectors.competition import competition_index

MAXIMUM_ITEMS = 50
REASONING_LENGTH = 1_000
"""Characters of a model's reasoning in a summary; the page has all of it."""
DECISION_COLUMNS = ("pk", "agent__family", "agent__cohort", "week", "action", "fallback", "reasoning", "decided_at")
TRADE_COLUMNS = ("decision", "kind", "shares", "outcome__side", "price", "amount", "market__question")
"""Columns of trades and positions, the first of which groups them."""
MARKET_COLUMNS = ("pk", "question", "category", "resolved_at", "winning_outcome__side")
POSITION_COLUMNS = ("market", "agent__family", "agent__cohort", "outcome__side", "realized_pnl")


class FeedItem(NamedTuple):
    """An entry of a feed; the lines of its summary are text from outside."""

    path: str
    title: str
    lines: Sequence[str]
    at: datetime
    categories: Sequence[str]


class AtomFeed(Feed):  # type: ignore[type-arg]
    """A feed of items, newest first."""

    feed_type = Atom1Feed
    author_name = PUBLISHER
    topic: str

    @property
    def title(self) -> str:
        return f"{publisher()}: {self.topic}"

    def item_title(self, item: FeedItem) -> str:
        return single_line(item.title)

    def item_description(self, item: FeedItem) -> str:
        return escape("\n".join([single_line(line) for line in item.lines if line])).replace("\n", "<br>")

    def item_link(self, item: FeedItem) -> str:
        return item.path

    def item_pubdate(self, item: FeedItem) -> datetime:
        return item.at

    item_updateddate = item_pubdate

    def item_categories(self, item: FeedItem) -> Sequence[str]:
        return item.categories


class DecisionFeed(AtomFeed):
    """The latest completed decisions, each with its trades and its reasoning."""

    topic = "decisions"
    subtitle = "Trades of language models on real prediction markets, with their reasoning."

    def link(self) -> str:
        return reverse("trading")

    def items(self) -> list[FeedItem]:
        completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-decided_at", "-pk")
        decisions: list[Any] = list(completed.values_list(*DECISION_COLUMNS, named=True)[:MAXIMUM_ITEMS])
        trades = Trade.objects.filter(decision__in=list(map(attrgetter("pk"), decisions))).order_by("sequence")
        by_decision = _grouped(trades.values_list(*TRADE_COLUMNS, named=True))
        competition = competition_index()
        items = []
        for decision in decisions:
            family, cohort = competition.families[decision.agent__family], competition.cohorts[decision.agent__cohort]
            action = "HOLD by fallback" if decision.fallback else decision.action
            title = f"{family.display_name}: {action}, cohort {cohort.number}, week {decision.week}"
            lines = []
            for trade in by_decision[decision.pk]:
                terms = f"{number(trade.shares)} {trade.outcome__side} at {price(trade.price)}"
                lines.append(f"{trade.kind} {terms} for {money(trade.amount)}: {trade.market__question}")
            lines.append(decision.reasoning[:REASONING_LENGTH])
            categories = [decision.action, family.slug]
            items.append(FeedItem(page_url("decision", decision.pk), title, lines, decision.decided_at, categories))
        return items


class ResolutionFeed(AtomFeed):
    """The latest resolved and cancelled markets, of those with trades or questions."""

    topic = "resolutions"
    subtitle = "Outcomes of the markets that language models traded or forecast."

    def link(self) -> str:
        return f"{reverse('markets')}?status=resolved"

    def items(self) -> list[FeedItem]:
        final = Market.objects.filter(
            Q(traded=True) | Q(has_questions=True), status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED)
        ).order_by("-resolved_at", "-pk")
        markets: list[Any] = list(final.values_list(*MARKET_COLUMNS, named=True)[:MAXIMUM_ITEMS])
        positions = Position.objects.filter(market__in=list(map(attrgetter("pk"), markets))).order_by("pk")
        by_market = _grouped(positions.values_list(*POSITION_COLUMNS, named=True))
        competition = competition_index()
        items = []
        for market in markets:
            side = market.winning_outcome__side
            title = f"{f'Resolved {side}' if side else 'Cancelled'}: {market.question}"
            lines = []
            for position in by_market[market.pk]:
                family = competition.families[position.agent__family]
                cohort = competition.cohorts[position.agent__cohort]
                profit = signed_money(position.realized_pnl)
                lines.append(f"{family.display_name}, cohort {cohort.number}, {position.outcome__side}: {profit}")
            lines = lines or ["No agent traded it."]
            categories = [single_line(market.category)] if market.category else []
            items.append(FeedItem(page_url("market", market.pk), title, lines, market.resolved_at, categories))
        return items


def _grouped(rows: Iterable[Any]) -> dict[int, list[Any]]:
    """The rows, grouped by their first column."""
    groups: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups
