"""Hashes of texts, methodologies, prompts, universes and question sets."""

import json
from collections.abc import Iterator
from string import Formatter

from agents.records import sha256
from cohorts.models import Methodology
from scoring.exports.verification.archive_reader import Archive, Row

OTHER_BLOCKS = {"decision": ("questions_block",), "elicitation": ("portfolio_block", "positions_block", "awaiting")}
"""By the task of a call, the blocks that its prompt does not have."""


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
        other = OTHER_BLOCKS["decision" if call["decision"] is not None else "elicitation"]
        if any(call[name] for name in other):
            yield f"calls: call {call['id']} has a block of the other protocol"
        if call["cost_source"] == "booked" and call["cost_usd"] != call["booked_usd"]:
            yield f"calls: call {call['id']} is booked at {call['booked_usd']} and counts {call['cost_usd']}"


def _messages(archive: Archive, blocks: dict[tuple[str, int], str], call: Row) -> tuple[str, str]:
    """The system and the user message of a call, from their templates and blocks."""
    if call["decision"] is not None:
        decision = archive.decisions[call["decision"]]
        rules = archive.rules_of(decision["agent"])
        user = _fill(
            rules["user_prompt"],
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
        user = _fill(rules["user_prompt"], date=day, questions=questions)
    return rules["system_prompt"], user + call["retry_note"]


def _fill(template: str, **blocks: str) -> str:
    """A template with its blocks. Raises ValueError for anything else that `str.format` would do, at any cost."""
    for _, name, width, conversion in Formatter().parse(template):
        if width or conversion or (name is not None and name not in blocks):
            raise ValueError(f"methodologies: {{{name}}} is no block of a prompt")
    return template.format(**blocks)


def check_universes(archive: Archive) -> Iterator[str]:
    """The hash of each universe and question set follows from its entries and the texts shown."""
    blocks = {(row["kind"], row["id"]): row["sha256"] for row in archive.rows("blocks")}
    entries = archive.grouped("universe_entries", "universe")
    for pk, universe in archive.universes.items():
        lines = []
        for entry in sorted(entries.pop(pk, []), key=lambda entry: entry["position"]):
            market = archive.markets[entry["market"]]
            fields = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*fields, entry["prices"], entry["sources"]], sort_keys=True))
        lines.append(blocks.get(("markets", pk), ""))
        if sha256("\n".join(lines)) != universe["sha256"]:
            yield f"universes: universe {pk} has another hash than its entries and texts"
    questions = archive.by_id("questions")
    asked = archive.grouped("question_entries", "question_set")
    for pk, question_set in archive.question_sets.items():
        lines = []
        for e in sorted(asked.pop(pk, []), key=lambda entry: entry["position"]):
            q = questions[e["question"]]
            stated = [e["position"], e["batch"], q["options_sha256"], q["text"], q["rules"], e["reason"], e["prices"]]
            lines.append(json.dumps(stated, sort_keys=True))
        if sha256("\n".join(lines)) != question_set["sha256"]:
            yield f"question_sets: set {pk} has another hash than its entries"
    for name, rest in (("universe_entries", entries), ("question_entries", asked)):
        for parent in rest:
            yield f"{name}: of {parent}, which is not in the archive"
