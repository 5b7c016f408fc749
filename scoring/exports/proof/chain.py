"""Proof of the chains, of what they hold, and of every prompt."""

import json
from collections.abc import Iterator
from typing import Any

from agents.records import GENESIS, forecast_record, link_sha256, record_sha256, sha256, trading_record
from markets.blocks import json_number
from scoring.exports.proof.reading import Archive, Row


def chains(archive: Archive) -> Iterator[str]:
    """Each link follows the one before it, holds the record that the rows make, and the last is the head."""
    records = _Records(archive)
    ends = dict.fromkeys(archive.contents["chains"], (0, GENESIS))
    linked: set[tuple[str, int]] = set()
    for link in archive.rows("chain"):
        length, head = ends[link["protocol"]]
        row = f"chain: {link['protocol']} link {link['sequence']}"
        if (link["sequence"], link["previous"]) != (length + 1, head):
            yield f"{row} does not follow no. {length}, {head}"
        if link["sha256"] != link_sha256(link["previous"], link["record_sha256"]):
            yield f"{row}: its hash is not that of its record and of the hash before it"
        ends[link["protocol"]] = link["sequence"], link["sha256"]
        kind = "decision" if link["decision"] is not None else "elicitation"
        linked.add((kind, link[kind]))
        record = records.of(link)
        if record is None:
            if archive.is_whole:
                yield f"{row}: {kind} {link[kind]} is not in the archive"
        elif record_sha256(record) != link["record_sha256"]:
            yield f"{row}: {kind} {link[kind]} is not what was chained"
    for protocol, head in archive.contents["chains"].items():
        if ends[protocol] != (head["length"], head["head"]):
            yield f"chain: {protocol} ends {ends[protocol]}, the manifest says {head['length']}, {head['head']}"
    for kind, task in records.completed():
        if (kind, task) not in linked:
            yield f"chain: {kind} {task} is completed and in no chain"


class _Records:
    """Makes canonical records of an archive's rows."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.calls = {row["id"]: (row["prompt_sha256"], sha256(row["raw_response"])) for row in archive.rows("calls")}
        self.trades: dict[int, list[Row]] = {}
        for trade in archive.trades.values():
            self.trades.setdefault(trade["decision"], []).append(trade)
        self.elicitations = archive.by_id("elicitations")
        self.sheets = archive.by_id("question_sheets")
        self.sets = archive.by_id("question_sets")
        self.places = {row["id"]: row["position"] for row in archive.rows("question_entries")}
        self.hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
        self.forecasts: dict[int, list[tuple[int, Row]]] = {}
        for row in archive.rows("forecasts"):
            said = {"question": self.hashes[row["question"]], "probabilities": row["probabilities"]}
            self.forecasts.setdefault(row["elicitation"], []).append((self.places[row["entry"]], said))

    def completed(self) -> Iterator[tuple[str, int]]:
        for kind, rows in (("decision", self.archive.decisions), ("elicitation", self.elicitations)):
            for pk, row in rows.items():
                if row["status"] == "completed":
                    yield kind, pk

    def of(self, link: Row) -> dict[str, Any] | None:
        """The record of a link; None where its task is not in the archive."""
        prompt, answer = self.calls.get(link["call"], (None, None))
        if link["decision"] is not None:
            decision = self.archive.decisions.get(link["decision"])
            return None if decision is None else self._decision(decision, prompt, answer)
        task = self.elicitations.get(link["elicitation"])
        return None if task is None else self._elicitation(task, prompt, answer)

    def _decision(self, decision: Row, prompt: str | None, answer: str | None) -> dict[str, Any]:
        archive = self.archive
        agent = archive.agents[decision["agent"]]
        universe = archive.universes.get(decision["universe"])
        trades = sorted(self.trades.get(decision["id"], []), key=lambda trade: trade["sequence"])
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

    def _elicitation(self, task: Row, prompt: str | None, answer: str | None) -> dict[str, Any]:
        sheet = self.sheets[task["sheet"]]
        asked = self.sets[sheet["question_set"]]
        forecasts = sorted(self.forecasts.get(task["id"], []), key=lambda said: said[0])
        return forecast_record(
            day=asked["day"],
            part=asked["part"],
            sheet=sheet["number"],
            arm=sheet["arm"],
            family=task["family"],
            model=task["model_id"],
            methodology=task["methodology"],
            questions=asked["sha256"],
            prompt=prompt,
            answer=answer,
            declined=task["declined"],
            forecasts=[said for _, said in forecasts],
            made_at=task["made_at"],
        )


def prompts(archive: Archive) -> Iterator[str]:
    """Each text has its hash, each methodology its own, and each call the prompt that its blocks make."""
    texts = {}
    for row in archive.rows("prompts"):
        texts[row["sha256"]] = row["text"]
        if sha256(row["text"]) != row["sha256"]:
            yield f"prompts: the text {row['sha256']} ({row['of']}) has another hash"
    for version, rules in archive.methodologies.items():
        frozen = {
            name: value if isinstance(value, dict | list) else str(value)
            for name, value in rules.items()
            if name not in ("title", "published_at", "sha256") and (name != "forecast" or value)
        }
        if sha256(json.dumps(frozen, sort_keys=True)) != rules["sha256"]:
            yield f"methodologies: {version} is not what its hash says"
    blocks = {(row["kind"], row["id"]): texts.get(row["sha256"], "") for row in archive.rows("blocks")}
    tasks = _Asked(archive, blocks)
    for call in archive.rows("calls"):
        said = tasks.messages(call)
        if said is not None and sha256(f"{said[0]}\0{said[1]}") != call["prompt_sha256"]:
            yield f"calls: the prompt of call {call['id']} has another hash than its blocks make"


class _Asked:
    """What calls sent, put together again."""

    def __init__(self, archive: Archive, blocks: dict[tuple[str, int], str]) -> None:
        self.archive, self.blocks = archive, blocks
        self.elicitations = archive.by_id("elicitations")
        self.sheets = archive.by_id("question_sheets")
        self.sets = archive.by_id("question_sets")

    def messages(self, call: Row) -> tuple[str, str] | None:
        """The system and the user message of a call."""
        if call["decision"] is not None:
            decision = self.archive.decisions[call["decision"]]
            rules = self.archive.methodologies[self.archive.cohorts[decision["cohort"]]["methodology"]]
            user = rules["user_prompt"].format(
                portfolio=call["portfolio_block"],
                positions=call["positions_block"],
                awaiting=call["awaiting"],
                markets=self.blocks.get(("markets", decision["universe"]), ""),
            )
            return rules["system_prompt"], user + call["retry_note"]
        task = self.elicitations[call["elicitation"]]
        rules = self.archive.methodologies[task["methodology"]]["forecast"]
        sheet = self.sheets[task["sheet"]]
        day = self.sets[sheet["question_set"]]["day"][:10]
        user = rules["user_prompt"].format(date=day, questions=self.blocks.get(("questions", sheet["id"]), ""))
        return rules["system_prompt"], user + call["retry_note"]
