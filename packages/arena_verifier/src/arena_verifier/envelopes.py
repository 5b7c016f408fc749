"""Envelopes of answers under seal: their hashes, their openings, and that the effects are those that were judged."""

from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal

from arena_verifier.rows import Row, Tables, Violations, canonical, same, sha256

OPENED_WITHIN = timedelta(hours=1)
"""The time after the end of a seal in which its envelopes are opened."""
ANSWERED_CALL = ("id", "sequence", "prompt_sha256")
JUDGED_INSTRUCTION = ("sequence", "kind", "payload", "executed", "reason")
JUDGED_FORECAST, JUDGED_REFUSAL = ("stated", "probabilities", "normalised", "rationale"), ("stated", "reason")
TRADE_KINDS = {"BET": "BUY", "SELL": "SELL"}


def check_envelopes(tables: Tables, violations: Violations) -> None:
    """Each envelope is the one whose hash was linked, was opened once if it counts, and had the effects it holds."""
    effects = Effects(tables)
    opened_links, completed_links = links_of_answers(tables)
    of_task: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for envelope in tables.rows("envelopes"):
        kind = "decision" if envelope["decision"] is not None else "elicitation"
        of_task[kind, envelope[kind]].append(envelope)
        record = effects.record(kind, envelope)
        if record is not None and sha256(canonical(record)) != envelope["sha256"]:
            violations.note("envelopes", envelope, "has another hash than its record with its nonce")
        link, completed = opened_links.get(envelope["id"]), completed_links.get((kind, envelope[kind]))
        if link is None or link["record_sha256"] != envelope["sha256"]:
            violations.note("envelopes", envelope, "is not the one that was linked when the answer came")
        elif envelope["state"] == "opened" and (completed is None or completed["sequence"] <= link["sequence"]):
            violations.note("envelopes", envelope, "was opened without a second link of its task")
    made_at = tables.made_at()
    for (kind, pk), envelopes in of_task.items():
        task = tables.by(f"{kind}s").get(pk)
        *earlier, last = sorted(envelopes, key=lambda row: int(row["number"]))
        for envelope in earlier:
            if envelope["state"] != "replaced":
                violations.note("envelopes", envelope, f"is {envelope['state']}, though a later answer counts")
        if last["state"] == "replaced":
            violations.note("envelopes", last, "is replaced by no later one")
        if last["state"] == "sealed" and instant_of(last["sealed_until"]) + OPENED_WITHIN < instant_of(made_at):
            violations.note("envelopes", last, f"was never opened, though its seal ended at {last['sealed_until']}")
        if task is not None and last["state"] == "opened":
            effects.check(kind, task, last, violations)
        elif task is not None and task["status"] == "completed":
            violations.note("envelopes", last, f"is {last['state']}, and its {kind} is completed")


def links_of_answers(tables: Tables) -> tuple[dict[int, Row], dict[tuple[str, int], Row]]:
    """The links of envelopes by envelope, and those of completed tasks by kind and id."""
    of_envelopes, completed = {}, {}
    for link in tables.rows("chain"):
        if link["envelope"] is not None:
            of_envelopes[link["envelope"]] = link
        for kind in ("decision", "elicitation"):
            if link[kind] is not None:
                completed[kind, link[kind]] = link
    return of_envelopes, completed


def instant_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


