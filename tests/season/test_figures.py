"""Every figure of a page stands in the JSON that the page names, in the field and with the format of `figures.txt`.

A new figure needs a line there: ARENA_WRITE_FIGURES=yes adds it, with the fields that have the value in every row, for
its author to judge. Lines that hold stay as they are. What a page derives and no JSON has is text without an element.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.urls import resolve
from selectolax.lexbor import LexborHTMLParser

from agents.models.family import name_slug
from scoring.constants import SHOWN_REFERENCES
from tests.markup import links
from tests.season.places import FOREIGN, NAMES, STATUS, Places
from tests.season.published_figures import (
    ROWS_OF,
    SHOWN_AS,
    Figure,
    Record,
    Sources,
    chart_faults,
    figures_of,
    records_of,
    written,
)
from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

pytestmark = pytest.mark.slow

PAGES = [name for name in NAMES if name not in FOREIGN and name not in STATUS]
FILE = Path(__file__).with_name("figures.txt")
"""Lines of a kind of page, a place on it, the fields and the formats of its figures.

The field `nowhere` is that of a date or a number of rows that a page derives and no JSON has. The format – stands where
a page has dashes for what the JSON has: a number of another row, or one that says nothing there.
"""
SAME = {"methodologies": "methodology", "universe-entry": "universe"}
"""Kinds of pages that show what another shows."""
BARE = {"alpha": {"Market baseline"}, "ask": {"Brier score"}}
"""Fields with the rows that have a dash all the same: the market's alpha is 0 by definition."""
WRITES = os.environ.get("ARENA_WRITE_FIGURES") == "yes"


def declared() -> dict[str, tuple[set[str], set[str]]]:
    """The fields and the formats of each place."""
    lines = {}
    for line in FILE.read_text().splitlines():
        place, _, expected = line.rpartition(" = ")
        fields, formats = expected.split(" as ")
        lines[place] = (set(fields.split(", ")), set(formats.split(", ")))
    return lines


@dataclass(frozen=True)
class ReadPage:
    """A page's figures with their places, the records of its JSON, and its charts."""

    html: LexborHTMLParser
    figures: list[tuple[str, Figure]]
    sources: Sources


@pytest.fixture(scope="module")
def read(season: SeasonApi, site: Site) -> Any:
    """A function that reads the page of a name and its JSON, each once."""
    places, display = Places.of(site), {slug: name for name, slug in season.names.items()}
    slugs = {name_slug(name): slug for name, slug in season.names.items()}

    @cache
    def records(address: str) -> list[Record]:
        found, place = documents(season, address), address.split("/")[3]
        return [record for document in found for record in records_of(place, document, display, {})]

    @cache
    def page(name: str) -> ReadPage:
        kind = str(resolve(places[name].partition("?")[0]).url_name)
        html = LexborHTMLParser(season.client.get(places[name]).text)
        kind = SAME.get(kind, kind)
        addresses = links(html, 'link[rel=alternate][type="application/json"]')
        figures = [
            (f"{kind} | {figure.place}", figure)
            for figure in figures_of(html, slugs, season.names)
            if addresses or not figure.place.endswith(ROWS_OF)  # such as the wheels of the kit, where it was built
        ]
        return ReadPage(html, figures, Sources({address: records(address) for address in addresses}))

    return page


def documents(season: SeasonApi, address: str) -> Iterator[Any]:
    """The JSON documents behind an address: all pages of a list."""
    response = season.client.get(f"{address}{'&' if '?' in address else '?'}page_size=500")
    if response.status_code == 400:  # no list
        response = season.client.get(address)
    assert response.status_code == 200, f"{address}: {response.text[:200]}"
    yield (document := response.json())
    while isinstance(document, dict) and document.get("next"):
        yield (document := season.client.get(document["next"]).json())


@pytest.mark.skipif(WRITES, reason="writes the file")
@pytest.mark.parametrize("name", PAGES)
def test_figure_stands_in_the_json_of_its_page(name: str, read: Any, season: SeasonApi) -> None:
    lines, faults, page = declared(), [], read(name)
    for place, figure in page.figures:
        expected_fields, expected_formats = lines.get(place, (set(), set()))
        what = f"{place}, row {sorted(figure.heading)} {figure.identity}: {figure.value} as {figure.text!r}"
        if figure.value == "":
            bare = {field for field, rows in BARE.items() if rows & figure.heading}
            explained = "–" in expected_formats or bare & expected_fields or not expected_fields
            if not explained and not any(map(page.sources.of_row(figure).lack, expected_fields)):
                faults.append(f"{what} is a dash, but the JSON has {sorted(expected_fields)}")
        elif "nowhere" not in expected_fields and not (fields := page.sources.of(figure)) & expected_fields:
            faults.append(f"{what} is {sorted(fields) or 'nowhere in the JSON'}, not {sorted(expected_fields)}")
        elif not figure.formats & expected_formats:
            faults.append(f"{what} has the format {sorted(figure.formats)}, not {sorted(expected_formats)}")
    faults += chart_faults(page.html, page.sources, season.names)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("score", ["brier", "alpha"])
def test_each_score_by_time_is_shown_and_no_other(score: str, read: Any, season: SeasonApi) -> None:
    """A forecaster without a question in a bin has a dash there, which the JSON says by leaving it out."""
    without = {"brier": set(), "alpha": {"market"}}[score]
    scores = [
        written(entry[score]) for row in season.one("time/")["bins"] for entry in row["entries"]
        if entry["forecaster"] not in without and (not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES)
    ]  # fmt: skip
    column = re.compile(rf"time \| {score} \| .* events \| 1")
    shown = [figure.value for place, figure in read("forecasts by time").figures if column.fullmatch(place)]
    assert sorted(filter(None, shown)) == sorted(scores)


@pytest.mark.skipif(WRITES, reason="writes the file")
def test_no_figure_of_the_file_has_left_its_pages(read: Any) -> None:
    places = {place for name in PAGES for place, _ in read(name).figures}
    assert sorted(declared().keys() - places) == []


@pytest.mark.skipif(not WRITES, reason="compares with the file")
def test_write_the_file(read: Any) -> None:
    fields: dict[str, list[set[str]]] = {}
    formats: dict[str, list[set[str]]] = {}
    for page in map(read, PAGES):
        for place, figure in page.figures:
            if figure.value:
                fields.setdefault(place, []).append(page.sources.of(figure))
                formats.setdefault(place, []).append(figure.formats)
    before = declared()
    lines = []
    for place in sorted(fields):
        words = []
        for choices, stated in zip((fields[place], formats[place]), before.get(place, (set(), set())), strict=True):
            still_right = "nowhere" in stated or all(choice & stated for choice in choices)
            words.append(", ".join(sorted(stated) if stated and still_right else cover(choices, place)))
        lines.append(f"{place} = {' as '.join(words)}\n")
    FILE.write_text("".join(lines))


def cover(choices: list[set[str]], place: str) -> list[str]:
    """Few words, of which each set has one: the most frequent first."""
    left, chosen = choices, []
    while left and any(left):
        every = {word for words in left for word in words}
        best = min(every, key=lambda word: (-sum(word in words for words in left), -likeness(word, place), word))
        chosen.append(best)
        left = [words for words in left if best not in words]
    return ["nowhere"] if left else chosen


def likeness(word: str, place: str) -> float:
    """How much a field's name is like a place's; of formats, how early it stands in their list."""
    if word in SHOWN_AS:
        return -list(SHOWN_AS).index(word)
    return SequenceMatcher(None, word.rpartition(" ")[2], place.split(" | ")[-2].lower()).ratio()
