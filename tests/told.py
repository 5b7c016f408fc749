"""What the API says of a season, and how a page has to write it."""

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """A chart's data: each family's value at each instant that the API has, and every change of release."""
    values = {(one["family"], instant_of(at)): value for one in series["series"] for at, value in one["points"]}
    known, names = {family for family, _ in values}, told.names
    rows = page.tables.pop(label)
    assert len(rows) > 0
    shared = 0
    for row in rows:
        (_, at), *cells = ((name, cell.text) for name, cell in row.cells.items())
        for name, cell in cells:
            if names[name] not in known:
                page.faults.append(f"{page.address} {label}: the API has no curve of {name}")
            elif (names[name], instant(at)) in values:
                page.compared += 1
                shared += 1
                if cell != text(arena.money(values[names[name], instant(at)])):
                    said = values[names[name], instant(at)]
                    page.faults.append(f"{page.address} {label}: {name} at {at}: {cell}, the API {said}")
    if not shared:
        page.faults.append(f"{page.address} {label}: not an instant of the API's")
    line(page, names, values, series.get("release_changes", []))


def line(page: Page, names: Mapping[str, str], values: Mapping[Any, str], changes: Iterable[Any]) -> None:
    """The lines of a chart of values, point by point, with a ring at every change of release."""
    drawn = points(page, "equity")
    instants = [datetime.fromtimestamp(place / 1000, UTC) for place in drawn["places"]]
    told: dict[tuple[str, datetime], float] = {key: float(value) for key, value in values.items()}
    lines = {
        (names[curve["name"]], at): value
        for curve in drawn["curves"]
        for at, value in zip(instants, curve["values"], strict=True)
        if value is not None
    }
    wrong = [key for key in lines.keys() & told.keys() if lines[key] != told[key]]
    page.compared += len(lines.keys() & told.keys())
    page.faults += [f"{page.address}: the line of {key} is at {lines[key]}, the API says {told[key]}" for key in wrong]
    said = sorted((c["family"], instant_of(c["at"]), f"{c['after']} from cohort {c['cohort']} on") for c in changes)
    turns = sorted(
        (names[curve["name"]], datetime.fromtimestamp(at / 1000, UTC), text)
        for curve in drawn["curves"]
        for at, text in curve["turns"]
    )
    rings = re.findall(r'<circle class="turn".*?<title>(.*?)</title>', page.markup, re.S)
    page.compared += len(turns)
    if turns != said or len(rings) != len(said):
        page.faults.append(f"{page.address}: changes of release {turns} with {len(rings)} rings, the API says {said}")


def points(page: Page, key: str) -> Any:
    """A chart's data, as the script that draws it anew has them."""
    (found,) = re.findall(rf'<script id="{key}" type="application/json">(.*?)</script>', page.markup, re.S)
    return json.loads(found)


def chart(
    page: Page,
    key: str,
    label: str,
    instants: Sequence[datetime],
    lines: Mapping[str, Sequence[Any]],
    write: Callable[[Any], str],
) -> None:
    """A chart's lines and their table: each line's value at each instant that the API has, and nothing else."""
    drawn = points(page, key)
    curves = {curve["name"]: curve["values"] for curve in drawn["curves"]}
    known = {
        name: [None if value is None else round(float(value), 4) for value in values]
        for name, values in lines.items()
        if any(value is not None for value in values)
    }
    if drawn["places"] != [round(at.timestamp() * 1000) for at in instants]:
        page.faults.append(f"{page.address} {key}: drawn at {drawn['places']}, the API has {instants}")
    for name in curves.keys() | known.keys():
        page.compared += len(instants)
        if curves.get(name) != known.get(name):
            said = f"the line of {name} is at {curves.get(name)}, the API says {known.get(name)}"
            page.faults.append(f"{page.address} {key}: {said}")
    rows = page.tables.pop(label, [])
    if len(rows) != len(instants):
        page.faults.append(f"{page.address} {label}: {len(rows)} rows for {len(instants)} instants")
    for row, place in zip(rows, range(len(instants))[::-1], strict=False):
        at = text_of(arena.when(instants[place]))
        told = {"Time": at} | {name: text(write(values[place])) for name, values in lines.items()}
        read = {name: cell.text for name, cell in row.cells.items()}
        page.compared += len(lines)
        if read != told:
            page.faults.append(f"{page.address} {label} at {at}: {read}, the API {told}")


def diagrams(markup: str) -> list[tuple[str, list[str]]]:
    """The squares of a page: whose each is, and what its dots say."""
    squares = re.findall(r'<figure class="square">.*?</figure>', markup, re.S)
    return [
        (
            text(re.findall(r"<figcaption>(.*?)</figcaption>", square, re.S)[0]),
            re.findall(r"<title>(.*?)</title>", square),
        )
        for square in squares
    ]


def drawn(row: Any) -> tuple[str, list[str]]:
    """What a forecaster's square says, by the API."""
    return row["display_name"], [
        f"said {each['forecast']:.2f}, happened {each['outcome']:.2f}, {each['pairs']} probabilities"
        for each in row["bins"]
    ]


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


def link(page: Page, shown: Arena, task: str, pk: int) -> None:
    """Where a decision or an elicitation stands in its chain; nothing where it is no link."""
    for found in shown.rows(f"chain-links/?{task}={pk}"):
        page.fact("Link", f"{arena.count(found['sequence'])} of the {found['protocol']} chain")
        page.fact("Previous hash", found["previous"])
        page.fact("Record’s hash", found["record_sha256"])
        page.fact("This link’s hash", found["sha256"])
        (record,) = re.findall(
            r"<summary>The record that is hashed</summary>\s*<pre[^>]*>\n(.*?)</pre>", page.markup, re.S
        )
        assert sha256(html.unescape(record)) == found["record_sha256"]


def sha256(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()


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
