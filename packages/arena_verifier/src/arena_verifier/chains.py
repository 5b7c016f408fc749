"""The hash chains: each link holds the hash of the record of a task, an archive or a publication of boards."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from arena_verifier.files import ArchiveTables
from arena_verifier.rows import Row, Tables, Violations, canonical, plain, sha256

GENESIS = "0" * 64
CHAINS = ("archive", "board", "forecast", "trading")
DOCUMENTS = ("LICENSE.txt", "README.md", "dictionary.json", "methodologies.json", "verify_arena.py")
WEEKLY = {
    "attempts": "noted_at", "brier_scores": "resolved_at", "decisions": "decided_at", "elicitations": "made_at",
    "forecast_scores": "resolved_at", "forecasts": "made_at", "journal": "occurred_at", "prices": "observed_at",
    "reversals": "reversed_at", "settlements": "settled_at", "snapshots": "taken_at", "trades": "executed_at",
}  # fmt: skip
RECORDED = ("archive", "board")
"""The chains whose links hold their records."""
TASKS = {"trading": ("decision", "decisions"), "forecast": ("elicitation", "elicitations")}
CALL = ("sequence", "attempt", "model", "returned_model", "provider", "quantization", "result", "finish_reason",
        "error", "prompt_sha256")  # fmt: skip
INSTRUCTION = ("sequence", "kind", "payload", "executed", "reason")
AMOUNTS = ("shares", "price", "amount", "cost_basis", "realized_pnl")


def check_chains(tables: Tables, violations: Violations) -> None:
    """Each link follows the one before it and hashes its record; the last ones are the heads that were published."""
    records, linked = TaskRecords(tables), set()
    heads = dict.fromkeys(CHAINS, (0, GENESIS))
    for link in tables.rows("chain"):
        protocol = link["protocol"]
        length, head = heads[protocol]
        if (link["sequence"], link["previous"]) != (length + 1, head):
            violations.note("chain", link, f"does not follow no. {length}, {head}")
        if link["sha256"] != sha256(f"{link['previous']}\n{link['record_sha256']}"):
            violations.note("chain", link, "is broken: its hash does not follow from its record and the one before")
        heads[protocol] = link["sequence"], link["sha256"]
        pks = {kind: link[kind] for kind, _ in TASKS.values() if link[kind] is not None}
        if protocol in RECORDED:
            if pks or link["call"] is not None or link["envelope"] is not None:
                violations.note("chain", link, f"is of the chain {protocol} and refers to a task")
            if sha256(canonical(link["record"])) != link["record_sha256"]:
                violations.note("chain", link, "has another hash than its record")
            continue
        kind, table = TASKS[protocol]
        if link["envelope"] is not None:
            if pks or link["record"] is not None or link["call"] is not None:
                violations.note("chain", link, "is of an envelope and of something else")
            if tables.is_whole and link["envelope"] not in tables.by("envelopes"):
                violations.note("chain", link, f"is of envelope {link['envelope']}, which is not in the archive")
            continue
        if list(pks) != [kind] or link["record"] is not None or (kind, link[kind]) in linked:
            violations.note("chain", link, f"is not of one {kind} alone")
        linked.add((kind, link[kind]))
        record = records.record(table, link[kind], link["call"])
        if record is None:
            if tables.is_whole:
                violations.note("chain", link, f"is of {kind} {link[kind]}, which is not in the archive")
        elif sha256(canonical(record)) != link["record_sha256"]:
            violations.note("chain", link, f"{kind} {link[kind]} differs from the record that was chained")
    published = {name: head for name, head in tables.heads().items() if name in heads}
    for protocol in sorted(heads.keys() | published.keys()):
        if heads.get(protocol) != published.get(protocol):
            violations.append(f"chain: {protocol} ends {heads.get(protocol)}, its head is {published.get(protocol)}")
    for kind, table in TASKS.values():
        for pk, task in tables.by(table).items():
            if (task["status"] == "completed") != ((kind, pk) in linked):
                chain = "in a chain" if (kind, pk) in linked else "in no chain"
                violations.note(table, task, f"is {task['status']} and {chain}")


class TaskRecords:
    """The canonical records of decisions and elicitations, from their rows."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.calls: dict[int, Row] = {}
        self.of_task: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for row in tables.rows("calls"):
            answer = sha256(row["raw_response"])
            call = {"id": row["id"], "sequence": row["sequence"], "prompt": row["prompt_sha256"], "answer": answer}
            self.calls[row["id"]] = call
            if not row["late"] and row["result"] not in ("sent", "lost"):
                call["record"] = {name: row[name] for name in CALL} | {"raw_response": answer}
                table = "decisions" if row["decision"] is not None else "elicitations"
                self.of_task[table, row["decision"] or row["elicitation"]].append(call)
        self.instructions = tables.grouped("instructions", "call")
        self.trades = tables.grouped("trades", "decision")
        self.entries, self.questions = tables.by("question_entries"), tables.by("questions")
        self.forecasts: dict[int, list[Row]] = defaultdict(list)
        for row in tables.rows("forecasts"):
            if row["samples"] is not None:
                continue  # recorded once all samples have ended: it follows from their calls
            forecast = {name: row[name] for name in ("call", "entry", "probabilities", "stated", "normalised")}
            self.forecasts[row["elicitation"]].append(forecast | {"rationale": sha256(row["rationale"])})
        self.refused = tables.grouped("refused_forecasts", "call")

    def record(self, table: str, pk: int, last: int | None) -> Row | None:
        """The record of a task whose last call has this id; None where the task is elsewhere."""
        task = self.tables.by(table).get(pk)
        if task is None:
            return None
        calls = sorted(self.of_task[table, pk], key=by_sequence)
        call = self.calls.get(last, {}) if last is not None else {}
        common = {
            "prompt": call.get("prompt"), "answer": call.get("answer"), "refusals": task["refusals"],
            "error": task["error"], "nonce": task["nonce"], "calls": [call["record"] for call in calls],
        }  # fmt: skip
        return common | (self.decision(task, calls) if table == "decisions" else self.elicitation(task, calls))

    def decision(self, row: Row, calls: list[Row]) -> Row:
        tables = self.tables
        agent, universe = tables.by("agents")[row["agent"]], tables.by("universes").get(row["universe"])
        instructions = []
        for call in calls:
            for instruction in sorted(self.instructions[call["id"]], key=by_sequence):
                instructions.append({"call": call["sequence"]} | {name: instruction[name] for name in INSTRUCTION})
        return {
            "protocol": "trading", "cohort": row["cohort"], "week": row["week"], "family": agent["family"],
            "model": agent["model_id"], "methodology": tables.by("cohorts", "number")[row["cohort"]]["methodology"],
            "universe": universe and universe["sha256"], "action": row["action"], "fallback": row["fallback"],
            "reasoning": sha256(row["reasoning"]), "decided_at": row["decided_at"], "instructions": instructions,
            "trades": [self.trade(trade) for trade in sorted(self.trades[row["id"]], key=by_sequence)],
        }  # fmt: skip

    def trade(self, row: Row) -> Row:
        market = self.tables.by("markets")[row["market"]]
        values = {name: row[name] for name in ("sequence", "side", "kind", "implied_confidence")}
        amounts = {name: plain(row[name]) for name in AMOUNTS}
        return values | amounts | {"market": f"{market['source']}:{market['external_id']}"}

    def elicitation(self, row: Row, calls: list[Row]) -> Row:
        batch = self.tables.by("question_batches")[row["batch"]]
        questions = self.tables.by("question_sets")[batch["question_set"]]
        forecasts = []
        for forecast in sorted(self.forecasts[row["id"]], key=self.position):
            record = {name: forecast[name] for name in ("probabilities", "stated", "normalised", "rationale")}
            forecasts.append(record | {"call": self.calls[forecast["call"]]["sequence"]} | self.question(forecast))
        refused = []
        for call in calls:
            for refusal in sorted(self.refused[call["id"]], key=self.position):
                record = {"call": call["sequence"], "stated": refusal["stated"], "reason": refusal["reason"]}
                refused.append(record | self.question(refusal))
        return {
            "protocol": "forecast", "day": questions["day"], "part": questions["part"], "batch": batch["number"],
            "arm": batch["arm"], "family": row["family"], "model": row["model_id"], "methodology": row["methodology"],
            "questions": questions["sha256"], "declined": row["declined"], "made_at": row["made_at"],
            "forecasts": forecasts, "refused": refused, **({"sample": row["sample"]} if row["sample"] > 1 else {}),
        }  # fmt: skip

    def position(self, row: Row) -> int:
        return int(self.entries[row["entry"]]["position"])

    def question(self, row: Row) -> Row:
        return {"question": self.questions[self.entries[row["entry"]]["question"]]["options_sha256"]}


