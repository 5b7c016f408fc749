"""Charts and times with JavaScript: interactions, and unchanged numbers."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Locator, expect
from pytest_httpserver import HTTPServer

from arena_site.pages import filters as arena
from tests.browser.places import Places
from tests.browser.visitor import Visitor
from tests.season.page_figures import one_line
from tests.season.running_site import Site

CHART = "figure.chart.interactive"


@pytest.fixture
def chart(visitor: Visitor, places: Places) -> Locator:
    """The chart of a cohort, ready to be used."""
    visitor.go(places["cohort"])
    live = visitor.page.locator(CHART)
    expect(live).to_have_count(1)
    live.scroll_into_view_if_needed()
    return live


def hover(chart: Locator, share: float = 0.5) -> Locator:
    """Points at a share of the chart's width; gives what is read out."""
    area = chart.locator("rect.overlay")
    box = area.bounding_box()
    assert box is not None
    area.hover(position={"x": box["width"] * share, "y": box["height"] / 2}, force=True)
    readout = chart.locator(".readout")
    expect(readout).to_be_visible()
    return readout


def choose_a_week(visitor: Visitor) -> None:
    week = visitor.page.get_by_role("link", name="1 week", exact=True)
    week.click()
    expect(week).to_have_attribute("aria-current", "true")
    expect(visitor.page.locator(CHART)).to_have_count(1)


def test_hovering_shows_the_apis_values_of_that_instant(visitor: Visitor, chart: Locator) -> None:
    names = {family["slug"]: family["display_name"] for family in visitor.json("/api/v1/families/")["results"]}
    series = visitor.json("/api/v1/performance/", cohort=1)["series"]
    for share in (0.2, 0.8):
        readout = hover(chart, share)
        instant = readout.locator("strong").inner_text()
        moment = datetime.strptime(instant, "%d %b %Y, %H:%M UTC").replace(tzinfo=UTC)
        pairs = zip(readout.locator("span").all_inner_texts(), readout.locator("b").all_inner_texts(), strict=True)
        values = {names[one["family"]]: dict(one["points"])[f"{moment:%Y-%m-%dT%H:%M:%SZ}"] for one in series}
        assert dict(pairs) == {name: arena.money(value) for name, value in values.items()}
    assert visitor.faults == []


def test_one_family_is_isolated_and_shown_with_the_others_again(visitor: Visitor, chart: Locator) -> None:
    legend = chart.locator(".legend button")
    first = legend.first
    name = first.inner_text()
    first.click()
    expect(first).to_have_attribute("aria-pressed", "true")
    expect(chart.locator("g.curve.faded")).to_have_count(legend.count() - 1)
    assert hover(chart).locator("span").all_inner_texts() == [name]
    first.click()
    expect(chart.locator("g.curve.faded")).to_have_count(0)
    assert visitor.faults == []


def test_values_are_shown_as_returns_and_back(visitor: Visitor, chart: Locator) -> None:
    dollars = hover(chart, 0.9).locator("b").first.inner_text()
    assert dollars.startswith("$")
    chart.get_by_role("button", name="Show returns in percent").click()
    percent = hover(chart, 0.9).locator("b").first.inner_text()
    displayed_value = float(re.sub(r"[^\d.+-]", "", percent.replace("−", "-")))
    assert abs((float(re.sub(r"[$,]", "", dollars)) / 10_000 - 1) * 100 - displayed_value) < 0.006
    expect(chart.locator(".axis text").first).to_contain_text("%")
    chart.get_by_role("button", name="Show values in dollars").click()
    assert hover(chart, 0.9).locator("b").first.inner_text() == dollars
    assert visitor.faults == []


def test_dragging_zooms_and_a_button_resets(visitor: Visitor, chart: Locator) -> None:
    reset = chart.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_disabled()
    axis = chart.locator(".axis").inner_html()
    box = chart.locator("rect.overlay").bounding_box()
    assert box is not None
    mouse, middle = visitor.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + box["width"] * 0.3, middle)
    mouse.down()
    mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    mouse.up()
    expect(reset).to_be_enabled()
    assert chart.locator(".axis").inner_html() != axis
    reset.click()
    expect(reset).to_be_disabled()
    assert chart.locator(".axis").inner_html() == axis
    assert visitor.faults == []


