"""Storage of answers: each once, even where the database is gone or its disk full at the moment of storing.

A worker holds an answer that can not be stored and tries again for as long as its lease lasts. From the first failure
on the answer also lies in a file of ARENA_SPOOL_DIR, so that a killed worker leaves it to the next run there. The
worker keeps its file locked, and a lock ends with its process.
"""

import fcntl
import json
import logging
import os
import stat
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core import serializers
from django.core.serializers.base import DeserializationError
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.utils import timezone

from agents.models import ModelCall, Task
from agents.models.call import RECONCILED
from agents.records import sha256
from agents.services.claims import Claim, ClaimLost
from foundation import draining
from foundation.locks import lock_rows
from foundation.raw_sql import database_name
from foundation.run_log import ReportLines
from foundation.services.alerts import raise_alert

RETRY_S = 1
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own below it
UNANSWERED = (ModelCall.Result.SENT, ModelCall.Result.LOST)
IDENTITY = ("decision_id", "elicitation_id", "sequence", "idempotency_key", "prompt_sha256")
CHANGED_ALERT = "model-served-otherwise"
SERVED_BY = ("provider", "returned_model", "quantization")

log = logging.getLogger(__name__)


class RefusedFile(Exception):
    """The reason why a spool file's answer is not stored."""


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """A file that holds an answer, locked for as long as it is open."""

    path: Path
    file: IO[str]


class ForeignFile(RefusedFile):
    """A file of another database: it may belong to another arena with the same folder, and stays."""


def store_answer(call: ModelCall, claim: Claim[Any]) -> None:
    """Stores a call's answer and renews its claim; repeated while the database refuses it and the lease lasts.

    If the claim is lost, the call is stored as late and ClaimLost is raised. An answer that nobody paid for is not
    held: whoever submitted it still has it.
    """
    spooled: SpoolFile | None = None
    try:
        while True:
            try:
                claim_loss = _store_with_claim(call, claim)
                break
            except (OperationalError, InterfaceError, InternalError) as error:
                if call.booked_usd is None:
                    raise
                spooled = spooled or _write_file(call, claim)
                if draining.is_stopping() or not claim.is_live():
                    raise
                log.warning("an answer can not be stored yet: %s", error, extra=claim.task.log_context)
                if not connection.in_atomic_block:
                    connection.close()
            time.sleep(RETRY_S)
        if spooled is not None:
            spooled.path.unlink()
    finally:
        if spooled is not None:
            spooled.file.close()
    if claim_loss is not None:
        raise claim_loss


def store_spooled_answers(lines: ReportLines) -> bool:
    """Stores the answers that earlier workers on this machine left in files; True if a living one holds another.

    A stored answer belongs to its task as if it had come in time, unless the model was asked again or another worker
    holds the task; then it counts as late. The file is removed in the end; one that is refused is renamed.
    """
    is_held = False
    for path in _spool_files():
        try:
            file = path.open()
        except FileNotFoundError:  # its worker has stored the answer meanwhile
            continue
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lines.write(f"spool file {path.name} is held by a worker that is alive")
                is_held = True
                continue
            if not path.exists():
                continue
            try:
                call = _store_file(file)
            except ForeignFile as why:
                lines.write(f"spool file {path.name} is left alone: {why}")
            except RefusedFile as why:
                path.rename(path.with_suffix(".refused"))
                lines.write(f"spool file {path.name} is refused: {why}")
            else:
                path.unlink()
                lines.write(f"{call}: the answer of an earlier worker was stored from {path.name}")
    return is_held


def _store_with_claim(call: ModelCall, claim: Claim[Any]) -> ClaimLost | None:
    claim_loss = None
    with transaction.atomic():
        try:
            claim.renew()
        except ClaimLost as error:
            call.late, claim_loss = True, error
        _write_call(call)
    return claim_loss


def _write_call(call: ModelCall) -> bool:
    """Writes an answered call; False if it has an answer already."""
    unanswered = ModelCall.objects.filter(pk=call.pk, result__in=UNANSWERED)
    if not lock_rows(unanswered):  # locks the call: a reconciliation would change its cost
        return False
    stored = ModelCall.objects.only(*RECONCILED).get(pk=call.pk)
    if call.cost_source == ModelCall.CostSource.BOOKED:  # it may have been reconciled meanwhile
        for name in RECONCILED:
            setattr(call, name, getattr(stored, name))
    call.save()
    _check_served_by(call)
    return True


