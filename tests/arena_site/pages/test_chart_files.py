"""Every chart as a figure: its sentence, its axes, its source, and its files as CSV, SVG and PNG."""

import csv
import re
import struct
from decimal import Decimal
from io import BytesIO, StringIO
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client
from PIL import Image

from tests.arena_site.pages.test_board_pages import DAY, create_season
from tests.factories import (
    WEEK,
    MarketFactory,
    PriceObservationFactory,
)
from tests.markup import chart_data, element, elements, get_page, links, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
season = shared_rows(create_season)
PAGES = {
    "/": 1,
    "/trading/": 1,
    "/trading/?category=Politics": 1,
    "/cohorts/1/?range=1W": 1,
    "/cohorts/1/gpt-5.2/": 1,
    "/models/gpt-5.2/": 2,
    "/compare/gpt-5.2/grok-4.1/": 2,
    "/forecasts/?gamma=1": 2,
    "/calibration/": 2,
}
"""The number of charts of each page."""
WITH_PICTURES = {"/", "/forecasts/?gamma=1", "/calibration/"}
"""Pages that have a chart of each kind."""
MINUS_ZERO = re.compile(r"[-−]0(\.0+)?(?![\d.])")
TYPES = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}


def texts(svg: bytes) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("address", PAGES)
def test_chart_is_a_figure_with_its_files(client: Client, season: None, address: str) -> None:
    page = get_page(client, address)
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids))
    figures = elements(page, "figure")
    assert len(figures) == PAGES[address]
    for figure in figures:
        title = visible_text(figure, "figcaption .figure-title, figcaption h2")
        assert title.endswith(".")
        assert len(title.split()) > 4
        titles = {visible_text(text) for text in elements(figure, ".axis-title")}
        assert len(titles) == 2
        assert "Source: Forecaster Arena, " in visible_text(figure, ".source")
        files = {link.rpartition("?")[0] or link: link for link in links(figure, ".source a") if "." in link}
        by_type = {kind: next(link for path, link in files.items() if path.endswith(f".{kind}")) for kind in TYPES}
        # Pictures are drawn from the drawing, each kind of chart in the same way.
        kinds = TYPES.keys() if address in WITH_PICTURES else TYPES.keys() - {"png"}
        answers = {kind: client.get(by_type[kind]) for kind in kinds}
        assert {kind: answer["Content-Type"] for kind, answer in answers.items()} == {k: TYPES[k] for k in kinds}
        written = " ".join(texts(answers["svg"].content))
        assert title in written
        assert titles <= set(texts(answers["svg"].content))
        assert "Source: Forecaster Arena, " in written
        assert f"http://testserver{address.partition('?')[0]}" in written
        assert len(list(csv.reader(StringIO(answers["csv"].content.decode())))) > 2
        assert not MINUS_ZERO.search(answers["csv"].content.decode() + written)


def test_files_have_the_data_of_the_page(client: Client, season: None) -> None:
    drawn = chart_data(get_page(client, "/trading/"), "returns")
    rows = list(csv.DictReader(StringIO(client.get("/trading/charts/returns.csv").content.decode())))
    assert {row["series"] for row in rows} == {curve["name"] for curve in drawn["curves"]}
    (curve,) = [curve for curve in drawn["curves"] if curve["name"] == "GPT-5.2"]
    values = [round(float(row["return_percent"]), 4) for row in rows if row["series"] == "GPT-5.2"]
    assert values == [value for value in curve["values"] if value is not None]
    # Nine days after the start of either cohort: 250 a day of 10,000.
    last = next(row for row in rows[::-1] if row["series"] == "GPT-5.2")
    assert (last["return_percent"], last["cohorts"]) == ("22.5", "1")


def test_picture_shows_the_drawing_and_a_known_one_is_not_sent_again(client: Client, season: None) -> None:
    answer = client.get("/cohorts/1/charts/values.png")
    drawing = ElementTree.fromstring(client.get("/cohorts/1/charts/values.svg").content)
    picture = Image.open(BytesIO(answer.content)).convert("RGB")
    assert picture.size == (2 * int(drawing.attrib["width"]), 2 * int(drawing.attrib["height"]))
    assert len(picture.getcolors(100_000) or []) > 50
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    again = client.get("/cohorts/1/charts/values.png", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


def test_names_of_sides_neither_break_the_drawing_nor_become_formulas(client: Client) -> None:
    market = MarketFactory(prices={"=1+1 <b>&\x08": "0.40", "B": "0.60"})
    for days, outcome in enumerate(market.outcomes.all()):
        PriceObservationFactory(outcome=outcome, observed_at=WEEK + days * DAY, price=Decimal("0.4"))
    address = f"/markets/{market.pk}/charts/prices"
    assert "=1+1 <b>&" in texts(client.get(f"{address}.svg").content)
    rows = list(csv.DictReader(StringIO(client.get(f"{address}.csv").content.decode())))
    assert {row["series"] for row in rows} == {"'=1+1 <b>&", "B"}
    assert client.get(f"{address}.png").content.startswith(b"\x89PNG")


@pytest.mark.parametrize("path", ["cohorts/1/charts/prices.svg", "cohorts/9/charts/values.csv", "charts/scores.gif"])
def test_unknown_chart_or_type_is_not_found(client: Client, season: None, path: str) -> None:
    assert client.get(f"/{path}").status_code == 404


@pytest.mark.parametrize("name", ["trading", "forecasts"])
def test_share_image_carries_its_date_and_that_it_is_a_demo(
    client: Client, season: None, settings: Any, name: str
) -> None:
    live = texts(client.get(f"/og/{name}.svg").content)
    assert live[-1].startswith("Source: Forecaster Arena, 7 Apr 2026")
    picture = client.get(f"/og/{name}.png").content
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)
    settings.ARENA_DEMO = True
    assert texts(client.get(f"/og/{name}.svg").content)[-1].startswith(
        "Source: Forecaster Arena (demo with invented data), 7 Apr 2026"
    )
    assert client.get(f"/og/{name}.png").content != picture
    assert "(demo with invented data)" in visible_text(element(get_page(client, "/"), "figure .source"))
