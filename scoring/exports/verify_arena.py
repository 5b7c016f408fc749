"""Verifies an archive of Forecaster Arena: python verify_arena.py DIR [--key PUBLIC_KEY]

Needs Python 3.11 and nothing else, and shares no code with the arena. It reads the CSV files and checks

- the SHA-256 of every file, the hash chains over decisions, forecasts and archives, and their signature;
- the receipts of external agents: their chain and signatures, and that each answer is here as it was received;
- that prompts, universes and question sets are those whose hashes the chains hold;
- the ledger: trades, journals, positions, settlements, and the cash and value of every agent, now and in snapshots;
- the outcomes of questions, which follow from their markets;
- the Brier score of every bet and forecast, and both leaderboards: ranks, means and standard errors, and of the
  trading leaderboard all intervals and rank ranges.

docs/data.md of the arena describes each rule. Exit codes: 0 sound, 1 violations, 2 no archive or beyond a limit,
3 sound as far as it goes, but only a part (a cohort, or a window of time).
"""

import argparse
import csv
import hashlib
import json
import math
import re
import stat
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median, stdev

GENESIS = "0" * 64
CHAINS = ("archive", "forecast", "trading")
DOCUMENTS = ("LICENSE.txt", "README.md", "dictionary.json", "methodologies.json", "verify_arena.py")
WEEKLY = {
    "attempts": "noted_at", "brier_scores": "resolved_at", "decisions": "decided_at", "elicitations": "made_at",
    "forecast_scores": "resolved_at", "forecasts": "made_at", "journal": "occurred_at", "prices": "observed_at",
    "reversals": "reversed_at", "settlements": "settled_at", "snapshots": "taken_at", "trades": "executed_at",
}  # fmt: skip
CALL = ("sequence", "attempt", "model", "returned_model", "provider", "quantization", "result", "finish_reason",
        "error", "prompt_sha256")  # fmt: skip
INSTRUCTION = ("sequence", "kind", "payload", "executed", "reason")
AMOUNTS = ("shares", "price", "amount", "cost_basis", "realized_pnl")
LEFT = {
    "leaderboard_forecast": "rank_low, rank_high, brier_se, brier_ci, average_return, figures",
    "forecasts": "probabilities, stated, normalised, rationale against the raw answers",
    "decisions": "answers that are not plain JSON, and all instructions, against the raw answers",
}
"""What `verify_export` recomputes and this program only checks by the hash of its table."""
ZERO, CENT, MICROSHARE = Decimal(0), Decimal("0.01"), Decimal("0.000001")
LOG_CLIP, TIE, TOLERANCE, EXTREMISING, EQUAL_COVERAGE = 1e-6, 1e-12, 1e-9, 1.5, 0.95
LEVEL, LEAST_COHORTS, LEAST_EVENTS, NO_SPREAD = 0.95, 2, 4, 1e-10
WEEK = timedelta(weeks=1)
REFERENCES = ("market", "uniform", "ensemble", "ensemble_median", "ensemble_extremised")
MAX_BYTES, MAX_FILES, MAX_JSON, MAX_CELL, MAX_SHOWN = 2**32, 1_000, 2**26, 2**26, 20


class UnreadableArchive(Exception):
    """The folder is no archive that can be read, or is beyond a limit."""


class Violations(list):
    """The violations found so far, as lines."""

    def differ(self, row, stated, computed):
        """Adds a line for each computed figure of a row that differs from the stated one."""
        for name, value in computed.items():
            if not same(stated[name], value):
                self.append(f"{row} states {name} {str(stated[name])[:80]}, computed is {str(value)[:80]}")


def same(one, other):
    """Equality, of floating point numbers up to 1e-9, also within lists."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return one is other if one is None or other is None else math.isclose(one, other, rel_tol=TOLERANCE,
                                                                              abs_tol=TOLERANCE)  # fmt: skip
    return one == other


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value):
    """Canonical JSON: sorted keys, no spaces, ASCII, the shortest form of floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def plain(number):
    """A decimal without an exponent or trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cents(amount):
    return amount.quantize(CENT, ROUND_HALF_EVEN)


def fill(template, **blocks):
    """A prompt template with its blocks; {{ and }} are braces. Nothing of `str.format` that a forger could abuse."""
    return re.sub(r"\{\{|\}\}|\{(\w+)\}", lambda m: blocks[m[1]] if m[1] else m[0][0], template)


# Files


class ArchiveFiles:
    """The files of an archive. Every table has the columns that its dictionary names."""

    def __init__(self, folder):
        self.folder, self.cache = folder, {}
        self.files = self.list_files()
        self.manifest = self.json("manifest.json")
        self.selection = self.manifest["selection"]
        self.is_window = bool(self.selection["from"] or self.selection["to"])
        self.is_whole = not self.is_window and self.selection["cohort"] is None
        self.tables = {
            table["table"]: [(column["name"], column["type"]) for column in table["columns"]]
            for table in self.json("dictionary.json")
        }
        if "csv" not in self.manifest["formats"]:
            raise UnreadableArchive("the archive holds no CSV, which is all that this program reads")

    def list_files(self):
        """The sizes of the regular files by their paths, within the limits."""
        if not self.folder.is_dir():
            raise UnreadableArchive(f"{self.folder}: there is no such folder")
        sizes = {}
        for path in self.folder.rglob("*"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                sizes[path.relative_to(self.folder).as_posix()] = status.st_size
            if len(sizes) > MAX_FILES:
                raise UnreadableArchive(f"more files than the limit of {MAX_FILES:,}")
        if (total := sum(sizes.values())) > MAX_BYTES:
            raise UnreadableArchive(f"{total:,} bytes, above the limit of {MAX_BYTES:,} bytes")
        return sizes

    def path(self, name):
        if name not in self.files:
            raise UnreadableArchive(f"{name}: is missing")
        return self.folder / name

    def json(self, name):
        path = self.path(name)
        if self.files[name] > MAX_JSON:
            raise UnreadableArchive(f"{name}: {self.files[name]:,} bytes, above the limit of {MAX_JSON:,} bytes")
        return json.loads(path.read_text(encoding="utf-8"))

    def hash(self, name):
        with self.path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def rows(self, table):
        """The rows of a table, one at a time: decimals, integers, floats, booleans, JSON; times and texts as text."""
        names, parsers = [name for name, _ in self.tables[table]], [PARSERS[kind] for _, kind in self.tables[table]]
        with self.path(f"csv/{table}.csv").open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if next(lines, None) != names:
                raise ValueError(f"{table}.csv: its columns are not those of the dictionary")
            for line in lines:
                if len(line) != len(names):
                    raise ValueError(f"{table}.csv: line {lines.line_num} has {len(line)} cells, not {len(names)}")
                yield {name: parse(cell) for name, parse, cell in zip(names, parsers, line, strict=True)}

    def by(self, table, key="id"):
        """The rows of a table by a key of theirs, read once."""
        if (table, key) not in self.cache:
            self.cache[table, key] = {row[key]: row for row in self.rows(table)}
        return self.cache[table, key]

    def grouped(self, table, key):
        groups = defaultdict(list)
        for row in self.rows(table):
            groups[row[key]].append(row)
        return groups

    def methodology(self, version):
        return next(row for row in self.json_once("methodologies.json") if row["version"] == version)

    def rules_of(self, agent):
        cohort = self.by("cohorts", "number")[self.by("agents")[agent]["cohort"]]
        return self.methodology(cohort["methodology"])

    def json_once(self, name):
        if name not in self.cache:
            self.cache[name] = self.json(name)
        return self.cache[name]


def unescape(text):
    """A text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return text[1:] if text[:1] == "'" else text


def number(pattern, convert):
    """A parser of numbers of bounded length, so that no huge exponent can exhaust the memory."""
    return lambda text: None if text == "" else convert(re.fullmatch(pattern, text)[0])


