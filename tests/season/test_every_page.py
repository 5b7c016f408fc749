"""What every page keeps, asked of each address of the table; a browser looks at the same pages (tests/browser)."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.urls import URLPattern
from selectolax.lexbor import LexborHTMLParser

from arena_site.pages.urls import urlpatterns
from tests.markup import element, elements, links, visible_text
from tests.season.places import FIXED, FOREIGN, NAMES, STATUS, Places
from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

pytestmark = pytest.mark.slow

MAX_COMPRESSED_BYTES = 60_000
OPEN_GRAPH = ("title", "description", "image", "url")
OURS = [name for name in NAMES if name not in FOREIGN]
PAGES = [name for name in OURS if name not in STATUS]
SECRET = {"owner of an agent"}
"""Not compressed, for a form that holds a secret."""
ADDRESSES = [name for name in PAGES if "?" not in FIXED.get(name, "") and name not in SECRET]
"""Pages as they are found, without a reader's choices."""
CURRENT = {"methodology"}
"""Pages that name the address of their current version."""
WITHOUT_JSON = {
    "findings", "glossary", "registration of an agent", "owner of an agent", "search", "corrections", "data",
    "datasets", "kit",
}  # fmt: skip
"""Pages of prose, of files and of forms, of which the API has nothing."""
MACHINES = (
    ".zip", "<path:name>", "<path:file>", "kit/simple/", "kit/simple/<str:name>/", "kit/wheels/<str:file>", ".xml",
    ".txt", "healthz", "readyz", "metrics", ".<str:extension>", ".<slug:extension>", "charts/<slug:chart>/", ".csv",
    ".json", ".atom", ".rss", "feed/",
)  # fmt: skip
"""Ends of addresses that no person reads as a page, or of which one is read for all."""
WRONG_FORMS = {
    "an identifier": re.compile(r"\b\w+_\w+\b|\b[a-z_]+:\d|\b[0-9a-f]{12,}\b|\b[a-z-]+/[a-z]+-[0-9]"),
    "a negative zero": re.compile(r"[-−]\$?0(\.0+)?(?![\d.])"),
    "a p-value of zero": re.compile(r"\bp [=<] 0\.0+\b"),
    "no number": re.compile(r"\b(None|nan|NaN|inf)\b(?! of these)"),
    "a multiple": re.compile(r"\d[×x](?!\w)"),
    "a percentage without its space": re.compile(r"\d%"),
}
EACH_PAGE = pytest.mark.parametrize("name", OURS)


@dataclass(frozen=True)
class ReadPage:
    address: str
    headers: Any
    bytes: int
    markup: str

    @property
    def html(self) -> LexborHTMLParser:
        """Parsed anew, for tests take parts out."""
        return LexborHTMLParser(self.markup)


@pytest.fixture(scope="module")
def pages(season: SeasonApi, site: Site) -> Any:
    """A function that gives the page of a name, read once."""
    places = Places.of(site)

    @cache
    def page(name: str) -> ReadPage:
        response = season.client.get(places[name], headers={"accept-encoding": "gzip"})
        assert response.status_code == STATUS.get(name, 200)
        return ReadPage(str(response.url), response.headers, response.num_bytes_downloaded, response.text)

    return page


@EACH_PAGE
def test_page_obeys_the_content_policy_and_is_light(name: str, pages: Any) -> None:
    page = pages(name)
    assert page.headers["Content-Security-Policy"].count("default-src 'self'") == 1
    assert ("Content-Encoding" in page.headers) == (name not in SECRET)
    assert page.bytes < MAX_COMPRESSED_BYTES
    acting = [node.tag for node in elements(page.html, "style, [style], script:not([src]):not([type*=json])")]
    for node in elements(page.html, "*"):
        names = [name for name in node.attributes if name.startswith("on")]
        acting += names + [link for link in node.attributes.values() if (link or "").startswith("javascript:")]
    assert acting == []


@EACH_PAGE
def test_values_stand_as_text_and_identifiers_in_code(name: str, pages: Any) -> None:
    page = pages(name).html
    for quoted in elements(page, "code, pre, bdi, blockquote, [dir=auto]"):
        quoted.decompose()
    labels = [node.attributes[kind] for kind in ("aria-label", "title", "alt") for node in elements(page, f"[{kind}]")]
    text = re.sub(r"\S+://\S+", "", "\n".join(filter(None, [visible_text(page), *labels])))
    wrong = [(why, match.group()) for why, pattern in WRONG_FORMS.items() for match in pattern.finditer(text)]
    assert wrong == []


