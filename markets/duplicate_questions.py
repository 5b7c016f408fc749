"""Detection of the same question at two venues by words, options and dates. Pure functions, no database.

In doubt two questions differ: a false duplicate keeps a question from being asked, a missed one only asks it twice.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import log
from unicodedata import normalize

MIN_SIMILARITY = 0.6
"""Minimum share of common words, weighted by rarity."""
MIN_SIMILARITY_WITH_OPTIONS = 0.4
"""The same for two questions whose listed options agree."""
MIN_SHARED_SHARE, MIN_SHARED_OPTIONS = 0.6, 2
"""Minimum share, and number, of the shorter list's options that the longer list contains."""
MIN_MARGIN = 0.05
"""Minimum lead over the next best candidate."""
MAX_CLOSING_DIFFERENCE, MAX_DATED_DIFFERENCE = timedelta(days=3), timedelta(days=21)
"""Maximum difference between closing times; larger where both texts name the date, since venues allow for delays."""

MONTH_NAMES = (
    "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
    "september sep sept", "october oct", "november nov", "december dec",
)  # fmt: skip
FORMS = {
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
}
"""The forms of a word by the one that stands for them."""
MONTHS: dict[str, int] = {}
for _number, _names in enumerate(MONTH_NAMES, start=1):
    MONTHS |= dict.fromkeys(_names.split(), _number)
