"""Opens a dataset: that of a folder, or of an address, whose files it downloads without a token or a redirect."""

import re
import shutil
import tempfile
import time
from pathlib import Path

import httpx

from arena_agent.access import home, login_address
from arena_agent.arena_api import InvalidAddress, arena_address
from arena_agent.canonical import read_json
from arena_agent.dataset import (
    FILES,
    MANIFEST,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    Dataset,
    InvalidDataset,
    check_manifest,
    check_own_hash,
)

PATIENCE_S, SLOWEST_BYTES_PER_S = 60, 50_000
"""A file may take this long, and as much longer as its bytes take at this speed."""

NAME = r"[a-z0-9][a-z0-9-]*"
"""The form of a dataset's name."""


class DownloadFailed(Exception):
    """An address does not give a file of a dataset; the message says why."""


def open_dataset(place: str, arena: str | None = None) -> Dataset:
    """The dataset of a folder, of an address, or of a name at an arena. Raises InvalidDataset.

    One of an address is downloaded once.
    """
    if not re.match(r"https?://", place) and not Path(place).exists() and re.fullmatch(NAME, place):
        address = arena or login_address()
        if not address:
            raise InvalidDataset(f"{place}: there is no such folder; a dataset by its name needs --url")
        place = f"{address.rstrip('/')}/datasets/{place}"
    folder = download_dataset(place) if re.match(r"https?://", place) else Path(place)
    return Dataset(folder, check_manifest(folder))


def download_dataset(address: str) -> Path:
    """The folder of the dataset at an address, downloaded unless it is there already."""
    try:
        address = arena_address(address)
    except InvalidAddress as error:
        raise InvalidDataset(str(error)) from None
    with (
        httpx.Client(base_url=address, timeout=60, follow_redirects=False) as http,
        tempfile.TemporaryDirectory(prefix="arena-dataset-") as draft_name,
    ):
        draft = Path(draft_name)
        _download(http, MANIFEST, draft, MAX_MANIFEST_BYTES)
        try:
            manifest = read_json((draft / MANIFEST).read_bytes())
        except ValueError as error:
            raise InvalidDataset(f"{address}: {MANIFEST} is not JSON: {error}") from None
        check_own_hash(manifest)
        folder = home() / "datasets" / str(manifest["sha256"])
        if folder.is_dir():
            return folder
        for name in FILES:
            size = manifest["files"][name].get("bytes")
            _download(http, name, draft, size if isinstance(size, int) else MAX_FILE_BYTES)
        check_manifest(draft)
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copytree(draft, folder, dirs_exist_ok=True)
        return folder


def _download(http: httpx.Client, name: str, folder: Path, most: int) -> None:
    most, received = min(most, MAX_FILE_BYTES), 0
    deadline = time.monotonic() + PATIENCE_S + most / SLOWEST_BYTES_PER_S
    try:
        with http.stream("GET", name) as response, (folder / name).open("wb") as file:
            if response.status_code != 200:
                target = f" (to {response.headers['Location'][:200]})" if "Location" in response.headers else ""
                raise DownloadFailed(f"{response.url}: {response.status_code}{target}")
            for chunk in response.iter_bytes(65536):
                received += len(chunk)
                if received > most:
                    raise DownloadFailed(f"{response.url}: it is longer than {most:,} bytes")
                if time.monotonic() > deadline:
                    raise DownloadFailed(f"{response.url}: {received:,} of {most:,} bytes came in time; too slow")
                file.write(chunk)
    except httpx.HTTPError as error:
        raise DownloadFailed(f"{str(http.base_url).rstrip('/')}/{name}: {error or type(error).__name__}") from error
