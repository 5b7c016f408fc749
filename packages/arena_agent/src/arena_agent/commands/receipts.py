"""`receipts` lists the receipts of accepted answers; `verify` checks them."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from arena_agent.commands import FAILED, NO_ACCESS, OK, REFUSED, CommandFailed, show


def list_receipts(options: argparse.Namespace) -> int:
    from arena_agent.access import journal_paths
    from arena_agent.arena_api import InvalidAddress
    from arena_agent.journal import DamagedJournal, read_replies

    replies: list[dict[str, Any]] = []
    try:
        for path in [options.journal] if options.journal else journal_paths(options.url):
            replies += read_replies(path)
    except (OSError, DamagedJournal, InvalidAddress) as error:
        raise CommandFailed(str(error), REFUSED) from None
    accepted = [reply for reply in replies if reply["status"] == 201]
    receipts = [reply["reply"]["receipt"] for reply in accepted if "receipt" in reply["reply"]]
    lines = [f"{reply['task']}: {receipt_text(reply['reply'])}" for reply in accepted]
    hint = "to keep them: arena-agent receipts --json > receipts.json; to check them: arena-agent verify receipts.json"
    show(options, {"receipts": receipts}, "\n".join([*lines, hint] if lines else ["no answer was accepted yet"]))
    return OK


def receipt_text(reply: dict[str, Any]) -> str:
    receipt = reply.get("receipt")
    if not receipt:
        return "the arena gave no receipt"
    body = receipt["body"]
    return f"receipt {body.get('sequence')}, received {body.get('received_at')}, sha256 {receipt['sha256']}"


def verify_receipt(options: argparse.Namespace) -> int:
    from arena_agent.receipts import UnreadableReceipt, archive_faults, read_keys, read_receipts, receipt_faults

    try:
        receipts = read_receipts(_text(options.receipt))
        keys = read_keys(_text(str(options.key)) if options.key else _published_keys(options.url))
        faults = [receipt_faults(receipt, keys) for receipt in receipts]
        if options.archive:
            for index, fault in archive_faults(receipts, options.archive).items():
                faults[index].append(fault)
    except UnreadableReceipt as error:
        raise CommandFailed(str(error), REFUSED) from None
    results = []
    for index, receipt in enumerate(receipts):
        results.append({"sha256": receipt["sha256"], "ok": not faults[index], "faults": faults[index]})
    ok = not any(faults)
    lines = [f"{result['sha256']}: {'; '.join(result['faults']) or 'ok'}" for result in results]
    show(options, {"ok": ok, "receipts": results}, "\n".join(lines))
    return OK if ok else FAILED


def _text(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{name}: {getattr(error, 'strerror', None) or error}", REFUSED) from None


def _published_keys(url: str | None) -> str:
    """The arena's document of keys, asked for without a token."""
    from arena_agent.access import login_address
    from arena_agent.arena_api import AccessDenied, Arena, ArenaUnavailable, InvalidAddress, UnexpectedAnswer

    try:
        address = url or login_address()
        if not address:
            raise CommandFailed("no keys: give --key FILE, or --url for those that the arena publishes", REFUSED)
        with Arena(address) as arena:
            return json.dumps(arena.chain())
    except AccessDenied as error:
        raise CommandFailed(str(error), NO_ACCESS) from None
    except InvalidAddress as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (ArenaUnavailable, UnexpectedAnswer) as error:
        raise CommandFailed(str(error)) from None
