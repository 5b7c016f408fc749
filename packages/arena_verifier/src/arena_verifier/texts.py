"""Texts: prompts, universes, question sets and what was shown are those of their hashes."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from arena_verifier.rows import Row, Tables, Violations, condition_of, sha256

QUESTION_COLUMNS = ("question_id", "question", "rules", "exclusive", "options", "prices", "closes")
"""The columns of QUESTIONS where the methodology names none."""
CUT_MARK = " … [cut]"
EVIDENCE_COLUMNS = ["question_id", "title", "source", "url", "published", "text"]
EVIDENCE_FIELDS = ("position", "title", "source", "url", "published_at", "retrieved_at", "sha256")
OTHER_BLOCKS = {"decision": ("questions_block",), "elicitation": ("portfolio_block", "positions_block", "awaiting")}
"""By the task of a call, the blocks that its prompt does not have."""


def check_prompts(tables: Tables, violations: Violations) -> None:
    """The hashes of texts and calls follow from their contents, and what a call cost from what was booked."""
    texts = {}
    for row in tables.rows("prompts"):
        texts[row["sha256"]] = row["text"]
        if sha256(row["text"]) != row["sha256"]:
            violations.append(f"prompts: the text {row['sha256']} ({row['first_use']}) has another hash")
    blocks = {(row["kind"], row["id"]): texts.get(row["sha256"], "") for row in tables.rows("blocks")}
    for call in tables.rows("calls"):
        system, user = messages(tables, call, blocks)
        if sha256(f"{system}\0{user}") != call["prompt_sha256"]:
            violations.append(f"calls: the prompt of call {call['id']} has another hash than its blocks")
        names = OTHER_BLOCKS["decision" if call["decision"] is not None else "elicitation"]
        if any(call[name] for name in names):
            violations.note("calls", call, "has a block of the other protocol")
        if call["cost_source"] == "booked" and call["cost_usd"] != call["booked_usd"]:
            violations.note("calls", call, f"is booked at {call['booked_usd']} and counts {call['cost_usd']}")


def messages(tables: Tables, call: Row, blocks: dict[tuple[str, int], str]) -> tuple[str, str]:
    """The system and the user message of a call, from their templates and blocks."""
    if call["decision"] is not None:
        decision = tables.by("decisions")[call["decision"]]
        rules = tables.rules_of(decision["agent"])
        texts = {"portfolio": call["portfolio_block"], "positions": call["positions_block"]}
        texts |= {"awaiting": call["awaiting"], "markets": blocks.get(("markets", decision["universe"]), "")}
    else:
        elicitation = tables.by("elicitations")[call["elicitation"]]
        rules = tables.methodology(elicitation["methodology"])["forecast"]
        batch = tables.by("question_batches")[elicitation["batch"]]
        day = tables.by("question_sets")[batch["question_set"]]["day"][:10]
        texts = {"date": day, "questions": call["questions_block"] or blocks.get(("questions", batch["id"]), "")}
        texts |= condition_parts(rules, batch["arm"], blocks.get(("evidence", batch["id"]), ""))
    return rules["system_prompt"], fill(rules["user_prompt"], texts) + call["retry_note"]


def condition_parts(rules: Row, arm: str, evidence: str) -> dict[str, str]:
    """The parts of a user message that a condition with evidence, or with search, has."""
    condition, parts = condition_of(rules, arm), {"evidence": "", "search": ""}
    if "evidence" in condition["blocks"]:
        parts["evidence"] = fill(rules["evidence_prompt"], {"evidence": evidence})
    if condition["tools"]:
        parts["search"] = rules["search_prompt"]
    return parts


def fill(template: str, blocks: dict[str, str]) -> str:
    """A prompt template with its blocks; {{ and }} are braces. Nothing of `str.format` that a forger could abuse."""
    return re.sub(r"\{\{|\}\}|\{(\w+)\}", lambda match: blocks[match[1]] if match[1] else match[0][0], template)


def check_hashes_of_lists(tables: Tables, violations: Violations) -> None:
    """The hash of each universe and question set follows from its entries and the texts shown."""
    digests = {(row["kind"], row["id"]): row["sha256"] for row in tables.rows("blocks")}
    markets, questions = tables.by("markets"), tables.by("questions")
    listed = tables.grouped("universe_entries", "universe")
    for pk, universe in tables.by("universes").items():
        lines = []
        for entry in sorted(listed.pop(pk, []), key=by_position):
            market = markets[entry["market"]]
            fields = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*fields, entry["prices"], entry["sources"]], sort_keys=True))
        if sha256("\n".join([*lines, digests.get(("markets", pk), "")])) != universe["sha256"]:
            violations.note("universes", universe, "is another: the fingerprint is not that of its entries and texts")
    question_entries = tables.grouped("question_entries", "question_set")
    for pk, question_set in tables.by("question_sets").items():
        lines = []
        for entry in sorted(question_entries.pop(pk, []), key=by_position):
            question = questions[entry["question"]]
            fields = [entry["position"], entry["batch"], question["options_sha256"], question["text"]]
            fields += [question["rules"], entry["reason"], entry["prices"]]
            if entry["facts"]:
                fields.append(entry["facts"])
            lines.append(json.dumps(fields, sort_keys=True))
        if sha256("\n".join(lines)) != question_set["sha256"]:
            violations.note("question_sets", question_set, "is another: the fingerprint is not that of its entries")
    for name, entries in (("universe_entries", listed), ("question_entries", question_entries)):
        violations.extend(f"{name}: of {parent}, which is not in the archive" for parent in entries)


def check_evidence(tables: Tables, violations: Violations) -> None:
    """The hash of each snippet and set of evidence, and the EVIDENCE block of each batch, follow from the snippets."""
    sets, entries = tables.by("question_sets"), tables.by("question_entries")
    listed = tables.grouped("evidence", "entry")
    lines: dict[int, list[str]] = defaultdict(list)
    snippet_lines: dict[tuple[int, int], list[str]] = defaultdict(list)
    for entry in sorted(entries.values(), key=by_position):
        for snippet in sorted(listed.pop(entry["id"], []), key=by_position):
            if sha256(snippet["text"]) != snippet["sha256"]:
                violations.append(f"evidence: text {snippet['position']} of entry {entry['id']} has another hash")
            lines[entry["question_set"]].append(json.dumps([entry["position"], *map(snippet.get, EVIDENCE_FIELDS)]))
            day = (snippet["published_at"] or "")[:10] or None
            fields = [str(entry["question"]), snippet["title"], snippet["source"], snippet["url"], day, snippet["text"]]
            snippet_lines[entry["question_set"], entry["batch"]].append(json_line(fields))
    violations.extend(f"evidence: of entry {entry}, which is not in the archive" for entry in listed)
    for pk, question_set in sets.items():
        digest = question_set["evidence_sha256"]
        if (lines[pk] or digest) and sha256("\n".join(lines[pk])) != digest:
            violations.note("question_sets", question_set, "has other evidence: the hash is not that of its snippets")
    digests = {row["id"]: row["sha256"] for row in tables.rows("blocks") if row["kind"] == "evidence"}
    for pk, batch in tables.by("question_batches").items():
        rules = tables.methodology(sets[batch["question_set"]]["methodology"])["forecast"]
        block = [json_line(EVIDENCE_COLUMNS), *snippet_lines[batch["question_set"], batch["number"]]]
        has_evidence = "evidence" in condition_of(rules, batch["arm"])["blocks"]
        if digests.get(pk) != (sha256("\n".join(block)) if has_evidence else None):
            violations.note("question_batches", batch, "its EVIDENCE is not what its snippets make")


def by_position(row: Row) -> int:
    return int(row["position"])


def check_shown_questions(tables: Tables, violations: Violations) -> None:
    """The QUESTIONS block of each batch follows from its questions."""
    digests = {row["id"]: row["sha256"] for row in tables.rows("blocks") if row["kind"] == "questions"}
    questions, options = tables.by("questions"), tables.grouped("question_options", "question")
    entries: dict[tuple[int, int], list[Row]] = {}
    for entry in tables.rows("question_entries"):
        entries.setdefault((entry["question_set"], entry["batch"]), []).append(entry)
    for pk, batch in tables.by("question_batches").items():
        rules = tables.methodology(tables.by("question_sets")[batch["question_set"]]["methodology"])["forecast"]
        condition = condition_of(rules, batch["arm"])
        lines = [json_line(rules.get("question_columns", QUESTION_COLUMNS))]
        for entry in sorted(entries[batch["question_set"], batch["number"]], key=by_position):
            lines.append(
                question_line(questions[entry["question"]], options[entry["question"]], entry, rules, condition)
            )
        if sha256("\n".join(lines)) != digests.get(pk):
            violations.note("question_batches", batch, "its block is not what its questions make")


def question_line(question: Row, options: list[Row], entry: Row, rules: Row, condition: Row) -> str:
    """One line of QUESTIONS, in prompts too."""
    names = [option["name"] for option in sorted(options, key=lambda option: option["index"])]
    facts, text = entry["facts"] or {}, cut_text(question["rules"], rules.get("rules_characters"))
    columns: dict[str, Any] = {
        "question_id": str(question["id"]), "event": facts.get("event"), "question": question["text"],
        "rules": text if "rules" in condition["blocks"] else None, "exclusive": question["exclusive"],
        "options": names, "prices": {name: shown_number(entry["prices"][name]["price"]) for name in names},
        "spread": {name: shown_number(facts.get("spread", {}).get(name)) for name in names},
        "volume_24h_usd": facts.get("volume_24h_usd"), "closes": entry["closes_on"] or None,
    }  # fmt: skip
    if "prices" not in condition["blocks"]:
        columns |= {"prices": None, "spread": None, "volume_24h_usd": None}
    return json_line([columns[name] for name in rules.get("question_columns", QUESTION_COLUMNS)])


def cut_text(text: str, characters: int | None) -> str:
    """A text whole up to so many characters, else cut and marked."""
    if characters is None or len(text) <= characters:
        return text
    return text[:characters].rstrip() + CUT_MARK


def shown_number(text: str | None) -> float | None:
    return None if text is None else float(plain_decimal(text))


def json_line(value: Any) -> str:
    """JSON on exactly one line, also for readers to whom more characters end one."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f\x85\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def plain_decimal(text: str) -> Decimal:
    """A decimal in full. Raises ValueError for any other: a huge exponent would fill the memory when printed."""
    if not re.fullmatch(r"-?[0-9]{1,26}(\.[0-9]{1,12})?", text):
        raise ValueError(f"{text[:40]!r} is not a plain decimal")
    return Decimal(text)


def check_shown_texts(tables: Tables, violations: Violations) -> None:
    """The QUESTIONS block of each batch follows from its questions, the MARKETS block names its universe's prices."""
    check_shown_questions(tables, violations)
    entries = tables.grouped("universe_entries", "universe")
    universes = {row["sha256"]: row["id"] for row in tables.rows("blocks") if row["kind"] == "markets"}
    for row in tables.rows("prompts"):
        if row["kind"] == "markets" and (pk := universes.get(row["sha256"])) is not None:
            violations.extend(market_block_faults(pk, row["text"], entries[pk]))


def market_block_faults(universe: int, block: str, entries: list[Row]) -> Iterator[str]:
    heading, *lines = block.split("\n")
    place = json.loads(heading).index("prices")
    rows = [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines]
    listed = sorted((entry for entry in entries if entry["bettable"]), key=by_position)
    if [line[0] for line in rows] != [str(entry["market"]) for entry in listed]:
        yield f"universe_entries: those of universe {universe} are not the markets that were shown"
        return
    for line, entry in zip(rows, listed, strict=True):
        if line[place] != {side: Decimal(price) for side, price in entry["prices"].items()}:
            yield f"universe_entries: market {entry['market']} of universe {universe} was shown at other prices"
