"""Operators' tokens: creation, scope, expiry, revocation and audit."""

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
from arena_site.models import AuditEntry, OperatorToken
from arena_site.operator_api import job_actions
from markets.models import Run
from scoring.models import Export
from tests.arena_site.dashboard.accounts import create_account, issue_token, perform, sign_in

pytestmark = pytest.mark.django_db
EXPORTS, JOBS = "/api/v1/exports/", "/api/v1/jobs/"
LIST = reverse("admin:arena_site_operatortoken_changelist")
TOKEN = re.compile(r"arena_[\w-]{43}")


@pytest.fixture(autouse=True)
def _export_folder(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path


@pytest.fixture
def ann() -> User:
    return create_account("ann")


def post(token: str, path: str = EXPORTS, **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return Client().post(path, body, content_type="application/json", headers=headers)


def status_and_detail(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("detail")


def all_rows() -> str:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        rows: list[Any] = []
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += cursor.fetchall()
    return repr(rows)


# ── created and shown once ──────────────────────────────────────────────────────────────────────────


def test_token_is_shown_once_and_stored_as_a_hash(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    operator = sign_in("operator")
    answer = perform(operator, "make-token", name="nightly", scope="exports", days=90)
    (token,) = TOKEN.findall(answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    row = OperatorToken.objects.get()
    assert (row.token_sha256, row.owner.username, row.scope) == (hash_token(token), "operator", "exports")
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == timedelta(days=90)
    repeated = perform(operator, "make-token", name="nightly", scope="exports", days=90)
    assert repeated.status_code == 302
    pages = [repeated.headers["Location"], LIST, reverse("admin:arena_site_operatortoken_change", args=[row.pk])]
    pages += [
        reverse("admin:index"),
        reverse("admin:arena_site_auditentry_change", args=[AuditEntry.objects.last().pk]),
    ]
    for page in pages:
        markup = operator.get(page).content.decode()
        assert token not in markup, page
        assert row.token_sha256 not in markup, page
    assert token not in all_rows()
    assert token not in caplog.text
    assert post(token).status_code == 202


def test_list_shows_owner_scope_state_and_last_use(ann: User) -> None:
    now = timezone.now()
    post(issue_token(ann))
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


def test_name_can_be_reused_once_its_token_is_revoked(ann: User) -> None:
    first = issue_token(ann)
    operator = sign_in("operator")
    taken = perform(operator, "make-token", name=" ci ", scope="jobs")
    assert taken.status_code == 302
    assert OperatorToken.objects.count() == 1
    repeated = OperatorToken(owner=ann, name="ci", scope="jobs", token_sha256="0" * 64, created_at=timezone.now())
    with pytest.raises(IntegrityError), transaction.atomic():
        repeated.save()
    perform(operator, "revoke-token", token=OperatorToken.objects.get().pk)
    assert perform(operator, "make-token", name="ci", scope="jobs").status_code == 200
    assert status_and_detail(post(first)) == (401, "the token is revoked")


def test_token_needs_the_owners_permission(ann: User) -> None:
    ann.groups.clear()
    with pytest.raises(CommandError, match="not permitted"):
        call_command("make_token", "ci", "--owner", "ann", "--scope", "jobs")
    assert not OperatorToken.objects.exists()


def test_account_with_tokens_is_protected(ann: User) -> None:
    issue_token(ann)
    with pytest.raises(ProtectedError):
        ann.delete()


# ── refused ───────────────────────────────────────────────────────────────────────────────────────


def test_token_is_limited_to_its_scope(ann: User) -> None:
    exports, jobs = issue_token(ann), issue_token(ann, name="cron", scope="jobs")
    assert status_and_detail(post(jobs)) == (403, "this token's scope is jobs, not exports")
    assert status_and_detail(post(exports, JOBS, command="sync_markets")) == (
        403,
        "this token's scope is exports, not jobs",
    )
    assert not Export.objects.exists()
    assert not OrmQ.objects.exists()
    assert post(jobs, JOBS, command="sync_markets").status_code == 202


def test_token_expires(ann: User) -> None:
    now = timezone.now()
    token = issue_token(ann, expires_at=now + timedelta(hours=1))
    with time_machine.travel(now + timedelta(minutes=59)):
        assert post(token).status_code == 202
    with time_machine.travel(now + timedelta(minutes=61)):
        assert status_and_detail(post(token)) == (401, "the token is expired")


def test_token_needs_an_active_and_permitted_owner(ann: User) -> None:
    token = issue_token(ann)
    groups = list(ann.groups.all())
    ann.groups.clear()
    assert status_and_detail(post(token)) == (403, "ann is not permitted to build archives")
    ann.groups.set(groups)
    User.objects.update(is_active=False)
    assert status_and_detail(post(token)) == (401, "the account of the token is not active")
    assert not Export.objects.exists()


def test_agent_and_operator_tokens_are_not_interchangeable(ann: User) -> None:
    agent = register_external_agent(name="Guest", protocol="both", at=timezone.now()).token
    assert status_and_detail(post(agent)) == (401, "the token is unknown")
    opened = Client().get("/api/v1/submissions/open/", headers={"Authorization": f"Bearer {issue_token(ann)}"})
    assert status_and_detail(opened) == (401, "the token is unknown or revoked")


def test_wrong_tokens_are_throttled_by_client_and_valid_ones_never(ann: User) -> None:
    token = issue_token(ann)

    def post_from(token: str, address: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return Client().post(EXPORTS, {}, content_type="application/json", headers=headers, REMOTE_ADDR=address)

    codes = [post_from(f"arena_{number}", "203.0.113.1").status_code for number in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert int(post_from("arena_wrong", "203.0.113.1")["Retry-After"]) > 0
    assert post_from("arena_wrong", "203.0.113.2").status_code == 401
    assert post_from(token, "203.0.113.1").status_code == 202


@pytest.mark.parametrize("kind", ["operator", "agent"])
def test_use_is_recorded_at_most_once_a_minute(ann: User, kind: str) -> None:
    created = timezone.now()
    row: Any
    if kind == "operator":
        token = issue_token(ann, scope="jobs")
        row, path = OperatorToken.objects.get(), JOBS
    else:
        registered = register_external_agent(name="Guest", protocol="both", at=created)
        row, token, path = registered.registration, registered.token, "/api/v1/submissions/open/"
    used = []
    for seconds in (0, 30, 59, 61, 90, 10):
        with (
            time_machine.travel(created + timedelta(seconds=seconds), tick=False),
            CaptureQueriesContext(connection) as q,
        ):
            Client().get(path, headers={"Authorization": f"Bearer {token}"})
        row.refresh_from_db()
        wrote = any(f'UPDATE "{row._meta.db_table}"' in query["sql"] for query in q)
        used.append((round((row.last_used_at - created).total_seconds()), wrote))
    # A clock that was set back is believed: the last use is not left in the future.
    assert used == [(0, True), (0, False), (0, False), (61, True), (61, False), (10, True)]


# ── a job, now ────────────────────────────────────────────────────────────────────────────────────


def test_every_job_of_the_dashboard_is_enqueued_once(ann: User) -> None:
    token = issue_token(ann, scope="jobs")
    commands = {
        "sync_markets", "run_decisions", "run_forecasts", "check_resolutions", "take_snapshots", "compute_scores",
        "verify_ledger", "check_lineup",
    }  # fmt: skip
    assert job_actions().keys() == commands
    for command in commands:
        first, repeated = (post(token, JOBS, command=command) for _ in range(2))
        assert (first.status_code, first.json()["enqueued"]) == (202, True)
        assert (repeated.status_code, repeated.json()["enqueued"]) == (202, False)
    assert OrmQ.objects.count() == 8
    entries = AuditEntry.objects.order_by("pk")
    assert [entry.result for entry in entries] == ["done", "unchanged"] * 8
    assert {entry.by for entry in entries} == {"ann"}
    assert {entry.reason for entry in entries} == {"requested over the API (token ci)"}


@pytest.mark.parametrize(
    ("body", "named"),
    [({}, "command"), ({"command": "flush"}, "command"), ({"command": "sync_markets", "at": "now"}, "at")],
)
def test_invalid_job_is_a_400_that_names_the_field(ann: User, body: dict[str, str], named: str) -> None:
    answer = post(issue_token(ann, scope="jobs"), JOBS, **body)
    assert (answer.status_code, list(answer.json())) == (400, [named])
    assert not OrmQ.objects.exists()


WRITES = pytest.mark.parametrize(("path", "body"), [(EXPORTS, {}), (JOBS, {"command": "verify_ledger"})])


@WRITES
@pytest.mark.parametrize(("role", "status"), [("operator", 202), ("viewer", 403), (None, 403), ("anonymous", 401)])
def test_session_writes_if_its_role_permits(
    client: Client, path: str, body: dict[str, str], role: str | None, status: int
) -> None:
    if role != "anonymous":
        client.force_login(create_account("bob", role))
    assert client.post(path, body, content_type="application/json").status_code == status
    assert (Export.objects.exists() or OrmQ.objects.exists()) == (status == 202)


@WRITES
def test_session_needs_its_csrf_token(ann: User, path: str, body: dict[str, str]) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ann)
    assert browser.post(path, body, content_type="application/json").status_code == 403
    assert not OrmQ.objects.exists()
    assert not Export.objects.exists()


# ── by command ────────────────────────────────────────────────────────────────────────────────────


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_commands_create_and_revoke_tokens_with_audit_entries(ann: User) -> None:
    created = run("make_token", "ci", "--owner", "ann", "--scope", "exports", "--days", "7")
    assert {**created, "token": ""} == {"name": "ci", "owner": "ann", "scope": "exports", "token": ""}
    assert post(created["token"]).status_code == 202
    assert created["token"] not in all_rows()
    assert Run.objects.get(kind="make_token").summary == {"name": "ci", "owner": "ann", "scope": "exports"}
    with pytest.raises(CommandError, match="revoke that token first") as refused:
        run("make_token", "ci", "--owner", "ann", "--scope", "exports")
    assert refused.value.returncode == 2
    assert [run("revoke_token", "ci")["revoked"] for _ in range(2)] == [1, 0]
    assert status_and_detail(post(created["token"])) == (401, "the token is revoked")
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
def test_unknown_name_is_bad_usage(ann: User, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
    assert not OperatorToken.objects.exists()
