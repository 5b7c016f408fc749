"""The receipts of external agents: their chain, their signatures, and the answers that they are about."""

import hashlib
from typing import Any

from arena_verifier.chains import GENESIS
from arena_verifier.rows import Row, Tables, Violations, canonical, sha256
from arena_verifier.signatures import is_signed

BODY = ("version", "task", "answer_sha256", "prompt_sha256", "nonce", "received_at", "sequence", "previous")


def check_receipts(tables: Tables, violations: Violations) -> None:
    """Each receipt follows the one before it, is signed by a key in use, and its answer is here as it was received."""
    keys, receipts = tables.by("signing_keys", "key_id"), list(tables.rows("receipts"))
    for name, key in keys.items():
        if hashlib.sha256(bytes.fromhex(key["public_key"])).hexdigest()[:16] != name:
            violations.append(f"signing_keys: {name} is not the id of its key")
    answers, tasks = answers_of_receipts(tables, receipts), names_of_tasks(tables)
    length, head = 0, GENESIS
    for row in receipts:
        receipt = f"receipts: receipt {row['sequence']}"
        message = canonical({"agent": row["family"]} | {name: row[name] for name in BODY})
        if (row["sequence"], row["previous"]) != (length + 1, head):
            violations.append(f"{receipt} does not follow no. {length}, {head}")
        if sha256(message) != row["sha256"]:
            violations.append(f"{receipt}: its sha256 is not that of its body")
        length, head = row["sequence"], row["sha256"]
        check_key(row, keys.get(row["key_id"]), message, violations)
        answer = answers.get(row["call"])
        task = f"the answer of {row['family']} to {row['task']}"
        if answer is None:
            if tables.is_whole or (row["family"], row["task"]) in tasks:
                violations.append(f"{receipt}: {task} is missing")
            continue
        for name, value in answer.items():
            if row[name] != value:
                violations.append(f"{receipt}: {task} is another: {name} is {value}")
    published = tables.heads().get("receipt", (0, GENESIS))
    if (length, head) != published:
        violations.append(f"receipts: they end {length} {head}, their head is {published[0]} {published[1]}")


def check_key(row: Row, key: Row | None, message: str, violations: Violations) -> None:
    """The key of a receipt made its signature, and was in use when the answer came."""
    receipt, signature = f"receipts: receipt {row['sequence']}", bytes.fromhex(row["signature"])
    if key is None or not is_signed(bytes.fromhex(key["public_key"]), message.encode(), signature):
        violations.append(f"{receipt}: its signature is not that of the key {row['key_id']}")
    elif not (key["began_at"] or "") <= row["received_at"] <= (key["ended_at"] or "~"):
        violations.append(f"{receipt}: the key {row['key_id']} was not in use at {row['received_at']}")


def answers_of_receipts(tables: Tables, receipts: list[Row]) -> dict[int, Row]:
    """The columns of receipts that follow from their calls, by call."""
    calls, answers = {row["call"] for row in receipts}, {}
    for call in tables.rows("calls") if receipts else ():
        if call["id"] in calls:
            family, task = task_name(tables, call["decision"], call["elicitation"])
            answers[call["id"]] = {
                "answer_sha256": sha256(call["raw_response"]), "prompt_sha256": call["prompt_sha256"],
                "family": family, "task": task,
            }  # fmt: skip
    return answers


def names_of_tasks(tables: Tables) -> set[tuple[str, str]]:
    """The tasks in the archive, by family and name."""
    names = {task_name(tables, pk, None) for pk in tables.by("decisions")}
    return names | {task_name(tables, None, pk) for pk in tables.by("elicitations")}


def task_name(tables: Tables, decision: Any, elicitation: Any) -> tuple[str, str]:
    """The family of a task and its name in receipts."""
    if decision is not None:
        row = tables.by("decisions")[decision]
        return tables.by("agents")[row["agent"]]["family"], f"agent-{row['agent']}-universe-{row['universe']}"
    row = tables.by("elicitations")[elicitation]
    return row["family"], f"batch-{row['batch']}"