PARSERS = {
    "text": unescape,
    "json": lambda text: json.loads(unescape(text)) if text else None,
    "boolean": {"": None, "true": True, "false": False}.__getitem__,
    "time": lambda text: text or None,
    "integer": number(r"-?\d{1,18}", int),
    "decimal": number(r"-?\d{1,20}(\.\d{1,12})?", Decimal),
    "number": number(r"-?\d{1,25}(\.\d{1,25})?(e[+-]?\d{1,3})?", float),
}


def check_files(archive, found):
    """Every file has the hash of the manifest, the manifest its own, and there are no others."""
    manifest = archive.manifest
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    if sha256(canonical(rest)) != manifest["sha256"]:
        found.append("manifest.json: its hash does not match its contents")
    for name in sorted(archive.files.keys() - manifest["files"].keys() - {"manifest.json"}):
        found.append(f"{name}: is not in the manifest")
    for name, stated in sorted(manifest["files"].items()):
        if name not in archive.files:
            found.append(f"{name}: is missing")
        elif archive.hash(name) != stated["sha256"] or archive.files[name] != stated["bytes"]:
            found.append(f"{name}: its SHA-256 is not the one in the manifest")
    for table in archive.tables:
        rows = sum(1 for _ in archive.rows(table))
        if rows != manifest["files"][f"csv/{table}.csv"]["rows"]:
            found.append(f"csv/{table}.csv: {rows} rows, against the manifest")


# Hash chains


def check_chains(archive, found):
    """Each link follows the one before it and hashes its record; the last ones are the heads of the manifest."""
    records, heads, linked = task_records(archive), dict.fromkeys(CHAINS, (0, GENESIS)), set()
    last = None
    for link in archive.rows("chain"):
        protocol = link["protocol"]
        row = f"chain: {protocol} link {link['sequence']}"
        length, head = heads[protocol]
        if (link["sequence"], link["previous"]) != (length + 1, head):
            found.append(f"{row} does not follow no. {length}")
        if link["sha256"] != sha256(f"{link['previous']}\n{link['record_sha256']}"):
            found.append(f"{row}: its hash does not follow from its record and the hash before it")
        heads[protocol] = link["sequence"], link["sha256"]
        if protocol == "archive":
            last = record = link["record"]
        else:
            task = (protocol, link["decision"] if protocol == "trading" else link["elicitation"])
            linked.add(task)
            record = records(task, link["call"])
        if record is None:
            if archive.is_whole:
                found.append(f"{row}: its task is not in the archive")
        elif sha256(canonical(record)) != link["record_sha256"]:
            found.append(f"{row} differs from the record that was chained")
    stated = {
        name: (head["length"], head["head"]) for name, head in archive.manifest["chains"].items() if name in heads
    }
    if stated != heads:
        found.append(f"chain: it ends {heads}, the manifest says {stated}")
    for protocol, table in (("trading", "decisions"), ("forecast", "elicitations")):
        for pk, task in archive.by(table).items():
            if (task["status"] == "completed") != ((protocol, pk) in linked):
                found.append(f"chain: {table} {pk} is {task['status']}, against the chain")
    if last is None:
        found.append("chain: it holds no record of this archive")
    else:
        check_record(archive, last, found)


def check_record(archive, record, found):
    """The last record of the chain of archives is of this archive."""
    manifest = archive.manifest
    due = {name: manifest[name] for name in ("made_at", "selection")}
    due["chains"] = {name: head for name, head in manifest["chains"].items() if name != "archive"}
    due["weeks"] = {table: weeks for table in sorted(WEEKLY) if (weeks := rows_by_week(archive, table))}
    found.differ("chain: the record of this archive", record, due)
    for name in DOCUMENTS:
        if archive.hash(name) != record["documents"][name]:
            found.append(f"{name}: its hash is not the one in the record of this archive")
    if record["tables"].keys() != archive.tables.keys() - {"chain"}:
        found.append("chain: the record of this archive is of other tables")
    for name, stated in record["tables"].items():
        if archive.hash(f"csv/{name}.csv") != stated["sha256"]:
            found.append(f"{name}: its rows are not those in the record of this archive")
        if manifest["files"][f"csv/{name}.csv"]["rows"] != stated["rows"]:
            found.append(f"{name}: its number of rows is not that in the record of this archive")


def rows_by_week(archive, table):
    """Rows by the Sunday on which their week starts."""
    weeks = Counter()
    for row in archive.rows(table):
        if row[WEEKLY[table]] is not None:
            day = datetime.fromisoformat(row[WEEKLY[table]][:10])
            weeks[(day - timedelta(days=(day.weekday() + 1) % 7)).date().isoformat()] += 1
    return dict(sorted(weeks.items()))


def task_records(archive):
    """A function from a task, and the id of its last call, to its canonical record; None where it is elsewhere."""
    calls, of_task = {}, defaultdict(list)
    for row in archive.rows("calls"):
        answer = sha256(row["raw_response"])
        calls[row["id"]] = {"sequence": row["sequence"], "prompt": row["prompt_sha256"], "answer": answer}
        if not row["late"] and row["result"] not in ("sent", "lost"):
            task = ("trading", row["decision"]) if row["decision"] is not None else ("forecast", row["elicitation"])
            record = {name: row[name] for name in CALL} | {"raw_response": answer}
            of_task[task].append((row["sequence"], row["id"], record))
    instructions, trades = archive.grouped("instructions", "call"), archive.grouped("trades", "decision")
    forecasts, refused = archive.grouped("forecasts", "elicitation"), archive.grouped("refused_forecasts", "call")
    entries, questions, markets = (archive.by(name) for name in ("question_entries", "questions", "markets"))

    def asked(row):
        return entries[row["entry"]]["position"]

    def question(row):
        return questions[entries[row["entry"]]["question"]]["options_sha256"]

    def record(task, last):
        protocol, pk = task
        row = archive.by("decisions" if protocol == "trading" else "elicitations").get(pk)
        if row is None:
            return None
        own, call = sorted(of_task[task], key=lambda each: each[0]), calls.get(last, {})
        common = {
            "protocol": protocol, "prompt": call.get("prompt"), "answer": call.get("answer"),
            "refusals": row["refusals"], "error": row["error"], "calls": [each for _, _, each in own],
        }  # fmt: skip
        return common | (decision(row, own) if protocol == "trading" else elicitation(row, own))

    def decision(row, own):
        agent, universe = archive.by("agents")[row["agent"]], archive.by("universes").get(row["universe"])
        return {
            "cohort": row["cohort"], "week": row["week"], "family": agent["family"], "model": agent["model_id"],
            "methodology": archive.by("cohorts", "number")[row["cohort"]]["methodology"],
            "universe": universe and universe["sha256"], "action": row["action"], "fallback": row["fallback"],
            "reasoning": sha256(row["reasoning"]), "decided_at": row["decided_at"],
            "instructions": [
                {"call": sequence} | {name: each[name] for name in INSTRUCTION}
                for sequence, pk, _ in own
                for each in sorted(instructions[pk], key=lambda each: each["sequence"])
            ],
            "trades": [trade(each) for each in sorted(trades[row["id"]], key=lambda each: each["sequence"])],
        }  # fmt: skip

    def trade(row):
        market = markets[row["market"]]
        named = {name: row[name] for name in ("sequence", "side", "kind", "implied_confidence")}
        amounts = {name: plain(row[name]) for name in AMOUNTS}
        return named | amounts | {"market": f"{market['source']}:{market['external_id']}"}

    def elicitation(row, own):
        batch = archive.by("question_batches")[row["batch"]]
        asked_in = archive.by("question_sets")[batch["question_set"]]
        return {
            "day": asked_in["day"], "part": asked_in["part"], "batch": batch["number"], "arm": batch["arm"],
            "family": row["family"], "model": row["model_id"], "methodology": row["methodology"],
            "questions": asked_in["sha256"], "declined": row["declined"], "made_at": row["made_at"],
            "forecasts": [
                {"call": calls[each["call"]]["sequence"], "question": question(each),
                 "rationale": sha256(each["rationale"])}
                | {name: each[name] for name in ("probabilities", "stated", "normalised")}
                for each in sorted(forecasts[row["id"]], key=asked)
            ],
            "refused": [
                {"call": sequence, "question": question(each), "stated": each["stated"], "reason": each["reason"]}
                for sequence, pk, _ in own
                for each in sorted(refused[pk], key=asked)
            ],
        }  # fmt: skip

    return record


