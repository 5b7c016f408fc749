"""The desk in a browser: what failed is seen, and every act is opened, confirmed, done once by whom may, and on record.

One season for all, and a site for each of two instants: before each test the database is put back to how it was when
everybody had logged in. That they do so by the form is for the admin's own test.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import APIResponse, Browser, Page

from arena_site.dashboard.actions import ACTIONS
from tests.arena_site.dashboard.people import ALLOWED
from tests.browser.scenes import LATER, NIGHT
from tests.browser.visitor import HEIGHT, WIDTHS, Visitor
from tests.databases import PROJECT
from tests.season.running_site import Site, serving

WHEN = {"start-cohort": LATER, "forecasts": LATER}
"""Acts for which there is nothing to do on the Sunday night on which models failed."""
REACHED_BY = {"settle": ("market",), "reverse": ("market",)}
"""What the links to an act say already."""
BESIDES = ("django_session", "django_admin_log", "arena_site_auditentry", "sqlite_sequence")
"""Tables that change with whoever looks, or that say who did what."""
Tables = dict[str, list[Any]]
KEY = {"SECRET_KEY": "only-for-the-desk-0123456789-abcdefghij-klmnopqrst-uvwxyz"}
"""Of the sites and of whoever makes sessions for them."""
CSRF = "c" * 32
PHONE = {"width": WIDTHS[0], "height": HEIGHT}
"""Of whoever is called at night."""
TOKEN = re.compile(r"arena_[\w-]{43}")
FIELDS = "form => [...new FormData(document.querySelector(form))].filter(([name]) => name !== 'reason')"
SEND = """([path, sent]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = path;
  for (const [name, value] of sent) {
    const input = document.createElement("input");
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}"""
"""A form that no page offered, sent all the same."""


@dataclass
class Dashboard:
    """A site, somebody of every role at its desk, and what each act is told there."""

    site: Site
    people: dict[str, Visitor]
    told: dict[str, dict[str, Any]]
    kept: Path
    first: Tables

    def again(self) -> "Dashboard":
        """As it was at first."""
        put(self.kept, self.site.database)
        for visitor in self.people.values():
            visitor.faults.clear()
            if visitor.page.viewport_size != PHONE:
                visitor.look(PHONE["width"], "light")
        return self

    def changes(self) -> Tables:
        """By table, every row that was not there at first or is no more, but for who looked and who did what."""
        now = tables(self.site.database)
        differing = {name for name in {**self.first, **now} if self.first.get(name) != now.get(name)}
        return {
            name: sorted(set(self.first.get(name, ())) ^ set(now.get(name, ())), key=repr)
            for name in differing - {*BESIDES}
        }


def tables(database: Path) -> Tables:
    """Every row of every table, and the schema."""
    with closing(sqlite3.connect(database)) as opened:
        names = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: opened.execute(f'SELECT * FROM "{name}"').fetchall() for name in [*names, "sqlite_master"]}


def put(source: Path, target: Path) -> None:
    """Makes a database what another one is, under whoever has it open."""
    with closing(sqlite3.connect(source)) as kept, closing(sqlite3.connect(target)) as live:
        kept.backup(live)


@pytest.fixture(scope="module")
def desks(
    browser: Browser, season_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Dashboard]]:
    """The desk at an instant, as it was at first; each is set up when it is first asked for."""
    known: dict[str, Dashboard] = {}
    folder = tmp_path_factory.mktemp("desk")
    with ExitStack() as stack:

        def desk(at: str = NIGHT) -> Dashboard:
            if not known:
                known.update(_set_up(stack, browser, Path(shutil.copy(season_database, folder / "kept.sqlite3"))))
            return known[at].again()

        yield desk


def _set_up(stack: ExitStack, browser: Browser, kept: Path) -> dict[str, Dashboard]:
    """A site for each instant, at which somebody of each role has logged in already: the databases begin the same."""
    command = [sys.executable, "-m", "tests.browser.scenes", str(kept)]
    laid = subprocess.run(command, cwd=PROJECT, env=os.environ | KEY, capture_output=True, text=True)
    assert laid.returncode == 0, laid.stderr
    told, instants, sessions = json.loads(laid.stdout)
    first = tables(kept)
    desks: dict[str, Dashboard] = {}
    for at, instant in instants.items():
        own = kept.with_name(f"{len(desks)}.sqlite3")
        put(kept, own)
        site = stack.enter_context(serving(own, ARENA_CLOCK=instant, **KEY))
        desk = desks[at] = Dashboard(site, {}, told, kept, first)
        for role, session in sessions.items():
            visitor = desk.people[role] = Visitor.of(browser, site.url)
            stack.callback(visitor.leave)
            cookies = {"sessionid": session, "csrftoken": CSRF}
            visitor.context.add_cookies([{"name": n, "value": v, "url": site.url} for n, v in cookies.items()])
    return desks


def audit(site: Site) -> list[tuple[str, str, str]]:
    return site.rows("SELECT action, by, result FROM arena_site_auditentry ORDER BY id")


def confirm(page: Page, reason: str = "walked by a test") -> str:
    """Fills in why, confirms, and gives what the next page says of it."""
    page.fill("textarea[name=reason]", reason)
    page.click("input[name=confirmed]")
    page.wait_for_selector(".messagelist, pre.verbatim")
    return page.inner_text("#content-start")


def post(visitor: Visitor, path: str, sent: list[list[str]]) -> APIResponse:
    """What the browser's session is answered to a form that is sent again."""
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Origin": visitor.url}
    return visitor.context.request.post(path, data=urlencode([*map(tuple, sent)]), headers=kind, max_redirects=0)


# ── every act, by every role ──────────────────────────────────────────────────────────────────────


def tell(page: Page, asked: dict[str, Any]) -> None:
    """Fills an act's form in, as its fields want it."""
    for name, value in asked.items():
        wanted = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        fields = page.locator(f"form.parameters [name={name}]")
        kind = fields.first.get_attribute("type")
        if kind in ("checkbox", "radio"):
            for box in fields.all():
                if kind == "checkbox" or box.get_attribute("value") in wanted:
                    box.set_checked(box.get_attribute("value") in wanted)
        elif fields.first.evaluate("field => field.tagName") == "SELECT":
            fields.first.select_option(wanted)
        else:
            fields.first.fill(wanted[0])


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role in ALLOWED for name in ACTIONS if name in ALLOWED[role]]
)
def test_an_act_is_done_by_who_may_and_done_once(desks: Callable[..., Dashboard], role: str, name: str) -> None:
    desk = desks(WHEN.get(name, NIGHT))
    visitor, asked = desk.people[role], desk.told.get(name, {})
    page = visitor.page

    link = {part: asked[part] for part in REACHED_BY.get(name, ())}
    visitor.go(f"/admin/actions/{name}/" + (f"?{urlencode(link)}" if link else ""))
    if page.locator("form.parameters").count():
        tell(page, {part: value for part, value in asked.items() if part not in link})
        page.get_by_role("button", name="Preview").click()
    page.locator(".preview").wait_for()
    assert page.locator("input[name=confirmed]").count() == 1, page.inner_text("#content")
    assert desk.changes() == {}

    sent = page.evaluate(FIELDS, "form.confirm")
    said = confirm(page)
    done = desk.changes()
    assert done
    assert audit(desk.site) == [(name, role, "done")]
    again = post(visitor, f"/admin/actions/{name}/", [*sent, ["reason", "pressed twice"], ["confirmed", "yes"]])
    assert again.status == 302
    after = desk.changes()
    assert [table for table in {**done, **after} if after.get(table) != done.get(table)] == []
    assert audit(desk.site) == [(name, role, "done"), (name, role, "unchanged")]
    for token in TOKEN.findall(said):
        assert token not in repr(after) + repr(desk.site.rows("SELECT * FROM arena_site_auditentry"))
    assert bool(TOKEN.search(said)) == (name == "make-token")
    assert visitor.faults == []


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role in ALLOWED for name in ACTIONS if name not in ALLOWED[role]]
)
def test_an_act_is_refused_to_who_may_not_and_the_attempt_is_on_record(
    desks: Callable[..., Dashboard], role: str, name: str
) -> None:
    desk = desks(WHEN.get(name, NIGHT))
    visitor, asked = desk.people[role], desk.told.get(name, {})
    path = f"/admin/actions/{name}/"
    visitor.go(path, status=403)
    assert audit(desk.site) == []

    (token,) = [one["value"] for one in visitor.context.cookies() if one["name"] == "csrftoken"]
    sent = [
        [part, str(one)] for part, value in asked.items() for one in (value if isinstance(value, list) else [value])
    ]
    sent += [["reason", "let me"], ["confirmed", "yes"], ["csrfmiddlewaretoken", token]]
    with visitor.page.expect_navigation() as answered:
        visitor.page.evaluate(SEND, [path, sent])
    assert answered.value.status == 403
    assert desk.changes() == {}
    assert audit(desk.site) == [(name, role, "refused")]


