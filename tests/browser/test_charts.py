"""Charts and times with JavaScript: interactions, and unchanged numbers."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, expect

from arena_site.pages import filters as arena
from tests.browser.visitor import WIDTHS, Visitor
from tests.season.places import Places

pytestmark = pytest.mark.browser

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
    area = chart.locator(".plot > svg")
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


def test_a_chart_is_read_by_the_keyboard(visitor: Visitor, chart: Locator) -> None:
    chart.locator(".plot").focus()
    visitor.page.keyboard.press("End")
    newest = chart.locator(".readout strong").inner_text()
    visitor.page.keyboard.press("ArrowLeft")
    assert chart.locator(".readout strong").inner_text() != newest
    visitor.page.keyboard.press("Escape")
    expect(chart.locator(".readout")).to_be_hidden()
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
    assert "7:05:00 PM EST" in " ".join(title.split())


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
        # Every point of a slope chart is labelled: nothing is left to read out.
        charts = visitor.page.locator('figure[data-chart]:not([data-chart="slopes"])')
        expect(visitor.page.locator("figure[data-chart].interactive")).to_have_count(charts.count())
        alive += charts.count()
        hover(visitor.page.locator(f'{CHART}[data-chart="lines"]').first, 0.8)
    assert alive >= 7
    assert visitor.faults == []


def test_names_of_baselines_do_not_overlap(visitor: Visitor, places: Places) -> None:
    for width in WIDTHS:
        visitor.resize(width, "light")
        visitor.go(places["leaderboard"])
        names = visitor.page.locator(".intervals .head text")
        boxes = sorted((box["x"], box["width"]) for box in map(Locator.bounding_box, names.all()) if box)
        assert len(boxes) == 2
        assert boxes[0][0] + boxes[0][1] < boxes[1][0], width


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


# --- Charts in frames of another site, and the copies of findings, in a browser

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
REFUSED = "chrome-error://chromewebdata/"
"""The address that Chromium gives a frame whose page refuses to be framed."""


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