# The signature of the heads: Ed25519 of RFC 8032, verification alone


def check_signature(archive, found, key):
    """The heads of the manifest are signed, and by the expected key where one is given."""
    anchor = archive.json("anchor.json")
    statement = {name: value for name, value in anchor.items() if name not in ("public_key", "signature")}
    if anchor["chains"] != archive.manifest["chains"]:
        found.append("anchor.json: it is about other heads than the manifest's")
    message = canonical(statement).encode()
    if not is_signed(bytes.fromhex(anchor["public_key"]), message, bytes.fromhex(anchor["signature"])):
        found.append("anchor.json: its signature is not that of its key")
    if key is not None and key.lower() != anchor["public_key"]:
        found.append(f"anchor.json: it is signed by {anchor['public_key']}")


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(one, other):
    """The sum of two points in extended coordinates (X, Y, Z, T)."""
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


@lru_cache(maxsize=8)
def doublings(point):
    """A point times 1, 2, 4, …: of the base and of a key once for all signatures."""
    points = [point]
    while len(points) < 256:
        points.append(add(points[-1], points[-1]))
    return points


def times(factor, point):
    result = (0, 1, 1, 0)
    for double in doublings(point):
        if factor & 1:
            result = add(result, double)
        factor >>= 1
    return result


def point_of(encoded):
    """The point of 32 bytes; None where they encode none."""
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * ROOT % P
    if y >= P or (x * x - square) % P or (x == 0 and encoded[31] >> 7):
        return None
    x = P - x if (x & 1) != encoded[31] >> 7 else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(key, message, signature):
    """True if the signature of a message is that of the owner of a public key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, committed = point_of(key), point_of(signature[:32])
    factor = int.from_bytes(signature[32:], "little")
    if owner is None or committed is None or factor >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    one, other = times(factor, BASE), add(committed, times(challenge, owner))
    return all((one[i] * other[2] - other[i] * one[2]) % P == 0 for i in (0, 1))


# Receipts

STATED = ("version", "task", "answer_sha256", "prompt_sha256", "received_at", "sequence", "previous")


def check_receipts(archive, found):
    """Each receipt follows the one before it, is signed by a key in use, and its answer is here as it was received."""
    keys, receipts = archive.by("signing_keys", "key_id"), list(archive.rows("receipts"))
    for name, key in keys.items():
        if hashlib.sha256(bytes.fromhex(key["public_key"])).hexdigest()[:16] != name:
            found.append(f"signing_keys: {name} is not the id of its key")
    of_receipts, answers = {row["call"] for row in receipts}, {}
    for call in archive.rows("calls"):
        if call["id"] in of_receipts:
            answers[call["id"]] = {
                "answer_sha256": sha256(call["raw_response"]), "prompt_sha256": call["prompt_sha256"],
                **dict(zip(("family", "task"), task_name(archive, call["decision"], call["elicitation"]), strict=True)),
            }  # fmt: skip
    tasks = {task_name(archive, pk, None) for pk in archive.by("decisions")}
    tasks |= {task_name(archive, None, pk) for pk in archive.by("elicitations")}
    length, head = 0, GENESIS
    for row in receipts:
        receipt, body = f"receipts: receipt {row['sequence']}", {"agent": row["family"]}
        body |= {name: row[name] for name in STATED}
        message, key = canonical(body), keys.get(row["key_id"])
        if (row["sequence"], row["previous"]) != (length + 1, head):
            found.append(f"{receipt} does not follow no. {length}")
        if sha256(message) != row["sha256"]:
            found.append(f"{receipt}: its sha256 is not that of its body")
        length, head = row["sequence"], row["sha256"]
        if key is None or not is_signed(
            bytes.fromhex(key["public_key"]), message.encode(), bytes.fromhex(row["signature"])
        ):
            found.append(f"{receipt}: its signature is not that of the key {row['key_id']}")
        elif not (key["began_at"] or "") <= row["received_at"] <= (key["ended_at"] or "~"):
            found.append(f"{receipt}: the key {row['key_id']} was not in use at {row['received_at']}")
        answer = answers.get(row["call"])
        if answer is None:
            if archive.is_whole or (row["family"], row["task"]) in tasks:
                found.append(f"{receipt}: the answer of {row['family']} to {row['task']} is missing")
            continue
        for name, value in answer.items():
            if row[name] != value:
                found.append(f"{receipt}: the answer of {row['family']} to {row['task']} is another: {name} is {value}")
    if {"length": length, "head": head} != archive.manifest["chains"].get("receipt"):
        found.append(f"receipts: they end {length} {head}, against the manifest")


def task_name(archive, decision, elicitation):
    """The family of a task and its name in receipts."""
    if decision is not None:
        row = archive.by("decisions")[decision]
        return archive.by("agents")[row["agent"]]["family"], f"agent-{row['agent']}-universe-{row['universe']}"
    row = archive.by("elicitations")[elicitation]
    return row["family"], f"batch-{row['batch']}"


# Texts


def check_texts(archive, found):
    """Prompts, universes, question sets and methodologies are those of their hashes."""
    texts = {}
    for row in archive.rows("prompts"):
        texts[row["sha256"]] = row["text"]
        if sha256(row["text"]) != row["sha256"]:
            found.append(f"prompts: the text {row['sha256']} has another hash")
    digests = {(row["kind"], row["id"]): row["sha256"] for row in archive.rows("blocks")}
    markets, questions = archive.by("markets"), archive.by("questions")
    entries = archive.grouped("universe_entries", "universe")
    for pk, universe in archive.by("universes").items():
        lines = []
        for entry in sorted(entries[pk], key=lambda entry: entry["position"]):
            market = markets[entry["market"]]
            named = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*named, entry["prices"], entry["sources"]], sort_keys=True))
        if sha256("\n".join([*lines, digests.get(("markets", pk), "")])) != universe["sha256"]:
            found.append(f"universes: universe {pk} has another hash than its entries and texts")
    entries = archive.grouped("question_entries", "question_set")
    for pk, asked in archive.by("question_sets").items():
        lines = []
        for entry in sorted(entries[pk], key=lambda entry: entry["position"]):
            question = questions[entry["question"]]
            named = [entry["position"], entry["batch"], question["options_sha256"], question["text"], question["rules"]]
            lines.append(json.dumps([*named, entry["reason"], entry["prices"]], sort_keys=True))
        if sha256("\n".join(lines)) != asked["sha256"]:
            found.append(f"question_sets: set {pk} has another hash than its entries")
    for call in archive.rows("calls"):
        system, user = messages(archive, call, lambda kind, pk: texts.get(digests.get((kind, pk)), ""))
        if sha256(f"{system}\0{user}") != call["prompt_sha256"]:
            found.append(f"calls: the prompt of call {call['id']} has another hash than its blocks")
        check_plain_answer(archive, call, found)


def messages(archive, call, block):
    """The system and the user message of a call."""
    if call["decision"] is not None:
        decision = archive.by("decisions")[call["decision"]]
        rules = archive.rules_of(decision["agent"])
        blocks = {"portfolio": call["portfolio_block"], "positions": call["positions_block"]}
        blocks |= {"awaiting": call["awaiting"], "markets": block("markets", decision["universe"])}
    else:
        elicitation = archive.by("elicitations")[call["elicitation"]]
        rules = archive.methodology(elicitation["methodology"])["forecast"]
        batch = archive.by("question_batches")[elicitation["batch"]]
        day = archive.by("question_sets")[batch["question_set"]]["day"][:10]
        blocks = {"date": day, "questions": call["questions_block"] or block("questions", batch["id"])}
    return rules["system_prompt"], fill(rules["user_prompt"], **blocks) + call["retry_note"]


def check_plain_answer(archive, call, found):
    """The action and reasoning of a decision are those of its answer, where that is plain JSON."""
    decision = archive.by("decisions").get(call["decision"])
    if decision is None or call["result"] != "answered" or call["late"] or decision["status"] != "completed":
        return
    try:
        content = call["raw_response"]
        if call["http_status"] is not None:
            content = json.loads(content)["choices"][0]["message"]["content"]
        answer = json.loads(content)
        # A database can store neither NUL nor half a pair of surrogates.
        reasoning = re.sub("[\0\ud800-\udfff]", "\ufffd", answer.get("reasoning") or "")
        stated = {"action": answer["action"].strip().upper(), "reasoning": reasoning}
    except (ValueError, LookupError, TypeError, AttributeError):
        return  # read leniently by the arena: left to verify_export
    found.differ(f"decisions: decision {decision['id']}", decision, stated)


# The ledger


def check_trades(archive, found):
    """Each trade has its universe's price, from which shares and amounts follow; and its decision's agent and time."""
    prices = {(row["universe"], row["market"]): row["prices"] for row in archive.rows("universe_entries")}
    before = {row["trade"]: row["balance"] - row["amount"] for row in archive.rows("journal") if row["trade"]}
    for pk, trade in archive.by("trades").items():
        decision, outcome = archive.by("decisions")[trade["decision"]], archive.by("outcomes")[trade["outcome"]]
        frozen = prices.get((decision["universe"], trade["market"]), {}).get(trade["side"])
        due = {"agent": decision["agent"], "executed_at": decision["decided_at"], "side": outcome["side"]}
        due |= {"market": outcome["market"], "price": None if frozen is None else Decimal(frozen)}
        if trade["kind"] == "BUY":
            shares = (trade["amount"] / trade["price"]).quantize(MICROSHARE, ROUND_HALF_EVEN)
            due |= {"shares": shares, "cost_basis": trade["amount"], "realized_pnl": ZERO}
            if cash := before.get(pk):
                largest = cash * Decimal(archive.rules_of(trade["agent"])["maximum_bet_fraction"])
                due["implied_confidence"] = min(float(trade["amount"] / largest), 1.0)
        else:
            amount = cents(trade["shares"] * trade["price"])
            due |= {"amount": amount, "realized_pnl": amount - trade["cost_basis"], "implied_confidence": None}
        found.differ(f"trades: trade {pk}", trade, due)


def check_journals(archive, found):
    """Every change of cash has a cause with that amount and time, and balances add up to the agents' cash."""
    trades, settlements = archive.by("trades"), archive.by("settlements")
    reversals = {(row["agent"], row["journal_sequence"]): row for row in archive.rows("reversals")}
    balance, length, causes = defaultdict(lambda: ZERO), Counter(), set()
    for entry in archive.rows("journal"):
        agent = entry["agent"]
        length[agent] += 1
        if entry["trade"] is not None:
            trade = trades[entry["trade"]]
            bought = trade["kind"] == "BUY"
            due = {"kind": "buy" if bought else "sell", "amount": -trade["amount"] if bought else trade["amount"]}
            due |= {"agent": trade["agent"], "occurred_at": trade["executed_at"]}
            causes.add(("trades", entry["trade"]))
        elif entry["settlement"] is not None:
            settled = settlements[entry["settlement"]]
            kind = "refund" if settled["kind"] == "refunded" else "payout"
            due = {"kind": kind, "amount": settled["payout"], "occurred_at": settled["settled_at"]}
            due |= {"agent": settled["agent"]}
            causes.add(("settlements", entry["settlement"]))
        elif (agent, entry["sequence"]) in reversals:
            change = reversals.pop((agent, entry["sequence"]))
            amount = change["payout"] - change["previous_payout"]
            due = {"kind": "reversal", "amount": amount, "occurred_at": change["reversed_at"]}
        else:
            started = archive.by("cohorts", "number")[archive.by("agents")[agent]["cohort"]]["started_at"]
            opening = Decimal(archive.rules_of(agent)["starting_balance"])
            due = {"kind": "deposit", "amount": opening, "occurred_at": started, "sequence": 1}
        balance[agent] += due["amount"]
        due |= {"balance": balance[agent], "sequence": length[agent]}
        found.differ(f"journal: no. {entry['sequence']} of agent {agent}", entry, due)
    for table, rows in (("trades", trades), ("settlements", settlements)):
        found.extend(f"journal: {table} {pk} is not in it" for pk in rows if (table, pk) not in causes)
    found.extend(f"journal: reversal {row['id']} is not in it" for row in reversals.values())
    for pk, agent in archive.by("agents").items():
        found.differ(f"agents: agent {pk}", agent, {"cash": balance[pk]})


