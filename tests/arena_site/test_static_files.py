"""Static files: compressed where the client accepts it, unchanged otherwise, and small."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

pytestmark = pytest.mark.django_db
CHARTS = "/static/arena/charts.js"
MOST = 40_000
"""Bytes that the script of charts may have on its way."""


@pytest.fixture(autouse=True)
def _as_in_production(settings: Any) -> None:
    settings.WHITENOISE_AUTOREFRESH = False


def of(client: Client, address: str, **headers: str) -> tuple[dict[str, str], bytes]:
    answer = client.get(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    assert answer.status_code == 200
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return dict(answer.items()), body


@pytest.mark.parametrize("address", [CHARTS, "/static/arena/arena.css"])
def test_compressed_script_equals_the_original(client: Client, address: str) -> None:
    path = finders.find(address.removeprefix("/static/"))
    assert isinstance(path, str)
    content = Path(path).read_bytes()
    small, large = of(client, address, accept_encoding="gzip, br"), of(client, address)
    assert small[0]["Content-Encoding"] == "gzip"
    assert int(small[0]["Content-Length"]) == len(small[1]) < len(content) / 2
    assert gzip.decompress(small[1]) == large[1] == content
    assert "Content-Encoding" not in large[0]
    assert small[0]["Vary"] == large[0]["Vary"] == "Accept-Encoding"
    assert small[0]["Content-Type"] == large[0]["Content-Type"]


def test_a_script_that_is_known_is_not_sent_again(client: Client) -> None:
    headers, _ = of(client, CHARTS, accept_encoding="gzip")
    repeated = client.get(CHARTS, headers={"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})
    assert repeated.status_code == 304


def test_a_part_of_a_file_is_a_part_of_the_file(client: Client) -> None:
    answer = client.get(CHARTS, headers={"Accept-Encoding": "gzip", "Range": "bytes=0-4999"})
    assert answer.status_code == 206
    assert "Content-Encoding" not in answer
    assert answer["Content-Length"] == "5000"


def test_script_of_charts_is_small(client: Client) -> None:
    assert len(of(client, CHARTS, accept_encoding="gzip")[1]) <= MOST
