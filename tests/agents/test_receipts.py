"""Receipts of accepted answers, the register, the keys that sign them, and attempts, over HTTP."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.conf import LazySettings
from django.db import IntegrityError, transaction
from django.test import Client, override_settings

from agents.models import Attempt, Chain, Decision, ModelCall, Receipt, SigningKey, Submission
from arena_agent.cli import main as arena_agent
from arena_site.models import AuditEntry
from foundation.models import Alert
from markets.models import QuestionBatch
from scoring.exports.verification.ledger_audit import violations_about
from scoring.exports.verification.verifier import verify_archive
from tests.agents.test_submissions import (
    DEADLINE,
    FORECASTS,
    HOLD,
    IN_TIME,
    MINUTE,
    OPEN,
    even,
    freeze,
    open_tasks,
    submit,
)
from tests.commands import DECISION, run
from tests.guards import guards_removed
from tests.problems import problem
from tests.sandbox import Venue
from tests.scoring.exports.forgery import Cells, read_cells, rewrite, standalone_violations
from tests.shared_rows import shared_rows, shared_rows_at_venue

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
CHAIN, RECEIPTS, ATTEMPTS = "/.well-known/arena-chain.json", "/api/v1/receipts/", "/api/v1/attempts/"
OLD_KEY, NEW_KEY = bytes(range(32)), bytes([7]) * 32
OLD, NEW = "56475aa75463474c", "fe812c12f3ab4ce6"
"""The ids of their public keys."""


def play(venue: Venue) -> str:
    """A frozen week and open questions. Returns the visitor's token."""
    token = freeze(venue)
    assert run("run_forecasts", FORECASTS).code == 0
    return token


week = shared_rows_at_venue(play)


def submit_answers(played: tuple[Venue, str]) -> list[dict[str, Any]]:
    """The receipts of a decision and of both batches."""
    client, token = Client(), played[1]
    with override_settings(ARENA_CLOCK=IN_TIME, ARENA_SIGNING_KEY=OLD_KEY):
        receipts = [submit(client, token, HOLD, key="week").json()["receipt"]]
    with override_settings(ARENA_CLOCK=FORECASTS + 5 * MINUTE, ARENA_SIGNING_KEY=OLD_KEY):
        for task in open_tasks(client, token)["forecast"]:
            receipts.append(submit(client, token, even(task), batch=task["batch"]).json()["receipt"])
    return receipts


receipts = shared_rows(submit_answers, after=week, name="week")


@pytest.fixture
def visitor(week: tuple[Venue, str], settings: LazySettings) -> str:
    """The token of an agent with an open week and open questions; the arena signs with OLD_KEY."""
    settings.ARENA_CLOCK, settings.ARENA_SIGNING_KEY = IN_TIME, OLD_KEY
    return week[1]


@pytest.fixture
def answered(receipts: list[dict[str, Any]], settings: LazySettings) -> list[dict[str, Any]]:
    """The receipts of a decision and of both batches, of which the arena signed each with OLD_KEY."""
    settings.ARENA_CLOCK, settings.ARENA_SIGNING_KEY = FORECASTS + 5 * MINUTE, OLD_KEY
    return receipts


def is_signed(receipt: dict[str, Any], keys: list[dict[str, Any]]) -> bool:
    """Whether a receipt is signed by the published key, as a reader of docs/data.md would check. May raise."""
    text = json.dumps(receipt["body"], sort_keys=True, separators=(",", ":")).encode()
    key = next(key for key in keys if key["id"] == receipt["key_id"])
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(key["public_key"])).verify(
        bytes.fromhex(receipt["signature"]), text
    )
    return hashlib.sha256(text).hexdigest() == receipt["sha256"]


# receipts


def test_accepted_answer_gets_a_signed_receipt(client: Client, visitor: str) -> None:
    task = client.get(OPEN, headers={"Authorization": f"Bearer {visitor}"}).json()["trading"][0]
    body = '{"action": "HOLD",  "reasoning": "“Ünïcode” 🙂"}'
    receipt = submit(client, visitor, body).json()["receipt"]
    prompt = f"{task['system_prompt']}\0{task['user_prompt']}"
    assert receipt["body"] == {
        "agent": "visitor",
        "version": "1",
        "task": f"agent-{task['agent']}-universe-{task['universe']}",
        "answer_sha256": hashlib.sha256(body.encode()).hexdigest(),
        "prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest(),
        "nonce": receipt["body"]["nonce"],
        "received_at": "2026-03-08T00:15:00.000000Z",
        "sequence": 1,
        "previous": "0" * 64,
    }
    assert re.fullmatch("[0-9a-f]{64}", receipt["body"]["nonce"])
    assert receipt["key_id"] == OLD
    assert is_signed(receipt, client.get(CHAIN).json()["keys"])


