"""Filters of evidence: what is not shown of the texts about a question, and why. No database.

Each text is dropped for the first reason that holds; what is shown and what is dropped add up to what came.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

from markets.outcome_statements import plain_text, stated_options
from markets.question_selection import QuestionCandidate
from markets.sources.evidence.base import EvidenceText, host_of

if TYPE_CHECKING:
    from markets.selection_rule import EvidenceRule

UNREADABLE, HOST, TOO_LATE, LATER_DATE = "unreadable", "excluded host", "too late", "holds a later date"
MARKET_PRICE, DUPLICATE, SIBLING, OVER = "states a market's price", "duplicate", "answers a sibling", "over the limit"

NUMBER = (
    r"(?:\d{1,3}(?:[.,]\d+)?\s?(?:%|percent|per cent|pct|¢|cents?\b)|\$\s?0?\.\d+|(?<![\d.])0?\.\d{1,3}\b|\$1\b|"
    r"(?<!/)\b\d{1,4}/\d{1,3}\b(?!/)|(?<!\w)[+\-−]\d{3,5}\b|"
    r"\b(?:\d+(?:\.\d+)?|one|two|three|four|five|six|seven|eight|nine|ten)[ -](?:to|in|out of)[ -]"
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)\b)"
)
MARKET = (
    r"(?:prediction markets?|predictions? exchange|betting|bettors?|bookmakers?|bookies?|oddsmakers?|sportsbooks?|"
    r"odds|implied probabilit\w+|moneyline|event contracts?|wagers?|traders? (?:give|see|put|price|bet)\w*|"
    r"market(?:s|'s)? (?:implies|imply|implied|prices?|gives?|puts?|sees?)|{names})"
)
NEAR = 160
"""Characters between the word for a market and a number that count as one statement."""
SHARE_PRICE = re.compile(
    rf"\b(?:yes|no)(?: (?:shares?|contracts?|tokens?|side|is|are|at|for|price[ds]?|trad\w+|costs?|currently)){{1,4}}"
    rf"[ :=]*{NUMBER}|\b(?:yes|no) ?[:=] ?{NUMBER}|"
    r"\b(?:shares?|contracts?|tokens?|trad\w+|priced?) (?:\w+ ){0,3}(?:at|for) (?:\w+ )?"
    r"\d{1,2}(?:\.\d+)? ?(?:¢|cents?\b)"
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATES = (
    re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)[-/.](?P<month>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?(?!\d)"),
    re.compile(r"(?<!\d)(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>(?:19|20)\d\d)(?!\d)"),
    re.compile(r"(?<!\d)(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>(?:19|20)\d\d)(?!\d)"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{MONTH})(?:,? (?P<year>(?:19|20)\d\d))?\b"),
    re.compile(rf"\b(?P<month>{MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (?P<year>(?:19|20)\d\d))?"),
    re.compile(rf"\b(?P<month>{MONTH}),? (?P<year>(?:19|20)\d\d)\b"),
    re.compile(r"(?<![\d.,$€£])(?P<year>20\d\d)(?![\d.,]*\d)"),
)


@dataclass(slots=True)
class EvidenceFilter:
    """What may be shown at an instant: `own_hosts` are this site's; a replay takes no text that may be younger."""

    rule: EvidenceRule
    at: datetime
    replay: bool
    own_hosts: Sequence[str] = ()
    dropped: Counter[str] = field(default_factory=Counter)

    def shown(self, texts: Iterable[EvidenceText], siblings: Sequence[QuestionCandidate]) -> list[EvidenceText]:
        """The texts to show, as they come, at most so many as the rule says; the others are counted by reason."""
        accepted: list[EvidenceText] = []
        is_excluded = excluded_host_test([*self.rule.excluded_hosts, *self.own_hosts])
        states_price = market_price_test(self.rule.excluded_hosts)
        for text in texts:
            reason = (
                self._lateness(text)
                or (is_excluded(text) and HOST)
                or (states_price(self._visible(text)) and MARKET_PRICE)
                or (self._repeats(text, accepted) and DUPLICATE)
                or (self._answers(text, siblings) and SIBLING)
                or (len(accepted) == self.rule.most and OVER)
            )
            if reason:
                self.dropped[reason] += 1
            else:
                accepted.append(text)
        return accepted

    def _visible(self, text: EvidenceText) -> str:
        """Title and text as far as they are shown."""
        return f"{text.title}\n{text.text[: self.rule.characters]}"

    def _lateness(self, text: EvidenceText) -> str:
        """Why it may hold what was not known at the instant; empty if it can not."""
        if text.published_at is not None and text.published_at > self.at:
            return TOO_LATE
        if text.retrieved_at is not None and text.retrieved_at <= self.at:
            return ""
        if not self.replay:
            return TOO_LATE if text.retrieved_at is not None else ""
        if text.published_at is None or text.published_at >= self.at:
            return TOO_LATE
        full_text = f"{text.title}\n{unquote(text.url)}\n{text.text}"
        return LATER_DATE if has_later_date(full_text, self.at.date(), text.published_at.year) else ""

    def _repeats(self, text: EvidenceText, accepted: Sequence[EvidenceText]) -> bool:
        words = comparable_words(self._cut(text))
        for earlier in accepted:
            same_page = bool(text.url) and page_of(text.url) == page_of(earlier.url)
            if same_page or words == comparable_words(self._cut(earlier)):
                return True
        return False

    def _cut(self, text: EvidenceText) -> str:
        return text.text[: self.rule.characters]

    def _answers(self, text: EvidenceText, siblings: Sequence[QuestionCandidate]) -> bool:
        visible = self._visible(text)
        for sibling in siblings:
            names = [option.name for option in sibling.options]
            if stated_options(visible, sibling.text, names, asked_in=self.at.year):
                return True
        return False


