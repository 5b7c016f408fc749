"""Hashes of texts, methodologies, prompts, universes and question sets, and the hash chains over all answers."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from agents.records import GENESIS, forecast_record, link_sha256, record_sha256, sha256, trading_record
from cohorts.models import Methodology
from markets.foundation.json_lines import json_number
from scoring.exports.verification.archive_reader import Archive, Row


def check_prompts(archive: Archive) -> Iterator[str]:
    """The hashes of texts, methodologies and calls follow from their contents."""
    texts = {}
    for row in archive.rows("prompts"):
        texts[row["sha256"]] = row["text"]
        if sha256(row["text"]) != row["sha256"]:
            yield f"prompts: the text {row['sha256']} ({row['first_use']}) has another hash"
    for version, rules in archive.methodologies.items():
        fields = {name: value for name, value in rules.items() if name != "sha256"}
        if Methodology(**fields).sha256 != rules["sha256"]:
            yield f"methodologies: {version} differs from its hash"
    blocks = {(row["kind"], row["id"]): texts.get(row["sha256"], "") for row in archive.rows("blocks")}
    for call in archive.rows("calls"):
        system, user = _messages(archive, blocks, call)
        if sha256(f"{system}\0{user}") != call["prompt_sha256"]:
            yield f"calls: the prompt of call {call['id']} has another hash than its blocks"
        if call["cost_source"] == "booked" and call["cost_usd"] != call["booked_usd"]:
            yield f"calls: call {call['id']} is booked at {call['booked_usd']} and counts {call['cost_usd']}"


def _messages(archive: Archive, blocks: dict[tuple[str, int], str], call: Row) -> tuple[str, str]:
    """The system and the user message of a call, from their templates and blocks."""
    if call["decision"] is not None:
        decision = archive.decisions[call["decision"]]
        rules = archive.rules_of(decision["agent"])
        user = rules["user_prompt"].format(
            portfolio=call["portfolio_block"],
            positions=call["positions_block"],
            awaiting=call["awaiting"],
            markets=blocks.get(("markets", decision["universe"]), ""),
        )
    else:
        elicitation = archive.elicitations[call["elicitation"]]
        rules = archive.methodologies[elicitation["methodology"]]["forecast"]
        batch = archive.question_batches[elicitation["batch"]]
        questions = call["questions_block"] or blocks.get(("questions", batch["id"]), "")
        day = archive.question_sets[batch["question_set"]]["day"][:10]
        user = rules["user_prompt"].format(date=day, questions=questions)
    return rules["system_prompt"], user + call["retry_note"]


def check_universes(archive: Archive) -> Iterator[str]:
    """The hash of each universe and question set follows from its entries."""
    for universe, entries in archive.grouped("universe_entries", "universe").items():
        lines = []
        for entry in sorted(entries, key=lambda entry: entry["position"]):
            market = archive.markets[entry["market"]]
            fields = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*fields, sorted(map(list, entry["prices"].items()))], ensure_ascii=True))
        if sha256("\n".join(lines)) != archive.universes[universe]["sha256"]:
            yield f"universes: universe {universe} has another hash than its entries"
    hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
    for number, entries in archive.grouped("question_entries", "question_set").items():
        lines = [
            json.dumps([e["position"], hashes[e["question"]], e["reason"], e["prices"]], sort_keys=True)
            for e in sorted(entries, key=lambda entry: entry["position"])
        ]
        if sha256("\n".join(lines)) != archive.question_sets[number]["sha256"]:
            yield f"question_sets: set {number} has another hash than its entries"


def check_chains(archive: Archive) -> Iterator[str]:
    """Each link follows the one before it and hashes the record that the rows give; the last one is the head."""
    records = _RecordBuilder(archive)
    heads = dict.fromkeys(archive.manifest["chains"], (0, GENESIS))
    linked: set[tuple[str, int]] = set()
    for link in archive.rows("chain"):
        length, head = heads[link["protocol"]]
        row = f"chain: {link['protocol']} link {link['sequence']}"
        if (link["sequence"], link["previous"]) != (length + 1, head):
            yield f"{row} does not follow no. {length}, {head}"
        if link["sha256"] != link_sha256(link["previous"], link["record_sha256"]):
            yield f"{row}: its hash does not follow from its record and the hash before it"
        heads[link["protocol"]] = link["sequence"], link["sha256"]
        kind = "decision" if link["decision"] is not None else "elicitation"
        linked.add((kind, link[kind]))
        record = records.record(link)
        if record is None:
            if archive.is_whole:
                yield f"{row}: {kind} {link[kind]} is not in the archive"
        elif record_sha256(record) != link["record_sha256"]:
            yield f"{row}: {kind} {link[kind]} differs from the record that was chained"
    for protocol, head in archive.manifest["chains"].items():
        if heads[protocol] != (head["length"], head["head"]):
            yield f"chain: {protocol} ends {heads[protocol]}, the manifest says {head['length']}, {head['head']}"
    for kind, rows in (("decision", archive.decisions), ("elicitation", archive.elicitations)):
        for pk, task in rows.items():
            if task["status"] == "completed" and (kind, pk) not in linked:
                yield f"chain: {kind} {pk} is completed and in no chain"


class _RecordBuilder:
    """Builds the canonical records of decisions and elicitations from an archive's rows."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.calls = {row["id"]: (row["prompt_sha256"], sha256(row["raw_response"])) for row in archive.rows("calls")}
        self.trades: dict[int, list[Row]] = defaultdict(list)
        for trade in archive.trades.values():
            self.trades[trade["decision"]].append(trade)
        positions = {row["id"]: row["position"] for row in archive.rows("question_entries")}
        hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
        self.forecasts: dict[int, list[tuple[int, Row]]] = defaultdict(list)
        for row in archive.rows("forecasts"):
            forecast = {"question": hashes[row["question"]], "probabilities": row["probabilities"]}
            self.forecasts[row["elicitation"]].append((positions[row["entry"]], forecast))

    def record(self, link: Row) -> dict[str, Any] | None:
        """The record of a link; None where its decision or elicitation is not in the archive."""
        prompt, answer = self.calls.get(link["call"], (None, None))
        if link["decision"] is not None:
            decision = self.archive.decisions.get(link["decision"])
            return None if decision is None else self._decision(decision, prompt, answer)
        elicitation = self.archive.elicitations.get(link["elicitation"])
        return None if elicitation is None else self._elicitation(elicitation, prompt, answer)

    def _decision(self, decision: Row, prompt: str | None, answer: str | None) -> dict[str, Any]:
        archive = self.archive
        agent = archive.agents[decision["agent"]]
        universe = archive.universes.get(decision["universe"])
        trades = sorted(self.trades[decision["id"]], key=lambda trade: trade["sequence"])
        return trading_record(
            cohort=decision["cohort"],
            week=decision["week"],
            family=agent["family"],
            model=agent["model_id"],
            methodology=archive.cohorts[decision["cohort"]]["methodology"],
            universe=universe["sha256"] if universe else None,
            prompt=prompt,
            answer=answer,
            action=decision["action"],
            fallback=decision["fallback"],
            trades=[self._trade(trade) for trade in trades],
            decided_at=decision["decided_at"],
        )

    def _trade(self, trade: Row) -> Row:
        market = self.archive.markets[trade["market"]]
        return {
            "market": f"{market['source']}:{market['external_id']}",
            **{name: trade[name] for name in ("sequence", "side", "kind")},
            **{name: json_number(trade[name]) for name in ("shares", "price", "amount")},
        }

    def _elicitation(self, elicitation: Row, prompt: str | None, answer: str | None) -> dict[str, Any]:
        batch = self.archive.question_batches[elicitation["batch"]]
        question_set = self.archive.question_sets[batch["question_set"]]
        forecasts = sorted(self.forecasts[elicitation["id"]], key=lambda item: item[0])
        return forecast_record(
            day=question_set["day"],
            part=question_set["part"],
            batch=batch["number"],
            arm=batch["arm"],
            family=elicitation["family"],
            model=elicitation["model_id"],
            methodology=elicitation["methodology"],
            questions=question_set["sha256"],
            prompt=prompt,
            answer=answer,
            declined=elicitation["declined"],
            forecasts=[forecast for _, forecast in forecasts],
            made_at=elicitation["made_at"],
        )
