"""`/data/`: public archives, kept by their rule, and tables that polars opens by their address."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from scoring.exports.public_archives import published_days
from tests.commands import run
from tests.factories import MarketFactory
from tests.lazy_modules import pl

pytestmark = pytest.mark.django_db
DAY = datetime(2026, 3, 1, 5, 40, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path


@pytest.mark.thorough
def test_last_seven_archives_and_the_first_of_each_month_are_kept() -> None:
    for day in (0, 1, 29, 30, 31, *range(40, 47)):
        ran = run("publish_archive", DAY + timedelta(days=day))
    assert published_days() == [
        "2026-04-16", "2026-04-15", "2026-04-14", "2026-04-13", "2026-04-12", "2026-04-11", "2026-04-10",
        "2026-04-01", "2026-03-01",
    ]  # fmt: skip
    assert (ran["published"], ran["removed"]) == (9, [])


def test_page_lists_archives_with_size_hash_terms_and_citation(client: Client) -> None:
    assert "No archive yet" in client.get("/data/").content.decode()
    summary = run("publish_archive", DAY)
    page = client.get("/data/").content.decode()
    for text in (
        summary["sha256"],
        'href="/data/2026-03-01.zip"',
        "CC BY 4.0",
        "archive of 2026-03-01",
        "trades.parquet",
    ):
        assert text in page
    zip_file = b"".join(client.get("/data/latest.zip").streaming_content)
    assert hashlib.sha256(zip_file).hexdigest() == summary["sha256"]
    assert 'href="/data/"' in client.get("/about/").content.decode()
    for missing in ("/data/2020-01-01.zip", "/data/2026-02-30/trades.parquet", "/data/latest/nothing.parquet"):
        assert client.get(missing).status_code == 404
    assert client.get("/data/latest//etc/passwd").status_code == 400


def test_polars_reads_a_table_and_parts_of_it_by_its_address(server: str) -> None:
    MarketFactory(question="Will it rain?")
    run("publish_archive", DAY)
    address = f"{server}/data/latest/markets.parquet"
    assert pl.read_parquet(address)["question"].to_list() == ["Will it rain?"]
    head = httpx.head(address)
    complete_body = httpx.get(f"{server}/data/2026-03-01/markets.parquet").content
    assert (head.headers["Accept-Ranges"], int(head.headers["Content-Length"])) == ("bytes", len(complete_body))

    def part(of: str, **headers: str) -> tuple[int, bytes]:
        response = httpx.get(address, headers={"Range": f"bytes={of}", **headers})
        return response.status_code, response.content

    assert part("0-3") == part("0-3", **{"If-Range": head.headers["ETag"]}) == (206, b"PAR1")
    assert part("0-0") == (206, b"P")
    assert part("-4") == (206, b"PAR1")
    assert part("0-3", **{"If-Range": '"another"'}) == (200, complete_body)
    for byte_range in ("99999999-", "-0"):
        beyond = httpx.get(address, headers={"Range": f"bytes={byte_range}"})
        assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(complete_body)}")
    assert httpx.get(address, headers={"If-None-Match": head.headers["ETag"]}).status_code == 304
