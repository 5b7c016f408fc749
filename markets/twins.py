"""The same question at two venues: found by its words, its options and its date. Pure functions, no database.

A false twin keeps a question from being asked, a missed one only asks it twice: in doubt two questions differ.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import log
from unicodedata import normalize

ALIKE = 0.6
"""The least share of words, each weighing by how rare it is, that two questions must have in common."""
ALIKE_WITH_OPTIONS = 0.4
"""The same where both list options that agree."""
SHARED_OPTIONS, LEAST_SHARED = 0.6, 2
"""The share of the shorter list's options that the longer must hold, and how many at least."""
MARGIN = 0.05
"""By how much a twin must beat every other candidate."""
DAYS_APART, DAYS_APART_IF_DATED = timedelta(days=3), timedelta(days=21)
"""How far apart twins may close; venues leave time for delays, which is harmless where both texts name the date."""

MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), start=1,
    )
    for name in names.split()
}  # fmt: skip
SYNONYMS = {
    word: canon
    for canon, words in {
        "above": "above over exceed exceeds greater more higher least",
        "below": "below under less fewer most",
        "cut": "cut cuts decrease decreases lower lowers reduce reduces",
        "hike": "hike hikes increase increases raise raises rise rises",
        "hold": "hold holds maintain maintains unchanged",
        "win": "win wins winner winning won",
        "reach": "reach reaches qualify qualifies advance advances make makes",
        "fed": "fed fomc",
        "us": "us usa",
        "bitcoin": "bitcoin btc",
        "ethereum": "ethereum eth",
        "elect": "election elections elected elect electoral",
        "mayor": "mayor mayoral",
        "president": "president presidential presidency",
        "semifinal": "semifinal semifinals semis",
        "quarterfinal": "quarterfinal quarterfinals quarters",
        "not": "not no never without fail fails nobody none",
        "bp": "bps bp point points",
    }.items()
    for word in words.split()
}
PHRASES = {
    "federal reserve": "fed",
    "united states": "us",
    "no change": "hold",
    "prime minister": "premier",
    "or more": "above",
    "or higher": "above",
    "or above": "above",
    "at least": "above",
    "or less": "below",
    "or lower": "below",
    "or below": "below",
}
OPPOSED = {"above", "below", "cut", "hike", "hold", "not", "final", "semifinal", "quarterfinal", "round"}
OPPOSED |= {"first", "second", "third", "up", "down", "next", "top", "worst", "lowest", "highest"}
"""Words of which one more or less makes it another question."""
_IDLE = (
    "a an and any as at be been before by do does for from get has have he her his how if in into is it its men of on"
    " or she that the their them there these they this to was were what when which who whom whose will with would"
)
IDLE = frozenset(_IDLE.split())
BINARY = {frozenset({"yes"}), frozenset({"not"})}

Words = frozenset[str]


@dataclass(frozen=True)
class Asked:
    """A question as one venue asks it. Options are those of a list, Yes and No, or the one that is asked about."""

    id: str
    question: str
    options: Sequence[str] = ()
    closes: datetime | None = None

    @cached_property
    def lists(self) -> frozenset[Words]:
        """The normalised options of a question that lists some; none of a plain one."""
        found = frozenset(_words(option) for option in self.options)
        return frozenset() if found <= BINARY or len(found) < 2 else found

    @cached_property
    def words(self) -> Words:
        """What it asks, without its date."""
        return frozenset(word for word in self._all if not _is_date(word))

    @cached_property
    def date(self) -> Words:
        """The numbers and months that it names."""
        return frozenset(filter(_is_date, self._all))

    @cached_property
    def names(self) -> Words:
        """The words that are written like names; the first may be a capital for that alone."""
        written = " ".join([self.question, *self._single])
        capitals = re.findall(r"(?<!^)(?<![.?!] )\b[A-Z][\w'’.&-]*", _plain(written))
        return _words(" ".join([*capitals, *self._single])) & self.words

    @property
    def _single(self) -> list[str]:
        return [option for option in self.options if _words(option) not in BINARY] if not self.lists else []

    @cached_property
    def _all(self) -> Words:
        return _words(" ".join([self.question, *self._single]))


def twins(left: Sequence[Asked], right: Sequence[Asked]) -> list[tuple[str, str]]:
    """The pairs of ids, of one venue and the other, that ask the same. Nobody is in two; deterministic."""
    weights = _weights([*left, *right])
    by_word: dict[str, list[Asked]] = {}
    for other in right:
        for word in other.words:
            by_word.setdefault(word, []).append(other)
    scores: dict[tuple[str, str], float] = {}
    for one in left:
        for other in {other.id: other for word in sorted(one.words) for other in by_word.get(word, ())}.values():
            if (score := _score(one, other, weights)) is not None:
                scores[one.id, other.id] = score
    return sorted(_clear(scores))


