"""Answers: searches follow from the raw answers, forecasts and samples from those that hold one JSON object."""

import json
import math
import re
from collections import defaultdict
from contextlib import suppress
from decimal import Decimal
from functools import reduce
from operator import getitem
from statistics import fmean, median, stdev
from typing import Any
from urllib.parse import unquote, urlsplit

from arena_verifier.chains import by_sequence
from arena_verifier.rows import Row, Tables, Violations

SEARCH_TOOL, MAX_SEARCHES, MAX_RESULTS, MAX_REASON = "openrouter:web_search", 1_000, 750, 200
RESULT_LIMITS = {"url": 2_000, "title": 500, "content": 10_000}
SUM_TOLERANCE, EXACT_TOLERANCE = Decimal("0.02"), 1e-6
"""How far from 1 the probabilities of exclusive options may sum; within the second they stay as they are."""
SMALLEST_PROBABILITY = 0.001  # before log odds, probabilities are clipped to [.001, .999]


def check_searches(tables: Tables, violations: Violations) -> None:
    """The searches of a call, what they showed and why it is excluded follow from its raw answer."""
    for call in tables.rows("calls"):
        tools = member(call["parameters"], "tools") or ()
        tool = next((tool for tool in tools if member(tool, "type") == SEARCH_TOOL), None)
        body = parse(call["raw_response"]) if tool else None
        figures: Row = {"searches": None, "results": None, "excluded": ""}
        if isinstance(body, dict):
            results = shown_results(member(body, "choices", 0, "message", "annotations"))
            searches = -(-len(results) // max(1, member(tool, "parameters", "max_results") or 1))
            for name in ("server_tool_use", "server_tool_use_details"):  # else the fewest that can have shown these
                number = member(body, "usage", name, "web_search_requests")
                searches = number if type(number) is int and 0 <= number <= MAX_SEARCHES else searches
            reason = excluded_reason(results, member(tool, "parameters", "excluded_domains") or [])
            figures = {"searches": searches, "results": results, "excluded": reason}
        violations.differ("calls", call, figures)


def shown_results(annotations: Any) -> list[Row]:
    """The results that the model saw, each once and in their order, with addresses of the web alone."""
    results: list[Row] = []
    for annotation in annotations if isinstance(annotations, list) else ():
        citation = member(annotation, "url_citation")
        result = {name: storable(member(citation, name)).strip()[:limit] for name, limit in RESULT_LIMITS.items()}
        if not re.match("https?://", result["url"], re.IGNORECASE) or not host_of(result["url"]):
            result["url"] = ""
        if any(result.values()) and result not in results:
            results.append(result)
    return results[:MAX_RESULTS]


def excluded_reason(results: list[Row], hosts: list[Any]) -> str:
    """The first result of an excluded host, of a subdomain of one, or of a copy of its page."""
    excluded = tuple("." + str(host).lower().strip(".") for host in hosts)
    for result in results:
        for host in map(host_of, unquote(unquote(result["url"])).split("://")[1:]):
            if host and f".{host}".endswith(excluded):
                return f"a search showed a page of {host}, which is excluded"[:MAX_REASON]
    return ""


def host_of(address: str) -> str:
    with suppress(ValueError):
        return (urlsplit(f"//{address.split('://', 1)[-1]}").hostname or "").rstrip(".")
    return ""


def parse(text: Any, **options: Any) -> Any:
    """The value of a JSON text; None for another text."""
    with suppress(ValueError, TypeError, ArithmeticError, RecursionError):
        return json.loads(text, **options)
    return None


def member(value: Any, *path: Any) -> Any:
    """The value at a path of names and places in JSON; None without one."""
    with suppress(LookupError, TypeError):
        return reduce(getitem, path, value)
    return None


def content_of(call: Row) -> Any:
    """The content of an answer, usually text; that of an external agent came without HTTP and is the text itself."""
    text = call["raw_response"]
    return text if call["http_status"] is None else member(parse(text), "choices", 0, "message", "content")


def storable(text: Any) -> str:
    """A text without NUL and halves of pairs of surrogates, which a database can not store; empty for no text."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text) if isinstance(text, str) else ""


def check_forecasts(tables: Tables, violations: Violations) -> None:
    """A forecast of several samples follows from at least half of them, and all are those of plain answers."""
    tasks, answers = tables.by("elicitations"), answers_by_entry(tables)
    for task in tasks.values():
        if not 1 <= task["sample"] <= task["samples"]:
            violations.note("elicitations", task, f"is sample {task['sample']} of {task['samples']}")
    for forecast in tables.rows("forecasts"):
        samples, number = forecast["samples"], forecast["samples_asked"]
        figures: Row = {"samples_asked": 1, "samples_read": 1, "log_odds_mean": None, "spread": None}
        if samples is not None:
            if 2 * len(samples) < number or number < 2:
                violations.note("forecasts", forecast, f"rests on {len(samples)} of {number} samples")
            exclusive = tables.by("questions")[forecast["question"]]["exclusive"]
            figures = forecast_of_samples(list(samples.values()), exclusive=exclusive) | {"samples_read": len(samples)}
        if origin := tasks.get(forecast["elicitation"]):
            figures["samples_asked"] = origin["samples"]
            by_sample = answers.pop((origin["batch"], origin["release"], forecast["entry"]), {})
            # In a window others may be missing.
            if all(by_sample.values()) and not (tables.is_window and len(by_sample) < len(samples or ())):
                figures |= by_sample.get("1", {}) if samples is None else recorded_samples(by_sample)
        violations.differ("forecasts", forecast, figures)
    single = {(task["batch"], task["release"]) for task in tasks.values() if task["samples"] == 1}
    for (batch, release, entry), by_sample in answers.items():
        if (batch, release) in single and by_sample["1"]:
            violations.append(f"forecasts: of entry {entry} that of release {release} is missing")


def answers_by_entry(tables: Tables) -> dict[tuple[int, int, int], dict[str, Any]]:
    """By batch, release and entry the answers of each sample, as columns of `forecasts`; None for one not plain."""
    calls, entries = tables.grouped("calls", "elicitation"), tables.grouped("question_entries", "question_set")
    options = tables.grouped("question_options", "question")
    answers: dict[tuple[int, int, int], dict[str, Any]] = defaultdict(dict)
    for pk, task in sorted(tables.by("elicitations").items(), key=lambda item: int(item[1]["sample"])):
        if task["status"] != "completed":
            continue
        batch, questions = tables.by("question_batches")[task["batch"]], {}
        for entry in entries[batch["question_set"]]:
            if entry["batch"] == batch["number"]:
                names = {row["name"] for row in options[entry["question"]]}
                question = tables.by("questions")[entry["question"]]
                questions[str(entry["question"])] = question | {"entry": entry["id"], "names": names}
        for name, answer in plain_answers(calls[pk], questions).items():
            answers[task["batch"], task["release"], questions[name]["entry"]][str(task["sample"])] = answer
    return answers


def recorded_samples(by_sample: dict[str, Row]) -> Row:
    """The columns of a forecast that follow from the answers of its samples."""
    samples, searches, reason = {}, None, ""
    for name, figures in by_sample.items():
        samples[name] = figures["probabilities"]
        reason = reason or figures["excluded"]
        if figures["searches"] is not None:
            searches = (searches or 0) + figures["searches"]
    return {"samples": samples, "searches": searches, "excluded": reason}


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


def plain_answers(calls: list[Row], questions: dict[str, Row]) -> dict[str, Row | None]:
    """By question the first answer about it, as columns of `forecasts`; None where that is not plain."""
    answers: dict[str, Row | None] = {}
    for call in sorted(calls, key=by_sequence):
        if call["late"] or call["result"] not in ("answered", "cut"):
            continue
        forecasts = forecasts_of_answer(str(content_of(call)))
        if forecasts is None or not questions.keys() >= forecasts.keys():
            return {name: answers.get(name) for name in questions}
        for name, forecast in forecasts.items():
            answers.setdefault(name, forecast_figures(call, forecast, questions[name]))
    return answers


def forecasts_of_answer(content: str) -> dict[str, Any] | None:
    """The forecasts of the one JSON object in an answer, by question; None if they are not one to a question."""
    text = re.search(r"\{.*\}", content, re.DOTALL)
    options = {"parse_float": Decimal, "parse_int": Decimal, "object_pairs_hook": distinct_names}
    listed = member(parse(text and text[0], **options), "forecasts")
    if not isinstance(listed, list):
        return None
    forecasts = {str(member(forecast, "question_id")): forecast for forecast in listed}
    return forecasts if len(forecasts) == len(listed) else None


def distinct_names(pairs: list[tuple[str, Any]]) -> Row:
    if len(members := dict(pairs)) < len(pairs):
        raise ValueError("a name is given twice")
    return members


def forecast_figures(call: Row, forecast: Row, question: Row) -> Row | None:
    """The columns of `forecasts` that a forecast in an answer gives; None if it is not valid as it stands."""
    numbers, exclusive = member(forecast, "probabilities"), question["exclusive"]
    if not isinstance(numbers, dict) or numbers.keys() != question["names"]:
        return None
    for number in numbers.values():
        if not isinstance(number, Decimal) or not 0 <= number <= 1:
            return None
    if exclusive and abs(sum(numbers.values()) - 1) > SUM_TOLERANCE:
        return None
    probabilities = {name: float(number) for name, number in numbers.items()}
    total = math.fsum(probabilities.values())
    is_normalised = exclusive and abs(total - 1) > EXACT_TOLERANCE
    if is_normalised:
        probabilities = {name: value / total for name, value in probabilities.items()}
    return {
        "probabilities": probabilities, "normalised": is_normalised, "rationale": storable(forecast.get("rationale")),
        "stated": {name: str(number) for name, number in numbers.items()},
        "searches": call["searches"], "excluded": call["excluded"],
    }  # fmt: skip
