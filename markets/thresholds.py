"""Nested thresholds among the options of one event, by stated rules on the names that its venue gave them.

Two rules, both on whole names of options of one event whose options are not exclusive:

1. The names differ in one number alone, and the rest of them, the same in both, holds words or signs of one direction
   only: "$74,300 or above" of Kalshi, "↑ 100,000" of Polymarket. Above the higher number implies above the lower one.
2. The names are dates and nothing else, and the event's title ends in "by …?" or "by ___?": by the earlier date implies
   by the later one.

Names that fit neither are no thresholds. In doubt there is none: a missed pair only leaves one check out.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import date

ABOVE = frozenset(
    {"above", "over", "more", "higher", "greater", "least", "exceed", "exceeds", ">", "≥", ">=", "+", "↑"}
)
BELOW = frozenset({"below", "under", "less", "lower", "fewer", "most", "<", "≤", "<=", "↓"})
REFUSED = frozenset({"no", "not", "never", "without", "between", "exactly"})
"""Words that turn a direction round, or name a range."""
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?|(?<=\$)\d+(?:,\d{3})*(?:\.\d+)?")
TOKEN = re.compile(r"[a-z]+|>=|<=|[>≥<≤+↑↓]")
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DATE = re.compile(r"([a-z]{3})[a-z]*\.? (\d{1,2})(?:, (\d{4}))?")
BY_DATE = re.compile(r"\bby\s*(?:_+|\.{2,}|…)\s*\??$", re.IGNORECASE)


def nested_chains(event_title: str, names: Mapping[int, str]) -> list[list[int]]:
    """The markets of an event in chains, each from the option that the others imply to the one that implies them.

    `names` has the name of each market's option. Only chains of two or more, and of different thresholds.
    """
    by_rule: dict[str, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    is_by_date = BY_DATE.search(event_title.strip()) is not None
    for market, name in names.items():
        threshold = _threshold(name)
        if threshold is None and is_by_date:
            threshold = _date(name)
        if threshold is not None:
            template, width = threshold
            by_rule[template][width].append(market)
    chains = []
    for markets_by_width in by_rule.values():
        if len(markets_by_width) > 1 and all(len(markets) == 1 for markets in markets_by_width.values()):
            chains.append([markets_by_width[width][0] for width in sorted(markets_by_width, reverse=True)])
    return chains


def _threshold(name: str) -> tuple[str, float] | None:
    """The name without its number, and how wide the option is: larger numbers for options that others imply."""
    text = " ".join(name.casefold().split())
    numbers = NUMBER.findall(text)
    if len(numbers) != 1:
        return None
    template = text.replace(numbers[0], "#", 1)
    words = set(TOKEN.findall(template))
    directions = {is_above for is_above, signs in ((True, ABOVE), (False, BELOW)) if words & signs}
    if len(directions) != 1 or words & REFUSED or re.search(r"\d", template):
        return None
    value = float(numbers[0].replace(",", "").replace("−", "-"))
    return template, -value if directions == {True} else value


def _date(name: str) -> tuple[str, float] | None:
    match = DATE.fullmatch(" ".join(name.casefold().split()))
    if match is None or match[1] not in MONTH_NAMES:
        return None
    try:
        day = date(int(match[3] or 2000), 1 + MONTH_NAMES.index(match[1]), int(match[2]))
    except ValueError:
        return None
    return f"by date{' with year' if match[3] else ''}", float(day.toordinal())