def _clear(scores: Mapping[tuple[str, str], float]) -> Iterator[tuple[str, str]]:
    """The pairs that beat every other pair of either by the margin."""
    rivals: dict[tuple[int, str], list[float]] = {}
    for pair, score in scores.items():
        for side in enumerate(pair):
            rivals.setdefault(side, []).append(score)
    for pair, score in scores.items():
        if all(sum(rival > score - MARGIN for rival in rivals[side]) == 1 for side in enumerate(pair)):
            yield pair


def _score(one: Asked, other: Asked, weights: Mapping[str, float]) -> float | None:
    """How alike two questions are, None where they differ for sure."""
    if (one.words ^ other.words) & OPPOSED or not _same_date(one, other):
        return None
    if bool(one.lists) != bool(other.lists) or not (one.names <= other.words or other.names <= one.words):
        return None
    least = ALIKE
    if one.lists:
        shared = one.lists & other.lists
        if len(shared) < max(LEAST_SHARED, SHARED_OPTIONS * min(len(one.lists), len(other.lists))):
            return None
        least = ALIKE_WITH_OPTIONS
    elif not (one.names | other.names) & one.words & other.words:
        return None
    alike = _weight(one.words & other.words, weights) / (_weight(one.words | other.words, weights) or 1)
    return alike if alike >= least else None


def _same_date(one: Asked, other: Asked) -> bool:
    """Do both name the same numbers and months, or leave out only what their closing says anyway?"""
    for asked in (one, other):
        unsaid = (one.date | other.date) - asked.date
        if unsaid - _restated(one.closes) - _restated(other.closes):
            return False
    if one.closes is None or other.closes is None:
        return bool(one.date & other.date)
    dated = any(word in MONTHS or 1900 < float(word) < 2200 for word in one.date & other.date)
    return abs(one.closes - other.closes) <= (DAYS_APART_IF_DATED if dated else DAYS_APART)


def _restated(closes: datetime | None) -> set[str]:
    """The year, month and day of a closing, which is the midnight after the day that a question names."""
    if closes is None:
        return set()
    names = {number: name for name, number in reversed(MONTHS.items())}
    days = (closes, closes - timedelta(days=1))
    return {word for day in days for word in (str(day.year), names[day.month], str(day.day))}


def _weights(questions: Iterable[Asked]) -> dict[str, float]:
    """Each word's weight: the rarer, the more it tells."""
    total, seen = 0, Counter[str]()
    for asked in questions:
        total += 1
        seen.update(asked.words)
    return {word: 1 + log(total / times) for word, times in seen.items()}


def _weight(words: Iterable[str], weights: Mapping[str, float]) -> float:
    return sum(weights[word] for word in sorted(words))


def _is_date(word: str) -> bool:
    return word in MONTHS or word[:1].isdigit()


def _words(text: str) -> Words:
    """The words that tell, in one form each; numbers in plain digits."""
    plain = _plain(text).lower()
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    plain = re.sub(r"\b(u)\.(s)\.?(a\.)?", "us", plain)
    plain = re.sub(r"(\d)\s*k\b", r"\g<1>000", plain)
    plain = re.sub(r"(\d)([a-z%])", r"\1 \2", plain)
    plain = re.sub(r"(?<=\d)\+|[>≥]", " above ", plain)
    plain = re.sub(r"[<≤]", " below ", plain).replace("%", " percent ")
    tokens = " ".join(re.findall(r"[a-z]+(?:'[a-z]+)?|-?\d+(?:\.\d+)?", plain))
    for phrase, word in PHRASES.items():
        tokens = re.sub(rf"\b{phrase}\b", word, tokens)
    return frozenset(found for token in tokens.split() if (found := _canonical(token)) not in IDLE)


def _canonical(token: str) -> str:
    if token[:1].isdigit() or token.startswith("-"):
        return f"{float(token):g}" if len(token) < 16 else token
    token = token.removesuffix("'s")
    if token in MONTHS:
        return next(name for name, number in MONTHS.items() if number == MONTHS[token])
    if token in SYNONYMS or token in IDLE:
        return SYNONYMS.get(token, token)
    singular = token[:-1] if len(token) > 3 and token.endswith("s") and not token.endswith("ss") else token
    return SYNONYMS.get(singular, singular)


def _plain(text: str) -> str:
    folded = normalize("NFKD", text.replace("’", "'").replace("–", "-"))
    return "".join(c for c in folded if not "\u0300" <= c <= "\u036f")
