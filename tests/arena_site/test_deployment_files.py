"""The files that deploy the arena: pinned, without a password, with every setting and matching client tools."""

import re
from typing import Any

import pytest
import yaml

from tests.databases import PROJECT

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
