"""Settings and start-up: errors in one line with their exit code, and without side effects."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import environ
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility
from django.test import override_settings

from arena_site import conf
from tests.commands import run

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

ROOT = Path(__file__).resolve().parents[2]
OWN = (
    "SECRET_KEY", "DATABASE_URL", "OPENROUTER_API_KEY",
    "GAMMA_BASE_URL", "CLOB_BASE_URL", "OPENROUTER_BASE_URL", "KALSHI_BASE_URL",
)  # fmt: skip
"""Variables that the tests' own settings put into the environment."""


def manage(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ARENA_", "DJANGO_"))}
    for name in OWN:
        clean.pop(name, None)
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=clean | env, capture_output=True, text=True, timeout=60
    )


def load(monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, Any]:
    """The settings as they are read from an environment."""
    for name in [*os.environ]:
        if name in OWN or name.startswith(("ARENA_", "DJANGO_")):
            monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "arena_site" / "settings.py"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ALLOWED_HOSTS", "arena.example,https://arena.example", "'https://arena.example' is no host's name"),
        ("CSRF_TRUSTED_ORIGINS", "arena.example", "must be an http:// or https:// address"),
        ("OPENROUTER_BASE_URL", "http://", "must be an http:// or https:// address"),
        ("GAMMA_BASE_URL", "http://gamma .example", "must hold no space"),
        ("KALSHI_BASE_URL", f"https://{'a' * 70}.example", "longer than 63 letters"),
        ("ARENA_HEARTBEAT_URL", "https://beat..example/x", "a label is empty"),
        ("ARENA_ALERT_WEBHOOK", f"https://{'a' * 70}.example", "longer than 63 letters"),
        ("DATABASE_URL", f"postgres://arena@{'a' * 70}.example/arena", "longer than 63 letters"),
        ("EMAIL_URL", f"smtp://{'a' * 70}.example:25", "longer than 63 letters"),
        ("CACHE_URL", "redis://cache .example:6379", "its host holds a space"),
        ("ARENA_SPEND_LIMIT_USD", "-1", "must be zero or more dollars"),
        ("ARENA_LOG", "xml", "must be one of line, json"),
        ("ARENA_LINEUP", "always", "must be one of approve, auto, unchecked"),
        ("ARENA_SPEND_LIMIT_USD", "NaN", "must be zero or more dollars"),
        ("ARENA_SOURCES", "polymarket,manifold", "must name sources out of polymarket, kalshi"),
        ("ARENA_LLM_TIMEOUT_S", "soon", "must be a whole number"),
        ("ARENA_LLM_TRANSPORT_RETRIES", "-1", "must lie between 0 and 10"),
        ("ARENA_LEASE_S", "300", "must exceed ARENA_LLM_TIMEOUT_S (900)"),
        ("ARENA_TRUSTED_PROXIES", "proxy", "is no IP address or network"),
        ("ARENA_CLOCK", "noon", "must be an ISO-8601 time"),
        ("ARENA_CLOCK", "2026-03-08T00:06:00", "must name its zone"),
    ],
)
def test_wrong_setting_is_named(name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name}: .*{re.escape(message)}"):
        load(monkeypatch, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("ARENA_SIGNING_KEY", "c0ffeec0ffee", "must be 64 hexadecimal digits"),
        (
            "DATABASE_URL",
            "mysql://arena:c0ffee@db/arena",
            "must begin with sqlite://, postgresql:// or postgres://",
        ),
        ("DATABASE_URL", "postgres://arena:c0ffee/1@db/arena", "is no URL: its host or port is not valid"),
        ("DATABASE_URL", "postgres://arena:12/c0ffee@db/arena", "has an @ behind its host"),
        ("DATABASE_URL", "postgres://arena:[c0ffee@db/arena", "is no URL: its host or port is not valid"),
        ("DATABASE_URL", "postgres://arena:c0ffee\u2100@db/arena", "is no URL: its host or port is not valid"),
        ("DATABASE_URL", "postgres://arena:c0ffee@db", "names no database"),
        ("DATABASE_REPLICA_URL", "postgres://arena:c0ffee@db/arena", "needs PostgreSQL, here and in DATABASE_URL"),
        ("CACHE_URL", "memcached://:c0ffee@cache", "must begin with redis://, rediss:// or unix://"),
        ("CACHE_URL", "redis://arena:c0ffee#1@cache", "is no URL: its host or port is not valid"),
        ("EMAIL_URL", "smtp+tls://arena:c0ffee@mail:port", "is no URL: its host or port is not valid"),
        ("ARENA_ALERT_WEBHOOK", "ftp://arena:c0ffee@hook", "must be an http:// or https:// address"),
        ("ARENA_HEARTBEAT_URL", "https://arena:c0ffee?@hook", "is no URL: its host or port is not valid"),
        ("OPENROUTER_BASE_URL", "openrouter:c0ffee@gateway", "must be an http:// or https:// address"),
        ("GAMMA_BASE_URL", "https://arena:c0ffee@gamma:70000", "is no URL: its host or port is not valid"),
        ("ALLOWED_HOSTS", "arena.example,https://arena:c0ffee@arena.example", "entry 2 is no host's name"),
        ("CSRF_TRUSTED_ORIGINS", "https://arena:c0ffee@arena.example/a", "entry 1 has a path"),
        ("ARENA_ALERT_EMAIL", "smtp://ann:c0ffee@mail@mail", "entry 1 is no mail address"),
        ("ARENA_HTTPS", "https://arena:c0ffee@arena.example", "must be true or false"),
    ],
)
def test_wrong_setting_is_named_without_its_secret(
    name: str, value: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{name}: .*{re.escape(fault)}") as refused:
        load(monkeypatch, **{name: value})
    assert "c0ffee" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_wrong_setting_stops_the_start_with_one_line() -> None:
    ran = manage("check", ARENA_HTTPS="https://arena:c0ffee@arena.example")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "wrong setting: ARENA_HTTPS: must be true or false\n"


def test_demo_names_no_secret_of_its_database(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        ManagementUtility(["manage.py", "demo", "--database", "postgres://arena:c0ffee/1@db/arena"]).execute()
    message = capsys.readouterr().err
    assert (refused.value.code, message.count("\n")) == (2, 1)
    assert "--database: is no URL" in message
    assert "c0ffee" not in message


@pytest.mark.parametrize("line", ["ARENA_SIGNING_KEY = c0ffee", "ARENA_SIGNING_KEY: c0ffee", "c0ffee"])
def test_wrong_line_of_the_settings_file_is_named_by_its_number(line: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"# secrets\n\nexport DEBUG=true\n{line}\n")
    with pytest.raises(ImproperlyConfigured) as refused:
        conf.read_file(environ.Env(), tmp_path / ".env")
    assert str(refused.value) == ".env, line 4: must be NAME=value, without a space before ="
    assert conf.read_file(environ.Env(), tmp_path / "absent") is None  # type: ignore[func-returns-value]


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["publish_archive", "export_dataset"])
@pytest.mark.parametrize(
    ("name", "value"), [("SECRET_KEY_IS_SET", True), ("ARENA_SIGNING_KEY", bytes(32))], ids=["secret", "signing"]
)
def test_archive_is_not_signed_with_a_throw_away_key(
    command: str, name: str, value: Any, settings: Any, tmp_path: Path
) -> None:
    folder = settings.ARENA_EXPORT_DIR = tmp_path / "archives"
    options = {"out": folder} if command == "export_dataset" else {}
    settings.SECRET_KEY_IS_SET, settings.ARENA_SIGNING_KEY = False, None
    for settings.DEBUG in (False, True):
        refused = run(command, **options)
        assert refused.code == 2
        assert "SECRET_KEY is not set" in refused.stderr
        assert "\n" not in refused.stderr
        assert not folder.exists()
    setattr(settings, name, value)
    assert run(command, **options).code == 0


def test_example_file_lists_every_setting_that_is_read() -> None:
    source = (ROOT / "arena_site" / "settings.py").read_text()
    read = set(re.findall(r'(?:conf\.read\(env, |env\.str\()\s*"([A-Z_]+)"', source))
    example = (ROOT / ".env.example").read_text()
    assert len(read) > 40
    assert read - set(re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE)) == set()