def _check_served_by(call: ModelCall) -> None:
    """Raises an alert if a call was served otherwise than the last one of its agent, or of its release's forecasts."""
    if call.decision is not None:
        name, calls = str(call.decision.agent), ModelCall.objects.filter(decision__agent=call.decision.agent_id)
    else:
        name = f"Forecasts of {call.model}"
        calls = ModelCall.objects.filter(elicitation__release=call.task.release, elicitation__isnull=False)
    for field in SERVED_BY:
        earlier = calls.filter(pk__lt=call.pk).exclude(**{field: ""}).order_by("-pk")
        before, now = earlier.values_list(field, flat=True).first(), getattr(call, field)
        if before and now and before != now:
            message = f"{name}: the {field.replace('_', ' ')} changed from {before} to {now} between two calls."
            raise_alert(
                kind=CHANGED_ALERT,
                items={f"call {call.pk}, {field}": name},
                message=message,
                at=timezone.now(),
                path=f"/admin/agents/modelcall/{call.pk}/change/",
                remedy="The ledger is not affected. Pin a provider in the next methodology if this matters.",
                urgent=False,
            )


def _spool_files() -> list[Path]:
    """All files of the folder of the settings, and this database's files of the others."""
    folder, *further_folders = spool_folders()
    files = sorted(folder.glob("*.json"))
    for further_folder in further_folders:
        files += sorted(further_folder.glob(f"{_file_prefix()}*.json"))
    return files


def _file_prefix() -> str:
    database = database_name()
    return f"{Path(database).stem}-{sha256(database)[:8]}-call-"


def spool_folders() -> list[Path]:
    """Where answers are spooled: the first folder that takes them, which a full disk does not.

    Folders that others may write to are used where they are this account's alone.
    """
    folder_name = f"arena-spool-{os.geteuid()}"
    fallbacks = [folder / folder_name for folder in (Path(tempfile.gettempdir()), SHARED_MEMORY) if folder.is_dir()]
    return [Path(settings.ARENA_SPOOL_DIR), *(folder for folder in fallbacks if _is_ours(folder))]


def _is_ours(folder: Path) -> bool:
    """True if a folder is missing, or belongs to this account and nobody else can write to it."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return True
    is_private = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH) == 0
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and is_private


def _write_file(call: ModelCall, claim: Claim[Any]) -> SpoolFile | None:
    """A locked, complete file with the call in the first folder that takes it; None where none does."""
    name = f"{_file_prefix()}{call.pk}.json"
    faults = []
    for folder in spool_folders():
        try:
            return _write_file_in(folder, name, call, claim)
        except OSError as error:
            faults.append(f"{folder}: {error.strerror}")
    log.error("an answer is in memory alone: %s", "; ".join(faults), extra=claim.task.log_context)
    return None


def _write_file_in(folder: Path, name: str, call: ModelCall, claim: Claim[Any]) -> SpoolFile:
    body = serializers.serialize("json", [call])
    content = {
        "database": database_name(),
        "lease_id": str(claim.lease_id),
        "sent_at": call.sent_at.isoformat(),  # the serializer cuts it to the millisecond
        "call": body,
    }
    content["sha256"] = _checksum(content)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft, path = folder / f".{name}.{uuid.uuid4().hex[:8]}", folder / name
    file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        with suppress(OSError):  # it writes once more what did not fit
            file.close()
        raise
    return SpoolFile(path, file)


def _checksum(content: dict[str, str]) -> str:
    return sha256(json.dumps(content, sort_keys=True))


def _store_file(file: IO[str]) -> ModelCall:
    """Stores the call of a spool file; its task is free for the next claim then. Raises RefusedFile."""
    try:
        content = json.load(file)
        body, database, sent_at = content["call"], content["database"], datetime.fromisoformat(content["sent_at"])
        if content.pop("sha256") != _checksum(content):
            raise ValueError("the checksum does not match")
        ((call, lease_id),) = [(row.object, str(content["lease_id"])) for row in serializers.deserialize("json", body)]
    except (ValueError, KeyError, TypeError, AttributeError, DeserializationError) as error:
        raise RefusedFile(f"it can not be read: {error}") from None
    if database != database_name():
        raise ForeignFile(f"it belongs to the database {database}")
    with transaction.atomic():
        stored = ModelCall.objects.filter(pk=call.pk, sent_at=sent_at).first()
        if (
            not isinstance(call, ModelCall)
            or stored is None
            or any(getattr(call, name) != getattr(stored, name) for name in IDENTITY)
        ):
            raise RefusedFile("this database knows no such call")
        call.sent_at = sent_at
        call.late = not _is_awaited(stored, lease_id)
        if not _write_call(call):
            raise RefusedFile("its call has an answer already")
        # If the dead worker's claim is still the last one, the next run may take the task over at once.
        tasks = type(stored.task)._default_manager.filter(pk=stored.task.pk, lease_id=lease_id)
        tasks.filter(status=Task.Status.CLAIMED).update(lease_until=timezone.now())
    return call


def _is_awaited(call: ModelCall, lease_id: str) -> bool:
    """True if the task still has to be done, by nobody else, and its model was not asked again."""
    task = call.task
    if task.status == Task.Status.CLAIMED and str(task.lease_id) != lease_id:
        free = task.lease_until is not None and task.lease_until <= timezone.now()
    else:
        free = task.status in (Task.Status.CLAIMED, Task.Status.FAILED)
    return free and not task.calls.filter(sequence__gt=call.sequence).exists()
