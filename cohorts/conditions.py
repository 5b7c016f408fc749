"""The conditions of the forecast protocol over all stored methodologies, by name."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cohorts.models import Methodology

if TYPE_CHECKING:
    from cohorts.forecast_rules import ForecastRules
    from markets.selection_rule import Condition

NEVER = datetime.max.replace(tzinfo=UTC)


class Conditions:
    """The conditions of methodologies. Of one name the newest published version says what it is.

    by_name : the newest version's conditions in its order, then those that only other versions have
    """

    def __init__(self, methodologies: Collection[Methodology]) -> None:
        drafts = [row for row in methodologies if row.published_at is None]
        published = [(row.published_at, row.pk, row) for row in methodologies if row.published_at is not None]
        newest_first = [row for *_, row in sorted(published, reverse=True)]
        self._rules: dict[str, ForecastRules] = {}
        self._published: dict[str, datetime] = {}
        self.by_name: dict[str, Condition] = {}
        for methodology in [*newest_first, *drafts]:
            if rules := methodology.forecast_rules:
                self._rules[methodology.version] = rules
                self._published[methodology.version] = methodology.published_at or NEVER
                for condition in rules.conditions:
                    self.by_name.setdefault(condition.name, condition)

    def board(self, version: str = "", at: datetime | None = None) -> str:
        """The condition of a version's boards; without one that of the newest version, now or by an instant.

        Empty where no version has a forecast protocol.
        """
        if version in self._rules:
            return self._rules[version].board
        published = [name for name, since in self._published.items() if at is None or since <= at]
        newest = next(iter(published or self._rules), None)
        return self._rules[newest].board if newest else ""

    def names(self, version: str = "", at: datetime | None = None) -> list[str]:
        """All names, that of the version's boards first."""
        board = self.board(version, at)
        return sorted(self.by_name, key=lambda name: name != board)

    def label(self, name: str) -> str:
        """What a condition shows, in words; with its name where another shows the same, and that alone for others."""
        if name not in self.by_name:
            return name
        words = [condition.in_words() for condition in self.by_name.values()]
        text = self.by_name[name].in_words()
        return text if words.count(text) == 1 else f"{text} ({name})"

    def phrase(self, name: str) -> str:
        """The words of a sentence about a board: "when shown the market’s prices"."""
        condition = self.by_name.get(name)
        return condition.in_words("when shown", "the market’s prices") if condition else f"under the condition {name}"

    def richer_first(self, first: str, second: str) -> tuple[str, str]:
        """Two names; where one condition shows all that the other does and more, that one first."""
        is_second_richer = self.by_name[first].parts < self.by_name[second].parts
        return (second, first) if is_second_richer else (first, second)

    def pairs_apart(self, part: str) -> list[tuple[str, str]]:
        """The pairs of names, with the part and without it, that differ in this alone; that of the boards first."""
        pairs, board = [], self.board()
        for first, condition in self.by_name.items():
            for second, plainer in self.by_name.items():
                if condition.parts - plainer.parts == {part} and plainer.parts < condition.parts:
                    pairs.append((first, second))
        return sorted(pairs, key=lambda pair: board not in pair)


def stored_conditions() -> Conditions:
    """The conditions of all versions in the database."""
    return Conditions(list(Methodology.objects.exclude(forecast={})))
