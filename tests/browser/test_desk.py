"""A bad Sunday at the desk, in a browser: what failed is seen, each act is confirmed, done once, and on record."""

import re
import shutil
from pathlib import Path

import pytest

from tests.browser.visitor import Visitor
from tests.live import Site, serving

SUNDAY_NIGHT = "2026-03-22T00:40:00Z"
"""In the season's last week, in which models failed."""


@pytest.fixture
def desk_site(played: Path, tmp_path: Path):
    with serving(Path(shutil.copy(played, tmp_path / "site.sqlite3")), ARENA_CLOCK=SUNDAY_NIGHT) as running:
        yield running


def audit(site: Site) -> list[tuple[str, str, str]]:
    return site.rows("SELECT act, by, result FROM arena_site_auditentry ORDER BY id")


def confirm(visitor: Visitor, reason: str = "walked by a test") -> str:
    """Fills in why, confirms, and gives what the next page says of it."""
    visitor.page.fill("textarea[name=reason]", reason)
    visitor.page.click("input[name=confirmed]")
    visitor.page.wait_for_selector(".messagelist")
    return visitor.page.inner_text(".messagelist")


def test_an_operator_sets_a_bad_sunday_right(desk_site: Site, enters) -> None:
    operator = enters(desk_site, "operator")
    page = operator.page
    assert re.search(r"\d+ things? to look at", page.inner_text("h1"))
    for width in (320, 768, 1440):
        operator.look(width, "dark" if width == 768 else "light")
        assert operator.too_wide() == [], width
    calls = desk_site.rows("SELECT count(*) FROM agents_modelcall")

    for _ in range(2):
        operator.go("/admin/")
        page.locator("#failures").get_by_role("link", name="Retry").first.click()
        assert "is asked again" in page.inner_text(".preview")
        said = confirm(operator)
    assert "waits in the queue already" in said
    assert desk_site.rows("SELECT count(*) FROM agents_modelcall") == calls

    operator.go("/admin/")
    page.locator("#waiting").get_by_role("link", name="Settle").first.click()
    page.get_by_label("YES won").check()
    page.get_by_label("Source").fill("the venue's page")
    page.get_by_role("button", name="Show what it would do").click()
    assert "are paid" in page.inner_text(".preview")
    settled = page.url
    assert "Settled: YES won" in confirm(operator)
    page.get_by_role("link", name="Reverse the settlement").click()
    page.get_by_label("NO won").check()
    page.get_by_label("Source").fill("the venue's page, read again")
    page.get_by_role("button", name="Show what it would do").click()
    assert "made good" in page.inner_text(".preview")
    assert "Reversed: NO won" in confirm(operator)
    page.goto(settled)
    assert "already" in page.inner_text(".preview")
    assert page.locator("input[name=confirmed]").count() == 0

    operator.go("/admin/")
    while (button := page.locator("#alerts").get_by_role("link", name="Acknowledge")).count():
        button.first.click()
        assert "acknowledged" in confirm(operator, "seen")
        operator.go("/admin/")
    assert desk_site.rows("SELECT count(*) FROM markets_alert WHERE cleared_at IS NULL") == [(0,)]

    said = [row for row in audit(desk_site) if row[0] != "acknowledge"]
    assert said == [
        ("retry-decision", "operator", "done"),
        ("retry-decision", "operator", "unchanged"),
        ("settle", "operator", "done"),
        ("reverse", "operator", "done"),
    ]
    operator.go("/admin/arena_site/auditentry/")
    page.locator("#result_list th a").last.click()
    page.get_by_text("walked by a test").first.wait_for()
    assert operator.faults == []


def test_every_act_s_page_opens_for_who_may_and_for_nobody_else(desk_site: Site, enters) -> None:
    administrator, viewer = enters(desk_site, "administrator"), enters(desk_site, "viewer")
    links = administrator.page.locator("#acts ul a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert len(links) >= 18
    for width, scheme in ((320, "light"), (1440, "dark")):
        administrator.look(width, scheme)
        for link in links:
            administrator.go(link)
            assert administrator.too_wide() == [], link
    assert administrator.faults == []
    assert viewer.page.locator("#acts ul a").count() == 0
    assert viewer.page.locator("h1").inner_text()
    assert viewer.faults == []
    for link in links:
        assert viewer.page.request.get(desk_site.url + link).status == 403, link
    token = {cookie["name"]: cookie["value"] for cookie in viewer.page.context.cookies()}["csrftoken"]
    refused = viewer.page.request.post(
        f"{desk_site.url}/admin/desk/sync/",
        form={"csrfmiddlewaretoken": token, "reason": "let me", "confirmed": "yes"},
        headers={"Referer": desk_site.url},
    )
    assert refused.status == 403
    assert audit(desk_site) == [("sync", "viewer", "refused")]