def test_a_chart_is_read_by_the_keyboard(visitor: Visitor, chart: Locator) -> None:
    chart.locator(".plot").focus()
    visitor.page.keyboard.press("End")
    newest = chart.locator(".readout strong").inner_text()
    visitor.page.keyboard.press("ArrowLeft")
    assert chart.locator(".readout strong").inner_text() != newest
    visitor.page.keyboard.press("+")
    expect(chart.get_by_role("button", name="Reset zoom")).to_be_enabled()
    visitor.page.keyboard.press("Escape")
    expect(chart.get_by_role("button", name="Reset zoom")).to_be_disabled()
    assert visitor.faults == []


def test_another_range_loads_without_leaving_the_page(visitor: Visitor, places: Places) -> None:
    visitor.go(places["cohort"])
    before = visitor.page.locator(CHART).locator("tbody tr").count()
    visitor.page.evaluate("window.same = true")
    choose_a_week(visitor)
    assert visitor.page.url.endswith("?range=1W#over-time")
    assert visitor.page.evaluate("window.same") is True
    assert visitor.page.locator(CHART).locator("tbody tr").count() != before
    assert visitor.faults == []


def test_without_javascript_a_range_is_a_plain_link(visitors: Callable[..., Visitor], places: Places) -> None:
    plain = visitors(java_script_enabled=False)
    plain.reset()
    plain.go(places["cohort"])
    plain.page.get_by_role("link", name="1 week", exact=True).click()
    plain.page.wait_for_url("**/?range=1W*")
    assert plain.page.locator("a[aria-current=true]", has_text="1 week").count() == 1
    assert plain.page.locator("figure.chart table tbody tr").count() > 0


def test_time_shows_the_readers_zone_on_hover(visitor: Visitor, places: Places) -> None:
    visitor.go(places["decision with refusals"])
    moment = visitor.page.locator("time[datetime='2026-03-08T00:05:00Z']").first
    expect(moment).to_have_text("8 Mar 2026, 00:05 UTC")
    title = moment.get_attribute("title") or ""
    assert "March 7, 2026" in title
    assert "7:05:00 PM EST" in one_line(title)


def test_the_times_that_another_range_brings_say_the_readers_own_too(visitor: Visitor, places: Places) -> None:
    visitor.go(places["cohort"])
    newest = visitor.page.locator(CHART).locator("tbody time").first
    before = newest.get_attribute("title") or ""
    assert "2026" in before
    choose_a_week(visitor)
    expect(newest).to_have_attribute("title", before)
    times = visitor.page.locator("#over-time time")
    assert times.count() > 10
    assert visitor.page.locator("#over-time time:not([title])").count() == 0
    assert visitor.faults == []


def test_every_chart_becomes_interactive(visitor: Visitor, places: Places) -> None:
    alive = 0
    for name in ("trading", "agent", "family", "market held", "question resolved", "forecasts", "comparison"):
        visitor.go(places[name])
        charts = visitor.page.locator("figure[data-chart]")
        expect(visitor.page.locator("figure[data-chart].interactive")).to_have_count(charts.count())
        alive += charts.count()
        hover(visitor.page.locator(f'{CHART}[data-chart="lines"]').first, 0.8)
    assert alive >= 7
    assert visitor.faults == []


def test_bins_are_read_out_by_touch_and_keyboard(visitors: Callable[..., Visitor], places: Places) -> None:
    touching = visitors(has_touch=True)
    touching.resize(390, "light")
    touching.go(places["calibration"])
    plot = touching.page.locator("#stated-probabilities .plot").first
    plot.scroll_into_view_if_needed()
    readout = plot.locator(".readout")
    plot.focus()
    touching.page.keyboard.press("End")
    expect(readout).to_contain_text("95 % interval")
    expect(readout).to_contain_text("Observed frequency")
    text = readout.inner_text()
    ring = plot.locator(".ring").bounding_box()
    assert ring is not None
    touching.page.keyboard.press("Escape")
    expect(readout).to_be_hidden()
    touching.page.touchscreen.tap(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)
    expect(readout).to_be_visible()
    assert readout.inner_text() == text
    assert touching.faults == []


def test_names_stay_at_the_ends_of_lines_on_a_phone(visitors: Callable[..., Visitor], places: Places) -> None:
    phone = visitors(has_touch=True)
    phone.resize(390, "light")
    phone.go(places["cohort"])
    chart = phone.page.locator(CHART)
    names = chart.locator("g.curve text")
    assert names.count() > 3
    for name in names.all():
        box = name.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 390
        expect(name).to_be_visible()
    chart.scroll_into_view_if_needed()
    chart.locator("rect.overlay").tap(force=True)
    expect(chart.locator(".readout")).to_be_visible()
    assert phone.too_wide() == []
    assert phone.faults == []


# --- Charts in frames of another site, and the copies of findings, in a browser

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
