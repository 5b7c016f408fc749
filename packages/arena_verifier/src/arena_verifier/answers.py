"""Answers: decisions, instructions and forecasts follow from the raw answers, and what several samples make from these.

Every answer is read as the arena reads it when it comes: by `decisions` and `forecasts`.
"""

import math
from collections import defaultdict
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from arena_verifier.answer_texts import Malformed, content_of
from arena_verifier.chains import by_sequence
from arena_verifier.decisions import Answer, parse_answer
from arena_verifier.forecasts import (
    CheckedForecast,
    PromptQuestion,
    check_forecasts,
    first_valid,
    parse_cut_forecasts,
    parse_forecasts,
)
from arena_verifier.rows import Row, Tables, Violations

SMALLEST_PROBABILITY = 0.001  # before log odds, probabilities are clipped to [.001, .999]
REREAD_COLUMNS = ("probabilities", "stated", "normalised", "rationale")
PARSED = "parsed"
"""The column of calls that holds a parsed answer; only the database has it."""


def check_parsed(call: Row, parsed: Any, violations: Violations) -> None:
    """The parsed answer that is stored with a call is the one that its text states."""
    if call.get(PARSED, parsed) != parsed:
        violations.note("calls", call, "was read as another answer than its own")


# Decisions


def check_decision_answers(tables: Tables, violations: Violations) -> None:
    """Decisions and instructions are those of the answers; without a usable one, a hold by fallback or nothing."""
    decisions, agents = tables.by("decisions"), tables.by("agents")
    instructions, trades = tables.grouped("instructions", "call"), tables.grouped("trades", "decision")
    answered = set()
    for call in tables.rows("calls"):
        listed = sorted(instructions.pop(call["id"], []), key=by_sequence)
        decision = decisions.get(call["decision"])
        if decision is None:
            continue
        answer = decision_of_answer(tables, call, decision, violations)
        has_ended = call["result"] == "refused" or decision["status"] == "completed"
        if answer is None or not has_ended:
            if listed:
                violations.append(f"instructions: call {call['id']} is {call['result']}, and has some")
            continue
        check_instructions(call, answer, listed, violations)
        if call["result"] == "refused":
            continue
        answered.add(decision["id"])
        fields = {"action": answer.action, "reasoning": answer.reasoning, "fallback": False}
        violations.differ("decisions", decision, fields)
        executed = [row["kind"] for row in listed if row["executed"]]
        traded = sorted(trades[decision["id"]], key=by_sequence)
        if ["BET" if trade["kind"] == "BUY" else trade["kind"] for trade in traded] != executed:
            violations.append(f"trades: those of decision {decision['id']} are not its executed instructions")
    violations.extend(f"instructions: of call {call}, which is not in the archive" for call in instructions)
    for pk, decision in decisions.items():
        completed = decision["status"] == "completed"
        fields = {"cohort": agents[decision["agent"]]["cohort"]}
        if pk not in answered:
            fields |= {"action": "HOLD" if completed else "", "fallback": completed, "reasoning": ""}
        violations.differ("decisions", decision, fields)
        if pk not in answered and (decision["decided_at"] is not None) != completed:
            violations.note("decisions", decision, f"is {decision['status']}, decided at {decision['decided_at']}")


def decision_of_answer(tables: Tables, call: Row, decision: Row, violations: Violations) -> Answer | None:
    """The decision that a call's answer states; None of an answer that was not read, or that can not be."""
    if call["late"] or call["result"] not in ("answered", "refused"):
        return None
    bet_reasons = bool(tables.rules_of(decision["agent"]).get("trading", {}).get("bet_reasons"))
    try:
        answer = parse_answer(content_of(call["raw_response"], call["http_status"]), bet_reasons=bet_reasons)
    except Malformed as fault:
        violations.append(f"calls: call {call['id']} is {call['result']}, but its answer can not be read: {fault}")
        return None
    check_parsed(call, answer.as_json(), violations)
    return answer


def check_instructions(call: Row, answer: Answer, listed: list[Row], violations: Violations) -> None:
    """The instructions of a call are those of its answer, each executed or rejected for a reason."""
    expected = [("BET", bet.as_json()) for bet in answer.bets] + [("SELL", sale.as_json()) for sale in answer.sells]
    recorded = [(row["sequence"], row["kind"], row["payload"]) for row in listed]
    if recorded != [(place, *instruction) for place, instruction in enumerate(expected, start=1)]:
        violations.append(f"instructions: those of call {call['id']} are not the ones of its answer")
    for row in listed:
        if row["executed"] == bool(row["reason"]):
            violations.append(f"instructions: no. {row['sequence']} of call {call['id']}: reason {row['reason']!r}")
    if call["result"] == "refused" and any(row["executed"] for row in listed):
        violations.append(f"instructions: call {call['id']} was refused, and one of its instructions executed")


