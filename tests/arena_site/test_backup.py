"""Backup and restore: a restored database holds the same arena, verified ledger included."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arena_site.operations.backups import BackupFailed, temporary_file, tool
from arena_site.operations.host_claims import host_refusal
from tests.databases import ON_POSTGRES, PROJECT
from tests.faults.processes import CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.each_database]


@pytest.fixture(scope="module")
def season(arena: CommandRunner) -> str:
    return arena.prepare()


@pytest.fixture
def empty(arena: CommandRunner) -> Iterator[str]:
    name = arena.database.fresh()
    yield name
    arena.database.drop(name)


@pytest.fixture
def occupied(arena: CommandRunner, season: str) -> Iterator[str]:
    """A season of its own, one step further than the copy."""
    name = arena.database.fresh(season)
    yield name
    arena.database.drop(name)


@pytest.fixture(scope="module")
def copy(arena: CommandRunner, season: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("copies") / "arena.copy"
    output = arena.call(season, "backup", out=out)
    assert output.code == 0, output.stderr
    assert output.summary["file"] == str(out)
    assert output.summary["bytes"] == out.stat().st_size > 0
    assert output.summary["database"] == ("postgresql" if ON_POSTGRES else "sqlite")
    return out


def test_restore_into_an_empty_database_reproduces_the_arena(
    arena: CommandRunner, season: str, copy: Path, empty: str
) -> None:
    output = arena.call(empty, "restore", str(copy))
    assert output.code == 0, output.stderr
    assert output.summary["cohorts"] == 1
    assert output.summary["migrations"] == "ok"
    verification = arena.call(empty, "verify_ledger")
    assert (verification.code, verification.summary["violations"], verification.summary["agents"]) == (0, 0, 7)
    assert arena.ledger(empty) == arena.ledger(season)


def test_restored_arena_continues(arena: CommandRunner, copy: Path, empty: str) -> None:
    arena.call(empty, "restore", str(copy))
    assert arena.call(empty, "start_cohort").summary == {"cohort": 2, "created": True, "agents": 7}


def test_restored_arena_waits_until_a_host_takes_it_over(arena: CommandRunner, copy: Path, empty: str) -> None:
    arena.call(empty, "restore", str(copy))
    assert "restored from a backup and waits; " in arena.read(empty, host_refusal)


def test_restored_arena_protects_its_methodology(arena: CommandRunner, copy: Path, empty: str) -> None:
    arena.call(empty, "restore", str(copy))
    assert "can not be changed" in arena.read(empty, _bend_the_rules)


def test_restore_over_a_cohort_requires_force(arena: CommandRunner, season: str, copy: Path, occupied: str) -> None:
    arena.call(occupied, "start_cohort")
    refused = arena.call(occupied, "restore", str(copy))
    assert (refused.code, refused.stderr) == (2, "the database holds 2 cohorts: --force replaces them")
    assert arena.read(occupied, _cohorts) == 2
    forced = arena.call(occupied, "restore", str(copy), force=True)
    assert (forced.code, forced.summary["cohorts"]) == (0, 1)
    assert arena.ledger(occupied) == arena.ledger(season)


def test_invalid_file_changes_nothing(arena: CommandRunner, occupied: str, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear arena")
    (tmp_path / "half").write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])
    with sqlite3.connect(tmp_path / "foreign.sqlite3") as foreign:
        foreign.execute("CREATE TABLE thing (id)")
    before = arena.ledger(occupied)
    for name in ("letter.txt", "half", "foreign.sqlite3"):
        output = arena.call(occupied, "restore", str(tmp_path / name), force=True)
        assert (output.code, output.summary["cohorts"]) == (1, None), name
        assert output.stderr
    absent = arena.call(occupied, "restore", str(tmp_path / "absent"), force=True)
    assert absent.code == 2
    assert "there is no such file" in absent.stderr
    assert arena.ledger(occupied) == before


def test_backup_file_is_complete_or_absent(arena: CommandRunner, season: str, empty: str, tmp_path: Path) -> None:
    out = tmp_path / "arena.copy"
    out.write_text("yesterday's")
    failed = arena.call(empty, "backup", out=out)
    assert failed.code == 1
    assert "it has no table" in failed.stderr
    assert out.read_text() == "yesterday's"
    assert arena.call(season, "backup", out=out).code == 0  # safe to repeat: the newer one takes its place
    assert out.stat().st_size > 1000
    assert arena.call(season, "backup", out=tmp_path / "nowhere" / "arena.copy").code == 2
    assert list(tmp_path.iterdir()) == [out], "nothing half done is left lying about"


def test_backup_is_read_by_its_owner_alone(arena: CommandRunner, season: str, tmp_path: Path) -> None:
    out = tmp_path / "arena.copy"
    out.write_text("yesterday's")
    out.chmod(0o644)
    assert arena.call(season, "backup", out=out).code == 0
    assert mode(out) == 0o600


def test_unfinished_backup_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_file(tmp_path / "arena.copy") as unfinished:
            assert mode(unfinished) == 0o600
            with closing(sqlite3.connect(unfinished)) as copy:
                copy.execute("CREATE TABLE thing (id)")
                copy.execute("INSERT INTO thing VALUES (1)")
                assert {mode(file) for file in tmp_path.iterdir()} == {0o600}, "its journal too"
    finally:
        os.umask(before)


@pytest.mark.thorough
def test_restored_file_has_the_mode_of_the_one_before(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy.sqlite3"
    assert manage(file, "backup", "--out", str(out)).returncode == 0
    file.chmod(0o640)
    assert manage(file, "restore", str(out), "--force").returncode == 0
    assert mode(file) == 0o640


def test_backup_that_can_not_be_written_is_one_line(arena: CommandRunner, season: str) -> None:
    for out in ("/proc/arena.copy", "/dev/full/arena.copy", "/sys/arena.copy"):
        output = arena.call(season, "backup", out=Path(out))
        assert output.code in (1, 2), out
        assert len(output.stderr.strip().splitlines()) == 1, output.stderr
        assert "Traceback" not in output.stderr


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_folder_that_can_not_be_entered_or_named_is_one_line(
    arena: CommandRunner, season: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, stat = tmp_path / "closed", os.stat

    def refuse(path: object, *arguments: object, **options: object) -> os.stat_result:
        """The kernel's answer to an account that may not enter the folder; tests may run as root, who may."""
        if str(path).startswith(str(closed)):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", refuse)
    for folder, why in ((closed, "Permission denied"), (tmp_path / ("long" * 80), "File name too long")):
        for output in (
            arena.call(season, "backup", out=folder / "arena.copy"),
            arena.call(season, "restore", str(folder / "arena.copy")),
        ):
            assert output.code in (1, 2)
            (line,) = output.stderr.strip().splitlines()
            assert why in line


