"""Rules of the house that no linter knows."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP_LEVEL = {
    *("manage.py", "pyproject.toml", "README.md", "ARCHITECTURE.md", "LICENSE"),
    *("arena_site", "cohorts", "markets", "agents", "scoring", "templates", "tests", "fixtures"),
}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def test_no_tracked_file_names_a_package_host() -> None:
    hosts = re.compile("|".join(("py" + r"pi\.", r"pythonhosted\.", r"registry\.npmjs")))
    named = [str(path) for path in tracked() if hosts.search(path.read_text(errors="ignore"))]
    assert named == []


def test_no_lock_file_is_tracked() -> None:
    assert not {path.name for path in tracked()} & {"uv.lock", "poetry.lock", "package-lock.json"}


def test_top_level_is_as_planned() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_every_direct_dependency_is_pinned_exactly() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.findall(r'^    "([a-z][^"]*)",', text, flags=re.M)
    assert len(listed) > 60
    assert [entry for entry in listed if "==" not in entry] == []
