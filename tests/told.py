"""What the API says of a season, and how a page has to write it."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import httpx

from scoring.templatetags import arena
from tests.figures import WORDS, Page, Row, by, text
from tests.live import Site

FAMILY = r"/models/([^/]+)/"
AGENT = r"/cohorts/(\d+)/([^/]+)/(?:trades/)?"
DECISION = r"/decisions/(\d+)/"
MARKET = r"/markets/(\d+)/"
"""What links to these look like; what varies in them is what the API calls them by."""
DATA = "Data: "
"""How the region of a chart's data is labelled."""


class Arena:
    """A site's pages, and what its API says, each asked once."""

    def __init__(self, site: Site) -> None:
        self.client = httpx.Client(base_url=site.url, timeout=60)
        self.pages: list[Page] = []
        self.one = cache(self._one)
        self.rows = cache(self._rows)

    def page(self, address: str) -> Page:
        answer = self.client.get(address)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        page = Page(address, answer.text)
        self.pages.append(page)
        return page

    def _one(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()

    def _rows(self, path: str) -> list[dict[str, Any]]:
        rows, told = [], self._one(f"{path}{'&' if '?' in path else '?'}page_size=500")
        while True:
            rows += told["results"]
            if not told["next"]:
                return rows
            told = self.client.get(told["next"]).json()

    @property
    def names(self) -> dict[str, str]:
        return {family["display_name"]: family["slug"] for family in self.rows("families/")}


def closed(page: Page, at_least: int) -> None:
    """The page holds at least so many figures, each of which is the API's."""
    faults = page.close()
    assert not faults, "\n".join(faults)
    assert page.compared >= at_least


def ranks(row: Any) -> str:
    return f"{row['rank_low']}–{row['rank_high']}" if row["rank_low"] != row["rank_high"] else ""


def interval(values: Any, write: Callable[[Any], str] = arena.score, between: str = "–") -> str:
    return between.join(map(write, values)) if values else ""


def half(values: Any) -> str:
    return f"± {arena.percent(arena.half_width(values))}" if values else ""


def plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {arena.score(error)}"


def dots(*values: Any, write: Callable[[Any], str] = arena.score) -> str:
    return " · ".join(map(write, values))


def many(number: int, what: str) -> str:
    return f"{arena.count(number)} {what}{'' if number == 1 else 's'}"


def total(rows: Any, key: str) -> Decimal:
    return sum((Decimal(row[key] or 0) for row in rows), Decimal(0))


def instant(cell: str) -> datetime:
    return datetime.strptime(cell, "%d %b %Y, %H:%M UTC").replace(tzinfo=UTC)


def instant_of(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def moment(stamp: str | None) -> datetime | None:
    return None if stamp is None else instant_of(stamp)


def text_of(markup: str) -> str:
    return markup.partition(">")[2].partition("<")[0] if markup.startswith("<") else markup


def curves(page: Page, told: Arena, label: str, series: Any) -> None:
    """A chart's data: at each instant that both know, each family's value."""
    values = {(one["family"], instant_of(at)): value for one in series["series"] for at, value in one["points"]}
    known, names = {family for family, _ in values}, told.names
    rows = page.tables.pop(label)
    assert len(rows) > 0
    for row in rows:
        (_, at), *cells = ((name, cell.text) for name, cell in row.cells.items())
        for name, cell in cells:
            if names[name] not in known:
                page.faults.append(f"{page.address} {label}: the API has no curve of {name}")
            elif (names[name], instant(at)) in values:
                page.compared += 1
                if cell != text(arena.money(values[names[name], instant(at)])):
                    said = values[names[name], instant(at)]
                    page.faults.append(f"{page.address} {label}: {name} at {at}: {cell}, the API {said}")


def columns_of_a_trade(shown: Arena) -> dict[str, Callable[[Any], Any] | None]:
    scores = {row["trade"]: row["score"] for row in shown.rows("brier-scores/")}
    return {
        "Shares": lambda t: arena.shares(t["shares"]),
        "Price": lambda t: arena.price(t["price"]),
        "Amount": lambda t: arena.money(t["amount"]),
        "Implied confidence": lambda t: arena.share(t["implied_confidence"]),
        "Confidence": lambda t: arena.share(t["implied_confidence"]),
        "Realized P/L": lambda t: arena.signed_money(t["realized_pnl"]) if t["kind"] == "SELL" else "–",
        "Outcome": WORDS,
        "Brier": lambda t: arena.score(scores.get(t["id"])),
    }


def holdings(page: Page, shown: Arena, positions: list[dict[str, Any]], whose: str) -> None:
    """The tables of what is held and of what was held, of an agent or on a market."""

    def key(row: Row) -> tuple[str, ...]:
        where = row.target(MARKET if whose == "agent" else AGENT)
        return (*where, row.cells["Side"].text)

    names = ("market", "side") if whose == "agent" else ("cohort", "family", "side")
    status = {str(row["id"]): row for row in shown.rows("markets/")}
    now = by([row for row in positions if row["status"] == "open"], *names)
    page.table(
        "Positions held now",
        lambda row: now[key(row)],
        {
            **dict.fromkeys(("Market", "Family", "Cohort", "Side"), WORDS),
            "State": lambda p: "awaiting resolution" if status[str(p["market"])]["status"] == "closed" else "open",
            "Shares": lambda p: arena.shares(p["shares"]),
            "Paid a share": lambda p: arena.price(p["entry_price"]),
            "Price now": lambda p: arena.price(p["price"]),
            "Cost": lambda p: arena.money(p["cost_basis"]),
            "Value": lambda p: arena.money(p["value"]),
            "Unrealized P/L": lambda p: arena.signed_money(p["unrealized_pnl"]),
        },
        rows=len(now),
    )
    past = by([row for row in positions if row["status"] != "open"], *names)
    page.table(
        "Past positions",
        lambda row: past[key(row)],
        {
            **dict.fromkeys(("Market", "Family", "Cohort", "Side", "Came to"), WORDS),
            "Opened": lambda p: text_of(arena.day(moment(p["opened_at"]))),
            "Ended": lambda p: text_of(arena.day(moment(p["closed_at"]))),
            "Realized P/L": lambda p: arena.signed_money(p["realized_pnl"]),
        },
        rows=len(past),
    )
