"""Signed chain heads: those of now under `/.well-known/`, one unchanging file a day, and their feed."""

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.conf import LazySettings
from django.db import IntegrityError, transaction
from django.test import Client

from agents.models import DailyAnchor
from agents.signing import is_signed
from arena_site import conf
from tests.commands import run
from tests.factories import WEEK, play_week
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
ADDRESS = "/.well-known/arena-chain.json"
KEY = bytes(range(32))
PUBLIC_KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
"""Of KEY, by RFC 8032."""


def verify(document: dict[str, object]) -> None:
    """Verifies the signature as a reader of docs/data.md would. Raises InvalidSignature."""
    statement = {"at": document["at"], "chains": document["chains"]}
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"))
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(str(document["public_key"])))
    key.verify(bytes.fromhex(str(document["signature"])), text.encode())


week = shared_rows(play_week)


@pytest.fixture
def published(week: None, tmp_path: Path, settings: LazySettings) -> Path:
    """The archive of a day of a played week, signed with KEY."""
    settings.ARENA_EXPORT_DIR, settings.ARENA_SIGNING_KEY = tmp_path, KEY
    assert run("publish_archive", WEEK).code == 0
    return tmp_path


def test_heads_of_now_are_signed_and_a_changed_one_is_not(published: Path, client: Client) -> None:
    document = client.get(ADDRESS).json()
    verify(document)
    assert (document["public_key"], document["algorithm"]) == (PUBLIC_KEY, "Ed25519")
    heads = {row["protocol"]: row for row in client.get("/api/v1/chain/").json()["results"]}
    assert set(heads) == {"trading", "forecast", "archive", "board"}
    for protocol, row in heads.items():
        assert document["chains"][protocol] == {"length": row["length"], "head": row["head"]}
    document["chains"]["trading"]["head"] = "0" * 64
    with pytest.raises(InvalidSignature):
        verify(document)
    signed = {name: document[name] for name in ("at", "chains", "public_key", "signature")}
    assert not is_signed(signed)
    assert not is_signed({**signed, "signature": "no hex"})


def test_file_of_a_day_never_changes_and_its_hash_is_listed(published: Path, client: Client) -> None:
    *_, day = client.get(ADDRESS).json()["days"]
    assert (day["day"], day["url"]) == ("2026-03-08", "http://testserver/.well-known/arena-chain/2026-03-08.json")
    first = client.get(day["url"]).content
    assert hashlib.sha256(first).hexdigest() == day["sha256"]
    document = json.loads(first)
    verify(document)
    archived = next(published.glob("public-*/2026-03-08/anchor.json"))
    assert json.loads(archived.read_text()) == document
    assert run("publish_archive", WEEK + timedelta(hours=1)).code == 0
    assert client.get(day["url"]).content == first
    with pytest.raises(IntegrityError), transaction.atomic():
        DailyAnchor.objects.update(day="2026-03-09")
    for unknown in ("2026-03-10", "yesterday"):
        assert client.get(f"/.well-known/arena-chain/{unknown}.json").status_code == 404


def test_arena_without_a_record_signs_empty_chains(client: Client) -> None:
    document = client.get(ADDRESS).json()
    verify(document)
    assert document["chains"]["trading"] == {"length": 0, "head": "0" * 64}
    assert document["days"] == []


@pytest.mark.parametrize("text", ["secret", "ab" * 31, "zz" * 32])
def test_signing_key_of_another_form_stops_the_start(text: str) -> None:
    with pytest.raises(ValueError, match="must be 64 hexadecimal digits"):
        conf.signing_key(text)