def test_receipts_are_a_chain_whose_head_is_signed(client: Client, answered: list[dict[str, Any]]) -> None:
    assert [receipt["body"]["sequence"] for receipt in answered] == [1, 2, 3]
    assert answered[2]["body"]["previous"] == answered[1]["sha256"]
    assert client.get(CHAIN).json()["chains"]["receipt"] == {"length": 3, "head": answered[2]["sha256"]}
    run("open_envelopes", FORECASTS + MINUTE)


def test_same_key_gets_the_same_receipt_and_a_refusal_none(client: Client, visitor: str) -> None:
    refused = submit(client, visitor, "no JSON")
    assert (refused.status_code, "receipt" in refused.json()) == (422, False)
    first = submit(client, visitor, HOLD, key="k").json()
    assert first == submit(client, visitor, HOLD, key="k").json()
    replaced = submit(client, visitor, HOLD).json()["receipt"]
    assert replaced["body"]["previous"] == first["receipt"]["sha256"]
    assert Receipt.objects.count() == Chain.objects.get(protocol="receipt").length == 2


def test_sealed_receipt_shows_that_it_exists_alone(
    client: Client, answered: list[dict[str, Any]], settings: LazySettings
) -> None:
    assert client.get(RECEIPTS, {"family": "visitor"}).json()["count"] == 0, "the decision is not opened yet"
    assert run("open_envelopes", FORECASTS + 5 * MINUTE)["opened"] == 1
    decision, *batches = client.get(RECEIPTS).json()["results"]
    assert {name: decision[name] for name in answered[0]} == answered[0]
    assert decision["sealed_until"] is None
    for row, receipt in zip(batches, answered[1:], strict=True):
        content = {name: value for name, value in row.items() if value is not None}
        assert content.keys() == {"id", "sequence", "sha256", "sealed_until"}
        assert (row["sha256"], row["sealed_until"]) == (receipt["sha256"], "2026-03-08T02:15:00Z")
    assert client.get(RECEIPTS, {"family": "visitor"}).json()["count"] == 1
    settings.ARENA_CLOCK = FORECASTS + 15 * MINUTE
    assert run("open_envelopes", settings.ARENA_CLOCK).code == 0
    rows = client.get(RECEIPTS, {"family": "visitor"}).json()["results"]
    assert [{name: row[name] for name in answered[0]} for row in rows] == answered


FORGERIES: dict[str, tuple[Callable[[], Any], str]] = {
    "another answer": (
        lambda: ModelCall.objects.filter(submission__receipt__sequence=1).update(raw_response="{}"),
        "receipt 1: the answer of visitor to agent-",
    ),
    "another body": (
        lambda: Receipt.objects.filter(sequence=1).update(received_at=DECISION),
        "receipt 1: its sha256 is not that of its body",
    ),
    "another signature": (
        lambda: Receipt.objects.filter(sequence=1).update(signature="0" * 128),
        f"receipt 1: its signature is not that of the key {OLD}",
    ),
    "a gap": (lambda: Receipt.objects.filter(sequence=2).delete(), "receipt 3 does not follow no. 1"),
    "no last one": (lambda: Receipt.objects.filter(sequence=3).delete(), "their head is 3 "),
}


@pytest.mark.forged_record
def test_ledger_names_what_a_forger_changed(answered: list[dict[str, Any]]) -> None:
    for name, (forge, line) in FORGERIES.items():
        with pytest.raises(IntegrityError), transaction.atomic():
            forge()
        with transaction.atomic():
            with guards_removed():
                forge()
            assert any(line in violation for violation in violations_about("receipts")), name
            transaction.set_rollback(True)


# archives


def export(folder: Path, at: datetime, *options: str) -> Path:
    assert run("export_dataset", at, *options, "--format", "csv", out=folder).code == 0
    return folder


