"""Atom feeds: what was decided last, and what reality said last."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.contrib.syndication.views import Feed
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from agents.models import Decision, Position, Trade
from markets.models import Market
from scoring.roster import roster, with_company
from scoring.templatetags.arena import money, path, plain, price, shares, signed_money

ITEMS = 50
SUMMARY = 1_000
"""Characters of a model's reasoning that a feed repeats; the page has all of it."""


class AtomFeed(Feed):  # type: ignore[type-arg]
    """A feed that is sent as a whole."""

    feed_type = Atom1Feed
    author_name = "Forecaster Arena"

    def __call__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().__call__(request, *args, **kwargs)
        # It was written tag by tag, and the web server would send each piece by itself.
        response.content = response.content
        return response


class Decisions(AtomFeed):
    """The latest completed decisions, each with its trades and its reasoning."""

    title = "Forecaster Arena: decisions"
    subtitle = "What language models bet, sold or held on real prediction markets, and why."
    description_template = None

    def link(self) -> str:
        return reverse("leaderboard")

    def items(self) -> Iterable[Decision]:
        completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-decided_at", "-pk")
        told = list(completed.select_related("agent").defer("error")[:ITEMS])
        with_company(decision.agent for decision in told)
        # Of trades and markets what is told of them alone: a feed tells of hundreds.
        done = Trade.objects.filter(decision__in=told).order_by("sequence")
        by_decision = _grouped(
            done.values_list("decision", "kind", "shares", "outcome__side", "price", "amount", "market__question")
        )
        for decision in told:
            decision.done = by_decision[decision.pk]  # type: ignore[attr-defined]
        return told

    def item_title(self, item: Any) -> str:
        said = "HOLD by fallback" if item.fallback else item.action
        return plain(f"{item.agent.family.display_name}: {said}, cohort {item.agent.cohort.number}, week {item.week}")

    def item_description(self, item: Any) -> str:
        done = [
            f"{kind} {shares(number)} {side} at {price(paid)} for {money(amount)}: {question}"
            for kind, number, side, paid, amount, question in item.done
        ]
        return _text([*done, item.reasoning[:SUMMARY]])

    def item_link(self, item: Any) -> str:
        return path("decision", item.pk)

    def item_updateddate(self, item: Any) -> datetime:
        return item.decided_at  # type: ignore[no-any-return]

    item_pubdate = item_updateddate

    def item_categories(self, item: Any) -> Sequence[str]:
        return [item.action, item.agent.family.slug]


class Resolutions(AtomFeed):
    """The markets that came to their end last, of those that an agent played or a question stands on."""

    title = "Forecaster Arena: resolutions"
    subtitle = "How the markets ended that models bet on or were asked about."

    def link(self) -> str:
        return f"{reverse('markets')}?status=resolved"

    def items(self) -> Iterable[Market]:
        ended = Market.objects.filter(Q(followed=True) | Q(asked=True)).filter(
            status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED)
        )
        ended = ended.select_related("winning_outcome").defer("description").order_by("-resolved_at", "-pk")
        told = list(ended[:ITEMS])
        held = Position.objects.filter(market__in=told).order_by("pk")
        by_market = _grouped(
            held.values_list("market", "agent__family", "agent__cohort", "outcome__side", "realized_pnl")
        )
        known = roster()
        for market in told:
            market.held = [  # type: ignore[attr-defined]
                (known.families[family], known.cohorts[cohort], *rest) for family, cohort, *rest in by_market[market.pk]
            ]
        return told

    def item_title(self, item: Any) -> str:
        return plain(f"{item.winning_side or 'Cancelled'}: {item.question}")

    def item_description(self, item: Any) -> str:
        held = [
            f"{family.display_name}, cohort {cohort.number}, {side}: {signed_money(gained)}"
            for family, cohort, side, gained in item.held
        ]
        return _text(held or ["No agent held it."])

    def item_link(self, item: Any) -> str:
        return path("market", item.pk)

    def item_updateddate(self, item: Any) -> datetime:
        return item.resolved_at  # type: ignore[no-any-return]

    item_pubdate = item_updateddate

    def item_categories(self, item: Any) -> Sequence[str]:
        return [plain(item.category)] if item.category else []


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Sequence[Any]]]:
    """The rows without their first column, by that."""
    found: dict[Any, list[Sequence[Any]]] = defaultdict(list)
    for key, *row in rows:
        found[key].append(row)
    return found


def _text(lines: Iterable[str]) -> str:
    """Lines of text from outside, as a feed can hold them: its readers take a summary for HTML."""
    return "<br>".join(str(escape(plain(line))) for line in lines if line)
