"""The season's API and pages, and the checks of figures that several kinds of pages share."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser

from tests.markup import chart_data, element, elements, visible_text
from tests.season import formats
from tests.season.page_figures import NO_FIGURE, Page, Row, by, one_line
from tests.season.running_site import Site

FAMILY = re.compile(r"/models/([^/]+)/")
AGENT = re.compile(r"/cohorts/(\d+)/([^/]+)/(?:trades/)?")
COHORT = re.compile(r"/cohorts/(\d+)/")
DECISION = re.compile(r"/decisions/(\d+)/")
MARKET = re.compile(r"/markets/(\d+)/")
DATA = "Data: "
"""Begins the label of the table with a chart's data."""


class SeasonApi:
    """A site's pages and its API, each address of which is requested once."""

    def __init__(self, site: Site) -> None:
        self.client = httpx.Client(base_url=site.url, timeout=60)
        self.one = cache(self._one)
        self.rows = cache(self._rows)

    def page(self, address: str) -> Page:
        response = self.client.get(address)
        assert response.status_code == 200, f"{address}: {response.status_code}"
        return Page(address, LexborHTMLParser(response.content))

    def _one(self, path: str) -> Any:
        response = self.client.get(f"/api/v1/{path}")
        assert response.status_code == 200, f"{path}: {response.status_code} {response.text[:300]}"
        return response.json()

    def _rows(self, path: str) -> list[dict[str, Any]]:
        rows, listing = [], self._one(f"{path}{'&' if '?' in path else '?'}page_size=500")
        while True:
            rows += listing["results"]
            if not listing["next"]:
                return rows
            listing = self.client.get(listing["next"]).json()

    @property
    def names(self) -> dict[str, str]:
        """The slug of each family's display name."""
        return {family["display_name"]: family["slug"] for family in self.rows("families/")}


def ranks(row: Any) -> str:
    return f"{row['rank_low']}–{row['rank_high']}" if row["rank_low"] != row["rank_high"] else ""


def total(rows: Any, key: str) -> Decimal:
    return sum((Decimal(row[key] or 0) for row in rows), Decimal(0))


