"""Answers: decisions, instructions and forecasts are read again from the stored raw answers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from agents.answers.decisions import parse_answer
from agents.answers.forecasts import (
    CheckedForecast,
    PromptQuestion,
    check_forecasts,
    parse_cut_forecasts,
    parse_forecasts,
)
from agents.answers.texts import Malformed
from agents.gateway.completions import stored_content
from agents.gateway.searches import read_searches
from arena_verifier.rows import Row, mismatches
from foundation.bulk import mappings_by
from scoring.exports.verification.archive_reader import Archive

READ = ("answered", "cut")
"""Results of calls whose answers were read."""
REREAD_COLUMNS = ("probabilities", "stated", "normalised", "rationale")


class ReparsedForecast(NamedTuple):
    """A forecast as it is read again from a call's answer, with the call's searches and why it counts on no board."""

    call: int
    forecast: CheckedForecast
    searches: int | None
    excluded: str

    @property
    def is_valid(self) -> bool:
        return self.forecast.probabilities is not None

    def figures(self) -> dict[str, Any]:
        """The columns of a forecast's row that follow from it."""
        figures = {name: getattr(self.forecast, name) for name in REREAD_COLUMNS}
        return figures | {"searches": self.searches, "excluded": self.excluded}


Samples = dict[tuple[int, int], dict[int, dict[str, ReparsedForecast]]]
"""By batch and release, entry, and number of the sample."""


def check_answers(archive: Archive) -> Iterator[str]:
    """Records of answers agree with the answers, and costs of searches with the gateway's statement."""
    decisions, elicitations = _Decisions(archive), _Elicitations(archive)
    for call in archive.rows("calls"):
        cost = read_searches(call["parameters"], call["raw_response"]).search_cost_usd
        yield from mismatches(f"calls: call {call['id']}", call, {"search_cost_usd": cost})
        reader = decisions if call["decision"] is not None else elicitations
        yield from reader.read(call)
    yield from decisions.check_rest()
    yield from elicitations.check_rest()


class _Decisions:
    """Reads the answers to decisions."""

    def __init__(self, archive: Archive) -> None:
        self.decisions = archive.by("decisions")
        self.cohorts = {pk: agent["cohort"] for pk, agent in archive.by("agents").items()}
        self.bet_reasons = {}
        for pk in self.cohorts:
            self.bet_reasons[pk] = bool(archive.rules_of(pk).get("trading", {}).get("bet_reasons"))
        self.instructions = archive.grouped("instructions", "call")
        self.trades = archive.grouped("trades", "decision")
        self.answered: set[int] = set()

    def read(self, call: Row) -> Iterator[str]:
        instructions = sorted(self.instructions.pop(call["id"], []), key=itemgetter("sequence"))
        decision = self.decisions.get(call["decision"])
        if decision is None:
            return
        refused = call["result"] == "refused"
        if call["late"] or not (refused or (call["result"] == "answered" and decision["status"] == "completed")):
            if instructions:
                yield f"instructions: call {call['id']} is {call['result']}, and has some"
            return
        content = stored_content(call["raw_response"], call["http_status"])
        try:
            answer = parse_answer(content, bet_reasons=self.bet_reasons[decision["agent"]])
        except Malformed as fault:
            yield f"calls: call {call['id']} is {call['result']}, but its answer can not be read: {fault}"
            return
        recorded = list(map(itemgetter("sequence", "kind", "payload"), instructions))
        expected = [("BET", bet.as_json()) for bet in answer.bets] + [("SELL", sale.as_json()) for sale in answer.sells]
        if recorded != [(place, *instruction) for place, instruction in enumerate(expected, start=1)]:
            yield f"instructions: those of call {call['id']} are not the ones of its answer"
        for row in instructions:
            if row["executed"] == bool(row["reason"]):
                yield f"instructions: no. {row['sequence']} of call {call['id']}: reason {row['reason']!r}"
        if refused:
            if any(row["executed"] for row in instructions):
                yield f"instructions: call {call['id']} was refused, and one of its instructions executed"
            return
        self.answered.add(decision["id"])
        fields = {"status": "completed", "action": answer.action, "reasoning": answer.reasoning, "fallback": False}
        yield from mismatches(f"decisions: decision {decision['id']}", decision, fields)
        executed = [row["kind"] for row in instructions if row["executed"]]
        trades = sorted(self.trades[decision["id"]], key=itemgetter("sequence"))
        kinds = ["BET" if trade["kind"] == "BUY" else trade["kind"] for trade in trades]
        if kinds != executed:
            yield f"trades: those of decision {decision['id']} are not its executed instructions"

    def check_rest(self) -> Iterator[str]:
        """Decisions without a usable answer are holds by fallback, or have nothing recorded."""
        for call in self.instructions:
            yield f"instructions: of call {call}, which is not in the archive"
        for pk, decision in self.decisions.items():
            yield from mismatches(f"decisions: decision {pk}", decision, {"cohort": self.cohorts[decision["agent"]]})
            if pk in self.answered:
                continue
            completed = decision["status"] == "completed"
            fields = {"action": "HOLD" if completed else "", "fallback": completed, "reasoning": ""}
            yield from mismatches(f"decisions: decision {pk}, without a usable answer,", decision, fields)
            if (decision["decided_at"] is not None) != completed:
                yield f"decisions: decision {pk} is {decision['status']}, decided at {decision['decided_at']}"


