"""Settings and start-up: errors in one line with their exit code, and without side effects."""

import os
import re
import shutil
import subprocess
import sys
from operator import itemgetter
from pathlib import Path
from typing import Any

import environ
import pytest
from django.core.exceptions import ImproperlyConfigured

from arena_site import conf
from tests.commands import run
from tests.selection import chosen, one_per_rule

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

ROOT = Path(__file__).resolve().parents[2]


def manage(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ARENA_", "DJANGO_"))}
    for name in ("SECRET_KEY", "GAMMA_BASE_URL", "CLOB_BASE_URL", "OPENROUTER_BASE_URL", "KALSHI_BASE_URL"):
        clean.pop(name, None)
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=clean | env, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    one_per_rule(
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
        itemgetter(2),
    ),
)
def test_wrong_setting_stops_the_start_with_one_line_that_names_it(name: str, value: str, message: str) -> None:
    ran = manage("check", **{name: value})
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert name in ran.stderr
    assert message in ran.stderr


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    one_per_rule(
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
        itemgetter(2),
    ),
)
def test_wrong_setting_is_named_without_its_secret(name: str, value: str, fault: str, tmp_path: Path) -> None:
    ran = manage("check", **({"DATABASE_URL": f"sqlite:///{tmp_path}/x.sqlite3"} | {name: value}))
    assert (ran.returncode, ran.stderr.count("\n"), ran.stdout) == (2, 1, "")
    assert ran.stderr.startswith(f"wrong setting: {name}: ")
    assert fault in ran.stderr
    assert "c0ffee" not in ran.stderr


def test_demo_names_no_secret_of_its_database() -> None:
    ran = manage("demo", "--database", "postgres://arena:c0ffee/1@db/arena")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "--database: is no URL" in ran.stderr
    assert "c0ffee" not in ran.stderr


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


def test_an_empty_setting_is_its_default(tmp_path: Path) -> None:
    ran = manage(
        "migrate", "--plan", GAMMA_BASE_URL="", ARENA_LEASE_S="", DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3"
    )
    assert ran.returncode == 0


def test_former_secret_keys_are_read_from_the_environment() -> None:
    command = "from django.conf import settings; print(settings.SECRET_KEY_FALLBACKS)"
    ran = manage("shell", "--no-imports", "-c", command, SECRET_KEY_FALLBACKS=f"{'a' * 50},{'b' * 50}")
    assert ran.stdout.strip() == str(["a" * 50, "b" * 50])


@pytest.mark.parametrize("command", chosen(["arena"], ["arena", "check --deploy --fail-level ERROR"]))
def test_a_server_does_not_start_without_a_secret_key(command: str, tmp_path: Path) -> None:
    ran = manage(*command.split(), DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert ran.returncode != 0
    assert "SECRET_KEY is not set" in ran.stderr
    assert not (tmp_path / "x.sqlite3").exists()


def test_web_server_refuses_too() -> None:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "", "DEBUG": "false"}
    ran = subprocess.run(
        [sys.executable, "-c", "import arena_site.wsgi"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert "SECRET_KEY is not set" in ran.stderr


def test_web_server_has_loaded_its_pages_before_the_first_visitor_asks() -> None:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "arena_site.settings", "SECRET_KEY": "x" * 50}
    loaded = "{'arena_site.pages.views.leaderboard', 'arena_site.pages.environment'} <= sys.modules.keys()"
    code = f"import sys, arena_site.wsgi; print({loaded})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert ran.stdout == "True\n", ran.stderr


def test_a_postgres_whose_host_vanished_is_given_up_within_the_time_of_a_page() -> None:
    arena = "postgres://arena@127.0.0.1/arena"
    assert conf.database(arena)["OPTIONS"]["tcp_user_timeout"] == 1500
    assert conf.database(f"{arena}?tcp_user_timeout=60000")["OPTIONS"]["tcp_user_timeout"] == 60000


NAIVE_TIME = ("2026-03-08T00:05:00", "has no time zone")


@pytest.mark.parametrize(
    ("at", "message"),
    chosen([NAIVE_TIME], [NAIVE_TIME, ("last sunday", "is not an ISO-8601 time")]),
)
def test_bad_time_is_bad_usage_and_changes_nothing(at: str, message: str, tmp_path: Path) -> None:
    ran = manage("start_cohort", "--at", at, DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert ran.returncode == 2
    assert message in ran.stderr.splitlines()[-1]
    assert not (tmp_path / "x.sqlite3").exists()


@pytest.mark.thorough
def test_migrate_then_start_cohort_needs_nothing_else(tmp_path: Path) -> None:
    where = {"DATABASE_URL": f"sqlite:///{tmp_path}/x.sqlite3", "ARENA_LINEUP": "unchecked"}
    assert manage("migrate", "-v0", **where).returncode == 0
    ran = manage("start_cohort", "--at", "2026-03-08T00:00:00Z", "--json", **where)
    assert ran.returncode == 0
    assert ran.stdout == '{"cohort": 1, "created": true, "agents": 7}\n'


def test_unmigrated_database_is_one_line(tmp_path: Path) -> None:
    ran = manage("start_cohort", DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3")
    assert ran.returncode == 1
    assert ran.stderr.startswith("CommandError: database: no such table")
    assert ran.stderr.count("\n") == 1


def test_unreachable_server_is_one_line_and_exit_1(migrated_file: Path, tmp_path: Path) -> None:
    database = f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"
    ran = manage("sync_markets", "--json", DATABASE_URL=database, GAMMA_BASE_URL="http://127.0.0.1:9")
    assert ran.returncode == 1
    assert ran.stderr.startswith("gamma: GET /markets/keyset failed")
    assert ran.stderr.count("\n") == 1
    assert ran.stdout.startswith('{"seen": 0,')


def test_nothing_is_to_be_warned_of_where_the_site_is_served_over_https(tmp_path: Path) -> None:
    ran = manage(
        "check", "--deploy", "--fail-level", "WARNING",
        ARENA_HTTPS="true", SECRET_KEY="".join(map(chr, range(40, 110))), OPENROUTER_API_KEY="key",
        ALLOWED_HOSTS="arena.example", ARENA_TRUSTED_PROXIES="127.0.0.1",
        DATABASE_URL=f"sqlite:///{tmp_path}/x.sqlite3",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "no issues" in ran.stdout + ran.stderr
