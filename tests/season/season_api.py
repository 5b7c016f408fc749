"""The season's API and pages, and the checks of figures that several kinds of pages share."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from statistics import fmean
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser

from agents.models.family import name_slug
from tests.markup import chart_data, element, elements, visible_text
from tests.season import formats
from tests.season.page_figures import NO_FIGURE, Page, Row, by, one_line
from tests.season.running_site import Site

FAMILY = re.compile(r"/models/([^/]+)/")
AGENT = re.compile(r"/cohorts/(\d+)/([^/]+)/(?:trades/)?")
COHORT = re.compile(r"/cohorts/(\d+)/")
DECISION = re.compile(r"/decisions/(\d+)/")
MARKET = re.compile(r"/markets/(\d+)/")
QUESTION = re.compile(r"/questions/(\d+)/")
FAMILY_IN_ADDRESS = re.compile(r'(href="(?:/models/|/cohorts/\d+/))([a-z0-9.\-]+)(?=[/"])')
DATA = "Data: "
"""Begins the label of the table with a chart's data."""


class SeasonApi:
    """A site's pages and its API, each address of which is requested once."""

    def __init__(self, site: Site) -> None:
        self.client = httpx.Client(base_url=site.url, timeout=60, follow_redirects=True)
        self.one = cache(self._one)
        self.status = cache(self._status)
        self.rows = cache(self._rows)

    def page(self, address: str) -> Page:
        response = self.client.get(address)
        assert response.status_code == 200, f"{address}: {response.status_code}"
        return Page(address, LexborHTMLParser(FAMILY_IN_ADDRESS.sub(self._by_slug, response.text)))

    def _by_slug(self, link: re.Match[str]) -> str:
        """A link to a family's page with its slug, as the API has it, in place of its name."""
        slugs = {name_slug(name): slug for name, slug in self.names.items()}
        return link[1] + slugs.get(link[2], link[2])

    def _status(self, address: str) -> int:
        """The status to which an address leads."""
        return self.client.head(address).status_code

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


def check_curves(page: Page, season: SeasonApi, key: str, series: Any) -> None:
    """Compares a chart's table and lines with each family's values."""
    label = f"{DATA}{key}"
    values = {(one["family"], instant_of(at)): value for one in series["series"] for at, value in one["points"]}
    slugs, names = {family for family, _ in values}, season.names
    in_both = 0
    for row in page.tables.pop(label):
        (_, time), *cells = ((name, cell.text) for name, cell in row.cells.items())
        at = datetime.strptime(time, "%d %b %Y, %H:%M UTC").replace(tzinfo=UTC)
        for name, cell in cells:
            if names[name] not in slugs:
                page.faults.append(f"{page.address} {label}: the API has no curve of {name}")
            elif (names[name], at) in values:
                in_both += 1
                if cell != formats.money(values[names[name], at]):
                    value = values[names[name], at]
                    page.faults.append(f"{page.address} {label}: {name} at {time}: {cell}, the API has {value}")
    page.compared += in_both
    if not in_both:
        page.faults.append(f"{page.address} {label}: no instant of the API's")
    _check_lines(page, key, names, values)


def _check_lines(page: Page, key: str, names: Mapping[str, str], values: Mapping[Any, str]) -> None:
    data = chart_data(page.html, key)
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


def check_returns(
    page: Page, season: SeasonApi, agents: Iterable[dict[str, Any]], until: datetime | None = None
) -> None:
    """Compares a chart of returns by weeks with the snapshots of its agents: the mean changes, added up."""
    data = chart_data(page.html, "returns")
    names, starts = (
        season.names,
        {cohort["number"]: instant_of(cohort["week_start"]) for cohort in season.rows("cohorts/")},
    )
    ends = {
        cohort["number"]: cohort["completed_at"] and instant_of(cohort["completed_at"])
        for cohort in season.rows("cohorts/")
    }
    series: dict[str, list[tuple[datetime, list[tuple[datetime, float]]]]] = defaultdict(list)
    for agent in agents:
        rows = season.rows(f"snapshots/?agent={agent['id']}")
        points = sorted((instant_of(row["taken_at"]), float(row["total_value"])) for row in rows)
        if ends[agent["cohort"]]:
            points = [
                *(pair for pair in points if pair[0] < ends[agent["cohort"]]),
                (ends[agent["cohort"]], float(agent["cash"])),
            ]
        points = [pair for pair in points if until is None or pair[0] <= until]
        if points:
            series[agent["family"]].append((starts[agent["cohort"]], points))
    newest = max(points[-1][0] for of_family in series.values() for _, points in of_family)
    for curve in data["curves"]:
        of_family = series.pop(names[curve["name"]])
        mean, before = 0.0, [0.0] * len(of_family)
        for weeks, drawn in zip(data["positions"], curve["values"], strict=True):
            indexes, returns = [], list(before)
            for index, (start, points) in enumerate(of_family):
                at = start + timedelta(weeks=weeks)
                if at <= newest:
                    indexes.append(index)
                    returns[index] = (
                        max(((t, value) for t, value in points if t <= at), default=(at, 10_000.0))[1] / 100 - 100
                    )
            if indexes:
                mean += fmean(returns[index] - before[index] for index in indexes)
            before = returns
            page.compared += 1
            if (drawn is None) != (not indexes) or (drawn is not None and abs(drawn - mean) > 1e-3):
                page.faults.append(f"{page.address}: {curve['name']} after {weeks} weeks: {drawn}, the API says {mean}")
    if series:
        page.faults.append(f"{page.address}: no line of {sorted(series)}")
    page.skip(f"{DATA}returns")