def verified(folder: Path) -> tuple[int, str]:
    """The code and the lines of the archive's own verifier, after `verify_export` said the same."""
    command = [sys.executable, "-I", "-S", str(folder / "verify_arena.py"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run("verify_export", None, str(folder)).code == ran.returncode, ran.stdout
    return ran.returncode, ran.stdout


def kit_faults(receipts: list[dict[str, Any]], folder: Path, capfd: Any) -> list[list[str]]:
    """The faults of each receipt that `arena-agent verify` finds in an archive."""
    contents = {"receipts": {"receipts": receipts}, "keys": Client().get(CHAIN).json()}
    for name, content in contents.items():
        (folder.parent / f"{name}.json").write_text(json.dumps(content))
    options = ["--archive", str(folder), "--key", str(folder.parent / "keys.json"), "--json"]
    capfd.readouterr()
    code = arena_agent(["verify", str(folder.parent / "receipts.json"), *options])
    faults = [row["faults"] for row in json.loads(capfd.readouterr().out)["receipts"]]
    assert code == any(faults)
    return faults


def test_archive_holds_the_register_up_to_its_end(answered: list[dict[str, Any]], tmp_path: Path) -> None:
    span = [f"{DECISION + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (2, 3)]
    part = export(tmp_path / "part", FORECASTS + timedelta(hours=4), "--from", span[0], "--to", span[1])
    assert verified(part)[0] == 3
    assert len(read_cells(part, "receipts")) == 3


def test_archive_made_while_answers_are_sealed_ends_the_register_before_them(
    answered: list[dict[str, Any]], tmp_path: Path
) -> None:
    sealed = export(tmp_path / "sealed", FORECASTS + 6 * MINUTE)
    assert [row["sequence"] for row in read_cells(sealed, "receipts")] == ["1"]
    code, output = verified(sealed)
    assert (code, "receipts" in output) == (3, False)


def _drop_answer(rows: Cells) -> None:
    rows[:] = [row for row in rows if "nothing to do" not in row["raw_response"]]


def _change_answer(rows: Cells) -> None:
    for row in rows:
        row["raw_response"] = row["raw_response"].replace("nothing to do", "nothing")


def _forge_signature(rows: Cells) -> None:
    rows[0].update(signature="0" * 128)


TASK = r"the answer of visitor to agent-\d+-universe-\d+ is "
FORGED_TABLES: dict[str, tuple[str, Callable[[Cells], object], str]] = {
    "no answer": ("calls", _drop_answer, rf"receipt 1: {TASK}missing"),
    "another answer": ("calls", _change_answer, rf"receipt 1: {TASK}another: answer_sha256 is"),
    "another prompt": ("receipts", lambda rows: rows[0].update(prompt_sha256="0" * 64), "receipt 1: its sha256 is not"),
    "another signature": ("receipts", _forge_signature, "receipt 1: its signature is not"),
    "a gap": ("receipts", lambda rows: rows.pop(1), "receipt 3 does not follow no. 1"),
    "no last one": ("receipts", lambda rows: rows.pop(), "receipts: they end 2 "),
    "a key of another time": (
        "signing_keys", lambda record: record[0].update(ended_at="2026-03-08T00:00:00.000000Z"), "was not in use at",
    ),
    "another key": ("signing_keys", lambda record: record[0].update(public_key="0" * 64), "is not the id of its key"),
}  # fmt: skip


def test_archive_proves_its_receipts_and_a_forged_register_is_named(
    answered: list[dict[str, Any]], tmp_path: Path, capfd: Any
) -> None:
    archive = export(tmp_path / "archive", FORECASTS + timedelta(hours=1))
    code, output = verified(archive)
    assert code == 0, output
    assert [row["sha256"] for row in read_cells(archive, "receipts")] == [row["sha256"] for row in answered]
    assert json.loads((archive / "anchor.json").read_text())["chains"]["receipt"]["length"] == 3
    forged_receipt = answered[0] | {"body": answered[0]["body"] | {"agent": "another"}}
    faults = kit_faults([*answered, forged_receipt], archive, capfd)
    assert faults[:3] == [[], [], []]
    assert "its sha256 is not that of its body" in faults[3]
    for name, (table, forge, line) in FORGED_TABLES.items():
        forged = Path(shutil.copytree(archive, tmp_path / f"with {name}"))
        rewrite(forged, table, forge, record=True)
        for violations in (verify_archive(forged).violations, standalone_violations(forged)):
            assert re.search(line, "\n".join(violations)), (name, violations)


# keys


def test_key_is_rotated_by_a_command_and_the_old_one_stays_listed(
    client: Client, visitor: str, settings: LazySettings
) -> None:
    first = submit(client, visitor, HOLD).json()["receipt"]
    assert "set ARENA_NEXT_SIGNING_KEY" in run("rotate_signing_key", IN_TIME, reason="a year").stderr
    settings.ARENA_NEXT_SIGNING_KEY = NEW_KEY
    assert "--reason TEXT is needed" in run("rotate_signing_key", IN_TIME).stderr
    ran = run("rotate_signing_key", IN_TIME + MINUTE, reason="a year")
    assert (ran.code, ran["key"], ran["rotated"]) == (0, NEW, True)
    assert run("rotate_signing_key", IN_TIME + 2 * MINUTE, reason="again")["rotated"] is False
    assert [entry.reason for entry in AuditEntry.objects.filter(action="rotate-signing-key")] == ["a year"]
    settings.ARENA_SIGNING_KEY, settings.ARENA_NEXT_SIGNING_KEY = NEW_KEY, None
    settings.ARENA_CLOCK = FORECASTS + 5 * MINUTE
    task = open_tasks(client, visitor)["forecast"][0]
    second = submit(client, visitor, even(task), batch=task["batch"]).json()["receipt"]
    document = client.get(CHAIN).json()
    assert [(key["id"], key["from"], key["to"]) for key in document["keys"]] == [
        (NEW, "2026-03-08T00:16:00.000000Z", None),
        (OLD, None, "2026-03-08T00:16:00.000000Z"),
    ]
    assert (first["key_id"], second["key_id"]) == (OLD, NEW)
    assert is_signed(first, document["keys"])
    assert is_signed(second, document["keys"])
    assert document["public_key"] == document["keys"][0]["public_key"]
    with pytest.raises(IntegrityError), transaction.atomic():
        SigningKey.objects.filter(fingerprint=OLD).update(ended_at=None)


def test_answer_that_came_before_the_rotation_is_signed_by_the_key_of_its_time(
    client: Client, visitor: str, settings: LazySettings
) -> None:
    settings.ARENA_NEXT_SIGNING_KEY = NEW_KEY
    run("rotate_signing_key", IN_TIME + MINUTE, reason="a year")
    assert submit(client, visitor, HOLD).json()["receipt"]["key_id"] == OLD


def test_other_key_in_the_settings_accepts_nothing_and_is_an_alert(
    client: Client, visitor: str, answered: list[dict[str, Any]], settings: LazySettings
) -> None:
    from arena_site.operations.conditions import refresh_conditions

    settings.ARENA_SIGNING_KEY = NEW_KEY
    settings.ARENA_CLOCK = IN_TIME
    submissions_before = Submission.objects.count()
    run("start_cohort", DECISION + timedelta(days=6, hours=23))
    refresh_conditions(now=IN_TIME)
    alert = Alert.objects.get(kind="signing-key")
    assert "another signing key than 56475aa75463474c" in alert.message
    settings.ARENA_SIGNING_KEY = OLD_KEY
    refresh_conditions(now=IN_TIME)
    alert.refresh_from_db()
    assert alert.cleared_at == IN_TIME
    refresh_conditions(now=IN_TIME + timedelta(days=366))
    message = Alert.objects.get(kind="signing-key", cleared_at=None).message
    assert message.endswith("has been in use since 8 March 2026, for over a year. It does not expire: rotate it.")
    assert Submission.objects.count() == submissions_before


def test_answer_without_a_key_to_sign_it_may_be_sent_again(
    client: Client, visitor: str, settings: LazySettings
) -> None:
    settings.ARENA_NEXT_SIGNING_KEY = NEW_KEY
    run("rotate_signing_key", DECISION, reason="a year")
    settings.ARENA_NEXT_SIGNING_KEY = None
    refused = submit(client, visitor, HOLD, key="k")
    assert "the settings lack the signing key in use, fe812c12f3ab4ce6" in problem(refused, 503)["detail"]
    assert refused["Retry-After"] == "30"
    assert not Submission.objects.exists()
    settings.ARENA_SIGNING_KEY = NEW_KEY
    assert submit(client, visitor, HOLD, key="k").status_code == 201


# attempts


def test_refused_late_and_missed_answers_are_noted_apart(client: Client, visitor: str, settings: Any) -> None:
    submit(client, visitor, "no JSON")
    settings.ARENA_CLOCK = DEADLINE
    for _ in range(2):
        problem(submit(client, visitor, HOLD), 410)
    batch = QuestionBatch.objects.order_by("pk")[0]
    settings.ARENA_CLOCK = FORECASTS + 16 * MINUTE
    problem(submit(client, visitor, {"forecasts": []}, batch=batch.pk), 410)
    run("run_decisions", FORECASTS + timedelta(hours=1))
    run("run_forecasts", FORECASTS + timedelta(hours=6))
    rows = client.get(ATTEMPTS, {"ordering": "id"}).json()["results"]
    noted = [(row["kind"], "agent" if row["agent"] else row["batch"]) for row in rows]
    assert noted[:3] == [("refused", "agent"), ("late", "agent"), ("late", batch.pk)]
    assert sorted(map(str, noted[3:])) == sorted(
        str(("missed", place)) for place in ("agent", batch.pk, QuestionBatch.objects.order_by("pk")[1].pk)
    )
    with pytest.raises(IntegrityError), transaction.atomic():
        Attempt.objects.update(reason="")
    assert rows[1]["reason"] == "it came 0:00:00 after the deadline"


# hostile answers

ODD = {
    "half a surrogate": '{"action": "HOLD", "reasoning": "\\ud800"}',
    "an escaped NUL": '{"action": "HOLD", "reasoning": "\\u0000"}',
    "bidirectional": '{"action": "HOLD", "reasoning": "\u202eevil\u2066 \U0001f3f4\u200d\u2620"}',
    "a byte order mark": '\ufeff{"action": "HOLD", "reasoning": "="}',
    "line ends": '\r\n{"action":\r"HOLD", "reasoning": "\u2028"}\n',
    "a formula": '=1+1 {"action": "HOLD", "reasoning": "-"}',
}


def test_receipt_of_an_odd_answer_is_of_its_very_bytes(
    client: Client, visitor: str, tmp_path: Path, capfd: Any
) -> None:
    receipts = []
    for name, text in ODD.items():
        answer = submit(client, visitor, text)
        assert answer.status_code == 201, (name, answer.content)
        receipts.append(answer.json()["receipt"])
        assert receipts[-1]["body"]["answer_sha256"] == hashlib.sha256(text.encode()).hexdigest(), name
    run("open_envelopes", FORECASTS)
    archive = export(tmp_path / "archive", FORECASTS + timedelta(hours=1))
    assert verified(archive)[0] == 0
    assert kit_faults(receipts, archive, capfd) == [[]] * len(ODD)


def test_answer_with_secrets_is_redacted_before_it_is_parsed_stored_and_hashed(
    client: Client, visitor: str, tmp_path: Path, capfd: Any
) -> None:
    key, token, receipts = "sk-or-v1-0123456789abcdef", visitor, []
    clean = '[redacted] [redacted] "user_id": "[redacted]"'
    for secrets in (f"{key} {token}", f"{key} {token}".replace("-", "\\u002d").replace("a", "\\u0061")):
        text = f'{secrets} \\"user_id\\": \\"me@example.com\\"'
        answer = submit(client, visitor, f'{{"action": "HOLD", "reasoning": "{text}"}}')
        assert answer.status_code == 201, answer.content
        call = ModelCall.objects.filter(submission__isnull=False).latest("pk")
        assert call.parsed["reasoning"] == json.loads(call.raw_response)["reasoning"] == clean
        receipts.append(answer.json()["receipt"])
        assert receipts[-1]["body"]["answer_sha256"] == hashlib.sha256(call.raw_response.encode()).hexdigest()
    run("open_envelopes", FORECASTS)
    assert Decision.objects.get(pk=call.decision_id).reasoning == clean
    archive = export(tmp_path / "archive", FORECASTS + timedelta(hours=1))
    assert verified(archive)[0] == 0
    assert kit_faults(receipts, archive, capfd) == [[], []]


def test_receipt_of_another_agents_answer_is_no_answer(client: Client, visitor: str, settings: Any) -> None:
    receipt = submit(client, visitor, HOLD).json()["receipt"]
    settings.ARENA_CLOCK = FORECASTS + 5 * MINUTE
    batch = open_tasks(client, visitor)["forecast"][0]["batch"]
    problem(submit(client, visitor, receipt, batch=batch), 422)
    assert Receipt.objects.count() == 1
    problem(submit(client, visitor, "x" * 10_000_000, batch=batch), 413)