# ── a bad Sunday ──────────────────────────────────────────────────────────────────────────────────


def test_an_operator_sets_a_bad_sunday_right(desks: Callable[..., Dashboard]) -> None:
    desk = desks()
    desk_site, operator = desk.site, desk.people["operator"]
    page = operator.page
    operator.go("/admin/")
    assert re.fullmatch(r"\d+ problems?", page.inner_text("h1"))
    for width in (320, 768, 1440):
        operator.look(width, "dark" if width == 768 else "light")
        assert operator.too_wide() == [], width
    calls = desk_site.rows("SELECT count(*) FROM agents_modelcall")

    for _ in range(2):
        operator.go("/admin/")
        page.locator("#failures").get_by_role("link", name="Retry").first.click()
        assert "is asked again" in page.inner_text(".preview")
        said = confirm(page)
    assert "waits in the queue already" in said
    assert desk_site.rows("SELECT count(*) FROM agents_modelcall") == calls

    operator.go("/admin/")
    page.locator("#unresolved").get_by_role("link", name="Settle").first.click()
    page.get_by_label("YES won").check()
    page.get_by_label("Source").fill("the venue's page")
    page.get_by_role("button", name="Preview").click()
    assert "are paid" in page.inner_text(".preview")
    settled = page.url
    assert "Settled: YES won" in confirm(page)
    page.get_by_role("link", name="Reverse the settlement").click()
    page.get_by_label("NO won").check()
    page.get_by_label("Source").fill("the venue's page, read again")
    page.get_by_role("button", name="Preview").click()
    assert "are corrected" in page.inner_text(".preview")
    assert "Reversed: NO won" in confirm(page)
    page.goto(settled)
    assert "already" in page.inner_text(".preview")
    assert page.locator("input[name=confirmed]").count() == 0

    operator.go("/admin/")
    while (button := page.locator("#alerts").get_by_role("link", name="Acknowledge")).count():
        button.first.click()
        assert "acknowledged" in confirm(page, "seen")
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


def test_every_act_s_page_fits_and_obeys_the_policy(desks: Callable[..., Dashboard]) -> None:
    desk = desks()
    offered = {}
    for role, visitor in desk.people.items():
        visitor.go("/admin/")
        offered[role] = visitor.page.locator("#actions ul a").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        )
        assert sorted(offered[role]) == sorted(f"/admin/actions/{name}/" for name in ALLOWED[role])
        assert visitor.page.locator("h1").inner_text()
    administrator, links = desk.people["administrator"], offered["administrator"]
    assert len(links) == len(ACTIONS)
    for link in links:
        administrator.go(link)
        for width, scheme in ((320, "light"), (1440, "dark")):
            administrator.look(width, scheme)
            assert administrator.too_wide() == [], (link, width)
    assert [visitor.faults for visitor in desk.people.values()] == [[], [], []]