def check_chart(
    page: Page, key: str, instants: Sequence[datetime], lines: Mapping[str, Sequence[Any]], write: Callable[[Any], str]
) -> None:
    """Compares a chart's lines and its table with each line's value at every instant."""
    label = f"{DATA}{key}"
    data = chart_data(page.html, key)
    curves = {curve["name"]: curve["values"] for curve in data["curves"]}
    answer_values = {
        name: [None if value is None else round(float(value), 4) for value in values]
        for name, values in lines.items()
        if any(value is not None for value in values)
    }
    if data["positions"] != [round(at.timestamp() * 1000) for at in instants]:
        page.faults.append(f"{page.address} {key}: drawn at {data['positions']}, the API has {instants}")
    for name in curves.keys() | answer_values.keys():
        page.compared += len(instants)
        if curves.get(name) != answer_values.get(name):
            values = f"{curves.get(name)}, the API has {answer_values.get(name)}"
            page.faults.append(f"{page.address} {key}: the line of {name} is at {values}")
    rows = page.tables.pop(label, [])
    if len(rows) != len(instants):
        page.faults.append(f"{page.address} {label}: {len(rows)} rows for {len(instants)} instants")
    for row, place in zip(rows, range(len(instants))[::-1], strict=False):
        expected = {"Date and time (UTC)": formats.minute(instants[place])}
        expected |= {name: write(values[place]) for name, values in lines.items()}
        read = {name: cell.text for name, cell in row.cells.items()}
        page.compared += len(lines)
        if read != expected:
            page.faults.append(f"{page.address} {label}: {read}, the API has {expected}")


def calibration_squares(page: Page, key: str = "calibration") -> list[tuple[str, list[list[str]]]]:
    """The reliability diagrams of a chart: each forecaster with the cells of its bins, and their numbers."""
    page.skip(f"{DATA}{key}")
    rows = [
        [cell.text(strip=True) for cell in elements(row, "th, td")] for row in elements(page.html, f"#{key} tbody tr")
    ]
    squares = []
    for panel in elements(page.html, f"#{key} .diagram"):
        name = visible_text(panel, ".panel-title")
        bins = [one_line(" ".join(cells[1:])) for cells in rows if cells[0] == name]
        squares.append((name, [[*bins], [visible_text(text) for text in elements(panel, ".numbers text")[1:]]]))
        page.compared += len(bins)
    return squares


def expected_square(row: Any) -> tuple[str, list[list[str]]]:
    """The reliability diagram of a forecaster of the API."""
    share, count = formats.share, formats.count
    shares = ("from", "to", "forecast", "outcome", "low", "high")
    bins = [
        one_line(
            " ".join([*(share(bin_row[key]) for key in shares), count(bin_row["pairs"]), share(bin_row["weight"])])
        )
        for bin_row in row["bins"]
    ]
    numbers = [count(n) if n < 1000 else f"{n / 1000:.3g}k" for n in (bin_row["pairs"] for bin_row in row["bins"])]
    return row["display_name"], [bins, numbers]


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


def _parameters(parameters: dict[str, Any]) -> str:
    """The note of a call's parameters; "" for an answer that an external agent submitted."""
    if not parameters:
        return ""
    note = [f"{formats.count(parameters['max_tokens'])} tokens"]
    note += [f"temperature {parameters['temperature']}"] if "temperature" in parameters else []
    note += ["reasoning"] if "reasoning" in parameters else []
    return ", ".join(note + ["JSON schema"] * ("response_format" in parameters))


def check_calls(page: Page, calls: list[Any]) -> None:
    """Compares the table of the calls of a decision or an elicitation."""
    columns = {
        "Requested model": lambda call: (call["model"], _parameters(call["parameters"])),
        "Responding model": lambda call: (formats.text(call["returned_model"]), call["provider"] or ""),
        "Tokens in / out": lambda call: " / ".join(map(formats.count, (call["tokens_input"], call["tokens_output"]))),
        "Cost": lambda call: (
            formats.cost(call["cost_usd"]),
            "reserved, not yet confirmed"
            if call["cost_source"] == "booked"
            else "estimated: tokens × price" * (call["cost_source"] == "computed" and call["tokens_input"] is not None),
        ),
        "Latency": lambda call: formats.seconds(call["latency_ms"]),
        "Sent": lambda call: formats.minute(call["sent_at"]),
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
    open_rows = {
        "State": lambda p: "awaiting resolution" if status[str(p["market"])] == "closed" else "open",
        "Shares": lambda p: formats.shares(p["shares"]),
        "Entry price": lambda p: formats.price(p["entry_price"]),
        "Current price": lambda p: formats.price(p["price"]),
        "Cost": lambda p: formats.money(p["cost_basis"]),
        "Value": lambda p: formats.money(p["value"]),
        "Unrealized P/L": lambda p: formats.signed_money(p["unrealized_pnl"]),
    }
    now = by([row for row in positions if row["status"] == "open"], *names)
    page.table("Open positions", now, open_rows, key, no_figure=columns)
    final_rows = {
        "Opened": lambda p: formats.day(p["opened_at"]),
        "Closed": lambda p: formats.day(p["closed_at"]),
        "Realized P/L": lambda p: formats.signed_money(p["realized_pnl"]),
    }
    past = by([row for row in positions if row["status"] != "open"], *names)
    page.table("Closed positions", past, final_rows, key, no_figure=[*columns, "Outcome"])
