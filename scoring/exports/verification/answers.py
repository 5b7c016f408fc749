"""Answers: decisions, instructions and forecasts are read again from the stored raw answers."""

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

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

Samples = dict[tuple[int, int], dict[int, dict[str, Any]]]
"""By batch and release, entry and sample: its probabilities, its searches, and why it counts on no board."""
READ = ("answered", "cut")
"""Results of calls whose answers were read."""


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
        expected = [("BET", bet.as_json()) for bet in answer.bets]
        expected += [("SELL", sale.as_json()) for sale in answer.sells]
        recorded = [(row["kind"], row["payload"]) for row in instructions]
        if expected != recorded or [row["sequence"] for row in instructions] != [*range(1, len(expected) + 1)]:
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
            names = tuple(option["name"] for option in in_order)
            self.questions[row["id"]] = PromptQuestion(str(row["id"]), names, row["exclusive"])
        self.entries: dict[tuple[int, int], list[Row]] = {}
        for entry in archive.rows("question_entries"):
            self.entries.setdefault((entry["question_set"], entry["batch"]), []).append(entry)
        self.read_so_far: dict[int, dict[int, tuple[int, CheckedForecast]]] = {}
        self.refused_calls: dict[int, dict[int, CheckedForecast]] = {}
        self.searches: dict[int, tuple[int | None, str]] = {}
        """The number of searches of each call that was read, and why it counts on no board."""
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
        self.searches[call["id"]] = call["searches"], call["excluded"]
        content = stored_content(call["raw_response"], call["http_status"])
        try:
            forecasts = parse_cut_forecasts(content) if call["result"] == "cut" else parse_forecasts(content)
        except Malformed as fault:
            yield f"calls: call {call['id']} is {call['result']}, but its answer can not be read: {fault}"
            return
        batch = self.batches[task["batch"]]
        entries = sorted(self.entries[batch["question_set"], batch["number"]], key=itemgetter("position"))
        if not forecasts:
            return
        checked = check_forecasts(forecasts, [self.questions[entry["question"]] for entry in entries])
        by_entry = {entry["id"]: forecast for entry, forecast in zip(entries, checked, strict=True)}
        if call["result"] == "refused":
            self.refused_calls[call["id"]] = by_entry
            return
        so_far = self.read_so_far.setdefault(task["id"], {})
        for entry, forecast in by_entry.items():
            if entry not in so_far or so_far[entry][1].probabilities is None:
                so_far[entry] = call["id"], forecast

    def check_rest(self) -> Iterator[str]:
        """The forecasts and refusals of each elicitation are those of its answers together."""
        refused_by_call: dict[int, dict[int, CheckedForecast]] = dict(self.refused_calls)
        samples: Samples = defaultdict(lambda: defaultdict(dict))
        for pk, task in self.elicitations.items():
            completed = task["status"] == "completed"
            if (task["made_at"] is not None) != completed:
                yield f"elicitations: elicitation {pk} is {task['status']}, made at {task['made_at']}"
            recorded = mappings_by("entry", self.forecasts[pk])
            read = self.read_so_far.get(pk, {}) if completed else {}
            valid = {entry: forecast for entry, (_, forecast) in read.items() if forecast.probabilities is not None}
            if completed and task["declined"] != (not valid):
                yield f"elicitations: elicitation {pk} has declined {task['declined']}, against its calls"
            if task["samples"] > 1:
                for entry, forecast in valid.items():
                    answer = forecast.probabilities, *self.searches[read[entry][0]]
                    samples[task["batch"], task["release"]][entry][str(task["sample"])] = answer
            elif len(recorded) != len(self.forecasts[pk]) or recorded.keys() != valid.keys():
                yield f"forecasts: those of elicitation {pk} are not the ones of its answers"
                continue
            for entry, forecast in valid.items() if task["samples"] == 1 else ():
                searches, excluded = self.searches[read[entry][0]]
                figures = _figures(forecast) | {"searches": searches, "excluded": excluded}
                yield from mismatches(f"forecasts: forecast {recorded[entry]['id']}", recorded[entry], figures)
            if valid:
                for entry, (call, forecast) in read.items():
                    if forecast.probabilities is None:
                        refused_by_call.setdefault(call, {})[entry] = forecast
        yield from self._check_samples(samples)
        for call, rows in self.refused.items():
            if rows and (call not in refused_by_call or len(rows) != len({row["entry"] for row in rows})):
                yield f"refused_forecasts: those of call {call} are not the ones of its answer"
        for call, refusals in refused_by_call.items():
            row_by_entry = mappings_by("entry", self.refused.get(call, []))
            if row_by_entry.keys() != refusals.keys():
                yield f"refused_forecasts: those of call {call} are not the ones of its answer"
                continue
            for entry, forecast in refusals.items():
                row, computed = row_by_entry[entry], {"stated": forecast.stated, "reason": forecast.reason}
                yield from mismatches(f"refused_forecasts: entry {entry} of call {call}", row, computed)

    def _check_samples(self, samples: Samples) -> Iterator[str]:
        """The samples of each forecast are those of the answers; the rules of the package check what follows."""
        archived: dict[tuple[int, int], set[str]] = defaultdict(set)
        for task in self.elicitations.values():
            archived[task["batch"], task["release"]].add(str(task["sample"]))
        for pair, recorded in self.sampled.items():
            for entry, forecast in recorded.items():
                # A window may hold some of the samples alone.
                stored = {name: vector for name, vector in forecast["samples"].items() if name in archived[pair]}
                read = samples[pair][entry]
                if stored != {name: vector for name, (vector, *_) in read.items()}:
                    yield f"forecasts: the samples of forecast {forecast['id']} are not those of the answers"
                elif len(stored) == len(forecast["samples"]):
                    in_order = [read[name] for name in sorted(read, key=int)]
                    numbers = [searches for _, searches, _ in in_order if searches is not None]
                    figures = {"searches": sum(numbers) if numbers else None}
                    figures["excluded"] = next((reason for *_, reason in in_order if reason), "")
                    yield from mismatches(f"forecasts: forecast {forecast['id']}", forecast, figures)


def _figures(forecast: CheckedForecast) -> dict[str, Any]:
    names = ("probabilities", "stated", "normalised", "rationale")
    return {name: getattr(forecast, name) for name in names}
