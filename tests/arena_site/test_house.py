"""Rules of the house that no linter knows."""

import ast
import doctest
import re
import subprocess
from collections import defaultdict
from importlib import import_module
from pathlib import Path

from scoring.exports.archive import STANDALONE_VERIFIER

ROOT = Path(__file__).resolve().parents[2]
TOP_LEVEL = {
    *("manage.py", "pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *(
        "Dockerfile",
        "compose.yaml",
        "docs",
        "forecast_rank",
        "foundation",
        "packages",
        "arena_site",
        "cohorts",
        "markets",
        "agents",
    ),
    *("scoring", "templates", "tests", "fixtures"),
}

APPS = ("agents", "arena_site", "cohorts", "foundation", "markets", "scoring")


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
    text = (ROOT / "pyproject.toml").read_text().partition("[tool.pytest")[0]
    listed = re.findall(r'^    "([a-z][^"]*)",', text, flags=re.M)
    assert len(listed) > 60
    assert [entry for entry in listed if "==" not in entry] == [
        "arena-agent",
        "arena-verifier",
        "forecast-rank[plots]",
        "venue-sandbox",
    ]  # of this workspace


def test_every_link_of_the_documentation_leads_to_a_file() -> None:
    pages = [path for path in tracked() if path.suffix == ".md"]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)\s#]+)", page.read_text())
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists()
    ]
    assert len(pages) > 10
    assert broken == []


def test_examples_in_docstrings_are_true() -> None:
    """The apps' examples; the library's have a test of their own."""
    apps = [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in APPS]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in apps if ">>> " in path.read_text()]
    results = {name: doctest.testmod(import_module(name)) for name in names}
    assert len(results) >= 3
    assert {name: result.failed for name, result in results.items() if result.failed or not result.attempted} == {}


def test_every_path_and_name_in_the_documentation_exists() -> None:
    """`scoring/valuations.py`, `settle_market`: what stands in backticks is a tracked path or a word of the code."""
    files = {str(path.relative_to(ROOT)) for path in tracked()} | {f"archive/{STANDALONE_VERIFIER}"}
    places = files | {str(parent) for name in files for parent in Path(name).parents}
    code = (path for path in tracked() if path.suffix in {".py", ".html", ".toml", ".yml", ".yaml", ".example"})
    words = {word for path in code for word in re.findall(r"\w+", path.read_text())}
    unknown = []
    for page in ROOT.glob("docs/**/*.md"):
        for quoted in re.findall(r"`(\w[\w./]*)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
            if quoted.endswith(".py"):
                exists = quoted in files or any(name.endswith(f"/{quoted}") for name in files)
            else:
                exists = quoted.strip("/") in places or words.issuperset(re.findall(r"\w+", quoted))
            if not exists:
                unknown.append(f"{page.relative_to(ROOT)}: {quoted}")
    assert unknown == []


def test_no_public_class_name_stands_for_two_things() -> None:
    """The sandbox and the agents' kit have classes of their own for what they mirror."""
    modules = defaultdict(set)
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        if (
            path.suffix != ".py"
            or parts[0] == "tests"
            or {"migrations", "venue_sandbox", "commands", "arena_agent"} & set(parts)
        ):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].add(path)
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
