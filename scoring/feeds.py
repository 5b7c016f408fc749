"""Atom feeds: what was decided last, and what reality said last."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape as html
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import http_date
from django.utils.translation import get_language

from agents.models import Decision, Position, Trade
from markets.models import Market
from scoring.roster import roster
from scoring.templatetags.arena import money, path, plain, price, shares, signed_money

ITEMS = 50
SUMMARY = 1_000
"""Characters of a model's reasoning that a feed repeats; the page has all of it."""
AUTHOR = "Forecaster Arena"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a feed tells of one thing; the lines are text from outside."""

    path: str
    title: str
    lines: Iterable[str]
    at: datetime
    categories: Sequence[str]


class AtomFeed:
    """A feed as a view. Written by hand: a generator of XML, tag by tag, would be most of its time."""

    title: str
    subtitle: str

    def link(self) -> str:
        """The page that shows what the feed tells."""
        raise NotImplementedError

    def entries(self) -> list[Entry]:
        """What it tells, newest first."""
        raise NotImplementedError

    def __call__(self, request: HttpRequest) -> HttpResponse:
        entries = self.entries()
        newest = max((entry.at for entry in entries), default=timezone.now())
        site = f"{request.scheme}://{request.get_host()}"
        link = request.build_absolute_uri(self.link())
        parts = [
            '<?xml version="1.0" encoding="utf-8"?>\n',
            f'<feed xml:lang={quoteattr(str(get_language()))} xmlns="http://www.w3.org/2005/Atom">',
            f"<title>{escape(self.title)}</title>",
            f'<link href={quoteattr(link)} rel="alternate"/>',
            f'<link href={quoteattr(request.build_absolute_uri(request.path))} rel="self"/>',
            f"<id>{escape(link)}</id><updated>{newest.isoformat()}</updated>",
            f"<author><name>{escape(AUTHOR)}</name></author><subtitle>{escape(self.subtitle)}</subtitle>",
            *(_written(entry, site) for entry in entries),
            "</feed>",
        ]
        written = "".join(parts).encode("utf-8", "xmlcharrefreplace")
        response = HttpResponse(written, content_type="application/atom+xml; charset=utf-8")
        response["Last-Modified"] = http_date(newest.timestamp())
        return response


class Decisions(AtomFeed):
    """The latest completed decisions, each with its trades and its reasoning."""

    title = "Forecaster Arena: decisions"
    subtitle = "What language models bet, sold or held on real prediction markets, and why."

    def link(self) -> str:
        return reverse("leaderboard")

    def entries(self) -> list[Entry]:
        completed = Decision.objects.filter(status=Decision.Status.COMPLETED).order_by("-decided_at", "-pk")
        # Of decisions, trades and markets what is told of them alone: a feed tells of hundreds.
        told: list[tuple[Any, ...]] = list(
            completed.values_list(
                "pk", "agent__family", "agent__cohort", "week", "action", "fallback", "reasoning", "decided_at"
            )[:ITEMS]
        )
        done = Trade.objects.filter(decision__in=[pk for pk, *_ in told]).order_by("sequence")
        by_decision = _grouped(
            done.values_list("decision", "kind", "shares", "outcome__side", "price", "amount", "market__question")
        )
        known = roster()
        found = []
        for pk, of_family, of_cohort, week, action, fallback, reasoning, at in told:
            family, cohort = known.families[of_family], known.cohorts[of_cohort]
            said = "HOLD by fallback" if fallback else action
            lines = [
                f"{kind} {shares(number)} {side} at {price(paid)} for {money(amount)}: {question}"
                for kind, number, side, paid, amount, question in by_decision[pk]
            ]
            found.append(
                Entry(
                    path=path("decision", pk),
                    title=f"{family.display_name}: {said}, cohort {cohort.number}, week {week}",
                    lines=[*lines, reasoning[:SUMMARY]],
                    at=at,
                    categories=[action, family.slug],
                )
            )
        return found


class Resolutions(AtomFeed):
    """The markets that came to their end last, of those that an agent played or a question stands on."""

    title = "Forecaster Arena: resolutions"
    subtitle = "How the markets ended that models bet on or were asked about."

    def link(self) -> str:
        return f"{reverse('markets')}?status=resolved"

    def entries(self) -> list[Entry]:
        ended = Market.objects.filter(Q(followed=True) | Q(asked=True)).filter(
            status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED)
        )
        ended = ended.order_by("-resolved_at", "-pk")
        told: list[tuple[Any, ...]] = list(
            ended.values_list("pk", "question", "category", "resolved_at", "winning_outcome__side")[:ITEMS]
        )
        held = Position.objects.filter(market__in=[pk for pk, *_ in told]).order_by("pk")
        by_market = _grouped(
            held.values_list("market", "agent__family", "agent__cohort", "outcome__side", "realized_pnl")
        )
        known = roster()
        return [
            Entry(
                path=path("market", pk),
                title=f"{winner or 'Cancelled'}: {question}",
                lines=[
                    f"{known.families[family].display_name}, cohort {known.cohorts[cohort].number}, {side}: "
                    f"{signed_money(gained)}"
                    for family, cohort, side, gained in by_market[pk]
                ]
                or ["No agent held it."],
                at=at,
                categories=[plain(category)] if category else [],
            )
            for pk, question, category, at, winner in told
        ]


def _grouped(rows: Iterable[Sequence[Any]]) -> dict[Any, list[Sequence[Any]]]:
    """The rows without their first column, by that."""
    found: dict[Any, list[Sequence[Any]]] = defaultdict(list)
    for key, *row in rows:
        found[key].append(row)
    return found


def _written(entry: Entry, site: str) -> str:
    """An entry as XML. Its summary is HTML, as readers take it for: text in it is escaped twice."""
    link, at = f"{site}{entry.path}", entry.at.isoformat()
    lines = "\n".join([plain(line) for line in entry.lines if line])
    summary = escape(html(lines).replace("\n", "<br>"))
    terms = "".join([f"<category term={quoteattr(term)}/>" for term in entry.categories])
    return (
        f"<entry><title>{escape(plain(entry.title))}</title>"
        f'<link href={quoteattr(link)} rel="alternate"/>'
        f"<published>{at}</published><updated>{at}</updated><id>{escape(link)}</id>"
        + (f'<summary type="html">{summary}</summary>' if summary else '<summary type="html"/>')
        + f"{terms}</entry>"
    )