def check_positions(archive, found):
    """Holdings follow from trades and settlements, payouts from the results of markets."""
    trades, settlements = archive.grouped("trades", "position"), archive.by("settlements", "position")
    reversals, settled = archive.grouped("reversals", "position"), set()
    for pk, position in archive.by("positions").items():
        own, shares, cost, profit = trades.pop(pk, []), ZERO, ZERO, ZERO
        for trade in own:
            sign = 1 if trade["kind"] == "BUY" else -1
            shares, cost = shares + sign * trade["shares"], cost + sign * trade["cost_basis"]
            profit += trade["realized_pnl"]
            identity = {"agent": position["agent"], "outcome": position["outcome"], "market": position["market"]}
            found.differ(f"trades: trade {trade['id']}", trade, identity)
        due = {"opened_at": own[0]["executed_at"] if own else None, "status": "open", "closed_at": None}
        if not shares:
            due |= {"status": "closed", "closed_at": own[-1]["executed_at"] if own else None}
        if settlement := settlements.get(pk):
            settled.add(pk)
            changes = sorted(reversals.pop(pk, []), key=lambda change: change["sequence"])
            check_payouts(archive, found, position, settlement, changes, shares, cost)
            profit += settlement["realized_pnl"] + sum(row["payout"] - row["previous_payout"] for row in changes)
            refunded = (changes or [settlement])[-1]["kind"] == "refunded"
            due |= {"status": "cancelled" if refunded else "settled", "closed_at": settlement["settled_at"]}
            shares = cost = ZERO
        due |= {"shares": shares, "cost_basis": cost, "realized_pnl": profit}
        found.differ(f"positions: position {pk}", position, due)
    for table, rest in (("trades", trades), ("settlements", settlements.keys() - settled), ("reversals", reversals)):
        found.extend(f"{table}: of position {pk}, which is not in the archive" for pk in rest)


def check_payouts(archive, found, position, settlement, changes, shares, cost):
    """The last result of a position is that of its market; each payout follows from its own result."""
    market = archive.by("markets")[position["market"]]
    won = market["winning_outcome"] == position["outcome"]
    result = "refunded" if market["status"] == "cancelled" else "won" if won else "lost"
    payouts = {"won": cents(shares), "lost": ZERO, "refunded": cost}
    if market["status"] not in ("resolved", "cancelled"):
        found.append(f"settlements: settlement {settlement['id']}: its market is {market['status']}")
    identity = {"agent": position["agent"], "market": position["market"]}
    kind = settlement["kind"] if changes else result
    payout = payouts[kind]
    due = {"kind": kind, "shares": shares, "cost_basis": cost, "payout": payout, "realized_pnl": payout - cost}
    found.differ(f"settlements: settlement {settlement['id']}", settlement, due | identity)
    paid = settlement["payout"]
    for place, change in enumerate(changes, start=1):
        kind = result if place == len(changes) else change["kind"]
        due = {"sequence": place, "kind": kind, "previous_payout": paid, "payout": payouts[kind]}
        found.differ(f"reversals: reversal {change['id']}", change, due | identity)
        paid = change["payout"]


