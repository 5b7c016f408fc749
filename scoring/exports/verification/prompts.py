"""Texts of prompts, methodologies, and the prompts of calls."""

import json
from collections.abc import Iterator

from agents.records import sha256
from cohorts.models import HASHED_NAMES, LATER_FIELDS
from scoring.exports.verification.archive_reader import Archive, Row


def check_prompts(archive: Archive) -> Iterator[str]:
    """The hashes of texts, methodologies and calls follow from their contents."""
    texts = {}
    for row in archive.rows("prompts"):
        texts[row["sha256"]] = row["text"]
        if sha256(row["text"]) != row["sha256"]:
            yield f"prompts: the text {row['sha256']} ({row['first_use']}) has another hash"
    for version, rules in archive.methodologies.items():
        frozen = {
            HASHED_NAMES.get(name, name): value if isinstance(value, dict | list) else str(value)
            for name, value in rules.items()
            if name not in ("title", "published_at", "sha256") and (value or name not in LATER_FIELDS)
        }
        if sha256(json.dumps(frozen, sort_keys=True)) != rules["sha256"]:
            yield f"methodologies: {version} differs from its hash"
    blocks = {(row["kind"], row["id"]): texts.get(row["sha256"], "") for row in archive.rows("blocks")}
    renderer = _PromptRenderer(archive, blocks)
    for call in archive.rows("calls"):
        system, user = renderer.messages(call)
        if sha256(f"{system}\0{user}") != call["prompt_sha256"]:
            yield f"calls: the prompt of call {call['id']} has another hash than its blocks"
        if call["cost_source"] == "booked" and call["cost_usd"] != call["booked_usd"]:
            yield f"calls: call {call['id']} is booked at {call['booked_usd']} and counts {call['cost_usd']}"


class _PromptRenderer:
    """Renders the messages of calls from their templates and blocks."""

    def __init__(self, archive: Archive, blocks: dict[tuple[str, int], str]) -> None:
        self.archive, self.blocks = archive, blocks
        self.elicitations = archive.by_id("elicitations")
        self.batches = archive.by_id("question_batches")
        self.sets = archive.by_id("question_sets")

    def messages(self, call: Row) -> tuple[str, str]:
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
        elicitation = self.elicitations[call["elicitation"]]
        rules = self.archive.methodologies[elicitation["methodology"]]["forecast"]
        batch = self.batches[elicitation["batch"]]
        day = self.sets[batch["question_set"]]["day"][:10]
        questions = call["questions_block"] or self.blocks.get(("questions", batch["id"]), "")
        user = rules["user_prompt"].format(date=day, questions=questions)
        return rules["system_prompt"], user + call["retry_note"]
