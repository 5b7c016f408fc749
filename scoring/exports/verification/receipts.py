"""The register of receipts of an archive: its chain, its signatures, and the answers that it is about."""

import hashlib
from collections.abc import Iterator

from agents.records import GENESIS, RECEIPT, record_sha256, sha256
from agents.signing import is_signature
from scoring.exports.verification.archive_reader import Archive, Row

TEXTS = ("version", "task", "answer_sha256", "prompt_sha256", "received_at", "sequence", "previous")


def check_receipts(archive: Archive) -> Iterator[str]:
    """Each receipt follows the one before it, is signed by a key in use, and its answer is in the archive."""
    keys = {row["key_id"]: row for row in archive.rows("signing_keys")}
    for name, signer in keys.items():
        if hashlib.sha256(bytes.fromhex(signer["public_key"])).hexdigest()[:16] != name:
            yield f"signing_keys: {name} is not the id of its key"
    receipts = list(archive.rows("receipts"))
    of_receipts = {row["call"] for row in receipts}
    answers: dict[int, Row] = {}
    for call in archive.rows("calls"):
        if call["id"] in of_receipts:
            answers[call["id"]] = _answer(archive, call)
    tasks = _tasks(archive)
    length, head = 0, GENESIS
    for row in receipts:
        receipt, body = f"receipts: receipt {row['sequence']}", _body(row)
        if (row["sequence"], row["previous"]) != (length + 1, head):
            yield f"{receipt} does not follow no. {length}, {head}"
        if record_sha256(body) != row["sha256"]:
            yield f"{receipt}: its sha256 is not that of its body"
        length, head = row["sequence"], row["sha256"]
        key = keys.get(row["key_id"])
        if key is None or not is_signature(row["signature"], body, key["public_key"]):
            yield f"{receipt}: its signature is not that of the key {row['key_id']}"
        elif not (key["began_at"] or "") <= row["received_at"] <= (key["ended_at"] or "~"):
            yield f"{receipt}: the key {row['key_id']} was not in use at {row['received_at']}"
        answer = answers.get(row["call"], {})
        if not answer and (archive.is_whole or (row["family"], row["task"]) in tasks):
            yield f"{receipt}: the answer of {row['family']} to {row['task']} is missing"
        for name, value in answer.items():
            if row[name] != value:
                yield f"{receipt}: the answer of {row['family']} to {row['task']} is another: {name} is {value}"
    stated = archive.manifest["chains"].get(RECEIPT, {})
    if (length, head) != (stated.get("length"), stated.get("head")):
        yield f"receipts: they end {length} {head}, the manifest says {stated}"


def _body(row: Row) -> Row:
    return {"agent": row["family"]} | {name: row[name] for name in TEXTS}


def _answer(archive: Archive, call: Row) -> Row:
    """The columns of a receipt that follow from its call."""
    hashes = {"answer_sha256": sha256(call["raw_response"]), "prompt_sha256": call["prompt_sha256"]}
    if call["decision"] is not None:
        decision = archive.decisions[call["decision"]]
        family = archive.agents[decision["agent"]]["family"]
        return hashes | {"family": family, "task": f"agent-{decision['agent']}-universe-{decision['universe']}"}
    elicitation = archive.elicitations[call["elicitation"]]
    return hashes | {"family": elicitation["family"], "task": f"batch-{elicitation['batch']}"}


def _tasks(archive: Archive) -> set[tuple[str, str]]:
    """The families and names of the tasks in the archive."""
    tasks = {(row["family"], f"batch-{row['batch']}") for row in archive.elicitations.values()}
    for row in archive.decisions.values():
        tasks.add((archive.agents[row["agent"]]["family"], f"agent-{row['agent']}-universe-{row['universe']}"))
    return tasks
