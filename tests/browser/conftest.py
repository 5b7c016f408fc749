"""Debian's Chromium driven by playwright, and visitors that record every error of the pages they look at.

The pages are those of `site` and `own_site` (tests/season/running_site.py). Nothing here touches the test database:
playwright keeps an event loop running in this thread, in which Django refuses synchronous queries.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visitor import Visitor
from tests.databases import ON_POSTGRES
from tests.season.full_season import PASSWORD
from tests.season.places import Places
from tests.season.running_site import Site
from tests.selection import program

# The season is an SQLite file whatever the suite runs on: looking at its pages once is enough.
collect_ignore_glob = ["test_*.py"] if ON_POSTGRES else []


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all tests of this folder in a worker, gone before another folder's begin."""
    chromium = program("browser")
    assert chromium, "no Chromium on this machine (apt-get install chromium-headless-shell)"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--disable-dev-shm-usage"])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def visitors(browser: Browser, site: Site) -> Iterator[Callable[..., Visitor]]:
    """A function that returns a visitor of the season's site with these options of a browser context, one for each."""
    by_options: dict[str, Visitor] = {}

    def visitor(**options: Any) -> Visitor:
        key = repr(sorted(options.items()))
        if key not in by_options:
            by_options[key] = Visitor.of(browser, site.url, **options)
        return by_options[key]

    yield visitor
    for open_visitor in by_options.values():
        open_visitor.close()


@pytest.fixture
def visitor(visitors: Callable[..., Visitor]) -> Visitor:
    """A visitor with JavaScript, a light theme, a wide screen and no faults so far."""
    visitor = visitors()
    visitor.reset()
    return visitor


@pytest.fixture(scope="package")
def places(site: Site) -> Places:
    """Where each kind of page of the season is found."""
    return Places.of(site)


@pytest.fixture
def sign_in(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """`sign_in(site, "operator")`: a visitor of that site who has signed in to the admin under this name."""
    visitors: list[Visitor] = []

    def sign_in(site: Site, name: str, **options: Any) -> Visitor:
        visitor = Visitor.of(browser, site.url, **options)
        visitors.append(visitor)
        visitor.sign_in(name, PASSWORD)
        return visitor

    yield sign_in
    for visitor in visitors:
        visitor.close()
