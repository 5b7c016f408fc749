"""Every figure of a page stands in the JSON that the page names, in the field and with the format of `figures.txt`.

A new figure needs a line there: ARENA_WRITE_FIGURES=yes adds it, with the fields that have the value in every row, for
its author to judge. Lines that hold stay as they are. What a page derives and no JSON has is text without an element.
"""

import os
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.urls import resolve
from selectolax.lexbor import LexborHTMLParser

from agents.models.family import name_slug
from tests.markup import links
from tests.season.places import FOREIGN, NAMES, STATUS, Places
from tests.season.published_figures import SHOWN_AS, Figure, Sources, figures_of
from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

pytestmark = pytest.mark.slow

PAGES = [name for name in NAMES if name not in FOREIGN and name not in STATUS]
FILE = Path(__file__).with_name("figures.txt")
SAME = {"methodologies": "methodology", "universe-entry": "universe"}
"""Kinds of pages that show what another shows."""
WRITES = os.environ.get("ARENA_WRITE_FIGURES") == "yes"
"""Lines of a kind of page, a place on it, the fields and the formats of its figures."""


def declared() -> dict[str, tuple[set[str], set[str]]]:
    """The fields and the formats of each place."""
    lines = {}
    for line in FILE.read_text().splitlines():
        place, _, expected = line.rpartition(" = ")
        fields, formats = expected.split(" as ")
        lines[place] = (set(fields.split(", ")), set(formats.split(", ")))
    return lines


@pytest.fixture(scope="module")
def documents(season: SeasonApi) -> Any:
    """A function that gives the JSON documents behind an address: all pages of a list."""

    @cache
    def read(address: str) -> list[Any]:
        found, following = [], f"{address}{'&' if '?' in address else '?'}page_size=500"
        response = season.client.get(following)
        if response.status_code == 400:  # no list
            response = season.client.get(address)
        assert response.status_code == 200, f"{address}: {response.text[:200]}"
        found.append(response.json())
        while isinstance(found[-1], dict) and found[-1].get("next"):
            found.append(season.client.get(found[-1]["next"]).json())
        return found

    return read


def figures_on(name: str, season: SeasonApi, site: Site) -> tuple[LexborHTMLParser, list[tuple[str, Figure]]]:
    """A page, and its figures with their places."""
    path = Places.of(site)[name]
    page = LexborHTMLParser(season.client.get(path).text)
    slugs = {name_slug(display): slug for display, slug in season.names.items()}
    kind = str(resolve(path.partition("?")[0]).url_name)
    found = figures_of(page, slugs, season.names)
    return page, [(f"{SAME.get(kind, kind)} | {figure.place}", figure) for figure in found]


def read_figures(name: str, season: SeasonApi, site: Site, documents: Any) -> Iterator[tuple[str, Figure, set[str]]]:
    """Each figure of a page, with its place and the fields that have it."""
    page, figures = figures_on(name, season, site)
    names = {slug: display for display, slug in season.names.items()}
    sources = Sources()
    for address in links(page, 'link[rel=alternate][type="application/json"]'):
        sources.add(address, documents(address), names)
    for place, figure in figures:
        yield place, figure, sources.of(figure)


@pytest.mark.skipif(WRITES, reason="writes the file")
@pytest.mark.parametrize("name", PAGES)
def test_figure_stands_in_the_json_of_its_page(name: str, season: SeasonApi, site: Site, documents: Any) -> None:
    lines, faults = declared(), []
    for place, figure, fields in read_figures(name, season, site, documents):
        expected_fields, expected_formats = lines.get(place, (set(), set()))
        what = f"{place}, row {sorted(figure.heading)} {figure.identity}: {figure.value} as {figure.text!r}"
        if not fields & expected_fields:
            faults.append(f"{what} is {sorted(fields) or 'nowhere in the JSON'}, not {sorted(expected_fields)}")
        elif not figure.formats & expected_formats:
            faults.append(f"{what} has the format {sorted(figure.formats)}, not {sorted(expected_formats)}")
    assert not faults, "\n".join(faults)


@pytest.mark.skipif(WRITES, reason="writes the file")
def test_no_figure_of_the_file_has_left_its_pages(season: SeasonApi, site: Site) -> None:
    places = {place for name in PAGES for place, _ in figures_on(name, season, site)[1]}
    assert sorted(declared().keys() - places) == []


@pytest.mark.skipif(not WRITES, reason="compares with the file")
def test_write_the_file(season: SeasonApi, site: Site, documents: Any) -> None:
    fields: dict[str, list[set[str]]] = {}
    formats: dict[str, list[set[str]]] = {}
    for name in PAGES:
        for place, figure, found in read_figures(name, season, site, documents):
            fields.setdefault(place, []).append(found)
            formats.setdefault(place, []).append(figure.formats)
    before = declared()
    lines = []
    for place in sorted(fields):
        words = []
        for choices, stated in zip((fields[place], formats[place]), before.get(place, (set(), set())), strict=True):
            still_right = all(choice & stated for choice in choices)
            words.append(", ".join(sorted(stated) if still_right else cover(choices, place)))
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
    return chosen + (["NOWHERE"] if left else [])


def likeness(word: str, place: str) -> float:
    """How much a field's name is like a place's; of formats, how early it stands in their list."""
    if word in SHOWN_AS:
        return -list(SHOWN_AS).index(word)
    return SequenceMatcher(None, word.rpartition(" ")[2], place.split(" | ")[-2].lower()).ratio()
