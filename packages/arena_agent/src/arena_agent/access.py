"""Where the kit keeps its files, and the token: of the environment, or a file that only its owner reads."""

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from arena_agent.arena_api import AccessDenied, arena_address

HOME_VARIABLE, TOKEN_VARIABLE = "ARENA_AGENT_HOME", "ARENA_AGENT_TOKEN"
NO_ADDRESS = "no arena is named: give --url ADDRESS or set ARENA_AGENT_URL"


@dataclass(frozen=True)
class Access:
    """The address of an arena and the token for it."""

    url: str
    token: str


def home() -> Path:
    """The folder of token and journals."""
    return Path(os.environ.get(HOME_VARIABLE) or Path.home() / ".arena-agent")


def find_access(url: str | None) -> Access:
    """The address and its token. Raises AccessDenied, or InvalidAddress for an address that is none."""
    address = arena_address(url) if url else None
    if token := os.environ.get(TOKEN_VARIABLE, "").strip():
        if address is None:
            raise AccessDenied(NO_ADDRESS)
        return Access(address, token)
    stored = _stored_access()
    if stored is None:
        raise AccessDenied(f"no token: log in (arena-agent login --url ADDRESS) or set {TOKEN_VARIABLE}")
    if address is not None and _origin(address) != _origin(stored.url):
        raise AccessDenied(f"the stored token is for {stored.url} and is not sent to {address}: log in there")
    return Access(address or stored.url, stored.token)


def login_address() -> str | None:
    """The address of the login; None without one. Raises AccessDenied."""
    stored = _stored_access()
    return stored.url if stored else None


def store_access(access: Access) -> Path:
    """Writes the token's file, readable by its owner alone."""
    folder = home()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path, draft = folder / "token", folder / f".token-{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": access.url, "token": access.token}, file)
    draft.replace(path)
    return path


def journal_path(url: str, agent: str) -> Path:
    """The journal of an agent at an arena."""
    digest = hash_text(f"{_origin(url)}|{agent}")[:8]
    return home() / "journals" / f"{_file_name(_origin(url))}--{_file_name(agent)}--{digest}.jsonl"


def journal_paths(url: str | None) -> list[Path]:
    """All journals, or those of one arena."""
    prefix = f"{_file_name(_origin(arena_address(url)))}--" if url else ""
    return sorted((home() / "journals").glob(f"{prefix}*.jsonl"))


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]


def hash_text(text: str) -> str:
    """The SHA-256 of a text, in hex."""
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


def _stored_access() -> Access | None:
    path = home() / "token"
    try:
        mode = path.stat().st_mode
        content = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AccessDenied(f"{path}: {error.strerror}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise AccessDenied(f"{path}: others may read the token: chmod 600 {path}")
    try:
        stored = json.loads(content)
        return Access(arena_address(stored["url"]), str(stored["token"]))
    except (ValueError, KeyError, TypeError):
        raise AccessDenied(f"{path}: it holds no token: log in again") from None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"
