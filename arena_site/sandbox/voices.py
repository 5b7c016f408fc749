"""How a model puts its answer into words, from clean JSON to what breaks a careless parser."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

Answer = dict[str, Any]
Utterance = tuple[str, str]
"""The text, and the reason why it ended: `stop`, or `length` where it was cut short."""
Voice = Callable[[Answer, Random], Utterance]


def terse(answer: Answer, dice: Random) -> Utterance:
    """One line of JSON."""
    return json.dumps(answer), "stop"


def tidy(answer: Answer, dice: Random) -> Utterance:
    """Well-formed, indented JSON."""
    return json.dumps(answer, indent=2, ensure_ascii=False), "stop"


def chatty(answer: Answer, dice: Random) -> Utterance:
    """A code fence amid prose, with dollar signs on amounts and sides in lower case."""
    if "bets" in answer:
        bets = [b | {"side": b["side"].lower(), "amount": f"${b['amount']}"} for b in answer["bets"]]
        answer = answer | {"bets": bets}
    opening = dice.choice(("Here is my decision for this week:", "I looked through the list, and I think:"))
    return f"{opening}\n\n```json\n{json.dumps(answer, indent=2)}\n```\n\nLet's see how it goes!", "stop"


def thinking(answer: Answer, dice: Random) -> Utterance:
    """Thoughts aloud, then the JSON."""
    musing = dice.choice(
        (
            "First the cash, then what I already hold. Most prices look fair to me.",
            "I start from the base rates and ask what would have to be true for the price to be wrong.",
        )
    )
    return (
        f"<think>\n{musing}\nA patient answer is often the best one.\n</think>\n\n{json.dumps(answer)}",
        "stop",
    )


def garbled(answer: Answer, dice: Random) -> Utterance:
    """Sometimes clean; else cut off, with duplicate keys, in two minds, or beyond the limit."""
    faults: tuple[Voice, ...] = (truncated, duplicated, doubled, overdone)
    (voice,) = dice.choices((terse, *faults), weights=(40, 20, 12, 12, 16))
    return voice(answer, dice)


def truncated(answer: Answer, dice: Random) -> Utterance:
    """JSON that ends in the middle, as when the tokens run out."""
    text = json.dumps(answer)
    return text[: int(len(text) * dice.uniform(0.4, 0.9))], "length"


def duplicated(answer: Answer, dice: Random) -> Utterance:
    """An object that says its action twice, and not the same one."""
    other = "BET" if answer["action"] == "HOLD" else "HOLD"
    return f'{{"action": "{other}", {json.dumps(answer)[1:]}', "stop"


def doubled(answer: Answer, dice: Random) -> Utterance:
    """Two objects that do not say the same."""
    second_thoughts = {"action": "HOLD", "reasoning": "On second thoughts, waiting costs nothing."}
    return f"{json.dumps(answer)}\n\nOr rather:\n\n{json.dumps(second_thoughts)}", "stop"


def overdone(answer: Answer, dice: Random) -> Utterance:
    """Well-formed, but the first bet is many times what the rules allow."""
    if "bets" in answer:
        first, *rest = answer["bets"]
        answer = answer | {"bets": [first | {"amount": 5_000 + first["amount"] * 10}, *rest]}
    return json.dumps(answer), "stop"
