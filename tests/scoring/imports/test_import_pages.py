"""Imported collections on pages, in the API and in the admin."""

import re
from pathlib import Path

import pytest
from django.test import Client

from scoring.models import ImportCollection
from tests.markup import element, get_page, table_rows, visible_text
from tests.scoring.imports.commands import imported, leaderboard, written
from tests.scoring.reads import statements

pytestmark = pytest.mark.django_db

HEADER = "forecaster,question,option,probability,outcome,category\n"


@pytest.fixture
def slug(tmp_path: Path) -> str:
    file = tmp_path / "mine.csv"
    file.write_text(
        HEADER
        + "<i>ann</i>,q1,YES,0.75,1,rain\nbob,q1,YES,0.5,1,rain\nbob,q2,YES,0.5,0,wind\n"
        + "bob,q3,YES,1.5,0,wind\nbob,q4,YES,0.5,,wind\n"
    )
    return str(imported("long", file, collection="<b>Mine</b>")["collection"])


def test_page_shows_leaderboard_references_provenance_and_refusals(client: Client, slug: str) -> None:
    page = client.get(f"/imports/{slug}/").content.decode()
    for text in ("&lt;b&gt;Mine&lt;/b&gt;", "&lt;i&gt;ann&lt;/i&gt;", "bob", "<em>market</em>", "<em>uniform</em>"):
        assert text in page
    for text in ("<em>ensemble</em>", "mine.csv", "SHA-256", "probability 1.5 is outside [0, 1]", "rain", "wind"):
        assert text in page
    assert "<i>ann" not in page
    assert page.index("&lt;i&gt;ann") < page.index(">bob<"), "the best stands first"
    assert f"/api/v1/imports/{slug}/" in page


def test_cited_address_keeps_the_ranks_that_later_imports_change(client: Client, slug: str, tmp_path: Path) -> None:
    def ranks(address: str) -> list[list[str]]:
        return [row[:2] for row in table_rows(element(get_page(client, address), "table.board"))[1:]]

    before = ranks(f"/imports/{slug}/")
    cite = visible_text(get_page(client, f"/imports/{slug}/"), ".cite")
    (cited,) = re.findall(r"url = {http://testserver(/[^}]*as_of=2026-03-08[^}]*)}", cite)
    assert "title = {Forecaster Arena: forecasts of <b>Mine</b>}" in cite
    later = tmp_path / "later.csv"
    later.write_text(HEADER + "cat,q1,YES,0.99,1,rain\n")
    imported("long", later, collection="<b>Mine</b>", at="2026-03-09T12:00:00Z")
    assert ranks(f"/imports/{slug}/")[0] == ["1 1–3", "cat"]
    assert ranks(cited) == before
    page = get_page(client, cited)
    assert "Leaderboard as of 8 Mar 2026" in visible_text(page)
    assert "later.csv" not in visible_text(page)
    get_page(client, f"/imports/{slug}/?as_of=2026-03-07", status=404)


def test_list_links_each_collection(client: Client, slug: str) -> None:
    page = client.get("/imports/").content.decode()
    assert f'href="/imports/{slug}/"' in page
    assert client.get("/imports/nothing/").status_code == 404


def test_collection_without_a_resolved_question_has_no_ranking_yet(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "open.csv"
    file.write_text(HEADER + "ann,q1,YES,0.75,,\n")
    page = client.get(f"/imports/{imported('long', file)['collection']}/").content.decode()
    assert "No question of this collection has resolved" in page


def test_page_says_how_a_format_was_read(client: Client, tmp_path: Path) -> None:
    record = {"question_id": "KXA", "raw_output": "<answer>yes</answer><confidence>65</confidence>"}
    slug = imported("kalshibench", written(tmp_path / "tier1__x.jsonl", record))["collection"]
    assert "only where it agrees with the answer" in client.get(f"/imports/{slug}/").content.decode()


def test_list_without_collections_has_a_note(client: Client) -> None:
    assert "No imports yet" in client.get("/imports/").content.decode()


def test_api_lists_collections_and_gives_one_with_its_leaderboard(client: Client, slug: str) -> None:
    (row,) = client.get("/api/v1/imports/").json()["results"]
    assert row["slug"] == slug
    assert (row["forecasters"], row["questions"], row["open_questions"], row["probabilities"]) == (2, 3, 1, 4)
    assert "leaderboard" not in row
    detail = client.get(f"/api/v1/imports/{slug}/").json()
    assert detail["leaderboard"] == leaderboard()
    (record,) = detail["imports"]
    assert (record["rows"], record["rejected"], record["forecasts"]) == (5, 1, 4)
    assert [file["name"] for file in record["files"]] == ["mine.csv"]
    assert record["rejections"] == [{"row": 5, "reason": "probability 1.5 is outside [0, 1]"}]


def test_number_of_queries_does_not_grow_with_imports(client: Client, slug: str, tmp_path: Path) -> None:
    pages = ("/imports/", f"/imports/{slug}/", "/api/v1/imports/", f"/api/v1/imports/{slug}/")
    client.get(pages[1])  # reads the index of the competition, which the process keeps

    before = [statements(client.get, page) for page in pages]
    for k in range(3):
        more = tmp_path / f"more{k}.csv"
        more.write_text(HEADER + f"f{k},q1,YES,0.5,1,rain\nf{k},q2,YES,2,0,wind\n")
        imported("long", more, collection="<b>Mine</b>")
        imported("long", more)
    assert ImportCollection.objects.count() == 4
    assert [statements(client.get, page) for page in pages] == before
    assert [client.get(page).status_code for page in pages] == [200] * 4
    assert max(before) <= 5


def test_admin_lists_imported_rows(admin_client: Client, slug: str) -> None:
    for model in ("importcollection", "forecastimport", "rejectedrow", "importedforecast", "importleaderboard"):
        assert admin_client.get(f"/admin/scoring/{model}/").status_code == 200
