"""What lies on the disk is private, units are confined, and the site says where to report a fault."""

import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from redis import AuthenticationError, Redis

from arena_site.operations import processes
from tests.arena_site.dashboard.accounts import sign_in
from tests.databases import PROJECT
from tests.fronts import free_port

MAKE = """
import os
from pathlib import Path
from django.conf import settings
from django.db import connection
connection.ensure_connection()
connection.cursor().execute("CREATE TABLE a (b)")
settings.ARENA_EXPORT_DIR.mkdir(parents=True)
(settings.ARENA_EXPORT_DIR / "file").touch()
"""
DEPLOY = (PROJECT / "docs" / "deploy.md").read_text()


@pytest.mark.parametrize(
    "entry", [["manage.py", "shell", "-v0", "-c", MAKE], ["-c", f"import arena_site.wsgi\n{MAKE}"]]
)
def test_files_are_private_from_their_first_byte(tmp_path: Path, entry: list[str]) -> None:
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/arena.sqlite3", "ARENA_EXPORT_DIR": f"{tmp_path}/exports/new",
        "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x" * 50,
    }  # fmt: skip
    subprocess.run([sys.executable, *entry], cwd=PROJECT, env=environment, check=True, umask=0o022)
    modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in tmp_path.rglob("*")}
    assert modes == {"arena.sqlite3": "0o600", "exports": "0o700", "new": "0o700", "file": "0o600"} | {
        name: "0o600" for name in modes if name.startswith("arena.sqlite3-")
    }


def units() -> dict[str, str]:
    """The documented units of systemd; the worker's is put together as the text says."""
    web, worker = (
        re.search(rf"`/etc/systemd/system/arena-{name}.service`.*?\n\n```\n(.*?)```", DEPLOY, re.DOTALL)
        for name in ("web", "worker")
    )
    assert web
    assert worker
    settings, comment, confinement = web[1].partition("# What it needs")
    return {"web": web[1], "worker": settings.partition("[Service]")[0] + worker[1] + comment + confinement}


@pytest.mark.systemd
@pytest.mark.parametrize("name", ["web", "worker"])
def test_documented_unit_is_confined(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"arena-{name}.service"
    file.write_text(units()[name])
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout[-300:] + checked.stderr


def test_whatever_stops_a_worker_waits_longer_than_it_drains(settings: Any) -> None:
    least = settings.ARENA_DRAIN_S + 20
    compose = (PROJECT / "compose.yaml").read_text()
    assert [int(limit) >= least for limit in re.findall(r"TimeoutStopSec=(\d+)", units()["worker"])] == [True]
    assert [int(limit) >= least for limit in re.findall(r"stop_grace_period: (\d+)s", compose)] == [True]
    assert processes.PATIENCE_S >= 20, "beside the time to drain"


@pytest.mark.django_db
def test_security_txt_says_where_to_report(client: Client, settings: Any) -> None:
    answer = client.get("/.well-known/security.txt")
    fields = dict(line.split(": ", 1) for line in answer.content.decode().splitlines())
    assert answer["Content-Type"].startswith("text/plain")
    assert fields["Contact"] == "http://testserver/about/"
    expires = datetime.fromisoformat(fields["Expires"])
    assert timedelta(days=30) < expires - datetime.now(UTC) < timedelta(days=365)
    settings.ARENA_SECURITY_CONTACT = "mailto:security@example.org"
    assert b"Contact: mailto:security@example.org\n" in client.get("/.well-known/security.txt").content


@pytest.mark.django_db
def test_sessions_outlast_a_new_secret_key_whose_predecessor_is_a_fallback(settings: Any) -> None:
    settings.SECRET_KEY = "a" * 50
    viewer = sign_in("viewer")
    settings.SECRET_KEY = "b" * 50
    settings.SECRET_KEY_FALLBACKS = ["a" * 50]
    assert viewer.get(reverse("admin:index")).status_code == 200
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "c" * 50, []
    assert viewer.get(reverse("admin:index")).status_code == 302


@pytest.mark.redis
def test_documented_redis_has_a_password_and_a_bound(tmp_path: Path) -> None:
    documented = re.search(r"`/etc/redis/redis.conf`.*?```\n(.*?)```.*?`CACHE_URL=(redis:\S+)`", DEPLOY, re.DOTALL)
    assert documented is not None
    (tmp_path / "redis.conf").write_text(documented[1])
    port = free_port()
    command = ["redis-server", str(tmp_path / "redis.conf"), "--port", str(port), "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert any("ready to accept connections" in line.lower() for line in server.stdout)
            address = documented[2].replace("6379", str(port))
            with Redis.from_url(address) as known, Redis(port=port) as stranger:
                assert known.config_get("maxmemory") == {"maxmemory": str(256 * 2**20)}
                with pytest.raises(AuthenticationError):
                    stranger.ping()
        finally:
            server.terminate()