@EACH_PAGE
def test_each_term_has_its_definition(name: str, pages: Any) -> None:
    page = pages(name).html
    terms = {node.attributes["popovertarget"] for node in elements(page, ".term")}
    assert terms - {node.attributes["id"] for node in elements(page, "[popover]")} == set()
    assert elements(page, "abbr") == []


@EACH_PAGE
def test_data_elements_stand_in_text_alone(name: str, pages: Any) -> None:
    page = pages(name).html
    attributes = [text for node in elements(page, "*") for text in node.attributes.values() if "<data" in (text or "")]
    misplaced = [node.html for node in page.css("svg data, title data, option data, textarea data, data data")]
    assert attributes + misplaced == []
    assert [node.text() for node in page.css("title, textarea, option, svg") if "<data" in node.text()] == []
    assert "<data value" not in element(page, "body").text()


@EACH_PAGE
def test_ids_are_unique_and_tables_have_names(name: str, pages: Any) -> None:
    page = pages(name).html
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert sorted(ids) == sorted(set(ids))
    assert len(elements(page, "h1")) == 1
    unnamed = [
        table for table in elements(page, "table") if not {"aria-label", "aria-labelledby"} & table.attributes.keys()
    ]
    assert [visible_text(table)[:80] for table in unnamed] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_names_its_address_its_picture_and_its_json(name: str, pages: Any, season: SeasonApi, site: Site) -> None:
    page = pages(name)
    (canonical,) = links(page.html, "link[rel=canonical]")
    shared = {part: element(page.html, f'meta[property="og:{part}"]').attributes["content"] for part in OPEN_GRAPH}
    assert all(shared.values())
    assert shared["url"] == canonical
    assert name in CURRENT or urlsplit(canonical).path == urlsplit(page.address).path
    json = links(page.html, 'link[rel=alternate][type="application/json"]')
    assert bool(json) == (name not in WITHOUT_JSON)
    for address in (canonical, shared["image"], *json):
        assert season.client.head(urljoin(site.url, address)).status_code == 200, address


def test_titles_and_descriptions_tell_pages_apart(pages: Any) -> None:
    titles, descriptions = {}, {}
    for name in ADDRESSES:
        page = pages(name).html
        (address,) = links(page, "link[rel=canonical]")
        titles[address] = element(page, "head title").text()
        descriptions[address] = element(page, "meta[name=description]").attributes["content"]
    assert min(map(len, descriptions.values())) >= 30
    for texts in (titles, descriptions):
        assert [text for text, number in Counter(texts.values()).items() if number > 1] == []


@EACH_PAGE
def test_no_link_leads_nowhere(name: str, pages: Any, season: SeasonApi) -> None:
    page = pages(name)
    targets = {urljoin(page.address, link).partition("#")[0] for link in links(page.html, "main [href]")}
    own = sorted(target for target in targets if target.startswith(str(season.client.base_url)))
    assert {target: status for target in own if (status := season.status(target)) != 200} == {}


def test_no_page_of_a_demo_shows_the_date_of_the_clock(pages: Any) -> None:
    today = datetime.now(UTC)
    dates = re.compile(rf"\b{today:%-d} {today:%b}[a-z]* {today:%Y}|\b(?:[5-9]|\d\d+) weeks old|paused since")
    shown = {}
    for name in OURS:
        words = re.sub(r"<[^>]*>", "", pages(name).markup)
        words = re.sub(r"Measured on [^.]*? by", "", words)  # the day of a simulation
        if found := dates.findall(words):
            shown[name] = found
    assert shown == {}


def test_no_kind_of_page_is_left_out(site: Site) -> None:
    visited = [path.partition("?")[0].removeprefix("/") for path in Places.of(site).paths.values()]
    kinds = [p for p in urlpatterns if isinstance(p, URLPattern) and not str(p.pattern).endswith(MACHINES)]
    left_out = [str(p.pattern) for p in kinds if not any(p.resolve(path) for path in visited)]
    assert left_out == []


@pytest.mark.parametrize(
    ("path", "kind", "holds"),
    [
        ("/feeds/decisions.atom", "application/atom+xml", "<entry>"),
        ("/feeds/resolutions.atom", "application/atom+xml", "<entry>"),
        ("/sitemap.xml", "application/xml", "<sitemap>"),
        ("/robots.txt", "text/plain", "Sitemap:"),
        ("/og/forecasts.png", "image/png", "PNG"),
    ],
)
def test_files_for_machines_have_their_content_type(season: SeasonApi, path: str, kind: str, holds: str) -> None:
    answer = season.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert holds in answer.content.decode(errors="ignore")
