"""The hash chains of an archive, and the archive's own record on them."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from forecast_rank.files.checksums import file_sha256

from agents.records import (
    ARCHIVE,
    GENESIS,
    PROTOCOLS,
    TRADE_AMOUNTS,
    UNANSWERED,
    call_record,
    forecast_entry_record,
    forecast_record,
    instruction_record,
    link_sha256,
    record_sha256,
    refusal_record,
    sha256,
    trade_record,
    trading_record,
)
from agents.services.task_records import CALL_COLUMNS
from agents.signing import is_signed
from scoring.exports.archive_record import DOCUMENTS, WEEKLY_TABLES, WeeklyRows
from scoring.exports.dictionary import CSV
from scoring.exports.manifest import ANCHOR
from scoring.exports.table_files import parquet_digest
from scoring.exports.tables import TABLES
from scoring.exports.tables.results import CHAIN
from scoring.exports.verification.archive_reader import Archive, Row


def check_chains(archive: Archive) -> Iterator[str]:
    """Each link follows the one before it and hashes the record that the rows give; the last one is the head."""
    records = _RecordBuilder(archive)
    heads = dict.fromkeys(PROTOCOLS, (0, GENESIS))
    linked: set[tuple[str, int]] = set()
    for link in archive.rows(CHAIN.name):
        length, head = heads[link["protocol"]]
        row = f"chain: {link['protocol']} link {link['sequence']}"
        if (link["sequence"], link["previous"]) != (length + 1, head):
            yield f"{row} does not follow no. {length}, {head}"
        if link["sha256"] != link_sha256(link["previous"], link["record_sha256"]):
            yield f"{row}: its hash does not follow from its record and the hash before it"
        heads[link["protocol"]] = link["sequence"], link["sha256"]
        if link["protocol"] == ARCHIVE:
            if (link["decision"], link["elicitation"], link["call"]) != (None, None, None):
                yield f"{row}: it refers to a task"
            if record_sha256(link["record"]) != link["record_sha256"]:
                yield f"{row}: its record has another hash"
            continue
        kind = "decision" if link["protocol"] == "trading" else "elicitation"
        other = "elicitation" if kind == "decision" else "decision"
        if link[other] is not None or link["record"] is not None or (kind, link[kind]) in linked:
            yield f"{row}: it is not of one {kind} alone"
        linked.add((kind, link[kind]))
        record = records.record(link)
        if record is None:
            if archive.is_whole:
                yield f"{row}: {kind} {link[kind]} is not in the archive"
        elif record_sha256(record) != link["record_sha256"]:
            yield f"{row}: {kind} {link[kind]} differs from the record that was chained"
    stated = {
        name: (head["length"], head["head"]) for name, head in archive.manifest["chains"].items() if name in heads
    }
    for protocol in sorted(heads.keys() | stated.keys()):
        if heads.get(protocol) != stated.get(protocol):
            yield f"chain: {protocol} ends {heads.get(protocol)}, the manifest says {stated.get(protocol)}"
    for kind, rows in (("decision", archive.decisions), ("elicitation", archive.elicitations)):
        for pk, task in rows.items():
            if (task["status"] == "completed") != ((kind, pk) in linked):
                yield f"chain: {kind} {pk} is {task['status']} and {'in a' if (kind, pk) in linked else 'in no'} chain"


def check_archive_record(archive: Archive) -> Iterator[str]:
    """The last record of the chain of archives is of this archive: its selection, rows and documents."""
    record: dict[str, Any] | None = None
    for link in archive.rows(CHAIN.name):
        record = link["record"] if link["protocol"] == ARCHIVE else record
    if record is None:
        yield "chain: it holds no record of this archive"
        return
    manifest = archive.manifest
    due = {
        "protocol": ARCHIVE,
        "made_at": manifest["made_at"],
        "selection": manifest["selection"],
        "chains": {protocol: head for protocol, head in manifest["chains"].items() if protocol != ARCHIVE},
        "weeks": _weeks(archive),
    }
    for name, value in due.items():
        if record[name] != value:
            yield f"chain: the record of this archive has {name} {record[name]}, the archive {value}"
    for name in DOCUMENTS:
        if record["documents"][name] != file_sha256(archive.folder / name):
            yield f"{name}: its hash is not the one in the record of this archive"
    for table in TABLES:
        if table is CHAIN:
            continue
        path, stated = archive.path(table.name), record["tables"][table.name]
        digest = file_sha256(path) if archive.formats[0] == CSV else parquet_digest(path, table)
        if digest != stated["sha256"]:
            yield f"{table.name}: its rows are not those in the record of this archive"
        rows = manifest["files"][path.relative_to(archive.folder).as_posix()]["rows"]
        if rows != stated["rows"]:
            yield f"{table.name}: {rows} rows, the record of this archive says {stated['rows']}"
    extra = record["tables"].keys() ^ {table.name for table in TABLES if table is not CHAIN}
    if extra:
        yield f"chain: the record of this archive is of other tables: {', '.join(sorted(extra))}"


def check_anchor(archive: Archive) -> Iterator[str]:
    """The heads of the manifest are signed by the key that the anchor names."""
    document = json.loads((archive.folder / ANCHOR).read_text(encoding="utf-8"))
    if document["chains"] != archive.manifest["chains"]:
        yield f"{ANCHOR}: it is about other heads than the manifest's"
    if not is_signed(document):
        yield f"{ANCHOR}: its signature is not that of its key"


def _weeks(archive: Archive) -> dict[str, dict[str, int]]:
    weeks = WeeklyRows()
    for name, column in WEEKLY_TABLES.items():
        weeks.add_days(name, (row[column][:10] for row in archive.rows(name) if row[column] is not None))
    return weeks.as_json()


class _RecordBuilder:
    """Builds the canonical records of decisions and elicitations from an archive's rows."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
        self.calls: dict[int, Row] = {}
        self.of_task: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for row in archive.rows("calls"):
            call = {name: row[name] for name in ("id", *CALL_COLUMNS)} | {"answer": sha256(row["raw_response"])}
            call["record"] = call_record(**{name: row[name] for name in CALL_COLUMNS})
            call["raw_response"] = None
            self.calls[row["id"]] = call
            if not row["late"] and row["result"] not in UNANSWERED:
                kind = "decision" if row["decision"] is not None else "elicitation"
                self.of_task[kind, row[kind]].append(call)
        self.instructions = archive.grouped("instructions", "call")
        self.trades: dict[int, list[Row]] = defaultdict(list)
        for trade in archive.trades.values():
            self.trades[trade["decision"]].append(trade)
        self.entries = {row["id"]: (row["position"], row["question"]) for row in archive.rows("question_entries")}
        self.forecasts: dict[int, list[tuple[int, Row]]] = defaultdict(list)
        for row in archive.rows("forecasts"):
            if row["elicitation"] not in archive.elicitations:
                continue  # of a window, in which it was scored
            forecast = forecast_entry_record(
                call=self.calls[row["call"]]["sequence"],
                question=self.hashes[row["question"]],
                **{name: row[name] for name in ("probabilities", "stated", "normalised", "rationale")},
            )
            self.forecasts[row["elicitation"]].append((self.entries[row["entry"]][0], forecast))
        self.refused = archive.grouped("refused_forecasts", "call")

    def record(self, link: Row) -> dict[str, Any] | None:
        """The record of a link; None where its decision or elicitation is not in the archive."""
        kind = "decision" if link["decision"] is not None else "elicitation"
        task = getattr(self.archive, f"{kind}s").get(link[kind])
        if task is None:
            return None
        last = self.calls.get(link["call"], {})
        calls = sorted(self.of_task[kind, task["id"]], key=lambda call: call["sequence"])
        common = {
            "prompt": last.get("prompt_sha256"),
            "answer": last.get("answer"),
            "refusals": task["refusals"],
            "error": task["error"],
            "calls": [call["record"] for call in calls],
        }
        return self._decision(task, calls, common) if kind == "decision" else self._elicitation(task, calls, common)

    def _decision(self, decision: Row, calls: list[Row], common: Row) -> dict[str, Any]:
        archive = self.archive
        agent = archive.agents[decision["agent"]]
        universe = archive.universes.get(decision["universe"])
        trades = sorted(self.trades[decision["id"]], key=lambda trade: trade["sequence"])
        columns = ("sequence", "kind", "payload", "executed", "reason")
        return trading_record(
            cohort=decision["cohort"],
            week=decision["week"],
            family=agent["family"],
            model=agent["model_id"],
            methodology=archive.cohorts[decision["cohort"]]["methodology"],
            universe=universe["sha256"] if universe else None,
            action=decision["action"],
            fallback=decision["fallback"],
            reasoning=decision["reasoning_sha256"],
            instructions=[
                instruction_record(call=call["sequence"], **{name: row[name] for name in columns})
                for call in calls
                for row in sorted(self.instructions[call["id"]], key=lambda row: row["sequence"])
            ],
            trades=[self._trade(trade) for trade in trades],
            decided_at=decision["decided_at"],
            **common,
        )

    def _trade(self, trade: Row) -> Row:
        market = self.archive.markets[trade["market"]]
        names = ("sequence", "side", "kind", "implied_confidence", *TRADE_AMOUNTS)
        return trade_record(
            market=f"{market['source']}:{market['external_id']}", **{name: trade[name] for name in names}
        )

    def _elicitation(self, elicitation: Row, calls: list[Row], common: Row) -> dict[str, Any]:
        batch = self.archive.question_batches[elicitation["batch"]]
        question_set = self.archive.question_sets[batch["question_set"]]
        forecasts = sorted(self.forecasts[elicitation["id"]], key=lambda item: item[0])
        refused = [
            (call["sequence"], *self.entries[row["entry"]], row) for call in calls for row in self.refused[call["id"]]
        ]
        return forecast_record(
            day=question_set["day"],
            part=question_set["part"],
            batch=batch["number"],
            arm=batch["arm"],
            family=elicitation["family"],
            model=elicitation["model_id"],
            methodology=elicitation["methodology"],
            questions=question_set["sha256"],
            declined=elicitation["declined"],
            forecasts=[forecast for _, forecast in forecasts],
            refused=[
                refusal_record(call=call, question=self.hashes[question], stated=row["stated"], reason=row["reason"])
                for call, _, question, row in sorted(refused, key=lambda each: each[:2])
            ],
            made_at=elicitation["made_at"],
            **common,
        )
