"""`POST /api/v1/exports/`: operators request an export, a worker builds it once, anyone downloads and verifies it."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from arena_site import jobs
from arena_site.models import AuditEntry
from scoring.exports.verification.verifier import verify_archive
from scoring.models import Export
from scoring.services import exports
from tests.arena_site.dashboard.accounts import create_account
from tests.factories import CohortFactory, SnapshotFactory
from tests.problems import errors, problem

pytestmark = pytest.mark.django_db
Post = Callable[..., Any]
PATH = "/api/v1/exports/"


@pytest.fixture(autouse=True)
def _place(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path / "exports"


@pytest.fixture
def post(client: Client, django_capture_on_commit_callbacks: Any) -> Post:
    """Requests an export in an operator's session."""
    client.force_login(create_account("ann"))

    def send(**fields: Any) -> Any:
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(PATH, fields, content_type="application/json")

    return send


def test_requested_export_is_built_downloaded_and_verified(post: Post, client: Client, tmp_path: Path) -> None:
    cohort = SnapshotFactory().agent.cohort
    requested = post(cohort=cohort.number, formats=["parquet", "csv"])
    assert requested.status_code == 202
    row = requested.json()
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
    assert verify_archive(archive).violations == []
    assert client.get("/api/v1/exports/").json()["results"] == [built]


def test_equal_requests_share_one_export(post: Post) -> None:
    first = post(start="2026-03-08", formats=["csv"]).json()
    equal = post(start="2026-03-08T01:00:00+01:00").json()
    second_export = post(start="2026-03-09").json()
    assert first == equal
    assert second_export["id"] != first["id"]
    jobs.export(first["id"])
    built = Export.objects.get(pk=first["id"])
    jobs.export(first["id"])
    assert Export.objects.get(pk=first["id"]).finished_at == built.finished_at
    assert post(start="2026-03-08").json()["status"] == "completed"
    assert Export.objects.count() == 2


def test_old_or_lost_export_is_built_again(post: Post) -> None:
    first = post().json()["id"]
    jobs.export(first)
    Export.objects.update(finished_at=timezone.now() - exports.REUSED_FOR - timedelta(minutes=1))
    second = post().json()["id"]
    assert second != first
    Export.objects.filter(pk=second).update(status="building", started_at=timezone.now() - timedelta(hours=7))
    assert post().json()["id"] not in (first, second)
    assert Export.objects.get(pk=second).status == "failed"


def test_eleventh_waiting_export_is_refused_until_one_is_built(post: Post, client: Client) -> None:
    days = [f"2026-03-{day:02}" for day in range(1, 12)]
    rows = [post(start=day) for day in days]
    assert [row.status_code for row in rows] == [202] * 10 + [429]
    assert problem(rows[-1], 429)["detail"].startswith("10 exports are waiting or being built")
    assert int(rows[-1]["Retry-After"]) > 0
    assert post(start=days[0]).status_code == 202  # it waits already
    assert AuditEntry.objects.filter(action="export").count() == 10
    jobs.export(rows[0].json()["id"])
    assert post(start=days[-1]).status_code == 202


@pytest.mark.parametrize("text", ["[" * 90_000, '{"formats": ' + "[" * 900 + "]" * 900 + "}", '{"a":' * 15_000])
def test_body_of_many_brackets_is_a_400(client: Client, text: str) -> None:
    client.force_login(create_account("ann"))
    answer = client.post(PATH, text, content_type="application/json")
    assert errors(answer) == {"body": ["holds more than 100 objects and lists"]}


def test_new_export_has_one_audit_entry(post: Post) -> None:
    for _ in range(2):
        assert post(start="2026-03-08").status_code == 202
    entry = AuditEntry.objects.get(action="export")
    assert (entry.by, entry.result, entry.reason) == ("ann", "done", "requested over the API")
    assert entry.path == reverse("admin:scoring_export_change", args=[Export.objects.get().pk])


@pytest.mark.parametrize(
    ("fields", "field"),
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
def test_invalid_field_is_a_400_that_names_it(post: Post, fields: dict[str, Any], field: str) -> None:
    CohortFactory()
    assert list(errors(post(**fields))) == [field]


def test_failed_export_has_an_error_and_can_be_requested_again(post: Post, settings: Any, tmp_path: Path) -> None:
    requested = post().json()["id"]
    (tmp_path / "exports").write_text("in the way")
    with pytest.raises(OSError):
        jobs.export(requested)
    failed = Export.objects.get(pk=requested)
    assert failed.status == "failed"
    assert failed.error
    assert post().json()["id"] != requested


def test_only_the_newest_files_are_stored(post: Post, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MAX_STORED_FILES", 1)
    ids = [post(start=day).json()["id"] for day in ("2026-03-08", "2026-03-09")]
    for number in ids:
        jobs.export(number)
    assert [client.get(f"/api/v1/exports/{n}/").json()["file"] is None for n in ids] == [True, False]
    assert client.get(f"/api/v1/exports/{ids[0]}/file/").status_code == 404
