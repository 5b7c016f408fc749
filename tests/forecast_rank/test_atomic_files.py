"""Files that are replaced whole, or not at all."""

import os
from pathlib import Path

import pytest

from forecast_rank.atomic_files import atomic_write


def test_the_old_file_stands_until_the_new_one_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")
    with atomic_write(file) as draft:
        draft.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_write(file):
        (tmp_path / "input.csv").read_text()
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_symbolic_link_is_kept_and_its_file_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "report.json", tmp_path / "latest.json"
    file.write_text("old")
    link.symlink_to(file)
    with atomic_write(link) as draft:
        draft.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"


def test_a_device_is_written_to_as_it_is() -> None:
    with atomic_write(Path("/dev/null")) as draft:
        assert draft == Path("/dev/null")