def instant_of(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check_curves(page: Page, season: SeasonApi, label: str, series: Any) -> None:
    """Compares a chart's table and lines with each family's values, and its rings with the changes of release."""
    values = {(one["family"], instant_of(at)): value for one in series["series"] for at, value in one["points"]}
    known, names = {family for family, _ in values}, season.names
    in_both = 0
    for row in page.tables.pop(label):
        (_, time), *cells = ((name, cell.text) for name, cell in row.cells.items())
        at = datetime.strptime(time, "%d %b %Y, %H:%M UTC").replace(tzinfo=UTC)
        for name, cell in cells:
            if names[name] not in known:
                page.faults.append(f"{page.address} {label}: the API has no curve of {name}")
            elif (names[name], at) in values:
                in_both += 1
                if cell != formats.money(values[names[name], at]):
                    value = values[names[name], at]
                    page.faults.append(f"{page.address} {label}: {name} at {time}: {cell}, the API has {value}")
    page.compared += in_both
    if not in_both:
        page.faults.append(f"{page.address} {label}: no instant of the API's")
    _check_lines(page, names, values, series.get("release_changes", []))


def _check_lines(page: Page, names: Mapping[str, str], values: Mapping[Any, str], changes: Iterable[Any]) -> None:
    data = chart_data(page.html, "equity")
    instants = [datetime.fromtimestamp(place / 1000, UTC) for place in data["positions"]]
    drawn = {
        (names[curve["name"]], at): value
        for curve in data["curves"]
        for at, value in zip(instants, curve["values"], strict=True)
        if value is not None
    }
    in_both = drawn.keys() & values.keys()
    page.compared += len(in_both)
    page.faults += [
        f"{page.address}: the line of {key} is at {drawn[key]}, the API has {values[key]}"
        for key in in_both
        if drawn[key] != float(values[key])
    ]
    expected = sorted((c["family"], instant_of(c["at"]), f"{c['after']} from cohort {c['cohort']} on") for c in changes)
    turns = sorted(
        (names[curve["name"]], datetime.fromtimestamp(at / 1000, UTC), text)
        for curve in data["curves"]
        for at, text in curve["annotations"]
    )
    rings = elements(page.html, "circle.annotation")
    page.compared += len(turns)
    if turns != expected or len(rings) != len(expected):
        page.faults.append(f"{page.address}: changes of release {turns}, {len(rings)} rings, the API has {expected}")


def check_chart(
    page: Page,
    key: str,
    label: str,
    instants: Sequence[datetime],
    lines: Mapping[str, Sequence[Any]],
    write: Callable[[Any], str],
) -> None:
    """Compares a chart's lines and its table with each line's value at every instant."""
    data = chart_data(page.html, key)
    curves = {curve["name"]: curve["values"] for curve in data["curves"]}
    known = {
        name: [None if value is None else round(float(value), 4) for value in values]
        for name, values in lines.items()
        if any(value is not None for value in values)
    }
    if data["positions"] != [round(at.timestamp() * 1000) for at in instants]:
        page.faults.append(f"{page.address} {key}: drawn at {data['positions']}, the API has {instants}")
    for name in curves.keys() | known.keys():
        page.compared += len(instants)
        if curves.get(name) != known.get(name):
            values = f"{curves.get(name)}, the API has {known.get(name)}"
            page.faults.append(f"{page.address} {key}: the line of {name} is at {values}")
    rows = page.tables.pop(label, [])
    if len(rows) != len(instants):
        page.faults.append(f"{page.address} {label}: {len(rows)} rows for {len(instants)} instants")
    for row, place in zip(rows, range(len(instants))[::-1], strict=False):
        expected = {"Time": formats.minute(instants[place])}
        expected |= {name: write(values[place]) for name, values in lines.items()}
        read = {name: cell.text for name, cell in row.cells.items()}
        page.compared += len(lines)
        if read != expected:
            page.faults.append(f"{page.address} {label}: {read}, the API has {expected}")


def calibration_squares(page: Page) -> list[tuple[str, list[str]]]:
    """The calibration diagrams of a page: the caption of each and the titles of its dots."""
    return [
        (visible_text(square, "figcaption"), [one_line(title.text()) for title in elements(square, "title")])
        for square in elements(page.html, "figure.diagram")
    ]


def expected_square(row: Any) -> tuple[str, list[str]]:
    """The calibration diagram of a forecaster of the API."""
    return row["display_name"], [
        f"forecast {formats.share(each['forecast'])}, observed {formats.share(each['outcome'])}, "
        f"{each['pairs']} probabilities"
        for each in row["bins"]
    ]


def trade_columns(season: SeasonApi) -> dict[str, Callable[[Any], Any] | None]:
    scores = {row["trade"]: row["score"] for row in season.rows("brier-scores/")}
    return {
        "Shares": lambda t: formats.shares(t["shares"]),
        "Price": lambda t: formats.price(t["price"]),
        "Amount": lambda t: formats.money(t["amount"]),
        "Implied confidence": lambda t: formats.share(t["implied_confidence"]),
        "Realized P/L": lambda t: formats.signed_money(t["realized_pnl"]) if t["kind"] == "SELL" else "–",
        "Outcome": NO_FIGURE,
        "Bet-sizing score": lambda t: formats.score(scores.get(t["id"])),
    }


def _parameters(sent: dict[str, Any]) -> str:
    """The note of a call's parameters; "" for an answer that an external agent submitted."""
    if not sent:
        return ""
    note = [f"{formats.count(sent['max_tokens'])} tokens"]
    note += [f"temperature {sent['temperature']}"] if "temperature" in sent else []
    note += ["reasoning"] if "reasoning" in sent else []
    return ", ".join(note + ["JSON schema"] * ("response_format" in sent))


def check_calls(page: Page, calls: list[Any]) -> None:
    """Compares the table of the calls of a decision or an elicitation."""
    columns = {
        "Requested model": lambda c: (c["model"], _parameters(c["parameters"])),
        "Responding model": lambda c: (formats.text(c["returned_model"]), c["provider"] or ""),
        "Tokens in / out": lambda c: " / ".join(map(formats.count, (c["tokens_input"], c["tokens_output"]))),
        "Cost": lambda c: (
            formats.cost(c["cost_usd"]),
            "reserved, not yet confirmed"
            if c["cost_source"] == "booked"
            else "estimated: tokens × price" * (c["cost_source"] == "computed" and c["tokens_input"] is not None),
        ),
        "Latency": lambda c: formats.seconds(c["latency_ms"]),
        "Sent": lambda c: formats.minute(c["sent_at"]),
    }
    page.table("calls", by(calls, "sequence"), columns, "#", no_figure=["#", "Result", "Error"])


def check_chain_link(page: Page, season: SeasonApi, task: str, pk: int) -> None:
    """Compares the chain link of a decision or an elicitation, if it has one, and hashes the record shown."""
    for link in season.rows(f"chain-links/?{task}={pk}"):
        page.fact("Link", f"{formats.count(link['sequence'])} of the {link['protocol']} chain")
        page.fact("Previous hash", link["previous"])
        page.fact("Record hash", link["record_sha256"])
        page.fact("Link hash", link["sha256"])
        (record,) = [
            details for details in elements(page.html, "details") if visible_text(details, "summary") == "Hashed record"
        ]
        assert sha256(element(record, "pre").text()) == link["record_sha256"]


def check_positions(page: Page, season: SeasonApi, positions: list[dict[str, Any]], of: str) -> None:
    """Compares the tables of open and past positions, of an agent or on a market."""

    def key(row: Row) -> tuple[str, ...]:
        return (*row.target(MARKET if of == "agent" else AGENT), row.cells["Side"].text)

    names = ("market", "side") if of == "agent" else ("cohort", "family", "side")
    columns = ("Market", "Side") if of == "agent" else ("Cohort", "Model", "Side")
    status = {str(row["id"]): row["status"] for row in season.rows("markets/")}
    held = {
        "State": lambda p: "awaiting resolution" if status[str(p["market"])] == "closed" else "open",
        "Shares": lambda p: formats.shares(p["shares"]),
        "Entry price": lambda p: formats.price(p["entry_price"]),
        "Current price": lambda p: formats.price(p["price"]),
        "Cost": lambda p: formats.money(p["cost_basis"]),
        "Value": lambda p: formats.money(p["value"]),
        "Unrealized P/L": lambda p: formats.signed_money(p["unrealized_pnl"]),
    }
    now = by([row for row in positions if row["status"] == "open"], *names)
    page.table("Open positions", now, held, key, no_figure=columns)
    ended = {
        "Opened": lambda p: formats.day(p["opened_at"]),
        "Closed": lambda p: formats.day(p["closed_at"]),
        "Realized P/L": lambda p: formats.signed_money(p["realized_pnl"]),
    }
    past = by([row for row in positions if row["status"] != "open"], *names)
    page.table("Closed positions", past, ended, key, no_figure=[*columns, "Outcome"])
