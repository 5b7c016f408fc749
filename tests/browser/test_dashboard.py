"""The operator dashboard in a browser: each action, its audit entry, and a night of failures set right.

All tests share one season and a site for each of two instants, whose database is reset before each test to a state in
which every role is signed in. The login form has a test of its own (test_admin.py).
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import APIResponse, Browser, Page

from arena_site.dashboard.actions import ACTIONS, GROUPS
from arena_site.dashboard.roles import ADMINISTRATOR, OPERATOR
from arena_site.middleware.sealed_reads import READ_SEALED
from tests.arena_site.dashboard.accounts import ALLOWED
from tests.browser.scenes import SUNDAY_NIGHT, WEEK_LATER
from tests.browser.visitor import HEIGHT, WIDTHS, Visitor
from tests.databases import PROJECT
from tests.season.running_site import Site, serving
from tests.selection import one_per_rule, sample_and_all

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.thorough]

INSTANTS = {"start_cohort": WEEK_LATER, "run_forecasts": WEEK_LATER}
"""Actions for which there is nothing to do on the Sunday night on which models failed."""
LINK_PARAMETERS = {"settle": ("market",), "reverse": ("market",)}
"""Fields that links to an action fill in."""
UNCOMPARED = ("django_session", "django_admin_log", "arena_site_auditentry", "sqlite_sequence")
"""Tables that change with a mere visit, or that record actions."""
Tables = dict[str, list[Any]]
SECRET_KEY = {"SECRET_KEY": "only-for-the-dashboard-0123456789-abcdefghij-klmnopqrst-uvwxyz"}
"""The key of the sites, and of the process that makes sessions for them."""
ENVIRONMENT = {"ARENA_LINEUP": "unchecked", "ARENA_ALERT_WEBHOOK": "http://127.0.0.1:1/", **SECRET_KEY}
CSRF = "c" * 32
PHONE_WIDTH = WIDTHS[0]
"""The dashboard is read on a phone at night."""
FORM_FIELDS = "form => [...new FormData(document.querySelector(form))].filter(([name]) => name !== 'reason')"


@dataclass
class Dashboard:
    """A site with a visitor of each role, the forms of its actions, and its initial database."""

    site: Site
    visitors: dict[str, Visitor]
    forms: dict[str, dict[str, Any]]
    initial_file: Path
    initial_rows: Tables

    def reset(self) -> "Dashboard":
        copy_database(self.initial_file, self.site.database)
        for visitor in self.visitors.values():
            visitor.faults.clear()
            if visitor.page.viewport_size != {"width": PHONE_WIDTH, "height": HEIGHT}:
                visitor.resize(PHONE_WIDTH, "light")
        return self

    def changes(self) -> Tables:
        """By table, the rows that were added, changed or deleted since the reset, without `UNCOMPARED`."""
        now = read_tables(self.site.database)
        names = {name for name in {**self.initial_rows, **now} if self.initial_rows.get(name) != now.get(name)}
        return {
            name: sorted(set(self.initial_rows.get(name, ())) ^ set(now.get(name, ())), key=repr)
            for name in names - {*UNCOMPARED}
        }

    def audit_log(self) -> list[tuple[str, str, str]]:
        return self.site.rows("SELECT action, by, result FROM arena_site_auditentry ORDER BY id")


def read_tables(database: Path) -> Tables:
    """Every row of every table, and the schema."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in [*names, "sqlite_master"]}


def copy_database(source: Path, target: Path) -> None:
    """Overwrites a database, also one that is in use."""
    with closing(sqlite3.connect(source)) as connection, closing(sqlite3.connect(target)) as live:
        connection.backup(live)


@pytest.fixture(scope="module")
def dashboards(
    browser: Browser, season_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Dashboard]]:
    """A function that resets and returns the dashboard at an instant; all are set up when the first is needed."""
    prepared: dict[str, Dashboard] = {}
    file = tmp_path_factory.mktemp("dashboard") / "initial.sqlite3"
    with ExitStack() as stack:

        def dashboard(at: str = SUNDAY_NIGHT) -> Dashboard:
            if not prepared:
                prepared.update(_set_up(stack, browser, Path(shutil.copy(season_database, file))))
            return prepared[at].reset()

        yield dashboard