def check_agents(archive, found):
    """Values of agents follow from cash, positions and last prices, their records from bet scores."""
    value, scores = defaultdict(lambda: ZERO), archive.grouped("brier_scores", "agent")
    for position in archive.by("positions").values():
        if position["status"] == "open":
            value[position["agent"]] += mark(position, archive.by("outcomes")[position["outcome"]]["price"])
    for pk, agent in archive.by("agents").items():
        opening = Decimal(archive.rules_of(pk)["starting_balance"])
        total, own = agent["cash"] + value[pk], scores[pk]
        due = {"starting_balance": opening, "positions_value": value[pk], "total_value": total}
        due |= {"pnl": total - opening, "return_percent": float((total - opening) / opening * 100)}
        due |= {"resolved_bets": len(own), "brier": fmean(row["score"] for row in own) if own else None}
        due["win_rate"] = sum(row["outcome"] for row in own) / len(own) if own else None
        found.differ(f"agents: agent {pk}", agent, due)


def mark(holding, price):
    """The value of shares at a price, to the cent; at cost where there is none."""
    return holding["cost_basis"] if price is None else cents(holding["shares"] * price)


def check_snapshots(archive, found):
    """Cash and value of each snapshot are those of a moment of its account, at the prices known then."""
    moments = defaultdict(list)
    held, settlements, trades = defaultdict(dict), archive.by("settlements"), archive.by("trades")
    for entry in archive.rows("journal"):
        own = dict(held[entry["agent"]])
        if entry["trade"] is not None:
            trade = trades[entry["trade"]]
            sign, before = 1 if trade["kind"] == "BUY" else -1, own.get(trade["position"])
            before = before or {"outcome": trade["outcome"], "shares": ZERO, "cost_basis": ZERO}
            now = {name: before[name] + sign * trade[name] for name in ("shares", "cost_basis")}
            own[trade["position"]] = before | now
        elif entry["settlement"] is not None:
            own.pop(settlements[entry["settlement"]]["position"], None)
        held[entry["agent"]] = {pk: holding for pk, holding in own.items() if holding["shares"]}
        moments[entry["agent"]].append((entry["occurred_at"], entry["balance"], held[entry["agent"]]))
    wanted, times, prices = {row["outcome"] for row in archive.rows("positions")}, defaultdict(list), defaultdict(list)
    for row in archive.rows("prices"):
        if row["outcome"] in wanted:
            times[row["outcome"]].append(row["observed_at"])
            prices[row["outcome"]].append(row["price"])

    def worth(moment, at, way):
        """Cash and value at the last prices by an instant, the first ones of it, or the last ones before it."""
        total = ZERO
        for holding in moment[2].values():
            known = times[holding["outcome"]]
            before, by_then = bisect_left(known, at), bisect_right(known, at)
            place = (by_then - 1, min(before, by_then - 1), before - 1)[way]
            total += mark(holding, prices[holding["outcome"]][place] if place >= 0 else None)
        return moment[1], total

    for row in archive.rows("snapshots"):
        at, own = row["taken_at"], moments[row["agent"]]
        opening, instants = Decimal(archive.rules_of(row["agent"])["starting_balance"]), [moment[0] for moment in own]
        possible = own[max(bisect_left(instants, at) - 1, 0) : bisect_right(instants, at)]
        name = f"snapshots: agent {row['agent']} at {at}"
        stated = (row["cash"], row["positions_value"])
        if not any(stated == worth(moment, at, way) for moment in possible for way in range(3)):
            found.append(f"{name} states cash {stated[0]} and positions_value {stated[1]}, against journal and prices")
        pnl = sum(stated) - opening
        percent = (pnl / opening * 100).quantize(Decimal("0.0001"))
        found.differ(name, row, {"total_value": sum(stated), "pnl": pnl, "pnl_percent": percent})


# Scores


def check_bet_scores(archive, found):
    """Each purchase on a market with a winner has its Brier score, and no other trade has one."""
    trades, markets, scores = archive.by("trades"), archive.by("markets"), archive.by("brier_scores", "trade")
    due = {pk for pk, trade in trades.items()
           if trade["kind"] == "BUY" and markets[trade["market"]]["status"] == "resolved"}  # fmt: skip
    for pk in sorted(due ^ scores.keys()):
        found.append(f"brier_scores: trade {pk} has {'none' if pk in due else 'one'}, against its market")
    for pk in due & scores.keys():
        trade, market = trades[pk], markets[trades[pk]["market"]]
        won, price, confidence = trade["outcome"] == market["winning_outcome"], float(trade["price"]), trade[
            "implied_confidence"]  # fmt: skip
        computed = {
            "agent": trade["agent"], "market": trade["market"], "probability": confidence, "outcome": won,
            "score": (confidence - won) ** 2, "market_probability": price, "market_score": (price - won) ** 2,
            "resolved_at": market["resolved_at"],
        }  # fmt: skip
        found.differ(f"brier_scores: of trade {pk}", scores[pk], computed)


def score(vector, happened, exclusive):
    """The Brier, logarithmic and spherical score and the accuracy of probabilities of options."""
    pairs, size = list(zip(vector, happened, strict=True)), len(vector)
    brier = math.fsum((p - o) ** 2 for p, o in pairs) / size
    if exclusive:
        paid, length = math.fsum(p for p, o in pairs if o), math.hypot(*vector)
        top = [o for p, o in pairs if p >= max(vector) - TIE]
        return brier, math.log(max(paid, LOG_CLIP)), paid / length if length else 0.0, sum(top) / len(top)
    right = [p if o else 1 - p for p, o in pairs]
    log = math.fsum(math.log(max(r, LOG_CLIP)) for r in right) / size
    spherical = math.fsum(r / math.hypot(p, 1 - p) for r, (p, _) in zip(right, pairs, strict=True)) / size
    sure = [0.5 if abs(p - 0.5) <= TIE else float((p > 0.5) == bool(o)) for p, o in pairs]
    return brier, log, spherical, math.fsum(sure) / size


def check_outcomes(archive, found):
    """The outcome of each resolved question is that of its markets; no other question has one."""
    outcomes, markets = archive.by("outcomes"), archive.by("markets")
    options = archive.grouped("question_options", "question")
    for pk, question in archive.by("questions").items():
        stated = {option["index"]: option["happened"] for option in options[pk]}
        due = dict.fromkeys(stated)
        if question["status"] == "resolved":
            due = happened_options(options[pk], question["exclusive"], outcomes, markets)
        if stated != due:
            found.append(f"question_options: the outcome of question {pk} is not that of its markets")


def happened_options(options, exclusive, outcomes, markets):
    """Whether each option happened, by index; None for an independent one whose market was cancelled."""
    won, statuses = {}, {}
    for option in options:
        index, outcome = option["index"], option["outcome"]
        market = None if outcome is None else markets[outcomes[outcome]["market"]]
        won[index] = market is not None and market["winning_outcome"] == outcome
        if market is not None:
            statuses[index] = market["status"]
    if not exclusive:
        decided = "resolved" in statuses.values() and set(statuses.values()) <= {"resolved", "cancelled"}
        void = [index for index, status in statuses.items() if status == "cancelled"]
        return won | dict.fromkeys(void) if decided else None
    if sum(won.values()) == 1:
        return won
    nobody_won = not any(won.values()) and set(statuses.values()) == {"resolved"}
    return {index: index not in statuses for index in won} if nobody_won and len(statuses) < len(won) else None