# Forecasts


class Reading(NamedTuple):
    """A forecast as it is read from the answer of a call."""

    call: Row
    forecast: CheckedForecast


Readings = dict[int, Reading]
"""By entry."""


def check_forecast_answers(tables: Tables, violations: Violations) -> None:
    """Forecasts and refused ones are those of the answers, and what several samples make follows from these."""
    tasks, forecasts = tables.by("elicitations"), tables.grouped("forecasts", "elicitation")
    answers, refusals = read_forecast_answers(tables, violations)
    samples: dict[tuple[int, int], dict[str, Readings]] = defaultdict(dict)
    for pk, task in tasks.items():
        completed = task["status"] == "completed"
        if not 1 <= task["sample"] <= task["samples"]:
            violations.note("elicitations", task, f"is sample {task['sample']} of {task['samples']}")
        if (task["made_at"] is not None) != completed:
            violations.note("elicitations", task, f"is {task['status']}, made at {task['made_at']}")
        readings = answers.get(pk, {}) if completed else {}
        valid = {entry: row for entry, row in readings.items() if row.forecast.probabilities is not None}
        if completed and task["declined"] == bool(valid):
            violations.note("elicitations", task, f"has declined {task['declined']}, against its calls")
        for entry, reading in readings.items():
            if valid and entry not in valid:
                refusals[reading.call["id"]][entry] = reading.forecast
        if task["samples"] > 1:
            samples[task["batch"], task["release"]][str(task["sample"])] = valid
        else:
            check_single_forecasts(task, forecasts[pk], valid, violations)
    for pk, rows in forecasts.items():
        if pk in tasks and tasks[pk]["samples"] > 1:
            check_sampled_forecasts(
                tables, tasks[pk], rows, samples[tasks[pk]["batch"], tasks[pk]["release"]], violations
            )
    check_refused_forecasts(tables, refusals, violations)


def read_forecast_answers(
    tables: Tables, violations: Violations
) -> tuple[dict[int, Readings], dict[int, dict[int, CheckedForecast]]]:
    """By task the first valid forecast for each entry, else the last; and by call those of answers refused whole."""
    tasks, asked = tables.by("elicitations"), asked_questions(tables)
    checked_by_call: dict[int, list[tuple[Row, tuple[CheckedForecast, ...]]]] = defaultdict(list)
    refusals: dict[int, dict[int, CheckedForecast]] = defaultdict(dict)
    for call in tables.rows("calls"):
        task = tasks.get(call["elicitation"])
        if task is None or call["late"] or call["result"] not in ("answered", "cut", "refused"):
            continue
        content = content_of(call["raw_response"], call["http_status"])
        try:
            stated = parse_cut_forecasts(content) if call["result"] == "cut" else parse_forecasts(content)
        except Malformed as fault:
            violations.append(f"calls: call {call['id']} is {call['result']}, but its answer can not be read: {fault}")
            continue
        check_parsed(call, [forecast.as_json() for forecast in stated] or None, violations)
        if not stated:
            continue
        entries, questions = asked[task["batch"]]
        checked = check_forecasts(stated, questions)
        if call["result"] == "refused":
            refusals[call["id"]] = dict(zip(entries, checked, strict=True))
        else:
            origin = {name: call[name] for name in ("id", "sequence", "result", "searches", "excluded")}
            checked_by_call[task["id"]].append((origin, checked))
    answers = {}
    for pk, read in checked_by_call.items():
        read.sort(key=lambda item: by_sequence(item[0]))
        calls = [call for call, _ in read]
        if sum(call["result"] == "answered" for call in calls) > 1:
            violations.note("elicitations", tasks[pk], "rests on several answers")
        first = first_valid([checked for _, checked in read])
        entries, _ = asked[tasks[pk]["batch"]]
        answers[pk] = {entry: Reading(calls[place], row) for entry, (place, row) in zip(entries, first, strict=True)}
    return answers, refusals


def asked_questions(tables: Tables) -> dict[int, tuple[list[int], list[PromptQuestion]]]:
    """By batch its entries and their questions, in the order in which they were asked."""
    options, questions = tables.grouped("question_options", "question"), {}
    for pk, row in tables.by("questions").items():
        names = tuple(option["name"] for option in sorted(options[pk], key=lambda option: int(option["index"])))
        questions[pk] = PromptQuestion(str(pk), names, row["exclusive"])
    listed = tables.grouped("question_entries", "question_set")
    asked = {}
    for pk, batch in tables.by("question_batches").items():
        entries = [entry for entry in listed[batch["question_set"]] if entry["batch"] == batch["number"]]
        entries.sort(key=lambda entry: int(entry["position"]))
        asked[pk] = [entry["id"] for entry in entries], [questions[entry["question"]] for entry in entries]
    return asked


