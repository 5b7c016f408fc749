"""Embeds of charts: pages of their own that other sites frame, whole without scripts, and small."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from selectolax.lexbor import LexborHTMLParser

from arena_site.pages.charts.embeds import MAXIMUM_BYTES, REDUCED_NOTE
from tests.arena_site.pages.test_board_pages import create_season
from tests.arena_site.pages.test_chart_files import PAGES, add_a_week
from tests.factories import AgentFactory, CohortFactory, FamilyFactory, MarketFactory, QuestionFactory, SnapshotFactory
from tests.markup import element, elements, get_page, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
season = shared_rows(create_season)
EMBED = "/embed/trading/charts/returns/"


def framed_addresses(page: LexborHTMLParser) -> list[str]:
    """The addresses in the codes of a page's frames, without the site."""
    addresses = []
    for code in elements(page, ".embed-code pre"):
        frame = element(LexborHTMLParser(visible_text(code)), "iframe").attributes
        assert frame["loading"] == "lazy"
        assert frame["title"]
        assert frame["width"] == "100%"
        assert 200 <= int(frame["height"] or 0) <= 1000
        addresses.append((frame["src"] or "").removeprefix("http://testserver"))
    return addresses


@pytest.mark.parametrize("address", PAGES)
def test_each_chart_shows_the_code_of_its_frame(client: Client, season: None, address: str) -> None:
    page = get_page(client, address)
    framed = framed_addresses(page)
    assert len(framed) == PAGES[address]
    for source, figure in zip(framed, elements(page, "figure"), strict=True):
        assert re.match(rf"/embed{re.escape(address.partition('?')[0])}charts/[a-z-]+/\?", source)
        assert "as_of=2026-" in source
        answer = client.get(source)
        assert answer.status_code == 200
        assert len(answer.content) <= MAXIMUM_BYTES == 30_000
        embed = LexborHTMLParser(answer.content)
        title = visible_text(figure, "figcaption .figure-title, figcaption h2")
        assert visible_text(embed, "h1") == title
        titles = {visible_text(text) for text in elements(embed, ".axis-title")}
        assert {visible_text(text) for text in elements(figure, ".axis-title")} <= titles
        assert re.search(r" (Mar|Apr) 2026$", visible_text(embed, ".source time"))


def test_embed_is_whole_without_scripts_or_files_in_both_themes(client: Client, season: None) -> None:
    answer = client.get(EMBED)
    text = answer.content.decode()
    page = LexborHTMLParser(text)
    assert not page.css("script, link[rel=stylesheet], img, iframe, [src], [style]")
    assert not re.search(r"<script|javascript:|@import|url\((?!#)|\son[a-z]+=", text)
    assert "@media (prefers-color-scheme: dark)" in visible_text(page.css_first("head"))
    (link,) = elements(page, ".source a")
    assert link.attributes["target"] == "_blank"
    assert link.attributes["rel"] == "noopener"
    assert visible_text(link) == "Forecaster Arena"
    assert (link.attributes["href"] or "").startswith("http://testserver/trading/?")
    assert (link.attributes["href"] or "").endswith("#returns")
    assert get_page(client, (link.attributes["href"] or "").partition("#")[0])


@pytest.mark.parametrize(("path", "is_wide"), [(EMBED, True), ("/embed/charts/prices/", False)])
def test_a_chart_that_does_not_fit_a_narrow_frame_scrolls_in_it(
    client: Client, season: None, path: str, is_wide: bool
) -> None:
    page = get_page(client, path)
    style = visible_text(page.css_first("head"), "style")
    assert bool(page.css(".plot.wide > svg")) is is_wide
    assert ".wide > svg { min-width: 44rem; }" in style
    assert re.search(r"\.wide \{[^}]*linear-gradient\(to left, var\(--edge\)", style), "no shadow at the cut"