def excluded_host_test(hosts: Iterable[str]) -> Callable[[EvidenceText], bool]:
    """A test of whether a text comes from one of these hosts or their subdomains, by its address or its source.

    An archive's or a translator's copy has the host in its own address.
    """
    names = sorted({host.casefold().strip(".") for host in hosts} - {""})
    if not names:
        return lambda text: False
    pattern = re.compile(rf"(?<![a-z0-9-])(?:{'|'.join(map(re.escape, names))})(?![a-z0-9-]|\.[a-z0-9])")
    labels = {name.split(".")[0] for name in names if "." in name}

    def is_excluded(text: EvidenceText) -> bool:
        address = plain_text(unquote(unquote(text.url)))
        return any(map(pattern.search, (address, host_of(address), plain_text(text.source)))) or (
            plain_text(text.source) in labels
        )

    return is_excluded


def market_price_test(hosts: Iterable[str]) -> Callable[[str], bool]:
    """A test of whether a text states a price or odds of a market; `hosts` are those of venues."""
    labels = sorted({re.escape(host.split(".")[0]) for host in hosts})
    market = MARKET.replace("{names}", "|".join([*labels, "fanduel", "draftkings", "bet365", "ladbrokes"]))
    pattern = re.compile(rf"\b{market}\b.{{0,{NEAR}}}?{NUMBER}|{NUMBER}.{{0,{NEAR}}}?\b{market}\b", re.DOTALL)

    def states_price(text: str) -> bool:
        plain = plain_text(text)
        return bool(pattern.search(plain) or SHARE_PRICE.search(plain))

    return states_price


def has_later_date(text: str, day: date, year: int) -> bool:
    """Whether a text names a day, month or year after `day`; `year` is that of dates without one."""
    plain = plain_text(text)
    for pattern in DATES:
        for match in pattern.finditer(plain):
            parts = match.groupdict()
            if _is_later(int(parts.get("year") or year), parts.get("month"), parts.get("day"), day):
                return True
    return False


def _is_later(year: int, month: str | None, number: str | None, day: date) -> bool:
    """Whether a date, as far as it is stated, begins after `day`; what is no date does not."""
    if month is None:
        return year > day.year
    index = int(month) if month.isdigit() else MONTHS.index(month[:3]) + 1
    try:
        return date(year, index, int(number or 1)) > day
    except ValueError:
        return False


def comparable_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", plain_text(text)))


def page_of(url: str) -> str:
    """An address without what differs between links to one page: scheme, `www.`, query and fragment."""
    if "//" not in url:
        return url
    return re.sub(r"^(?:[a-z]+:)?//(?:www\.|m\.)?|[?#].*$|/$", "", url.casefold()).rstrip("/")
