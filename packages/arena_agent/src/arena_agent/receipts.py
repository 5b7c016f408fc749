"""Checks receipts without the arena: their hash, their signature, and an archive that must hold them."""

import csv
import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from arena_agent.canonical import canonical, read_json, sha256
from arena_verifier.signatures import is_signed

ARCHIVE_TABLE = Path("csv", "receipts.csv")
CALLS_TABLE = Path("csv", "calls.csv")
MAX_CELL = 2**31 - 1


class UnreadableReceipt(ValueError):
    """A file that holds no receipt or no key; the message says why."""


def read_receipts(text: str) -> list[dict[str, Any]]:
    """The receipts of a text: one, or the output of `arena-agent receipts --json`."""
    try:
        content = read_json(text)
    except ValueError as error:
        raise UnreadableReceipt(f"it is not JSON, as `arena-agent receipts --json` prints it: {error}") from None
    receipts = content["receipts"] if isinstance(content, dict) and "receipts" in content else [content]
    if not isinstance(receipts, list) or not receipts:
        raise UnreadableReceipt("it holds no receipt")
    for number, receipt in enumerate(receipts, start=1):
        for name, kind in (("body", dict), ("sha256", str), ("signature", str), ("key_id", str | int)):
            if not isinstance(receipt, dict) or not isinstance(receipt.get(name), kind):
                raise UnreadableReceipt(f"receipt {number}: {name} is missing or of a wrong type")
    return receipts


def read_keys(text: str) -> list[dict[str, Any]]:
    """The published keys of a text: the arena's document, its list of keys, or one key in hex."""
    text = text.strip()
    if len(text) == 64 and _bytes(text) is not None:
        return [{"id": None, "public_key": text}]
    try:
        content = read_json(text)
    except ValueError:
        raise UnreadableReceipt("the keys are neither JSON nor a key in hex") from None
    keys = content.get("keys") if isinstance(content, dict) else content
    if not isinstance(keys, list) or not all(isinstance(key, dict) and "public_key" in key for key in keys):
        raise UnreadableReceipt("the keys must be a list of objects with id and public_key")
    return keys


def receipt_faults(receipt: Mapping[str, Any], keys: list[dict[str, Any]]) -> list[str]:
    """The faults of a receipt; empty if it is the arena's."""
    body = receipt["body"]
    faults = []
    if sha256(body) != receipt["sha256"]:
        faults.append("its sha256 is not that of its body")
    key = next((key for key in keys if key.get("id") in (None, receipt["key_id"])), None)
    if key is None:
        return [*faults, f"the key {receipt['key_id']} is none of the published ones"]
    public_key, signature = _bytes(key["public_key"]), _bytes(receipt["signature"])
    if public_key is None or signature is None or not is_signed(public_key, canonical(body).encode(), signature):
        faults.append(f"its signature is not that of the key {receipt['key_id']}")
    if not _is_in_use(key, body.get("received_at")):
        faults.append(f"it was received at {body['received_at']}, when the key {receipt['key_id']} was not in use")
    return faults


def archive_faults(receipts: list[dict[str, Any]], archive: Path) -> dict[int, str]:
    """The faults of an archive by the index of the receipt that it should hold."""
    stored = {row.get("sha256"): row.get("call") for row in _table_rows(archive / ARCHIVE_TABLE)}
    calls = {stored.get(receipt["sha256"]) for receipt in receipts} - {None}
    answers = {}
    for row in _table_rows(archive / CALLS_TABLE) if calls else ():
        if row.get("id") in calls:
            # The writer puts an apostrophe before what a spreadsheet would run as a formula.
            answer = (row.get("raw_response") or "").removeprefix("'")
            answers[row["id"]] = hashlib.sha256(answer.encode()).hexdigest()
    faults, is_whole = {}, _is_whole(archive)
    for index, receipt in enumerate(receipts):
        if receipt["sha256"] not in stored:
            faults[index] = "the archive does not hold it"
            continue
        answer_sha256 = answers.get(stored[receipt["sha256"]] or "")
        if answer_sha256 is None and is_whole:
            faults[index] = "the archive lacks its answer"
        elif answer_sha256 not in (None, receipt["body"].get("answer_sha256")):
            faults[index] = "the archive holds another answer"
    return faults


def _is_whole(archive: Path) -> bool:
    """True unless the manifest says that the archive is a window or a cohort, which holds some of the answers."""
    path = archive / "manifest.json"
    try:
        manifest = read_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return True
    except (OSError, ValueError) as error:
        raise UnreadableReceipt(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    selection = manifest.get("selection") if isinstance(manifest, dict) else None
    return not isinstance(selection, dict) or not any(selection.get(name) for name in ("from", "to", "cohort"))


def _table_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table of an archive. Raises UnreadableReceipt."""
    csv.field_size_limit(MAX_CELL)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except (OSError, ValueError, csv.Error) as error:
        raise UnreadableReceipt(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _is_in_use(key: Mapping[str, Any], received_at: Any) -> bool:
    """True unless the dates of a key exclude an instant."""
    try:
        at = datetime.fromisoformat(received_at)
        begin, end = (datetime.fromisoformat(key[name]) if key.get(name) else None for name in ("from", "to"))
        return (begin is None or begin <= at) and (end is None or at <= end)
    except (TypeError, ValueError):
        return True


def _bytes(text: Any) -> bytes | None:
    """The bytes of a text in hex; None if it is none."""
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        return None
