"""The kit as the arena serves it: an index of its own wheels, and the way to all others."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from arena_site.kit import PACKAGES, _default_index
from tests.commands import run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one build."""
    from django.conf import settings

    folder, before = tmp_path_factory.mktemp("kit") / "kit", settings.ARENA_KIT_DIR
    settings.ARENA_KIT_DIR = folder
    try:
        assert run("build_kit").code == 0
    finally:
        settings.ARENA_KIT_DIR = before
    return folder


@pytest.fixture
def kit(built: Path, settings: Any) -> Path:
    settings.ARENA_KIT_DIR = built
    return built


@pytest.mark.django_db
def test_index_has_the_wheels_with_their_hashes(kit: Path, client: Client) -> None:
    assert re.findall(r'href="([^"]+)"', client.get("/kit/simple/").content.decode()) == [f"{p}/" for p in PACKAGES]
    page = client.get("/kit/").content.decode()
    for package in PACKAGES:
        ((file, sha256),) = re.findall(
            r'href="\.\./\.\./wheels/([^#]+)#sha256=(\w+)"', client.get(f"/kit/simple/{package}/").content.decode()
        )
        content = b"".join(client.get(f"/kit/wheels/{file}"))
        assert (hashlib.sha256(content).hexdigest(), sha256 in page) == (sha256, True)
    assert client.get("/kit/wheels/index.json").status_code == 404
    assert client.get("/kit/wheels/..%2f..%2fmanage.py").status_code == 404


@pytest.mark.django_db
def test_other_packages_are_where_the_arena_has_its_own_from_and_the_kits_never_are(kit: Path, client: Client) -> None:
    index = json.loads((kit / "index.json").read_text()) | {"upstream": "https://mirror.example/simple"}
    (kit / "index.json").write_text(json.dumps(index))
    assert client.get("/kit/simple/Pydantic_Core/")["Location"] == "https://mirror.example/simple/pydantic-core/"
    for name in ("arena_agent", "Arena.Agent", "arena-agent"):
        assert client.get(f"/kit/simple/{name}/").status_code == 200
    for name in ("a%20b", "%3Cb%3E", "-", "a%0d%0ab"):
        assert client.get(f"/kit/simple/{name}/").status_code == 404


def test_index_of_the_build_names_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple/")
    assert _default_index() == "https://mirror.example/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:secret@mirror.example/simple")
    assert _default_index() == ""


@pytest.mark.django_db(transaction=True)
def test_kit_is_installed_from_the_arena(kit: Path, live_server: LiveServer, tmp_path: Path) -> None:
    command = ["uv", "pip", "install", "--quiet", "--no-config", "--no-deps", "--target", str(tmp_path / "site")]
    command += ["--python", sys.executable, "--default-index", f"{live_server.url}/kit/simple"]
    installed = subprocess.run([*command, *PACKAGES], capture_output=True, text=True, timeout=120)
    assert installed.returncode == 0, installed.stderr
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import arena_agent; print(arena_agent.__file__)"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout
    assert printed.strip() == str(tmp_path / "site" / "arena_agent" / "__init__.py")


@pytest.mark.django_db
def test_kit_that_was_not_built_is_said_to_be(settings: Any, tmp_path: Path, client: Client) -> None:
    settings.ARENA_KIT_DIR = tmp_path / "none"
    assert "No wheels yet" in client.get("/kit/").content.decode()
    assert client.get("/kit/simple/arena-agent/").status_code == 404
    assert client.get("/kit/simple/httpx/").status_code == 404


@pytest.mark.django_db
def test_every_address_of_llms_txt_is_there(kit: Path, client: Client) -> None:
    response = client.get("/llms.txt")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    addresses = re.findall(r"\]\((http://testserver/[^)]+)\)", response.content.decode())
    assert len(addresses) == 8
    for address in addresses:
        assert client.get(address.removeprefix("http://testserver")).status_code == 200, address