def test_any_site_may_frame_an_embed_and_nothing_else(client: Client, season: None) -> None:
    answer = client.get(EMBED)
    assert "X-Frame-Options" not in answer
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    policy = answer["Content-Security-Policy"]
    directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert directives.pop("frame-ancestors") == "*"
    assert re.fullmatch(r"'sha256-[\w+/]{43}='", directives.pop("style-src"))
    assert {*directives.values()} == {"'none'"}
    for address in (*PAGES, "/trading/charts/returns.svg", "/findings/", "/embed/", "/embed/trading/", "/admin/login/"):
        response = client.get(address, follow=True)
        assert response["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response["Content-Security-Policy"]


def test_cached_embed_may_be_framed_as_well(client: Client, season: None, settings: Any) -> None:
    settings.PAGE_CACHE_S = 60
    first = client.get(EMBED)
    with CaptureQueriesContext(connection) as captured:
        again = client.get(EMBED)
    assert not [query for query in captured if "snapshot" in query["sql"]]
    assert again.content == first.content
    assert again.headers == first.headers


def test_dated_embed_stays_as_it_is(client: Client, season: None) -> None:
    QuestionFactory(markets=[MarketFactory()])
    (source,) = framed_addresses(get_page(client, "/trading/"))
    before = client.get(source).content
    newest = client.get(EMBED).content
    add_a_week()
    assert client.get(source).content == before
    assert client.get(EMBED).content != newest


def test_a_demo_says_so(client: Client, season: None, settings: Any) -> None:
    assert "demo" not in client.get(EMBED).content.decode()
    settings.ARENA_DEMO = True
    page = get_page(client, EMBED)
    assert "(demo with invented data)" in visible_text(page, ".source")
    assert visible_text(page.css_first("head"), "title").endswith("(demo)")


@pytest.mark.parametrize(
    "path",
    [
        *("/embed/", "/embed/trading/", "/embed/trading/charts/nothing/", "/embed/trading/charts/returns.svg/"),
        *("/embed/cohorts/99/charts/values/", "/embed/nowhere/charts/values/", f"{EMBED}?as_of=tomorrow"),
        f"{EMBED}?as_of=2999-01-01",
    ],
)
def test_wrong_address_is_a_page_that_says_so(client: Client, season: None, path: str) -> None:
    assert visible_text(get_page(client, path, status=404), "h1") == "Page not found"


def test_address_without_a_slash_or_with_a_former_name_leads_to_the_embed(client: Client, season: None) -> None:
    assert client.get(EMBED.rstrip("/"))["Location"] == EMBED
    former = client.get("/embed/models/gpt-5.1/charts/returns/?as_of=2026-04-07")
    assert former["Location"] == "/embed/models/gpt-5.2/charts/returns/?as_of=2026-04-07"
    assert client.get(former["Location"]).status_code == 200


def test_chart_of_a_large_cohort_loses_detail_but_no_line(client: Client) -> None:
    """Twenty-four long lines are more than an embed may hold."""
    cohort = CohortFactory()
    names = []
    for number in range(24):
        agent = AgentFactory(cohort=cohort, family=FamilyFactory())
        names.append(agent.family.display_name)
        for day in range(28):
            cash = Decimal(10_000 + (day * (number + 7) * 97) % 1_900)
            SnapshotFactory(agent=agent, taken_at=cohort.week_start + timedelta(days=day), cash=cash)
    address = f"/cohorts/{cohort.number}/"
    assert len(client.get(f"{address}charts/values.svg").content) > 1.5 * MAXIMUM_BYTES
    answer = client.get(f"/embed{address}charts/values/")
    assert len(answer.content) <= MAXIMUM_BYTES
    page = LexborHTMLParser(answer.content)
    assert REDUCED_NOTE in visible_text(page, "figcaption")
    assert {*names} <= {visible_text(text) for text in elements(page, ".curve text")}
    for line in elements(page, ".curve .line"):
        assert 20 <= len((line.attributes["d"] or "").split("L")) <= 100