def by_sequence(row: Row) -> int:
    return int(row["sequence"])


def check_record(archive: ArchiveTables, violations: Violations) -> None:
    """The last record of the chain of archives is of this archive: its selection, rows and documents."""
    record: Any = None
    for link in archive.rows("chain"):
        record = link["record"] if link["protocol"] == "archive" else record
    if record is None:
        violations.append("chain: it holds no record of this archive")
        return
    facts = {name: archive.manifest[name] for name in ("made_at", "selection")}
    facts["chains"] = {name: head for name, head in archive.manifest["chains"].items() if name != "archive"}
    facts["weeks"] = dict(rows_by_week(archive))
    for name, value in facts.items():
        if record[name] != value:
            violations.append(f"chain: the record of this archive has {name} {record[name]}, the archive {value}")
    for name in DOCUMENTS:
        if archive.hash(name) != record["documents"][name]:
            violations.append(f"{name}: its hash is not the one in the record of this archive")
    if record["tables"].keys() != set(archive.table_names()) - {"chain"}:
        violations.append("chain: the record of this archive is of other tables")
    for name, table in record["tables"].items():
        rows, digest = archive.digest(name)
        if digest != table["sha256"]:
            violations.append(f"{name}: its rows are not those in the record of this archive")
        if rows != table["rows"]:
            violations.append(f"{name}: {rows} rows, the record of this archive says {table['rows']}")


def rows_by_week(archive: ArchiveTables) -> Iterator[tuple[str, dict[str, int]]]:
    """The tables with times, and their rows by the Sunday on which their week starts."""
    for table, column in sorted(WEEKLY.items()):
        weeks: Counter[str] = Counter()
        for day, rows in Counter(row[column][:10] for row in archive.rows(table) if row[column]).items():
            at = datetime.fromisoformat(day)
            weeks[(at - timedelta(days=(at.weekday() + 1) % 7)).date().isoformat()] += rows
        if weeks:
            yield table, dict(sorted(weeks.items()))