def _set_up(stack: ExitStack, browser: Browser, file: Path) -> dict[str, Dashboard]:
    """A site for each instant, at which each role is signed in already, since the databases must begin alike."""
    command = [sys.executable, "-m", "tests.browser.scenes", str(file)]
    process = subprocess.run(command, cwd=PROJECT, env=os.environ | SECRET_KEY, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    forms, instants, sessions = json.loads(process.stdout)
    rows = read_tables(file)
    dashboards: dict[str, Dashboard] = {}
    for name, instant in instants.items():
        database = file.with_name(f"{len(dashboards)}.sqlite3")
        copy_database(file, database)
        site = stack.enter_context(
            serving(
                database,
                ARENA_CLOCK=instant,
                ARENA_LINEUP="unchecked",
                ARENA_ALERT_WEBHOOK="http://127.0.0.1:1/",
                **SECRET_KEY,
            )
        )
        dashboards[name] = Dashboard(site, {}, forms, file, rows)
        for role, session in sessions.items():
            visitor = dashboards[name].visitors[role] = Visitor.of(browser, site.url)
            stack.callback(visitor.close)
            cookies = {"sessionid": session, "csrftoken": CSRF}
            visitor.context.add_cookies([{"name": n, "value": value, "url": site.url} for n, value in cookies.items()])
    return dashboards


def confirm(page: Page, reason: str = "confirmed by a test") -> str:
    """Gives a reason, confirms, and returns the text of the next page."""
    page.fill("textarea[name=reason]", reason)
    page.click("input[name=confirmed]")
    page.wait_for_selector(".messagelist")
    return page.inner_text("#content-start")


def post(visitor: Visitor, path: str, fields: Any) -> APIResponse:
    """The response to a form that no page offered, submitted in the browser's session."""
    return visitor.context.request.post(
        path,
        data=urlencode(fields, doseq=True),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": visitor.url},
        max_redirects=0,
    )


# ── every action ──────────────────────────────────────────────────────────────────────────────────


def fill_in(page: Page, form: dict[str, Any]) -> None:
    """Fills in the parameters of an action."""
    for name, value in form.items():
        values = [str(item) for item in value] if isinstance(value, list) else [str(value)]
        fields = page.locator(f"form.parameters [name={name}]")
        kind = fields.first.get_attribute("type")
        if kind in ("checkbox", "radio"):
            for box in fields.all():
                if kind == "checkbox" or box.get_attribute("value") in values:
                    box.set_checked(box.get_attribute("value") in values)
        elif fields.first.evaluate("field => field.tagName") == "SELECT":
            fields.first.select_option(values)
        else:
            fields.first.fill(values[0])


ELSEWHERE = {READ_SEALED, "end-maintenance", "add-model"}
"""Actions without a case here: one changes nothing but what may be read, one ends what would stop the others, and one
needs a gateway's catalogue."""


def group_of(action: str) -> str:
    return next(group for group, actions in GROUPS.items() if action in actions)


@pytest.mark.parametrize("name", one_per_rule(sorted(ACTIONS.keys() - ELSEWHERE), group_of))
def test_permitted_role_performs_an_action_once(dashboards: Callable[..., Dashboard], name: str) -> None:
    role = OPERATOR if name in ALLOWED[OPERATOR] else ADMINISTRATOR
    dashboard = dashboards(INSTANTS.get(name, SUNDAY_NIGHT))
    visitor, form = dashboard.visitors[role], dashboard.forms.get(name, {})
    page, path = visitor.page, f"/admin/actions/{name}/"

    link = {field: form[field] for field in LINK_PARAMETERS.get(name, ())}
    visitor.go(path + (f"?{urlencode(link)}" if link else ""))
    if page.locator("form.parameters").count():
        fill_in(page, {field: value for field, value in form.items() if field not in link})
        page.get_by_role("button", name="Preview").click()
    page.locator(".preview").wait_for()
    assert page.locator("input[name=confirmed]").count() == 1, page.inner_text("#content")
    assert dashboard.changes() == {}

    fields = page.evaluate(FORM_FIELDS, "form.confirm")
    confirm(page)
    changes = dashboard.changes()
    assert changes
    assert dashboard.audit_log() == [(name, role, "done")]
    repeated = post(visitor, path, [*map(tuple, fields), ("reason", "pressed twice"), ("confirmed", "yes")])
    assert repeated.status == 302
    changes_after_repeat = dashboard.changes()
    tables = {**changes, **changes_after_repeat}
    assert [table for table in tables if changes_after_repeat.get(table) != changes.get(table)] == []
    assert dashboard.audit_log() == [(name, role, "done"), (name, role, "unchanged")]
    assert visitor.faults == []


# ── a bad Sunday ──────────────────────────────────────────────────────────────────────────────────


def test_operator_sets_a_bad_sunday_right(dashboards: Callable[..., Dashboard]) -> None:
    dashboard = dashboards()
    site, operator = dashboard.site, dashboard.visitors["operator"]
    page = operator.page
    operator.go("/admin/")
    assert re.fullmatch(r"\d+ problems?", page.inner_text("h1"))
    for width in (320, 768, 1440):
        operator.resize(width, "dark" if width == 768 else "light")
        assert operator.too_wide() == [], width
    # On a phone an alert's text is as wide as the panel, and numbers without headings say what they count.
    operator.resize(PHONE_WIDTH, "light")
    table, text = (page.locator(part).first.evaluate("e => e.clientWidth") for part in ("#alerts table", "#alerts td"))
    assert text == table
    assert re.search(r"\d+ runs?,\s+\d+ failed", page.inner_text("#jobs tbody"))
    calls = site.rows("SELECT count(*) FROM agents_modelcall")

    for _ in range(2):
        operator.go("/admin/")
        page.locator("#failures").get_by_role("link", name="Retry").first.click()
        assert "is asked again" in page.inner_text(".preview")
        response_text = confirm(page)
    assert "waits in the queue already" in response_text
    assert site.rows("SELECT count(*) FROM agents_modelcall") == calls

    operator.go("/admin/")
    page.locator("#unresolved").get_by_role("link", name="Settle").first.click()
    page.get_by_label("YES won").check()
    page.get_by_label("Source").fill("the venue's page")
    page.get_by_role("button", name="Preview").click()
    assert "are paid" in page.inner_text(".preview")
    settlement = page.url
    assert "Settled: YES won" in confirm(page)
    page.get_by_role("link", name="Reverse the settlement").click()
    page.get_by_label("NO won").check()
    page.get_by_label("Source").fill("the venue's page, read again")
    page.get_by_role("button", name="Preview").click()
    assert "are corrected" in page.inner_text(".preview")
    assert "Reversed: NO won" in confirm(page)
    page.goto(settlement)
    assert "already" in page.inner_text(".preview")
    assert page.locator("input[name=confirmed]").count() == 0

    operator.go("/admin/")
    while (button := page.locator("#alerts").get_by_role("link", name="Acknowledge")).count():
        button.first.click()
        assert "acknowledged" in confirm(page, "seen")
        operator.go("/admin/")
    assert site.rows("SELECT count(*) FROM foundation_alert WHERE cleared_at IS NULL") == [(0,)]

    assert [entry for entry in dashboard.audit_log() if entry[0] != "acknowledge"] == [
        ("retry", "operator", "done"),
        ("retry", "operator", "unchanged"),
        ("settle", "operator", "done"),
        ("reverse", "operator", "done"),
    ]
    operator.go("/admin/arena_site/auditentry/")
    page.locator("#result_list th a").last.click()
    page.get_by_text("confirmed by a test").first.wait_for()
    assert operator.faults == []


def test_page_of_a_run_follows_it_until_its_end(dashboards: Callable[..., Dashboard]) -> None:
    dashboard = dashboards()
    visitor, (run, *_) = dashboard.visitors["operator"], dashboard.site.rows("SELECT max(id) FROM foundation_run")[0]
    page = visitor.page

    def store(**values: Any) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        with closing(sqlite3.connect(dashboard.site.database)) as connection, connection:
            connection.execute(f"UPDATE foundation_run SET {columns} WHERE id = ?", [*values.values(), run])

    # Of no known process: the one that made it has ended, and the run would be lost at once.
    alive = {"process": "", "finished_at": None}
    store(status="running", **alive, heartbeat_at=datetime.now(UTC).replace(tzinfo=None).isoformat(" "))
    visitor.go(f"/admin/foundation/run/{run}/change/")
    store(progress=json.dumps({"done": 3, "of": 7, "caption": "GPT-5.2"}))
    page.get_by_text("3 of 7: GPT-5.2").wait_for()
    line = {"at": "2026-03-08T00:05:01+00:00", "level": "error", "text": "<b>HTTP 503</b>"}
    store(status="failed", finished_at="2026-03-08 00:06:00", log=json.dumps([line]))
    page.get_by_role("row", name="00:05:01 error <b>HTTP 503</b>").wait_for()
    assert page.locator("progress").count() == 0
    for width in (320, 1440):
        visitor.resize(width, "light")
        assert visitor.too_wide() == [], width
    assert visitor.faults == []


@pytest.mark.parametrize("actions", sample_and_all(sorted(ACTIONS), group_of))
def test_pages_of_actions_fit_and_obey_the_content_policy(
    dashboards: Callable[..., Dashboard], actions: list[str]
) -> None:
    visitors = dashboards().visitors
    paths = {role: sorted(f"/admin/actions/{name}/" for name in ALLOWED[role]) for role in visitors}
    for role, visitor in visitors.items():
        visitor.go("/admin/")
        links = visitor.page.locator("#actions ul a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert sorted(links) == paths[role]
        assert visitor.page.locator("h1").inner_text()
    administrator = visitors["administrator"]
    assert len(paths["administrator"]) == len(ACTIONS)
    for path in (f"/admin/actions/{name}/" for name in actions):
        administrator.go(path)
        for width, scheme in ((320, "light"), (1440, "dark")):
            administrator.resize(width, scheme)
            assert administrator.too_wide() == [], (path, width)
    assert [visitor.faults for visitor in visitors.values()] == [[], [], []]
