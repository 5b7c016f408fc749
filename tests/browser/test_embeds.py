"""Charts in frames of another site, and the copies of findings, in a browser."""

from playwright.sync_api import Browser, expect
from pytest_httpserver import HTTPServer

from tests.browser.places import Places
from tests.browser.visitor import Visitor
from tests.season.running_site import Site

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
REFUSED = "chrome-error://chromewebdata/"
"""The address that Chromium gives a frame whose page refuses to be framed."""


def test_another_site_frames_a_chart_but_no_other_page(
    browser: Browser, site: Site, visitor: Visitor, places: Places, httpserver: HTTPServer
) -> None:
    visitor.go(places["cohort"])
    visitor.page.get_by_text("Embed this chart").first.click()
    code = visitor.page.locator(".embed-code pre").first.inner_text()
    title = visitor.page.locator("figure .figure-title").first.inner_text()
    article = f'<!doctype html><title>Elsewhere</title>{code}<iframe src="{site.url}/trading/"></iframe>'
    httpserver.expect_request("/article").respond_with_data(article, content_type="text/html")
    backgrounds = set()
    for theme in ("light", "dark"):
        context = browser.new_context(java_script_enabled=theme == "dark", color_scheme=theme)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(httpserver.url_for("/article"))
        chart = page.frame_locator("iframe").first
        chart.locator("svg .curve").first.scroll_into_view_if_needed()
        expect(chart.get_by_role("heading")).to_have_text(title)
        expect(chart.locator("svg .curve .line").first).to_be_visible()
        backgrounds.add(chart.locator("body").evaluate(f"() => {BACKGROUND}"))
        assert [frame.url for frame in page.frames].count(REFUSED) == 1
        with page.expect_popup() as opened:
            chart.get_by_role("link", name="Forecaster Arena").click()
        assert opened.value.url.startswith(f"{site.url}/cohorts/1/?")
        context.close()
    assert len(backgrounds) == 2


def test_a_finding_is_copied_with_its_dated_address(visitor: Visitor, places: Places) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.go(places["findings"])
    link = visitor.page.locator("#market a[data-copy]")
    address, sentence = link.get_attribute("href"), visitor.page.locator("#market figcaption").inner_text()
    link.click()
    expect(link).to_have_text("Copied")
    copied = visitor.page.evaluate("navigator.clipboard.readText()")
    quote = f"{' '.join(sentence.split())} (demo with invented data)"
    assert " ".join(copied.split()) == f"{quote} {visitor.url}{address}"
    visitor.page.goto(copied.rpartition(" ")[2])
    expect(visitor.page.locator("#market")).to_be_in_viewport()
    assert visitor.faults == []