class QuestionRecords:
    """Questions on the days that they were asked: their options, what happened, and the market's probabilities.

    An option without an outcome, whose market was cancelled, is not scored; the question's other options are.
    """

    def __init__(self, archive):
        self.questions, self.entries = archive.by("questions"), archive.by("question_entries")
        self.options = {}
        for pk, options in archive.grouped("question_options", "question").items():
            options.sort(key=lambda option: option["index"])
            self.options[pk] = [option for option in options if option["happened"] is not None] or options

    def names(self, question):
        return [option["name"] for option in self.options[question["id"]]]

    def happened(self, question):
        return [bool(option["happened"]) for option in self.options[question["id"]]]

    def vector(self, forecast, question):
        return [forecast["probabilities"][name] for name in self.names(question)]

    def market(self, entry):
        """Mid prices, divided by their sum where options are exclusive; None where one is missing."""
        question = self.questions[entry["question"]]
        quotes = [(entry["prices"].get(name) or {}).get("price") for name in self.names(question)]
        if any(quote is None for quote in quotes):
            return None
        quotes = [float(quote) for quote in quotes]
        total = math.fsum(quotes)
        if not question["exclusive"]:
            return quotes
        return [quote / total for quote in quotes] if total > 0 else None

    def score(self, vector, entry):
        question = self.questions[entry["question"]]
        return score(vector, self.happened(question), question["exclusive"])


def check_forecast_scores(archive, found):
    """Each forecast on a resolved question has the scores of its probabilities, and no other has any."""
    asked, scores = QuestionRecords(archive), archive.by("forecast_scores", "forecast")
    for pk, forecast in archive.by("forecasts").items():
        question, entry = asked.questions[forecast["question"]], asked.entries[forecast["entry"]]
        resolved, stated = question["status"] == "resolved", scores.get(pk)
        if resolved != (stated is not None) and not archive.is_window:
            found.append(f"forecast_scores: forecast {pk} has {'none' if resolved else 'one'}, against its question")
        if not resolved or stated is None:
            continue
        figures = asked.score(asked.vector(forecast, question), entry)
        due = dict(zip(("brier", "log", "spherical", "accuracy"), figures, strict=True))
        market = asked.market(entry)
        due["market_brier"] = None if market is None else asked.score(market, entry)[0]
        found.differ(f"forecast_scores: of forecast {pk}", stated, due | {"resolved_at": question["resolved_at"]})
    lost = scores.keys() - archive.by("forecasts").keys()
    found.extend(f"forecast_scores: of forecast {pk}, which is not in the archive" for pk in lost)


# Intervals


def beta_share(x, a, b):
    """The probability that a Beta(a, b) variable is at most x, by the continued fraction of the incomplete beta."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, c, d = 1e-300, 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / (1 + term * d or tiny), 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value


def inverse(share, target, low, high):
    """Where an increasing function reaches a value, by bisection."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if share(middle) < target:
            low = middle
        else:
            high = middle


def two_sided_p(statistic, freedom):
    """The probability of a Student's t at least so far from 0."""
    return beta_share(freedom / (freedom + statistic**2), freedom / 2, 0.5)


def t_quantile(freedom):
    """The 97.5 % point of Student's t."""
    x = inverse(lambda x: beta_share(x, freedom / 2, 0.5), 1 - LEVEL, 0.0, 1.0)
    return math.sqrt(freedom * (1 - x) / x)


def bounded_interval(values, events):
    """The beta interval of a mean of values from 0 to 1 by events, with one unseen event of values 0 or 1."""
    sums, sizes = defaultdict(float), Counter(events)
    for value, event in zip(values, events, strict=True):
        sums[event] += value
    if len(sizes) < LEAST_EVENTS:
        return None
    total, observed = len(values), math.fsum(values)
    unseen = sum(size**2 for size in sizes.values()) / total
    mass = total + unseen
    mean = (observed + unseen / 2) / mass
    spread = math.fsum((sums[event] - mean * size) ** 2 for event, size in sizes.items())
    spread += unseen**2 / 2 * (mean**2 + (1 - mean) ** 2)
    k = mean * (1 - mean) * mass**2 / spread - 1
    low, high = (
        inverse(lambda x: beta_share(x, mean * k, (1 - mean) * k), tail, 0.0, 1.0)
        for tail in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    )
    return [min(low, observed / total), max(high, observed / total)]


def week_error(sums, observed, units):
    """The CR3 standard error of a sum over units, per unit, with weeks as clusters, and its degrees of freedom."""
    weeks = [week for week in observed if observed[week]]
    if len(weeks) < 2:
        return None, None
    total, mass, size = math.fsum(sums.values()), sum(observed.values()), len(weeks)
    square = 0.0
    for week in weeks:
        share = observed[week] / mass
        square += ((sums[week] - total * share) / (1 - share)) ** 2
    error = math.sqrt((size - 1) / size * square)
    error = error if error > NO_SPREAD * math.fsum(map(abs, sums.values())) else 0.0
    freedom = mass**2 / sum(number**2 for number in observed.values()) - 1
    if fourth := math.fsum(value**4 for value in sums.values()):
        freedom = min(freedom, math.fsum(value**2 for value in sums.values()) ** 2 / fourth)
    return error / units, max(freedom, 1.0)


def weekly_returns(archive):
    """Each agent's return by week, in per cent: changes of its value from Sunday to Sunday, the last up to now."""
    marks, newest = defaultdict(dict), {}
    for row in archive.rows("snapshots"):
        pk, at = row["agent"], datetime.fromisoformat(row["taken_at"])
        before = at - timedelta(microseconds=1)
        midnight = before.replace(hour=0, minute=0, second=0, microsecond=0)
        sunday = midnight - timedelta(days=(midnight.weekday() + 1) % 7) + WEEK
        marks[pk][sunday] = max(marks[pk].get(sunday, (at, ZERO)), (at, row["total_value"]))
        newest[pk] = max(newest.get(pk, at), at)
    returns = {}
    for pk, agent in archive.by("agents").items():
        cohort = archive.by("cohorts", "number")[agent["cohort"]]
        week, completed = datetime.fromisoformat(cohort["week_start"]), cohort["completed_at"]
        end = datetime.fromisoformat(completed) if completed else newest.get(pk, week)
        value, returns[pk] = agent["starting_balance"], {}
        while week + WEEK < end:
            after = marks[pk].get(week + WEEK, (None, value))[1]
            returns[pk][week] = float((after - value) / agent["starting_balance"] * 100)
            week, value = week + WEEK, after
        returns[pk][week] = float((agent["total_value"] - value) / agent["starting_balance"] * 100)
    return returns


def return_error(weeks):
    """The standard error of a family's mean return over cohorts and its interval's half width; `weeks` by cohort."""
    if len(weeks) < LEAST_COHORTS:
        return None, None
    sums, observed = defaultdict(float), Counter()
    for own in weeks.values():
        for week, value in own.items():
            sums[week] += value
            observed[week] += 1
    error, freedom = week_error(sums, observed, len(weeks))
    return error, t_quantile(freedom) * error if error else None


def rank_ranges(families):
    """Each family's range of ranks by paired tests of all pairs by week with Holm's correction; `families` by slug."""
    tests = []
    for place, first in enumerate(families):
        for second in list(families)[place + 1 :]:
            common = families[first].keys() & families[second].keys()
            sums, observed = defaultdict(float), Counter()
            for cohort in common:
                one, other = families[first][cohort], families[second][cohort]
                for week in one.keys() | other.keys():
                    sums[week] += one.get(week, 0.0) - other.get(week, 0.0)
                    observed[week] += 1
            if len(common) < LEAST_COHORTS:
                continue
            error, freedom = week_error(sums, observed, len(common))
            gap = math.fsum(sums.values()) / len(common)
            if error:
                tests.append((two_sided_p(gap / error, freedom), first, second, gap))
            elif error == 0 and gap == 0:
                tests.append((1.0, first, second, gap))
    better, worse, corrected = Counter(), Counter(), 0.0
    for place, (p, first, second, gap) in enumerate(sorted(tests, key=lambda test: test[0])):
        corrected = max(corrected, p * (len(tests) - place))
        if corrected < 1 - LEVEL:
            winner, loser = (first, second) if gap > 0 else (second, first)
            better[loser] += 1
            worse[winner] += 1
    return {family: (1 + better[family], len(families) - worse[family]) for family in families}


