"""The formats in which simulated models answer, from clean JSON to output that breaks a careless parser."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

Answer = dict[str, Any]
FormattedAnswer = tuple[str, str]
"""The text and its finish reason: `stop`, or `length` where it was cut short."""
AnswerFormat = Callable[[Answer, Random], FormattedAnswer]


def terse(answer: Answer, rng: Random) -> FormattedAnswer:
    """One line of JSON."""
    return json.dumps(answer), "stop"


def tidy(answer: Answer, rng: Random) -> FormattedAnswer:
    """Well-formed, indented JSON."""
    return json.dumps(answer, indent=2, ensure_ascii=False), "stop"


def chatty(answer: Answer, rng: Random) -> FormattedAnswer:
    """A code fence amid prose, with dollar signs on amounts and sides in lower case."""
    if "bets" in answer:
        bets = [b | {"side": b["side"].lower(), "amount": f"${b['amount']}"} for b in answer["bets"]]
        answer = answer | {"bets": bets}
    opening = rng.choice(("Here is my decision for this week:", "I looked through the list, and I think:"))
    return f"{opening}\n\n```json\n{json.dumps(answer, indent=2)}\n```\n\nLet's see how it goes!", "stop"


def thinking(answer: Answer, rng: Random) -> FormattedAnswer:
    """Thoughts aloud, then the JSON."""
    musing = rng.choice(
        (
            "First the cash, then what I already hold. Most prices look fair to me.",
            "I start from the base rates and ask what would have to be true for the price to be wrong.",
        )
    )
    return (f"<think>\n{musing}\nA patient answer is often the best one.\n</think>\n\n{json.dumps(answer)}", "stop")


def garbled(answer: Answer, rng: Random) -> FormattedAnswer:
    """Sometimes valid; else truncated, with duplicate keys, with two objects, or beyond the limit."""
    faults: tuple[AnswerFormat, ...] = (truncated, duplicated, doubled, overdone)
    (answer_format,) = rng.choices((terse, *faults), weights=(40, 20, 12, 12, 16))
    return answer_format(answer, rng)


def truncated(answer: Answer, rng: Random) -> FormattedAnswer:
    """JSON that ends in the middle, as when the tokens run out."""
    text = json.dumps(answer)
    return text[: int(len(text) * rng.uniform(0.4, 0.9))], "length"


def duplicated(answer: Answer, rng: Random) -> FormattedAnswer:
    """An object with two different actions."""
    action = "BET" if answer["action"] == "HOLD" else "HOLD"
    return f'{{"action": "{action}", {json.dumps(answer)[1:]}', "stop"


def doubled(answer: Answer, rng: Random) -> FormattedAnswer:
    """Two objects that contradict each other."""
    second_thoughts = {"action": "HOLD", "reasoning": "On second thoughts, waiting costs nothing."}
    return f"{json.dumps(answer)}\n\nOr rather:\n\n{json.dumps(second_thoughts)}", "stop"


def overdone(answer: Answer, rng: Random) -> FormattedAnswer:
    """Well-formed, but the first bet is many times what the rules allow."""
    if "bets" in answer:
        first, *bets = answer["bets"]
        answer = answer | {"bets": [first | {"amount": 5_000 + first["amount"] * 10}, *bets]}
    return json.dumps(answer), "stop"
