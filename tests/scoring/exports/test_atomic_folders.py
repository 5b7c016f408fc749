"""Folders that are replaced whole: after a failure, a killed process, or while another process fills a draft."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forecast_rank.atomic_folders import atomic_folder
from forecast_rank.files.checksums import zip_archive
from tests.commands import run
from tests.factories import WEEK

KILLED_IN_THE_SWAP = """
import os, sys
from pathlib import Path
from forecast_rank.atomic_folders import atomic_folder
with atomic_folder(Path(sys.argv[1])) as draft:
    (draft / "a.txt").write_text("new")
    replace = Path.replace
    Path.replace = lambda path, target: os._exit(9) if path == draft else replace(path, target)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("old")
    return tmp_path / "data"


def fail_renames(monkeypatch: pytest.MonkeyPatch, fails: Callable[[Path, Path], bool]) -> None:
    """Makes renames of some paths to some targets fail."""
    replace = Path.replace

    def fails_for_some(path: Path, target: Path) -> Path:
        if fails(path, target):
            raise OSError("no space left")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fails_for_some)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_only_folder(folder: Path, contents: str) -> None:
    """Nothing is beside the folder, whose file holds these contents."""
    assert (folder / "a.txt").read_text() == contents
    assert names(folder.parent) == ["data"]


def test_the_draft_takes_the_place_of_the_old_folder(folder: Path) -> None:
    with atomic_folder(folder) as draft:
        (draft / "b.txt").write_text("new")
        assert names(folder) == ["a.txt"]
    assert names(folder) == ["b.txt"]
    assert names(folder.parent) == ["data"]


def test_a_failed_draft_leaves_the_old_folder_untouched(folder: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_folder(folder) as draft:
        (draft / "missing.txt").read_text()
    assert_only_folder(folder, "old")


def test_a_swap_that_fails_puts_the_old_folder_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_renames(monkeypatch, lambda path, target: path.name.endswith(".draft"))
    with pytest.raises(OSError, match="no space left"), atomic_folder(folder):
        pass
    assert_only_folder(folder, "old")


def test_the_old_folder_is_found_again_after_a_kill_between_the_two_renames(folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.getcwd()}
    ran = subprocess.run([sys.executable, "-c", KILLED_IN_THE_SWAP, str(folder)], env=env, check=False)
    assert ran.returncode == 9
    assert names(folder.parent)[-1] == ".data.old"
    with pytest.raises(FileNotFoundError), atomic_folder(folder) as draft:
        (draft / "missing.txt").read_text()
    assert_only_folder(folder, "old")


def test_drafts_of_killed_processes_are_removed_and_those_of_living_ones_are_not(folder: Path) -> None:
    (folder.parent / ".data.deadbeef.draft").mkdir()
    with atomic_folder(folder) as first:
        (first / "a.txt").write_text("first")
        with atomic_folder(folder) as second:
            (second / "a.txt").write_text("second")
            assert names(folder.parent) == sorted([first.name, second.name, "data"])
        assert (folder / "a.txt").read_text() == "second"
    assert_only_folder(folder, "first")


@pytest.mark.django_db
def test_an_archive_survives_a_replacement_that_can_not_be_moved_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export_dataset", WEEK, out=tmp_path / "a").code == 0
    before = names(tmp_path / "a")
    fail_renames(monkeypatch, lambda path, target: target == tmp_path / "a" and not path.name.endswith(".old"))
    with pytest.raises(OSError, match="no space left"):
        run("export_dataset", WEEK, out=tmp_path / "a")
    assert names(tmp_path / "a") == before
    assert names(tmp_path) == ["a"]


def test_a_zip_never_stands_beside_the_checksum_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "data.csv").write_text("1")
    zip_archive(tmp_path / "a")
    before = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a" / "data.csv").write_text("2")
    fail_renames(monkeypatch, lambda path, target: target.suffix == ".sha256")
    with pytest.raises(OSError, match="no space left"):
        zip_archive(tmp_path / "a")
    assert (tmp_path / "a.zip").read_bytes() != before
    assert names(tmp_path) == ["a", "a.zip"]
