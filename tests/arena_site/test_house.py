"""Rules of the house that no linter knows."""

import ast
import doctest
import os
import re
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
import yaml

from scoring.exports.archive import STANDALONE_VERIFIER
from tests.databases import PROJECT

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
    paths = [str(path) for path in tracked() if hosts.search(path.read_text(errors="ignore"))]
    assert paths == []


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


def test_every_installed_distribution_is_pinned() -> None:
    """Indirect ones too, by `constraint-dependencies`."""
    pins = re.compile(r'^    "([A-Za-z0-9._-]+)(?:\[[^]]*\])?==', flags=re.M)
    pinned = pins.findall((ROOT / "pyproject.toml").read_text())
    workspace = {"arena-agent", "arena-verifier", "forecast-rank", "venue-sandbox"}
    names = {re.sub("[-_.]+", "-", distribution.name).lower() for distribution in distributions()}
    assert len(names) > 100
    assert names - {re.sub("[-_.]+", "-", name).lower() for name in pinned} - workspace == set()


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
    """What stands in backticks, such as `settle_market`, is a tracked path or a word of the code."""
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


# --- Imports at startup: every command, worker and test process pays for them

SCHEMA_GENERATOR = ("drf_spectacular.openapi", "drf_spectacular.plumbing", "arena_site.api_schema.views")
TEST_TOOLS = ("rest_framework.test", "django.test", "unittest")
PLOTTING = ("matplotlib",)
SCORING = ("forecast_rank", "numpy", "polars", "scipy")
SANDBOX = ("venue_sandbox",)
CLIENTS = ("httpx", "stamina")
VALIDATION = ("pydantic",)
GATEWAY = ("agents.gateway", "arena_site.dashboard.actions")
PAGES = ("jinja2", "arena_site.pages.environment")
TERMINAL = ("rich",)
HEAVY = SCHEMA_GENERATOR + TEST_TOOLS + PLOTTING + SCORING + SANDBOX + CLIENTS + TERMINAL + VALIDATION + GATEWAY + PAGES
SETUP = "import django; django.setup()"
CHECKS = f"{SETUP}; from django.core.checks import run_checks; run_checks()"


@pytest.mark.parametrize("code", [SETUP, CHECKS], ids=["setup", "checks"])
def test_startup_leaves_heavy_modules_unloaded(code: str) -> None:
    program = f"{code}; import sys; print(*sys.modules)"
    env = os.environ | {"DJANGO_SETTINGS_MODULE": "arena_site.settings", "DEBUG": "1"}
    process = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert set(HEAVY) & set(process.stdout.split()) == set()


def test_process_that_watches_over_worker_and_web_loads_no_django() -> None:
    program = "import arena_site.operations.supervisor, sys; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"django", "httpx", "psycopg"} & set(process.stdout.split()) == set()


# --- The files that deploy the arena: pinned, without a password, with every setting and matching client tools

POSTGRES_OF_DEBIAN = {"bookworm": 15, "trixie": 17}
"""The major version of the package `postgresql-client` in each release of Debian."""
EXACT = re.compile(r"\d+\.\d+(\.\d+)?(-[a-z-]+)?|sha256:[0-9a-f]{64}")


@pytest.fixture
def services() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
    return services


@pytest.fixture
def base_images() -> list[str]:
    return re.findall(r"^FROM (\S+)", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)


def test_every_image_and_action_is_pinned(services: dict[str, Any], base_images: list[str]) -> None:
    images = [service["image"] for service in services.values() if "build" not in service] + base_images
    workflow = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text())["jobs"]["ci"]
    images.append(workflow["container"])
    actions = [step["uses"] for step in workflow["steps"] if "uses" in step]
    names = [image.replace(":", "@", 1) for image in images] + [action.replace("@v", "@") for action in actions]
    assert len(names) == 6
    assert [name for name in names if not EXACT.fullmatch(name.partition("@")[2])] == []


def test_client_tools_of_the_image_are_of_the_servers_major_version(
    services: dict[str, Any], base_images: list[str]
) -> None:
    release = base_images[-1].rpartition("-")[2]
    assert "postgresql-client" in (PROJECT / "Dockerfile").read_text()
    server = re.match(r"postgres:(\d+)", services["db"]["image"])
    assert server is not None
    assert POSTGRES_OF_DEBIAN[release] == int(server[1])


def test_every_service_of_the_arena_gets_all_settings_and_no_password_of_the_file(services: dict[str, Any]) -> None:
    text = (PROJECT / "compose.yaml").read_text()
    assert re.findall(r"PASSWORD: (?!\$\{POSTGRES_PASSWORD:\?)", text) == []
    for name in ("web", "worker", "migrate"):
        assert services[name]["env_file"] == ".env"
        assert "/etc/machine-id:/etc/machine-id:ro" in services[name]["volumes"], "a copied disk would work on"
        assert "@db:" in services[name]["environment"]["DATABASE_URL"]
        assert "${POSTGRES_PASSWORD:?" in services[name]["environment"]["DATABASE_URL"]
    assert "POSTGRES_PASSWORD" in (PROJECT / ".env.example").read_text()
