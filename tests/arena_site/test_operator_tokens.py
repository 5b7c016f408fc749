"""Operators' tokens: made and shown once, good for one thing, and for as long as their owner is."""

import json
import logging
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import ProtectedError
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from agents.services.registrations import hash_token, register_external_agent
from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.actions.runs import EnqueueJob
from arena_site.jobs_api import JOB_ACTIONS
from arena_site.models import AuditEntry, OperatorToken
from markets.models import Run
from scoring.models import Export
from tests.arena_site.dashboard.accounts import create_account, issue_token, perform, sign_in

pytestmark = pytest.mark.django_db
EXPORTS, JOBS = "/api/v1/exports/", "/api/v1/jobs/"
LIST = reverse("admin:arena_site_operatortoken_changelist")
SHOWN = re.compile(r"arena_[\w-]{43}")


@pytest.fixture(autouse=True)
def _place(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path


@pytest.fixture
def ann() -> User:
    return create_account("ann")


def ask(token: str, path: str = EXPORTS, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return Client().post(path, body, content_type="application/json", headers=headers)


def said(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("detail")


def everything() -> str:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        rows: list[Any] = []
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += cursor.fetchall()
    return repr(rows)


# ── made and shown once ───────────────────────────────────────────────────────────────────────────


def test_a_token_is_shown_once_and_kept_as_a_hash_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    operator = sign_in("operator")
    answer = perform(operator, "make-token", name="nightly", scope="exports", days=90)
    (token,) = SHOWN.findall(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    row = OperatorToken.objects.get()
    assert (row.token_sha256, row.owner.username, row.scope) == (hash_token(token), "operator", "exports")
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == timedelta(days=90)
    again = perform(operator, "make-token", name="nightly", scope="exports", days=90)
    assert again.status_code == 302
    pages = [again.headers["Location"], LIST, reverse("admin:arena_site_operatortoken_change", args=[row.pk])]
    pages += [
        reverse("admin:index"),
        reverse("admin:arena_site_auditentry_change", args=[AuditEntry.objects.last().pk]),
    ]
    for page in pages:
        shown = operator.get(page).content.decode()
        assert token not in shown, page
        assert row.token_sha256 not in shown, page
    assert token not in everything()
    assert token not in caplog.text
    assert ask(token).status_code == 202


def test_the_list_says_whose_it_is_what_for_how_it_stands_and_when_it_was_used(ann: User) -> None:
    now = timezone.now()
    ask(issue_token(ann))
    issue_token(ann, name="old", expires_at=now + timedelta(minutes=1))
    issue_token(ann, name="lost", scope="jobs")
    perform(sign_in("operator"), "revoke-token", token=OperatorToken.objects.get(name="lost").pk)
    with time_machine.travel(now + timedelta(minutes=2)):
        viewer = sign_in("viewer")
        rows = viewer.get(LIST).context["cl"].result_list
        states = {row.name: row.state(timezone.now()) for row in rows}
        listed = viewer.get(LIST).content.decode()
        assert viewer.post(reverse("admin:arena_site_operatortoken_add"), {}).status_code == 403
        page = reverse("admin:arena_site_operatortoken_change", args=[rows[0].pk])
        assert viewer.post(page, {"scope": "jobs"}).status_code == 403
    assert states == {"ci": "active", "old": "expired", "lost": "revoked"}
    assert all(f'class="field-state">{state}' in listed for state in states.values())
    assert {row.name for row in rows if row.last_used_at} == {"ci"}


def test_a_name_is_free_again_once_its_token_is_revoked(ann: User) -> None:
    first = issue_token(ann)
    operator = sign_in("operator")
    taken = perform(operator, "make-token", name=" ci ", scope="jobs")
    assert taken.status_code == 302
    assert OperatorToken.objects.count() == 1
    again = OperatorToken(owner=ann, name="ci", scope="jobs", token_sha256="0" * 64, created_at=timezone.now())
    with pytest.raises(IntegrityError), transaction.atomic():
        again.save()
    perform(operator, "revoke-token", token=OperatorToken.objects.get().pk)
    assert perform(operator, "make-token", name="ci", scope="jobs").status_code == 200
    assert said(ask(first)) == (401, "the token is revoked")


def test_nobody_makes_a_token_for_what_he_may_not_do(ann: User) -> None:
    ann.groups.clear()
    with pytest.raises(CommandError, match="not permitted"):
        call_command("make_token", "ci", "--owner", "ann", "--scope", "jobs")
    assert not OperatorToken.objects.exists()


def test_an_account_that_has_tokens_is_not_deleted(ann: User) -> None:
    issue_token(ann)
    with pytest.raises(ProtectedError):
        ann.delete()


# ── refused ───────────────────────────────────────────────────────────────────────────────────────


def test_a_token_opens_no_more_than_its_scope(ann: User) -> None:
    exports, jobs = issue_token(ann), issue_token(ann, name="cron", scope="jobs")
    assert said(ask(jobs)) == (403, "this token's scope is jobs, not exports")
    assert said(ask(exports, JOBS, command="sync_markets")) == (403, "this token's scope is exports, not jobs")
    assert not Export.objects.exists()
    assert not OrmQ.objects.exists()
    assert ask(jobs, JOBS, command="sync_markets").status_code == 202


def test_a_token_ends_when_it_was_said_to(ann: User) -> None:
    now = timezone.now()
    token = issue_token(ann, expires_at=now + timedelta(hours=1))
    with time_machine.travel(now + timedelta(minutes=59)):
        assert ask(token).status_code == 202
    with time_machine.travel(now + timedelta(minutes=61)):
        assert said(ask(token)) == (401, "the token is expired")


def test_a_token_falls_with_its_owner_s_account_and_permission(ann: User) -> None:
    token = issue_token(ann)
    groups = list(ann.groups.all())
    ann.groups.clear()
    assert said(ask(token)) == (403, "ann is not permitted to build archives")
    ann.groups.set(groups)
    User.objects.update(is_active=False)
    assert said(ask(token)) == (401, "the account of the token is not active")
    assert not Export.objects.exists()


def test_the_two_kinds_of_tokens_do_not_open_each_other_s_doors(ann: User) -> None:
    agent = register_external_agent(name="Guest", protocol="both", at=timezone.now()).token
    assert said(ask(agent)) == (401, "the token is unknown")
    opened = Client().get("/api/v1/submissions/open/", headers={"Authorization": f"Bearer {issue_token(ann)}"})
    assert said(opened) == (401, "the token is unknown or revoked")


def test_wrong_tokens_are_throttled_by_client_and_right_ones_never(ann: User) -> None:
    token = issue_token(ann)

    def knock(token: str, address: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return Client().post(EXPORTS, {}, content_type="application/json", headers=headers, REMOTE_ADDR=address)

    codes = [knock(f"arena_{number}", "203.0.113.1").status_code for number in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert int(knock("arena_wrong", "203.0.113.1")["Retry-After"]) > 0
    assert knock("arena_wrong", "203.0.113.2").status_code == 401
    assert knock(token, "203.0.113.1").status_code == 202


@pytest.mark.parametrize("kind", ["operator", "agent"])
def test_a_use_is_noted_at_most_once_a_minute(ann: User, kind: str) -> None:
    made = timezone.now()
    row: Any
    if kind == "operator":
        token = issue_token(ann, scope="jobs")
        row, path = OperatorToken.objects.get(), JOBS
    else:
        registered = register_external_agent(name="Guest", protocol="both", at=made)
        row, token, path = registered.registration, registered.token, "/api/v1/submissions/open/"
    used = []
    for seconds in (0, 30, 59, 61, 90, 10):
        with time_machine.travel(made + timedelta(seconds=seconds), tick=False), CaptureQueriesContext(connection) as q:
            Client().get(path, headers={"Authorization": f"Bearer {token}"})
        row.refresh_from_db()
        wrote = any(f'UPDATE "{row._meta.db_table}"' in query["sql"] for query in q)
        used.append((round((row.last_used_at - made).total_seconds()), wrote))
    # A clock that was set back is believed: the last use is not left in the future.
    assert used == [(0, True), (0, False), (0, False), (61, True), (61, False), (10, True)]


# ── a job, now ────────────────────────────────────────────────────────────────────────────────────


def test_every_job_of_the_dashboard_is_enqueued_once(ann: User) -> None:
    token = issue_token(ann, scope="jobs")
    assert JOB_ACTIONS.keys() == {action.kind for action in ACTIONS.values() if isinstance(action, EnqueueJob)}
    for command in JOB_ACTIONS:
        first, again = (ask(token, JOBS, command=command) for _ in range(2))
        assert (first.status_code, first.json()["enqueued"]) == (202, True)
        assert (again.status_code, again.json()["enqueued"]) == (202, False)
    assert OrmQ.objects.count() == len(JOB_ACTIONS)
    entries = AuditEntry.objects.order_by("pk")
    assert [entry.result for entry in entries] == ["done", "unchanged"] * len(JOB_ACTIONS)
    assert {entry.by for entry in entries} == {"ann"}
    assert {entry.reason for entry in entries} == {"requested over the API (token ci)"}


@pytest.mark.parametrize(
    ("body", "named"),
    [({}, "command"), ({"command": "flush"}, "command"), ({"command": "sync_markets", "at": "now"}, "at")],
)
def test_a_job_that_is_none_is_named(ann: User, body: dict[str, str], named: str) -> None:
    answer = ask(issue_token(ann, scope="jobs"), JOBS, **body)
    assert (answer.status_code, list(answer.json())) == (400, [named])
    assert not OrmQ.objects.exists()


@pytest.mark.parametrize(("role", "status"), [("operator", 202), ("viewer", 403), (None, 401)])
def test_a_session_has_a_job_run_if_its_role_may(client: Client, role: str | None, status: int) -> None:
    if role:
        client.force_login(create_account("bob", role))
    answer = client.post(JOBS, {"command": "verify_ledger"}, content_type="application/json")
    assert answer.status_code == status
    assert OrmQ.objects.exists() == (status == 202)


def test_a_session_s_job_needs_its_csrf_token(ann: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ann)
    assert browser.post(JOBS, {"command": "sync_markets"}, content_type="application/json").status_code == 403
    assert not OrmQ.objects.exists()


# ── by command ────────────────────────────────────────────────────────────────────────────────────


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_tokens_are_made_and_revoked_by_command_and_leave_the_same_entries(ann: User) -> None:
    made = run("make_token", "ci", "--owner", "ann", "--scope", "exports", "--days", "7")
    assert {**made, "token": ""} == {"name": "ci", "owner": "ann", "scope": "exports", "token": ""}
    assert ask(made["token"]).status_code == 202
    assert made["token"] not in everything()
    assert Run.objects.get(kind="make_token").summary == {"name": "ci", "owner": "ann", "scope": "exports"}
    with pytest.raises(CommandError, match="revoke that token first") as refused:
        run("make_token", "ci", "--owner", "ann", "--scope", "exports")
    assert refused.value.returncode == 2
    assert [run("revoke_token", "ci")["revoked"] for _ in range(2)] == [1, 0]
    assert said(ask(made["token"])) == (401, "the token is revoked")
    entries = AuditEntry.objects.exclude(action="export").order_by("pk").values_list("action", "by", "result")
    assert list(entries) == [
        ("make-token", "a shell", "done"),
        ("make-token", "a shell", "unchanged"),
        ("revoke-token", "a shell", "done"),
        ("revoke-token", "a shell", "unchanged"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("make_token", "ci", "--owner", "nobody", "--scope", "jobs"),
        ("make_token", "ci", "--owner", "ann", "--scope", "jobs", "--days", "0"),
        ("make_token", " ", "--owner", "ann", "--scope", "jobs"),
        ("revoke_token", "ci"),
    ],
)
def test_a_command_that_names_nothing_is_bad_usage(ann: User, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
    assert not OperatorToken.objects.exists()
