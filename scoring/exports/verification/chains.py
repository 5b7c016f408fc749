"""Hash chains over completed decisions and elicitations."""

from collections.abc import Iterator
from typing import Any

from agents.records import GENESIS, forecast_record, link_sha256, record_sha256, sha256, trading_record
from markets.foundation.json_lines import json_number
from scoring.exports.verification.archive_reader import Archive, Row


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
    for kind, pk in records.completed():
        if (kind, pk) not in linked:
            yield f"chain: {kind} {pk} is completed and in no chain"


class _RecordBuilder:
    """Builds the canonical records of decisions and elicitations from an archive's rows."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.calls = {row["id"]: (row["prompt_sha256"], sha256(row["raw_response"])) for row in archive.rows("calls")}
        self.trades: dict[int, list[Row]] = {}
        for trade in archive.trades.values():
            self.trades.setdefault(trade["decision"], []).append(trade)
        self.elicitations = archive.by_id("elicitations")
        self.batches = archive.by_id("question_batches")
        self.sets = archive.by_id("question_sets")
        self.positions = {row["id"]: row["position"] for row in archive.rows("question_entries")}
        self.options_sha256 = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
        self.forecasts: dict[int, list[tuple[int, Row]]] = {}
        for row in archive.rows("forecasts"):
            forecast = {"question": self.options_sha256[row["question"]], "probabilities": row["probabilities"]}
            self.forecasts.setdefault(row["elicitation"], []).append((self.positions[row["entry"]], forecast))

    def completed(self) -> Iterator[tuple[str, int]]:
        for kind, rows in (("decision", self.archive.decisions), ("elicitation", self.elicitations)):
            for pk, row in rows.items():
                if row["status"] == "completed":
                    yield kind, pk

    def record(self, link: Row) -> dict[str, Any] | None:
        """The record of a link; None where its decision or elicitation is not in the archive."""
        prompt, answer = self.calls.get(link["call"], (None, None))
        if link["decision"] is not None:
            decision = self.archive.decisions.get(link["decision"])
            return None if decision is None else self._decision(decision, prompt, answer)
        elicitation = self.elicitations.get(link["elicitation"])
        return None if elicitation is None else self._elicitation(elicitation, prompt, answer)

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

    def _elicitation(self, elicitation: Row, prompt: str | None, answer: str | None) -> dict[str, Any]:
        batch = self.batches[elicitation["batch"]]
        question_set = self.sets[batch["question_set"]]
        forecasts = sorted(self.forecasts.get(elicitation["id"], []), key=lambda item: item[0])
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
