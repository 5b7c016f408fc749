"""Whether a text states the outcome of a question: a rule on words, sentence by sentence. No database.

A sentence states an outcome if it is about the question (has each name in it, and most of its significant words),
names the option where options have names, and asserts: it has a word of things done, and none of expectation. The rule
errs to both sides; what it marks is shown, so that a reader can judge it.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

ABOUT = 0.6
"""The share of a question's significant words that a sentence about it has."""
STEM = 6
"""Letters by which words are compared, without their endings: `rain` and `rained`, `elected` and `election`."""
ENDING = re.compile(r"(?:ations?|ions?|ings?|ed|es|s|e)$")
SIDES = {"yes": True, "no": False}
COMMON = (
    "will would does did has have the and for its are was were been with from that this than more less most least any "
    "who what which when where how before after until during between above below over under into out not happen there "
    "their they them his her him she you your our"
)
COMMON_WORDS = frozenset(COMMON.split())
SENTENCE_END = re.compile(r"(?<=[.!;])\s+|\n+")
WORD = re.compile(r"[^\W_]+")
NAME = re.compile(r"[A-Z][^\W_]*(?:[ '’-]+(?:of |the |de |van )?[A-Z][^\W_]*)*")
EXPECTATION = re.compile(
    r"\b(?:will|would|could|may|might|can|should|if|whether|expect\w*|forecast\w*|predict\w*|likely|unlikely|odds|"
    r"chances?|probab\w+|polls?|polling|plans?|planned|aims?|hopes?|hoping|favou?rites?|scheduled|set to|about to|"
    r"to (?:win|become|be|happen)|upcoming|next|rumou?r\w*|ahead of)\b"
)
DONE = re.compile(
    r"\b(?!need|indeed)\w{2,}ed\b|\b(?:won|wins|beats?|lost|loses|fell|rose|became|took|did|has|have|had|was|were|is|"
    r"final|official(?:ly)?|victory|winner|yes|no|never|happens|made|met|hit|sold|left|held|gave|cut|went|came|ran)\b"
)
DENIAL = re.compile(r"\b(?:not|no|never|without|fail\w*|lost|loses|reject\w*|denied|\w+n't)\b")
VERDICT = re.compile(r"\b(?:resolv\w+|settl\w+|outcome|answer|result|verdict)\b(?:\s+\w+){0,4}[\s:=\"'(]+(yes|no)\b")
ANSWER = "outcome: "
DATE_WORDS = (
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep oct nov dec monday tuesday wednesday thursday friday saturday sunday"
)
YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def states_outcome(text: str, question: str, happened: Mapping[str, bool | None], *, asked_in: int) -> bool:
    """Whether a text states what happened: `happened` by option. A sentence about earlier years alone does not."""
    return any(map(happened.get, stated_options(text, question, happened, asked_in=asked_in)))


def stated_options(text: str, question: str, options: Iterable[str], *, asked_in: int) -> set[str]:
    """The options that a text states as what happened."""
    by_name = {plain_text(name): name for name in options}
    subject = Subject.of(question)
    names = set()
    for sentence in _sentences(text, plain_text(question)):
        years = list(map(int, YEAR.findall(sentence)))
        if not years or max(years) >= asked_in:
            names |= {by_name[name] for name in _options_of(sentence, subject, by_name)}
    return names


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about: the stems of its significant words, and those of each of its names."""

    words: frozenset[str]
    names: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, question: str) -> "Subject":
        names = [_stems(name) - _stems(DATE_WORDS) for name in NAME.findall(question)]
        return cls(_stems(question), tuple(filter(None, names)))

    def is_in(self, sentence: str, of_options: frozenset[str] = frozenset()) -> bool:
        """Whether a sentence has a word of each name, and most words, besides those of the options' names."""
        stems, subject_stems = _stems(sentence), self.words - of_options
        if not subject_stems:
            return "win" in stems
        has_names = all(name & (stems | of_options) for name in self.names)
        return has_names and len(subject_stems & stems) >= ABOUT * len(subject_stems)


def _sentences(text: str, question: str) -> Iterable[str]:
    """The sentences of a text, and what follows the question where the text has it word for word."""
    plain = plain_text(text)
    for sentence in SENTENCE_END.split(plain):
        if question not in sentence:
            yield sentence
    for part in plain.split(question)[1:]:
        yield f"{ANSWER}{' '.join(WORD.findall(part)[:6])}"


def _options_of(sentence: str, subject: Subject, names: Collection[str]) -> set[str]:
    """The options, by their plain names, that a sentence states."""
    if sentence.startswith(ANSWER):
        return {name for name in names if _has_name(sentence.removeprefix(ANSWER), name)}
    if verdict := VERDICT.search(sentence):
        return {verdict[1]} & set(names) if subject.is_in(sentence) else set()
    if not DONE.search(sentence) or EXPECTATION.search(sentence):
        return set()
    options = set()
    of_options = _stems(" ".join(names))
    denied = bool(DENIAL.search(sentence))
    for name in names:
        if name in SIDES:
            if SIDES[name] != denied and subject.is_in(sentence):
                options.add(name)
        elif not denied and _has_name(sentence, name) and subject.is_in(sentence, of_options):
            options.add(name)
    return options


def _has_name(sentence: str, name: str) -> bool:
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence) is not None


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The significant words of a text, shortened, with the forms of `win` as one."""
    stems = set()
    for word in WORD.findall(plain_text(text)):
        if word in ("win", "wins", "won", "winner", "winning", "victory"):
            stems.add("win")
        elif word not in COMMON_WORDS and (len(word) > 2 or word.isdigit()):
            stems.add((ENDING.sub("", word) if len(word) > 4 else word.rstrip("es"))[:STEM])
    return frozenset(stems)


@lru_cache(maxsize=64)
def plain_text(text: str) -> str:
    """A text for comparison: compatible forms of characters, small letters, nothing invisible, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    visible = "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")
    return re.sub(r"[^\S\n]+", " ", visible).strip()
