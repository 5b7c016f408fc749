"""`arena-agent verify`: a receipt is checked without the arena."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pytest_httpserver import HTTPServer

from arena_agent.access import Access, store_access
from arena_agent.canonical import canonical, sha256
from arena_agent.cli import main

OLD, NEW = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
KEYS = {
    "keys": [
        {
            "id": "old",
            "public_key": OLD.public_key().public_bytes_raw().hex(),
            "from": None,
            "to": "2026-03-01T00:00:00Z",
        },
        {
            "id": "new",
            "public_key": NEW.public_key().public_bytes_raw().hex(),
            "from": "2026-03-01T00:00:00Z",
            "to": None,
        },
    ]
}


def receipt(key: Ed25519PrivateKey = NEW, key_id: str = "new", **body: Any) -> dict[str, Any]:
    body = {"agent": "visitor", "task": "batch-5", "sequence": 7, "received_at": "2026-03-08T02:05:00.000001Z"} | body
    signature = key.sign(canonical(body).encode()).hex()
    return {"body": body, "sha256": sha256(body), "signature": signature, "key_id": key_id}


def verified(tmp_path: Path, capfd: pytest.CaptureFixture[str], content: Any, *options: str) -> tuple[int, Any, str]:
    for name, value in (("receipt.json", content), ("keys.json", KEYS)):
        (tmp_path / name).write_text(value if isinstance(value, str) else json.dumps(value))
    code = main(["verify", str(tmp_path / "receipt.json"), "--key", str(tmp_path / "keys.json"), "--json", *options])
    output = capfd.readouterr()
    return code, json.loads(output.out) if output.out else None, output.err


def test_receipt_of_the_arena_is_verified(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, result, _ = verified(tmp_path, capfd, receipt())
    assert (code, result["ok"]) == (0, True)
    old = receipt(OLD, "old", received_at="2026-02-01T00:00:00Z", question="“ü”")
    assert verified(tmp_path, capfd, {"receipts": [receipt(), old]})[0] == 0


FORGED = {
    "another body": (receipt() | {"body": {"sequence": 8}}, "its sha256 is not that of its body"),
    "another signature": (receipt() | {"signature": "00" * 64}, "its signature is not that of the key new"),
    "no hex": (receipt() | {"signature": "zz"}, "its signature is not that of the key new"),
    "another's key": (receipt(OLD), "its signature is not that of the key new"),
    "an unknown key": (receipt(key_id="newest"), "the key newest is none of the published ones"),
    "an old key used again": (receipt(OLD, "old"), "when the key old was not in use"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_receipt_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    forged, fault = FORGED[name]
    code, result, _ = verified(tmp_path, capfd, {"receipts": [receipt(), forged]})
    assert (code, result["ok"]) == (1, False)
    assert result["receipts"][0]["ok"]
    assert fault in "; ".join(result["receipts"][1]["faults"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html>", "it is not JSON"),
        ({"receipts": []}, "it holds no receipt"),
        ({"body": {}}, "receipt 1: sha256 is missing"),
        ([], "receipt 1: body is missing"),
        (receipt() | {"body": []}, "receipt 1: body is missing or of a wrong type"),
        (receipt() | {"body": {"sequence": float("nan")}}, "NaN is not a JSON number"),
        (json.dumps(receipt()).replace("7,", "1e999,"), "1e999 is too large a number"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_file_without_a_receipt_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: Any, message: str
) -> None:
    code, _, error = verified(tmp_path, capfd, content)
    assert (code, message in error) == (2, True)


def test_receipt_that_an_archive_lacks_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "archive" / "csv" / "receipts.csv"
    table.parent.mkdir(parents=True)
    table.write_text(f"sequence,sha256\n7,{receipt()['sha256']}\n")
    options = ("--archive", str(tmp_path / "archive"))
    (table.parent / "calls.csv").write_text("id,raw_response\n")
    code, result, _ = verified(tmp_path, capfd, receipt(sequence=8), *options)
    assert (code, result["receipts"][0]["faults"]) == (1, ["the archive does not hold it"])
    code, _, error = verified(tmp_path, capfd, receipt(), "--archive", str(tmp_path))
    assert (code, "receipts.csv: No such file" in error) == (2, True)


@pytest.mark.parametrize(
    ("selection", "answers", "fault"),
    [
        ({"from": None, "to": None, "cohort": None}, "id,raw_response\n", "the archive lacks its answer"),
        ({"from": None, "to": None, "cohort": None}, "id,raw_response\n9,{}\n", "the archive holds another answer"),
        ({"from": "2026-03-01", "to": None, "cohort": None}, "id,raw_response\n", None),
    ],
)
def test_answer_that_an_archive_lacks_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], selection: dict[str, Any], answers: str, fault: str | None
) -> None:
    folder = tmp_path / "archive" / "csv"
    folder.mkdir(parents=True)
    (folder / "receipts.csv").write_text(f"sequence,sha256,call\n7,{receipt()['sha256']},9\n")
    (folder / "calls.csv").write_text(answers)
    (folder.parent / "manifest.json").write_text(json.dumps({"selection": selection}))
    code, result, _ = verified(tmp_path, capfd, receipt(), "--archive", str(folder.parent))
    assert (code, result["receipts"][0]["faults"]) == (int(fault is not None), [fault] if fault else [])


def test_keys_are_asked_of_the_arena_without_a_token(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_AGENT_TOKEN", "arena_secret")
    monkeypatch.setenv("ARENA_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "receipt.json").write_text(json.dumps(receipt()))
    assert main(["verify", str(tmp_path / "receipt.json")]) == 2
    assert "give --key FILE, or --url" in capfd.readouterr().err
    with HTTPServer() as server:
        server.expect_request("/.well-known/arena-chain.json").respond_with_json(KEYS | {"heads": []})
        assert main(["verify", str(tmp_path / "receipt.json"), "--url", server.url_for("").rstrip("/")]) == 0
        store_access(Access(server.url_for("").rstrip("/"), "arena_secret"))
        assert main(["verify", str(tmp_path / "receipt.json")]) == 0
        assert [request.headers.get("Authorization") for request, _ in server.log] == [None, None]