SYNONYMS: dict[str, str] = {}
for _word, _forms in FORMS.items():
    SYNONYMS |= dict.fromkeys(_forms.split(), _word)
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
DISTINGUISHING_WORDS = {"above", "below", "cut", "hike", "hold", "not", "final", "semifinal", "quarterfinal", "round"}
DISTINGUISHING_WORDS |= {"first", "second", "third", "up", "down", "next", "top", "worst", "lowest", "highest"}
"""Words whose presence in only one of two questions makes the questions different."""
_STOP_WORDS = (
    "a an and any as at be been before by do does for from get has have he her his how if in into is it its men of on"
    " or she that the their them there these they this to was were what when which who whom whose will with would"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
YES_NO_OPTIONS = {frozenset({"yes"}), frozenset({"not"})}

Words = frozenset[str]


@dataclass(frozen=True)
class VenueQuestion:
    """A question as its venue states it. Options are a list, Yes and No, or the single option that it is about."""

    id: str
    question: str
    options: Sequence[str] = ()
    closes: datetime | None = None

    @cached_property
    def listed_options(self) -> frozenset[Words]:
        """The normalised options of a list; empty for a yes-or-no question."""
        options = frozenset(map(_words, self.options))
        return frozenset() if options <= YES_NO_OPTIONS or len(options) < 2 else options

    @cached_property
    def words(self) -> Words:
        """Its words without those of dates."""
        return frozenset(word for word in self._all_words if not _is_date(word))

    @cached_property
    def date_words(self) -> Words:
        """Its numbers and months."""
        return frozenset(filter(_is_date, self._all_words))

    @cached_property
    def names(self) -> Words:
        """Its capitalised words, without the first, and the words of its single option."""
        written = " ".join([self.question, *self._own_options])
        capitals = re.findall(r"(?<!^)(?<![.?!] )\b[A-Z][\w'’.&-]*", _fold(written))
        return _words(" ".join([*capitals, *self._own_options])) & self.words

    @property
    def _own_options(self) -> list[str]:
        if self.listed_options:
            return []
        return [option for option in self.options if _words(option) not in YES_NO_OPTIONS]

    @cached_property
    def _all_words(self) -> Words:
        return _words(" ".join([self.question, *self._own_options]))


def duplicate_questions(
    originals: Sequence[VenueQuestion], candidates: Sequence[VenueQuestion]
) -> list[tuple[str, str]]:
    """Pairs of ids of the same question at two venues, sorted. No id is in two pairs."""
    weights = _word_weights([*originals, *candidates])
    by_word: dict[str, list[VenueQuestion]] = {}
    for candidate in candidates:
        for word in candidate.words:
            by_word.setdefault(word, []).append(candidate)
    scores: dict[tuple[str, str], float] = {}
    for original in originals:
        with_shared_word: dict[str, VenueQuestion] = {}
        for word in sorted(original.words):
            for candidate in by_word.get(word, ()):
                with_shared_word[candidate.id] = candidate
        for candidate in with_shared_word.values():
            if (score := _similarity(original, candidate, weights)) is not None:
                scores[original.id, candidate.id] = score
    return sorted(_best_pairs(scores))


def _best_pairs(scores: Mapping[tuple[str, str], float]) -> Iterator[tuple[str, str]]:
    """The pairs that lead every other pair of either question by the margin."""
    rivals: dict[tuple[int, str], list[float]] = {}
    for pair, score in scores.items():
        for side in enumerate(pair):
            rivals.setdefault(side, []).append(score)
    for pair, score in scores.items():
        near = 0
        for side in enumerate(pair):
            near += sum(rival > score - MIN_MARGIN for rival in rivals[side])
        if near == len(pair):  # on each side the pair itself
            yield pair


def _similarity(original: VenueQuestion, candidate: VenueQuestion, weights: Mapping[str, float]) -> float | None:
    """The similarity of two questions; None if they certainly differ."""
    if (original.words ^ candidate.words) & DISTINGUISHING_WORDS or not _same_date(original, candidate):
        return None
    if bool(original.listed_options) != bool(candidate.listed_options):
        return None
    if not (original.names <= candidate.words or candidate.names <= original.words):
        return None
    threshold = MIN_SIMILARITY
    if original.listed_options:
        shared = original.listed_options & candidate.listed_options
        shorter = min(len(original.listed_options), len(candidate.listed_options))
        if len(shared) < max(MIN_SHARED_OPTIONS, MIN_SHARED_SHARE * shorter):
            return None
        threshold = MIN_SIMILARITY_WITH_OPTIONS
    elif not (original.names | candidate.names) & original.words & candidate.words:
        return None
    similarity = _total_weight(original.words & candidate.words, weights) / (
        _total_weight(original.words | candidate.words, weights) or 1
    )
    return similarity if similarity >= threshold else None


def _same_date(original: VenueQuestion, candidate: VenueQuestion) -> bool:
    """True if both have the same numbers and months, apart from those that follow from the closing times."""
    for question in (original, candidate):
        missing = (original.date_words | candidate.date_words) - question.date_words
        if missing - _date_words(original.closes) - _date_words(candidate.closes):
            return False
    if original.closes is None or candidate.closes is None:
        return bool(original.date_words & candidate.date_words)
    dated = any(word in MONTHS or 1900 < float(word) < 2200 for word in original.date_words & candidate.date_words)
    return abs(original.closes - candidate.closes) <= (MAX_DATED_DIFFERENCE if dated else MAX_CLOSING_DIFFERENCE)


def _date_words(closes: datetime | None) -> set[str]:
    """The words of the closing date and the day before: a question of a day closes at the following midnight."""
    if closes is None:
        return set()
    names = {number: name for name, number in reversed(MONTHS.items())}
    days = (closes, closes - timedelta(days=1))
    words: set[str] = set()
    for day in days:
        words |= {str(day.year), names[day.month], str(day.day)}
    return words


def _word_weights(questions: Iterable[VenueQuestion]) -> dict[str, float]:
    """Each word's weight, higher for rarer words."""
    total, frequencies = 0, Counter[str]()
    for question in questions:
        total += 1
        frequencies.update(question.words)
    return {word: 1 + log(total / times) for word, times in frequencies.items()}


def _total_weight(words: Iterable[str], weights: Mapping[str, float]) -> float:
    return sum(weights[word] for word in sorted(words))


def _is_date(word: str) -> bool:
    return word in MONTHS or word[:1].isdigit()


def _words(text: str) -> Words:
    """The words of a text without stop words, each in its canonical form; numbers in plain digits."""
    plain = _fold(text).lower()
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", plain)
    plain = re.sub(r"\b(u)\.(s)\.?(a\.)?", "us", plain)
    plain = re.sub(r"(\d)\s*k\b", r"\g<1>000", plain)
    plain = re.sub(r"(\d)([a-z%])", r"\1 \2", plain)
    plain = re.sub(r"(?<=\d)\+|[>≥]", " above ", plain)
    plain = re.sub(r"[<≤]", " below ", plain).replace("%", " percent ")
    tokens = " ".join(re.findall(r"[a-z]+(?:'[a-z]+)?|-?\d+(?:\.\d+)?", plain))
    for phrase, word in PHRASES.items():
        tokens = re.sub(rf"\b{phrase}\b", word, tokens)
    return frozenset(word for token in tokens.split() if (word := _canonical(token)) not in STOP_WORDS)


def _canonical(token: str) -> str:
    if token[:1].isdigit() or token.startswith("-"):
        return f"{float(token):g}" if len(token) < 16 else token
    token = token.removesuffix("'s")
    if token in MONTHS:
        return next(name for name, number in MONTHS.items() if number == MONTHS[token])
    if token in SYNONYMS or token in STOP_WORDS:
        return SYNONYMS.get(token, token)
    singular = token[:-1] if len(token) > 3 and token.endswith("s") and not token.endswith("ss") else token
    return SYNONYMS.get(singular, singular)


def _fold(text: str) -> str:
    folded = normalize("NFKD", text.replace("’", "'").replace("–", "-"))
    return "".join(character for character in folded if not "\u0300" <= character <= "\u036f")