class Effects:
    """The rows that follow from answers: instructions and trades, forecasts and refusals."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.calls: dict[int, Row] = {}
        self.calls_of: dict[int, list[Row]] = defaultdict(list)
        for row in tables.rows("calls"):
            call = {name: row[name] for name in ANSWERED_CALL} | {"answer": sha256(row["raw_response"])}
            self.calls[row["id"]] = call
            self.calls_of[row["elicitation"]].append(call)
        self.instructions, self.trades = tables.grouped("instructions", "call"), tables.grouped("trades", "decision")
        self.forecasts = tables.grouped("forecasts", "elicitation")
        self.refused = tables.grouped("refused_forecasts", "call")

    def record(self, kind: str, envelope: Row) -> Row | None:
        """The record of an envelope; None where its task is elsewhere."""
        tables, task = self.tables, self.tables.by(f"{kind}s").get(envelope[kind])
        call = self.calls.get(envelope["call"])
        if task is None or call is None:
            return None
        common = {name: envelope[name] for name in ("nonce", "number", "verdict", "received_at", "sealed_until")}
        common |= {"answer": call["answer"], "prompt": call["prompt_sha256"]}
        if kind == "decision":
            agent = tables.by("agents")[task["agent"]]
            methodology = tables.by("cohorts", "number")[task["cohort"]]["methodology"]
            return common | {
                "protocol": "trading", "family": agent["family"], "model": agent["model_id"],
                "methodology": methodology, "cohort": task["cohort"], "week": task["week"],
            }  # fmt: skip
        batch = tables.by("question_batches")[task["batch"]]
        questions = tables.by("question_sets")[batch["question_set"]]
        return common | {
            "protocol": "forecast", "family": task["family"], "model": task["model_id"],
            "methodology": task["methodology"], "day": questions["day"], "part": questions["part"],
            "batch": batch["number"], "arm": batch["arm"], "sample": task["sample"],
        }  # fmt: skip

    def check(self, kind: str, task: Row, envelope: Row, violations: Violations) -> None:
        """The effects of an opened envelope are those that it holds."""
        verdict, time = envelope["verdict"], "decided_at" if kind == "decision" else "made_at"
        names = ("action", "reasoning", "fallback", "error") if kind == "decision" else ("declined", "error")
        judged = {name: verdict[name] for name in names} | {"status": "completed", time: envelope["received_at"]}
        stated = {name: task[name] for name in judged}
        if stated != judged:
            violations.note("envelopes", envelope, f"holds {judged}, its {kind} says {stated}")
        if kind == "decision":
            self.check_instructions(task, envelope, violations)
        elif task["samples"] == 1:
            self.check_forecasts(task, envelope, violations)

    def check_instructions(self, task: Row, envelope: Row, violations: Violations) -> None:
        judged = envelope["verdict"]["instructions"]
        stored = sorted(self.instructions[envelope["call"]], key=lambda row: int(row["sequence"]))
        if [{name: row[name] for name in JUDGED_INSTRUCTION} for row in judged] != [
            {name: row[name] for name in JUDGED_INSTRUCTION} for row in stored
        ]:
            violations.note("envelopes", envelope, "holds other instructions than those on record")
        executed = [row for row in judged if row["executed"]]
        trades = sorted(self.trades[task["id"]], key=lambda row: int(row["sequence"]))
        figures = [(TRADE_KINDS[row["kind"]], row["side"], *traded_numbers(row)) for row in executed]
        if figures != [(row["kind"], row["side"], *traded_numbers(row)) for row in trades]:
            violations.note("envelopes", envelope, "holds other trades than those that were made")

    def check_forecasts(self, task: Row, envelope: Row, violations: Violations) -> None:
        valid: dict[tuple[int, int], Row] = {}
        refused: dict[tuple[int, int], Row] = {}
        for row in envelope["verdict"]["forecasts"]:
            (refused if row["probabilities"] is None else valid)[row["call"], row["position"]] = row
        if differs_from_judged(valid, self.placed(self.forecasts[task["id"]]), JUDGED_FORECAST):
            violations.note("envelopes", envelope, "holds other forecasts than those on record")
        judged_calls = {call for call, _ in refused}
        stored: list[Row] = []
        for call in self.calls_of[task["id"]]:
            stored += self.refused[call["id"]] if call["sequence"] in judged_calls else ()
        if differs_from_judged(refused, self.placed(stored), JUDGED_REFUSAL):
            violations.note("envelopes", envelope, "holds other refusals than those on record")

    def placed(self, rows: list[Row]) -> dict[tuple[int, int], Row]:
        """The rows by the sequence of their call and the position of their entry."""
        entries = self.tables.by("question_entries")
        return {(self.calls[row["call"]]["sequence"], entries[row["entry"]]["position"]): row for row in rows}


def traded_numbers(row: Row) -> tuple[Decimal, Decimal, Decimal]:
    """Price, shares and amount as decimals."""
    return Decimal(row["price"]), Decimal(row["shares"]), Decimal(row["amount"])


def differs_from_judged(
    judged: dict[tuple[int, int], Row], stored: dict[tuple[int, int], Row], names: tuple[str, ...]
) -> bool:
    """Whether rows by their place are others than those that were judged."""
    if judged.keys() != stored.keys():
        return True
    return not all(same(row[name], stored[place][name]) for place, row in judged.items() for name in names)