class _Elicitations:
    """Reads the answers to question batches."""

    def __init__(self, archive: Archive) -> None:
        self.elicitations = archive.by("elicitations")
        self.batches = archive.by("question_batches")
        options: dict[int, list[Row]] = archive.grouped("question_options", "question")
        self.questions = {}
        for row in archive.rows("questions"):
            in_order = sorted(options[row["id"]], key=itemgetter("index"))
            names = tuple(map(itemgetter("name"), in_order))
            self.questions[row["id"]] = PromptQuestion(str(row["id"]), names, row["exclusive"])
        self.entries: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for entry in archive.rows("question_entries"):
            self.entries[entry["question_set"], entry["batch"]].append(entry)
        self.read_so_far: dict[int, dict[int, ReparsedForecast]] = defaultdict(dict)
        self.refusals: dict[int, dict[int, CheckedForecast]] = defaultdict(dict)
        """The forecasts by call and entry that broke the rules."""
        self.forecasts: dict[int, list[Row]] = defaultdict(list)
        self.sampled: dict[tuple[int, int], dict[int, Row]] = defaultdict(dict)
        for forecast in archive.rows("forecasts"):
            if forecast["samples"] is None:
                self.forecasts[forecast["elicitation"]].append(forecast)
            elif (task := self.elicitations.get(forecast["elicitation"])) is not None:
                self.sampled[task["batch"], task["release"]][forecast["entry"]] = forecast
        self.refused = archive.grouped("refused_forecasts", "call")

    def read(self, call: Row) -> Iterator[str]:
        task = self.elicitations.get(call["elicitation"])
        if task is None or call["late"] or call["result"] not in (*READ, "refused"):
            return
        content = stored_content(call["raw_response"], call["http_status"])
        try:
            forecasts = parse_cut_forecasts(content) if call["result"] == "cut" else parse_forecasts(content)
        except Malformed as fault:
            yield f"calls: call {call['id']} is {call['result']}, but its answer can not be read: {fault}"
            return
        if not forecasts:
            return
        batch = self.batches[task["batch"]]
        entries = sorted(self.entries[batch["question_set"], batch["number"]], key=itemgetter("position"))
        checked = check_forecasts(forecasts, [self.questions[entry["question"]] for entry in entries])
        for entry, forecast in zip(map(itemgetter("id"), entries), checked, strict=True):
            if call["result"] == "refused":
                self.refusals[call["id"]][entry] = forecast
                continue
            before = self.read_so_far[task["id"]].get(entry)
            if before is None or not before.is_valid:
                reading = ReparsedForecast(call["id"], forecast, call["searches"], call["excluded"])
                self.read_so_far[task["id"]][entry] = reading

    def check_rest(self) -> Iterator[str]:
        """The forecasts and refusals of each elicitation are those of its answers together."""
        samples: Samples = defaultdict(lambda: defaultdict(dict))
        for pk, task in self.elicitations.items():
            completed = task["status"] == "completed"
            if (task["made_at"] is not None) != completed:
                yield f"elicitations: elicitation {pk} is {task['status']}, made at {task['made_at']}"
            read = self.read_so_far.get(pk, {}) if completed else {}
            valid = {entry: reading for entry, reading in read.items() if reading.is_valid}
            if completed and task["declined"] != (not valid):
                yield f"elicitations: elicitation {pk} has declined {task['declined']}, against its calls"
            if task["samples"] > 1:
                for entry, reading in valid.items():
                    samples[task["batch"], task["release"]][entry][str(task["sample"])] = reading
            else:
                yield from self._check_forecasts(pk, valid)
            for entry, reading in read.items() if valid else ():
                if not reading.is_valid:
                    self.refusals[reading.call][entry] = reading.forecast
        yield from self._check_samples(samples)
        yield from self._check_refusals()

    def _check_forecasts(self, elicitation: int, valid: Mapping[int, ReparsedForecast]) -> Iterator[str]:
        """The forecasts of an elicitation without samples are the valid ones of its answers."""
        rows = self.forecasts[elicitation]
        row_by_entry = mappings_by("entry", rows)
        if len(row_by_entry) != len(rows) or row_by_entry.keys() != valid.keys():
            yield f"forecasts: those of elicitation {elicitation} are not the ones of its answers"
            return
        for entry, reading in valid.items():
            row = row_by_entry[entry]
            yield from mismatches(f"forecasts: forecast {row['id']}", row, reading.figures())

    def _check_refusals(self) -> Iterator[str]:
        """The refused forecasts of each call are those of its answer."""
        for call in self.refused.keys() | self.refusals.keys():
            rows, refusals = self.refused.get(call, []), self.refusals.get(call, {})
            row_by_entry = mappings_by("entry", rows)
            if len(row_by_entry) != len(rows) or row_by_entry.keys() != refusals.keys():
                yield f"refused_forecasts: those of call {call} are not the ones of its answer"
                continue
            for entry, forecast in refusals.items():
                figures = {"stated": forecast.stated, "reason": forecast.reason}
                yield from mismatches(f"refused_forecasts: entry {entry} of call {call}", row_by_entry[entry], figures)

    def _check_samples(self, samples: Samples) -> Iterator[str]:
        """The samples of each forecast are those of the answers; the rules of the package check what follows."""
        archived: dict[tuple[int, int], set[str]] = defaultdict(set)
        for task in self.elicitations.values():
            archived[task["batch"], task["release"]].add(str(task["sample"]))
        for pair, row_by_entry in self.sampled.items():
            for entry, row in row_by_entry.items():
                # A window may hold some of the samples alone.
                stored = {name: vector for name, vector in row["samples"].items() if name in archived[pair]}
                readings = samples[pair][entry]
                if stored != {name: reading.forecast.probabilities for name, reading in readings.items()}:
                    yield f"forecasts: the samples of forecast {row['id']} are not those of the answers"
                elif len(stored) == len(row["samples"]):
                    in_order = [readings[name] for name in sorted(readings, key=int)]
                    yield from mismatches(f"forecasts: forecast {row['id']}", row, _figures_of_samples(in_order))


def _figures_of_samples(readings: Sequence[ReparsedForecast]) -> dict[str, Any]:
    """The number of searches of all samples, and the first reason for which one counts on no board."""
    searches, excluded = None, ""
    for reading in readings:
        if reading.searches is not None:
            searches = (searches or 0) + reading.searches
        excluded = excluded or reading.excluded
    return {"searches": searches, "excluded": excluded}
