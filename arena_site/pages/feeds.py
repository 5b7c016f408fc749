"""Atom feeds of the latest decisions and of the latest resolutions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.syndication.views import Feed
from django.db.models import Q
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from agents.models import Decision, Position, Trade
from arena_site.pages.filters import money, page_url, price, shares, signed_money, single_line
from markets.models import Market
from scoring.competition import competition_index

MAXIMUM_ITEMS = 50
REASONING_LENGTH = 1_000
"""Characters of a model's reasoning in a summary; the page has all of it."""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """An entry of a feed; the lines of its summary are text from outside."""

    path: str
    title: str
    lines: Sequence[str]
    at: datetime
    categories: Sequence[str]


class AtomFeed(Feed):  # type: ignore[type-arg]
    """A feed of items, newest first."""

    feed_type = Atom1Feed
    author_name = "Forecaster Arena"

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

    title = "Forecaster Arena: decisions"
    subtitle = "What language models bet, sold or held on real prediction markets, and why."

    def link(self) -> str:
        return reverse("leaderboard")

    def items(self) -> list[FeedItem]:
        completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-decided_at", "-pk")
        columns = ("pk", "agent__family", "agent__cohort", "week", "action", "fallback", "reasoning", "decided_at")
        rows: list[tuple[Any, ...]] = list(completed.values_list(*columns)[:MAXIMUM_ITEMS])
        trades = Trade.objects.filter(decision__in=[pk for pk, *_ in rows]).order_by("sequence")
        by_decision = _grouped(
            trades.values_list("decision", "kind", "shares", "outcome__side", "price", "amount", "market__question")
        )
        known = competition_index()
        items = []
        for pk, family_id, cohort_id, week, action, fallback, reasoning, at in rows:
            family, cohort = known.families[family_id], known.cohorts[cohort_id]
            lines = [
                f"{kind} {shares(number)} {side} at {price(paid)} for {money(amount)}: {question}"
                for kind, number, side, paid, amount, question in by_decision[pk]
            ]
            items.append(
                FeedItem(
                    page_url("decision", pk),
                    f"{family.display_name}: {'HOLD by fallback' if fallback else action}, "
                    f"cohort {cohort.number}, week {week}",
                    [*lines, reasoning[:REASONING_LENGTH]],
                    at,
                    [action, family.slug],
                )
            )
        return items


class ResolutionFeed(AtomFeed):
    """The latest resolved and cancelled markets, of those with trades or questions."""

    title = "Forecaster Arena: resolutions"
    subtitle = "How the markets ended that models bet on or were asked about."

    def link(self) -> str:
        return f"{reverse('markets')}?status=resolved"

    def items(self) -> list[FeedItem]:
        final = Market.objects.filter(
            Q(traded=True) | Q(has_questions=True), status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED)
        ).order_by("-resolved_at", "-pk")
        columns = ("pk", "question", "category", "resolved_at", "winning_outcome__side")
        rows: list[tuple[Any, ...]] = list(final.values_list(*columns)[:MAXIMUM_ITEMS])
        positions = Position.objects.filter(market__in=[pk for pk, *_ in rows]).order_by("pk")
        by_market = _grouped(
            positions.values_list("market", "agent__family", "agent__cohort", "outcome__side", "realized_pnl")
        )
        known = competition_index()
        return [
            FeedItem(
                page_url("market", pk),
                f"{winner or 'Cancelled'}: {question}",
                [
                    f"{known.families[family].display_name}, cohort {known.cohorts[cohort].number}, {side}: "
                    f"{signed_money(pnl)}"
                    for family, cohort, side, pnl in by_market[pk]
                ]
                or ["No agent held it."],
                at,
                [single_line(category)] if category else [],
            )
            for pk, question, category, at, winner in rows
        ]


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Sequence[Any]]]:
    """The rows without their first column, grouped by it."""
    groups: dict[Any, list[Sequence[Any]]] = defaultdict(list)
    for key, *row in rows:
        groups[key].append(row)
    return groups