def test_an_empty_setting_is_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    read = load(monkeypatch, GAMMA_BASE_URL="", ARENA_LEASE_S=" ")
    assert (read["GAMMA_BASE_URL"], read["ARENA_LEASE_S"]) == ("https://gamma-api.polymarket.com", 960)


def test_former_secret_keys_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    read = load(monkeypatch, SECRET_KEY_FALLBACKS=f"{'a' * 50},{'b' * 50}")
    assert read["SECRET_KEY_FALLBACKS"] == ["a" * 50, "b" * 50]


def test_a_server_does_not_start_without_a_secret_key(tmp_path: Path) -> None:
    ran = manage("arena", DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert ran.returncode != 0
    assert "SECRET_KEY is not set" in ran.stderr
    assert not (tmp_path / "x.sqlite3").exists()


def test_web_server_refuses_too_and_loads_its_pages_before_the_first_visitor_asks() -> None:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "", "DEBUG": "false"}
    loaded = "{'arena_site.pages.views.leaderboard', 'arena_site.pages.environment'} <= sys.modules.keys()"
    code = f"""
import sys
from django.conf import settings
try:
    import arena_site.wsgi
except Exception as refusal:
    print(refusal)
settings.SECRET_KEY_IS_SET = True
import arena_site.wsgi
print({loaded})
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    refusal, is_loaded = ran.stdout.splitlines()
    assert refusal.startswith("SECRET_KEY is not set"), ran.stderr
    assert is_loaded == "True", ran.stderr


def test_a_postgres_whose_host_vanished_is_given_up_within_the_time_of_a_page() -> None:
    arena = "postgres://arena@127.0.0.1/arena"
    assert conf.database(arena)["OPTIONS"]["tcp_user_timeout"] == 1500
    assert conf.database(f"{arena}?tcp_user_timeout=60000")["OPTIONS"]["tcp_user_timeout"] == 60000


@pytest.mark.parametrize(
    ("at", "message"), [("2026-03-08T00:05:00", "has no time zone"), ("last sunday", "is not an ISO-8601 time")]
)
def test_bad_time_is_bad_usage(at: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        ManagementUtility(["manage.py", "start_cohort", "--at", at]).execute()
    assert refused.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_unmigrated_database_is_one_line(tmp_path: Path) -> None:
    ran = manage("start_cohort", DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert ran.returncode == 1
    assert ran.stderr.startswith("CommandError: database: no such table")
    assert ran.stderr.count("\n") == 1


@pytest.mark.django_db
def test_unreachable_server_is_one_line_and_exit_1() -> None:
    ran = run("sync_markets")
    assert (ran.code, ran["seen"]) == (1, 0)
    assert ran.stderr.startswith("gamma: GET /markets/keyset failed")
    assert ran.stderr.count("\n") == 1


def test_nothing_is_to_be_warned_of_where_the_site_is_served_over_https(monkeypatch: pytest.MonkeyPatch) -> None:
    read = load(
        monkeypatch,
        ARENA_HTTPS="true", SECRET_KEY="".join(map(chr, range(40, 110))), OPENROUTER_API_KEY="key",
        ALLOWED_HOSTS="arena.example", ARENA_TRUSTED_PROXIES="127.0.0.1",
    )  # fmt: skip
    with override_settings(**{name: value for name, value in read.items() if name.isupper() and name != "DATABASES"}):
        assert [found for found in run_checks(include_deployment_checks=True) if not found.is_silenced()] == []