# Leaderboards


def check_trading_leaderboard(archive, found):
    """Means over cohorts, ranks and their ranges, scores pooled over bets, intervals and costs, by methodology."""
    externals = {row["slug"] for row in archive.rows("families") if row["external"]}
    cohorts, bets, cost = (
        archive.by("cohorts", "number"),
        archive.grouped("brier_scores", "agent"),
        defaultdict(Decimal),
    )
    for call in archive.rows("calls"):
        if call["decision"] is not None:
            cost[archive.by("decisions")[call["decision"]]["agent"]] += call["cost_usd"]
    stated = {(row["methodology"], row["family"]): row for row in archive.rows("leaderboard_trading")}
    by_week, markets = weekly_returns(archive), archive.by("markets")
    for version in ["", *sorted({cohort["methodology"] for cohort in cohorts.values()})]:
        agents = defaultdict(list)
        for agent in archive.by("agents").values():
            if version in ("", cohorts[agent["cohort"]]["methodology"]):
                agents[agent["family"]].append(agent)
        mean = {family: fmean(agent["return_percent"] for agent in own) for family, own in agents.items()}
        weeks = {family: {agent["cohort"]: by_week[agent["id"]] for agent in own} for family, own in agents.items()}
        ranges = rank_ranges({family: own for family, own in weeks.items() if family not in externals})
        for family, own in agents.items():
            row = stated.pop((version, family), None)
            if row is None:
                found.append(f"leaderboard_trading: {family} is missing in {version or 'all'}")
                continue
            returns, scores = (
                [agent["return_percent"] for agent in own],
                [s for agent in own for s in bets[agent["id"]]],
            )
            brier = fmean(each["score"] for each in scores) if scores else None
            market = fmean(each["market_score"] for each in scores) if scores else None
            rank = 1 + sum(mean[other] > mean[family] for other in mean if other not in externals)
            events = [event_of(markets[each["market"]]) for each in scores]
            (low, high), (error, half) = ranges.get(family, (None, None)), return_error(weeks[family])
            due = {
                "rank": None if family in externals else rank, "cohorts": len(own), "return_percent": mean[family],
                "return_se_cohorts": stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else None,
                "return_se": error, "rank_low": low, "rank_high": high,
                "return_ci": None if half is None else [mean[family] - half, mean[family] + half],
                "brier_ci": bounded_interval([each["score"] for each in scores], events),
                "win_rate_ci": bounded_interval([each["outcome"] for each in scores], events),
                "total_value": cents(sum(agent["total_value"] for agent in own) / len(own)),
                "pnl": sum(agent["pnl"] for agent in own), "resolved_bets": len(scores), "brier": brier,
                "resolved_events": len(set(events)),
                "bss_random": 1 - brier / 0.25 if scores else None,
                "bss_market": 1 - brier / market if market else None,
                "win_rate": sum(each["outcome"] for each in scores) / len(scores) if scores else None,
                "cost_usd": sum(cost[agent["id"]] for agent in own).quantize(MICROSHARE, ROUND_HALF_EVEN),
            }  # fmt: skip
            found.differ(f"leaderboard_trading: {version or 'all'}, {family}", row, due)
    found.extend(f"leaderboard_trading: {key} did not play" for key in stated)


def event_of(market):
    """The event of a market, or the market itself: bets on one event are not independent."""
    return (market["source"], market["event_id"]) if market["event_id"] else market["id"]


def check_forecast_leaderboards(archive, found):
    """Weighted means of scores, and ranks by the Brier score or the adjusted one, by arm, methodology and category."""
    asked, families = QuestionRecords(archive), archive.by("families", "slug")
    stated, batches = defaultdict(dict), archive.by("question_batches").values()
    for row in archive.rows("leaderboard_forecast"):
        stated[row["arm"], row["methodology"], row["category"]][row["forecaster"]] = row
    newest = {pk: (row["effective_from"], pk) for pk, row in archive.by("releases").items()}
    by_entry = defaultdict(list)
    for row in sorted(archive.by("forecasts").values(), key=lambda row: (newest[row["release"]], row["id"])):
        by_entry[row["entry"], row["arm"]].append(row)
    for arm in {batch["arm"] for batch in batches} - {arm for arm, *_ in stated}:
        found.append(f"leaderboard_forecast: the leaderboard of arm {arm} is missing")
    for (arm, version, category), board in stated.items():
        in_arm = {(batch["question_set"], batch["number"]) for batch in batches if batch["arm"] == arm}
        scored, questions = defaultdict(list), set()
        for pk, entry in asked.entries.items():
            question = asked.questions[entry["question"]]
            of_set = archive.by("question_sets")[entry["question_set"]]
            if (
                (entry["question_set"], entry["batch"]) not in in_arm
                or question["status"] != "resolved"
                or version not in ("", of_set["methodology"])
                or category not in ("", question["category"])
            ):
                continue
            questions.add(entry["question"])
            market = asked.market(entry)
            answers = {row["family"]: asked.vector(row, question) for row in by_entry[pk, arm]}
            ours = [vector for slug, vector in answers.items() if not families[slug]["external"]]
            answers |= references(ours, market, question["exclusive"], len(asked.options[question["id"]]))
            reference = None if market is None else asked.score(market, entry)[0]
            for name, vector in answers.items():
                scored[name].append((entry["question"], asked.score(vector, entry), reference, pk))
        models = [name for name in board if name in families and not families[name]["external"]]
        means = {name: forecaster_figures(scored[name], questions) for name in board}
        adjusted = adjusted_scores(scored, models)
        shares = [len(scored[name]) for name in models if scored[name]]
        differs = bool(shares) and min(shares) < EQUAL_COVERAGE * max(shares)
        ranked_by = "adjusted_brier" if differs and any(name in adjusted for name in models) else "brier"
        ranking = adjusted if ranked_by == "adjusted_brier" else {name: means[name]["brier"] for name in board}
        known = [ranking[name] for name in models if ranking.get(name) is not None]
        for name, row in board.items():
            score, external = ranking.get(name), name in families and families[name]["external"]
            rank = 1 + (len(known) if score is None else sum(other < score - TIE for other in known))
            due = means[name] | {"rank": None if external else rank, "external": external, "ranked_by": ranked_by}
            if not external:
                due["adjusted_brier"] = adjusted.get(name)
            due["reference"] = name not in families
            found.differ(f"leaderboard_forecast: {arm} {version or 'all'} {category}, {name}", row, due)
        for name in scored.keys() - board.keys():
            found.append(f"leaderboard_forecast: {name} is missing in {arm} {version or 'all'} {category}")


def references(vectors, market, exclusive, size):
    """The vectors of the reference forecasters: uniform, market, and ensembles of the families' vectors."""
    named = {"uniform": [1 / size if exclusive else 0.5] * size}
    if market is not None:
        named["market"] = market
    if vectors:
        columns = list(zip(*vectors, strict=True))
        mean, middle = [fmean(column) for column in columns], [median(column) for column in columns]
        sure = [p**EXTREMISING / (p**EXTREMISING + (1 - p) ** EXTREMISING) for p in mean]
        if exclusive:
            middle = [p / math.fsum(middle) for p in middle] if math.fsum(middle) > 0 else mean
            sure = [p / math.fsum(sure) for p in sure]
        named |= {"ensemble": mean, "ensemble_median": middle, "ensemble_extremised": sure}
    return named


