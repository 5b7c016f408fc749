"""Embeds of the season: that of each chart of each kind of page is small, dated, and no script."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from tests.browser.places import FIXED, FOREIGN, STATUS, Places
from tests.markup import element, elements, visible_text
from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

LARGEST = 30_000


@pytest.mark.slow
def test_each_chart_has_a_small_embed(season: SeasonApi, site: Site) -> None:
    pages = {path for name, path in Places.of(site).paths.items() if name not in {*STATUS, *FOREIGN}}
    sizes: dict[str, int] = {}
    for path in sorted(pages):
        page = LexborHTMLParser(season.client.get(path).content)
        codes = elements(page, ".embed-code pre")
        assert len(codes) == len(elements(page, "main figure:has(figcaption)")) or path.startswith("/embed/")
        for code in codes:
            source = element(LexborHTMLParser(visible_text(code)), "iframe").attributes["src"] or ""
            answer = season.client.get(source)
            assert answer.status_code == 200, source
            assert "X-Frame-Options" not in answer.headers
            assert "<script" not in answer.text
            assert "prefers-color-scheme: dark" in answer.text
            embed = LexborHTMLParser(answer.content)
            assert "(demo with invented data)" in visible_text(embed, ".source")
            assert "2026" in visible_text(embed, ".source time")
            assert "as_of=2026-" in source
            sizes[source] = len(answer.content)
    assert len(sizes) > len(FIXED) / 2
    assert {source: size for source, size in sizes.items() if size > LARGEST} == {}