def program(folder: Path, name: str, version: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
    path.chmod(0o755)
    return path


def test_pg_dump_older_than_the_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(tmp_path, "pg_dump", "9.6.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupFailed, match=rf"pg_dump of PostgreSQL 98 is needed.*{old} is 9"):
        tool("pg_dump", server=98)
    assert tool("pg_dump", server=9) == str(old)


def test_missing_pg_dump_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackupFailed, match=r"there is none.*install PostgreSQL's client programs"):
        tool("pg_undump", server=15)


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM django_migrations").fetchone(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def file(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with a cohort, whichever server the suite runs on."""
    name = Path(shutil.copy(migrated_file, tmp_path_factory.mktemp("file")))
    assert manage(name, "start_cohort").returncode == 0
    return name


def manage(database: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    env = os.environ | {"DATABASE_URL": f"sqlite:///{database}", "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    line = [sys.executable, "manage.py", *command]
    return subprocess.run(line, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.thorough
def test_restore_refuses_a_database_in_use(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy.sqlite3"
    assert manage(file, "backup", "--out", str(out)).returncode == 0
    command = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        before = file.stat().st_ino
        output = manage(file, "restore", str(out), "--force")
        holder.communicate("")
    assert output.returncode == 1
    assert "is in use" in output.stderr
    assert file.stat().st_ino == before
    assert manage(file, "restore", str(out), "--force").returncode == 0
    assert file.stat().st_ino != before


@pytest.mark.thorough
def test_backup_refuses_to_overwrite_the_live_file(file: Path) -> None:
    for command in (["backup", "--out"], ["restore", "--force"]):
        output = manage(file, *command, str(file))
        assert (output.returncode, output.stderr.strip()) == (2, f"CommandError: {file} is the database itself")


def _bend_the_rules() -> str:
    from django.db import DatabaseError

    from cohorts.models import Methodology

    try:
        Methodology.objects.update(minimum_bet=1)
    except DatabaseError as error:
        return str(error)
    return "bent"


def _cohorts() -> int:
    from cohorts.models import Cohort

    return Cohort.objects.count()