def forecaster_figures(scored, questions):
    """Means of a forecaster's scores: each question counts once, however many days it was asked on."""
    times_asked = Counter(question for question, *_ in scored)
    coverage = len(times_asked) / max(len(questions), 1)
    figures = {"n": len(times_asked), "forecasts": len(scored), "coverage": coverage}

    def mean(values):
        known = [(1 / times_asked[question], value) for (question, *_), value in zip(scored, values, strict=True)
                 if value is not None]  # fmt: skip
        mass = math.fsum(weight for weight, _ in known)
        return math.fsum(weight * value for weight, value in known) / mass if known else None

    for place, name in enumerate(("brier", "log", "spherical", "accuracy")):
        figures[name] = mean([scores[place] for _, scores, *_ in scored])
    figures["alpha"] = mean([None if market is None else market - scores[0] for _, scores, market, _ in scored])
    return figures


def adjusted_scores(scored, models):
    """Brier scores adjusted for the questions answered, of the models from their own fit, of references beside them."""
    own = two_way_fit({name: scored[name] for name in models if scored[name]})
    joint = two_way_fit(
        {name: rows for name, rows in scored.items() if rows and (name in models or name in REFERENCES)}
    )
    common = [name for name in own if name in joint]
    if not common:
        return own
    shift = fmean(own[name] - joint[name] for name in common)
    return own | {name: value + shift for name, value in joint.items() if name not in models}


def two_way_fit(scored):
    """Each forecaster's effect plus the mean question effect, by weighted least squares of score = effect + effect.

    Questions are entries; each of a forecaster's k forecasts of a question weighs 1/k. Only forecasters linked by
    common entries to most others have a value.
    """
    cells = {}
    for name, rows in scored.items():
        times_asked = Counter(question for question, *_ in rows)
        for question, scores, _, entry in rows:
            cells.setdefault(entry, {})[name] = (1 / times_asked[question], scores[0])
    names = linked_forecasters(cells)
    cells = {entry: own for entry, own in cells.items() if own.keys() <= names}
    if not cells:
        return {}
    order = {name: place for place, name in enumerate(sorted(names))}
    size = len(order)
    # The entries are eliminated; the constant vector, which the equations leave open, is fixed at a mean of 0.
    matrix, right = [[1 / size] * size for _ in order], [0.0] * size
    for own in cells.values():
        mass = math.fsum(weight for weight, _ in own.values())
        mean = math.fsum(weight * score for weight, score in own.values()) / mass
        for name, (weight, score) in own.items():
            i = order[name]
            right[i] += weight * (score - mean)
            matrix[i][i] += weight
            for other, (beside, _) in own.items():
                matrix[i][order[other]] -= weight * beside / mass
    effects = solve(matrix, right)
    level, total = [], []
    for own in cells.values():
        mass = math.fsum(weight for weight, _ in own.values())
        beta = math.fsum(weight * (score - effects[order[name]]) for name, (weight, score) in own.items()) / mass
        level.append(mass / len(own) * beta)
        total.append(mass / len(own))
    return {name: effects[i] + math.fsum(level) / math.fsum(total) for name, i in order.items()}


def linked_forecasters(cells):
    """The largest set of forecasters linked by common entries: by its forecasters, then its forecasts."""
    groups = []
    for own in cells.values():
        joined, apart = (set(own), len(own)), []
        for group in groups:
            if group[0] & joined[0]:
                joined = group[0] | joined[0], group[1] + joined[1]
            else:
                apart.append(group)
        groups = [*apart, joined]
    return max(groups, key=lambda group: (len(group[0]), group[1]), default=(set(), 0))[0]


def solve(matrix, right):
    """The solution of a system of linear equations by elimination with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(size):
            if i != column and rows[i][column]:
                factor = rows[i][column] / rows[column][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]


# Parts


def check_selection(archive, found):
    """A part holds no leaderboard, a window no row of another time, a cohort none of another cohort."""
    if archive.is_whole:
        return
    for table in ("leaderboard_trading", "leaderboard_forecast"):
        if next(archive.rows(table), None) is not None:
            found.append(f"{table}: it has rows, and only an archive of everything has leaderboards")
    start, end, cohort = archive.selection["from"] or "", archive.selection["to"] or "~", archive.selection["cohort"]
    for table, column in WEEKLY.items():
        if table != "forecasts":  # those that were scored in the window are part of it
            outside = (row[column] for row in archive.rows(table) if row[column] and not start <= row[column] < end)
            found.extend(f"{table}: a row of {at} is outside the window" for at in outside)
    if cohort is not None:
        agents = archive.by("agents")
        found.extend(f"agents: agent {pk} is not of cohort {cohort}" for pk in agents if agents[pk]["cohort"] != cohort)
        for table in ("decisions", "journal", "positions", "settlements", "snapshots", "trades", "brier_scores"):
            found.extend(f"{table}: a row of agent {row['agent']}, who is not of cohort {cohort}"
                         for row in archive.rows(table) if row["agent"] not in agents)  # fmt: skip


CHECKS = {
    "files": check_files, "selection": check_selection, "chains": check_chains, "receipts": check_receipts,
    "texts": check_texts, "trades": check_trades,
    "journals": check_journals, "positions": check_positions, "agents": check_agents,
    "snapshots": check_snapshots, "bet scores": check_bet_scores, "outcomes": check_outcomes,
    "forecast scores": check_forecast_scores,
    "trading leaderboard": check_trading_leaderboard, "forecast leaderboards": check_forecast_leaderboards,
}  # fmt: skip
OF_WHOLE_ACCOUNTS = ("journals", "positions", "agents", "snapshots", "bet scores")
"""Checks that need every row of an agent, which a window does not have."""
OF_EVERYTHING = ("trading leaderboard", "forecast leaderboards")


def verify(folder, key=None):
    """The violations of an archive by check, and the checks that a part of one leaves out. Raises UnreadableArchive."""
    csv.field_size_limit(MAX_CELL)
    found, left_out = {}, []
    try:
        archive = ArchiveFiles(folder)
        for name, check in CHECKS.items():
            if not archive.is_whole and (name in OF_EVERYTHING or (archive.is_window and name in OF_WHOLE_ACCOUNTS)):
                left_out.append(name)
                continue
            found[name] = Violations()
            try:
                check(archive, found[name])
            except (*MALFORMED, UnreadableArchive) as error:
                found[name].append(f"{name}: can not be checked: {str(error) or type(error).__name__}")
        found["signature"] = Violations()
        check_signature(archive, found["signature"], key)
    except MALFORMED as error:
        raise UnreadableArchive(f"no archive that can be read: {type(error).__name__} {error}") from error
    return found, left_out, not archive.is_whole


MALFORMED = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, OSError, RecursionError, csv.Error,
             StopIteration, MemoryError)  # fmt: skip
"""Errors that forged files may lead to."""


def main():
    parser = argparse.ArgumentParser(description="Verifies an archive of Forecaster Arena.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--key", help="the arena's public key, as published; else any key may have signed")
    arguments = parser.parse_args()
    try:
        found, left_out, partial = verify(arguments.folder, arguments.key)
    except UnreadableArchive as refusal:
        print(refusal, file=sys.stderr)
        return 2
    for violations in found.values():
        for line in violations[:MAX_SHOWN]:
            print(line)
        if len(violations) > MAX_SHOWN:
            print(f"… and {len(violations) - MAX_SHOWN} more of this check")
    for name in left_out:
        print(f"not proven: {name}: the rows that they follow from are not in this part of the arena's data")
    for table, columns in LEFT.items():
        print(f"left to verify_export: {table}: {columns} (checked here by the hash of the table alone)")
    total = sum(map(len, found.values()))
    print(json.dumps({"checks": len(found), "left_out": len(left_out), "violations": total}))
    return 1 if total else 3 if partial else 0


if __name__ == "__main__":
    sys.exit(main())
