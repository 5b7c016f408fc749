"""The kit's wheels and the index that `pip` reads, made at build by `build_kit` in a folder of this checkout."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

PACKAGES = ("arena-agent", "arena-verifier", "forecast-rank")
"""Served from here alone, whatever another index has under their names."""
INDEX = "index.json"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class KitNotBuilt(Exception):
    """The wheels can not be built; the message says why."""


@dataclass(frozen=True)
class Wheel:
    """A wheel by its package, file name, hash and size."""

    package: str
    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class KitIndex:
    """The wheels, the index that has all other packages, and a hash of the sources that the wheels were made of."""

    wheels: tuple[Wheel, ...] = ()
    upstream: str = ""
    sources: str = ""


def build_kit() -> KitIndex:
    """Builds the wheels in place of earlier ones, and notes the index from which uv takes other packages.

    Raises KitNotBuilt.
    """
    folder = settings.ARENA_KIT_DIR
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".kit-") as draft_name:
        draft = Path(draft_name)
        wheels = []
        for package in PACKAGES:
            _uv("build", "--quiet", "--wheel", "--package", package, "--out-dir", str(draft / package))
            (path,) = (draft / package).glob("*.whl")
            content = path.read_bytes()
            wheels.append(Wheel(package, path.name, hashlib.sha256(content).hexdigest(), len(content)))
        index = KitIndex(tuple(wheels), _default_index(), _hash_sources())
        folder.mkdir(exist_ok=True)
        for wheel in wheels:
            (draft / wheel.package / wheel.file).replace(folder / wheel.file)
        (draft / INDEX).write_text(json.dumps(asdict(index), indent=1) + "\n", encoding="utf-8")
        (draft / INDEX).replace(folder / INDEX)
    for old in set(folder.glob("*.whl")) - {folder / wheel.file for wheel in wheels}:
        old.unlink()
    return index


def read_kit() -> KitIndex:
    """The index of the last build; an empty one without a build."""
    try:
        content = json.loads((settings.ARENA_KIT_DIR / INDEX).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return KitIndex()
    wheels = tuple(Wheel(**wheel) for wheel in content["wheels"])
    return KitIndex(wheels, content["upstream"], content["sources"])


def renew_kit() -> str:
    """Builds the wheels anew if their sources changed; why they could not be, or nothing."""
    try:
        if not is_current(read_kit()):
            build_kit()
    except (KitNotBuilt, OSError) as error:
        return f"the kit's wheels are not those of this version: {error}"
    return ""


def is_current(index: KitIndex) -> bool:
    """True if the wheels were made of the sources as they are."""
    return bool(index.wheels) and index.sources == _hash_sources()


def _hash_sources() -> str:
    digest = hashlib.sha256()
    for package in PACKAGES:
        folder = settings.BASE_DIR / "packages" / package.replace("-", "_")
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _default_index() -> str:
    """The index that uv is configured with, for redirections; empty where its address holds a credential."""
    printed = _uv("pip", "compile", "--quiet", "--no-header", "--emit-index-url", "-")
    match = re.search(r"^--(?:default-index|index-url) (\S+)", printed, re.MULTILINE)
    parts = urlsplit(match[1] if match else "")
    if parts.scheme not in ("http", "https") or parts.username or parts.password or parts.query:
        return ""
    return parts.geturl().rstrip("/")


def _uv(*arguments: str) -> str:
    """The output of uv, by which the arena is installed. Raises KitNotBuilt."""
    uv = os.environ.get("UV") or shutil.which("uv")  # `uv run` names itself
    if uv is None:
        raise KitNotBuilt("the wheels are built by uv: pip install uv")
    ran = subprocess.run(  # noqa: S603 - the arena's own sources
        [uv, *arguments], cwd=settings.BASE_DIR, input="", capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise KitNotBuilt(f"uv {arguments[0]}: {' '.join(ran.stderr.split())[:500]}")
    return ran.stdout
