"""Archives over the API: operators have them built, once; anyone fetches and proves them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from arena_site import jobs
from arena_site.models import AuditEntry
from scoring.exports.proof.verdict import verdict_on
from scoring.models import Export
from scoring.services import exports
from tests.arena_site.desk.people import person, token_of
from tests.factories import CohortFactory, SnapshotFactory

pytestmark = pytest.mark.django_db
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def _place(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path / "exports"


@pytest.fixture
def ask(client: Client, django_capture_on_commit_callbacks: Any) -> Ask:
    """Asks for an archive, by an operator's token unless told otherwise."""
    token = token_of(person("ann"))

    def post(headers: Any = None, **wanted: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if headers is None else headers
        with django_capture_on_commit_callbacks(execute=True):
            return client.post("/api/v1/exports/", wanted, content_type="application/json", headers=headers)

    return post


def test_an_operator_asks_a_worker_builds_and_anyone_fetches_and_proves_it(
    ask: Ask, client: Client, tmp_path: Path
) -> None:
    cohort = SnapshotFactory().agent.cohort
    asked = ask(cohort=cohort.number, formats=["parquet", "csv"])
    assert asked.status_code == 202
    row = asked.json()
    assert (row["status"], row["file"], row["cohort"], row["formats"]) == ("queued", None, 1, ["csv", "parquet"])
    assert OrmQ.objects.count() == 1
    jobs.export(row["id"])
    built = client.get(f"/api/v1/exports/{row['id']}/").json()
    assert built["status"] == "completed"
    answer = client.get(built["file"])
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    archive = tmp_path / "fetched.zip"
    archive.write_bytes(b"".join(answer.streaming_content))
    assert archive.stat().st_size == built["bytes"]
    assert verdict_on(archive).violations == []
    assert client.get("/api/v1/exports/").json()["results"] == [built]


def test_the_same_selection_asked_for_twice_is_built_once(ask: Ask) -> None:
    first = ask(start="2026-03-08", formats=["csv"]).json()
    again = ask(start="2026-03-08T01:00:00+01:00").json()
    other = ask(start="2026-03-09").json()
    assert first == again
    assert other["id"] != first["id"]
    jobs.export(first["id"])
    built = Export.objects.get(pk=first["id"])
    jobs.export(first["id"])
    assert Export.objects.get(pk=first["id"]).finished_at == built.finished_at
    assert ask(start="2026-03-08").json()["status"] == "completed"
    assert Export.objects.count() == 2


def test_an_old_archive_is_built_anew_and_a_lost_one_again(ask: Ask) -> None:
    first = ask().json()["id"]
    jobs.export(first)
    Export.objects.update(finished_at=timezone.now() - exports.FRESH - timedelta(minutes=1))
    second = ask().json()["id"]
    assert second != first
    Export.objects.filter(pk=second).update(status="building", started_at=timezone.now() - timedelta(hours=7))
    assert ask().json()["id"] not in (first, second)
    assert Export.objects.get(pk=second).status == "failed"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}])
def test_only_who_bears_a_token_may_ask(ask: Ask, headers: Any) -> None:
    assert ask(headers).status_code == 401
    assert not Export.objects.exists()


def test_what_was_asked_for_by_a_token_is_in_the_audit_log_once(ask: Ask) -> None:
    for _ in range(2):
        assert ask(start="2026-03-08").status_code == 202
    entry = AuditEntry.objects.get(act="export")
    assert (entry.by, entry.result, entry.reason) == ("ann", "done", "asked for over the API (token ci)")
    assert entry.path == reverse("admin:scoring_export_change", args=[Export.objects.get().pk])


@pytest.mark.parametrize(("role", "status"), [("operator", 202), ("viewer", 403), (None, 403)])
def test_an_operator_s_session_may_ask(ask: Ask, client: Client, role: str | None, status: int) -> None:
    client.force_login(person("bob", role))
    assert ask({}).status_code == status


def test_a_session_needs_its_csrf_token() -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_user("ann", is_staff=True))
    assert browser.post("/api/v1/exports/", {}, content_type="application/json").status_code == 403
    assert not Export.objects.exists()


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"cohort": 7}, "cohort"),
        ({"cohort": "one"}, "cohort"),
        ({"start": "2026-03-08T00:00:00"}, "start"),
        ({"start": "2026-03-09", "end": "2026-03-08"}, "end"),
        ({"formats": ["xlsx"]}, "formats"),
        ({"formats": []}, "formats"),
        ({"week": 3}, "week"),
    ],
)
def test_a_bad_wish_is_refused_and_named(ask: Ask, wanted: dict[str, Any], named: str) -> None:
    CohortFactory()
    answer = ask(**wanted)
    assert answer.status_code == 400
    assert list(answer.json()) == [named]


def test_what_fails_says_so_and_can_be_asked_for_again(ask: Ask, settings: Any, tmp_path: Path) -> None:
    asked = ask().json()["id"]
    (tmp_path / "exports").write_text("in the way")
    with pytest.raises(OSError):
        jobs.export(asked)
    failed = Export.objects.get(pk=asked)
    assert failed.status == "failed"
    assert failed.error
    assert ask().json()["id"] != asked


def test_only_the_newest_files_are_kept(ask: Ask, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "KEPT", 1)
    ids = [ask(start=day).json()["id"] for day in ("2026-03-08", "2026-03-09")]
    for number in ids:
        jobs.export(number)
    assert [client.get(f"/api/v1/exports/{n}/").json()["file"] is None for n in ids] == [True, False]
    assert client.get(f"/api/v1/exports/{ids[0]}/file/").status_code == 404