def check_single_forecasts(task: Row, rows: list[Row], valid: Readings, violations: Violations) -> None:
    """The forecasts of a task without samples are the valid ones of its answers."""
    row_by_entry = {row["entry"]: row for row in rows}
    if len(row_by_entry) != len(rows) or row_by_entry.keys() != valid.keys():
        violations.note("elicitations", task, "has other forecasts than its answers state")
        return
    for entry, (call, forecast) in valid.items():
        figures = {name: getattr(forecast, name) for name in REREAD_COLUMNS}
        figures |= {"call": call["id"], "searches": call["searches"], "excluded": call["excluded"]}
        figures |= {"samples": None, "samples_asked": 1, "samples_read": 1, "log_odds_mean": None, "spread": None}
        violations.differ("forecasts", row_by_entry[entry], figures)


def check_sampled_forecasts(
    tables: Tables, task: Row, rows: list[Row], read_samples: dict[str, Readings], violations: Violations
) -> None:
    """Forecasts of several samples are made of at least half of them, and these are those of the answers.

    `read_samples` are the valid forecasts of each sample that the tables hold; a window may lack some.
    """
    for row in rows:
        samples, number = row["samples"] or {}, task["samples"]
        if not samples or 2 * len(samples) < number:
            violations.note("forecasts", row, f"rests on {len(samples)} of {number} samples")
            continue
        known = {name: vector for name, vector in samples.items() if name in read_samples}
        readings = {name: valid[row["entry"]] for name, valid in read_samples.items() if row["entry"] in valid}
        if known != {name: reading.forecast.probabilities for name, reading in readings.items()}:
            violations.note("forecasts", row, "has other samples than the answers state")
        exclusive = tables.by("questions")[row["question"]]["exclusive"]
        figures = forecast_of_samples(list(samples.values()), exclusive=exclusive)
        figures |= {"samples_asked": number, "samples_read": len(samples)}
        if len(known) == len(samples):
            calls = [readings[name].call for name in sorted(readings, key=int)]
            searches = [call["searches"] for call in calls if call["searches"] is not None]
            figures["searches"] = sum(searches) if searches else None
            figures["excluded"] = next((call["excluded"] for call in calls if call["excluded"]), "")
        violations.differ("forecasts", row, figures)


def check_refused_forecasts(
    tables: Tables, refusals: dict[int, dict[int, CheckedForecast]], violations: Violations
) -> None:
    """The refused forecasts of each call are those of its answer."""
    refused = tables.grouped("refused_forecasts", "call")
    for call in sorted(refused.keys() | refusals.keys()):
        row_by_entry = {row["entry"]: row for row in refused[call]}
        if len(row_by_entry) != len(refused[call]) or row_by_entry.keys() != refusals[call].keys():
            violations.append(f"refused_forecasts: those of call {call} are not the ones of its answer")
            continue
        for entry, forecast in refusals[call].items():
            figures = {"stated": forecast.stated, "reason": forecast.reason}
            violations.differ("refused_forecasts", row_by_entry[entry], figures)


def forecast_of_samples(samples: list[dict[str, float]], *, exclusive: bool) -> Row:
    """The medians, mean log odds and spread of samples, as columns of `forecasts`; one sample has no spread."""
    medians, log_odds_mean, deviations = {}, {}, []
    for option in samples[0]:
        odds = [log_odds(sample[option]) for sample in samples]
        medians[option] = median(sample[option] for sample in samples)
        log_odds_mean[option] = 1 / (1 + math.exp(-fmean(odds)))
        if len(odds) > 1:
            deviations.append(stdev(odds))
    total = math.fsum(medians.values())
    probabilities = dict(medians)
    if exclusive and total == 0:
        probabilities = dict.fromkeys(medians, 1 / len(medians))
    elif exclusive and abs(total - 1) > 1e-12:
        probabilities = {option: value / total for option, value in medians.items()}
    return {
        "probabilities": probabilities, "normalised": probabilities != medians, "log_odds_mean": log_odds_mean,
        "stated": {option: repr(value) for option, value in medians.items()},
        "spread": fmean(deviations) if deviations else None,
    }  # fmt: skip


def log_odds(probability: float) -> float:
    clipped = min(max(probability, SMALLEST_PROBABILITY), 1 - SMALLEST_PROBABILITY)
    return math.log(clipped / (1 - clipped))
