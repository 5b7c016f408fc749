"""The selections of the stored leaderboards, among which the addresses of pages choose."""

from typing import Any, NamedTuple

from scoring.models import Leaderboard


class StoredBoards(NamedTuple):
    """The arm, methodology and category of each leaderboard; empty for all of them."""

    keys: frozenset[tuple[str, str, str]]

    @property
    def arms(self) -> set[str]:
        return {arm for arm, _, _ in self.keys}

    @property
    def versions(self) -> list[str]:
        """The methodologies with a leaderboard of their own."""
        return sorted({version for _, version, _ in self.keys if version})

    def categories(self, arm: str | None = None) -> list[str]:
        """The categories with a leaderboard of their own, in one arm or in any."""
        return sorted({category for own_arm, _, category in self.keys if category and arm in (None, own_arm)})


def stored_boards(**narrowing: Any) -> StoredBoards:
    """The selections of the leaderboards with these values of their columns."""
    rows = Leaderboard.objects.filter(**narrowing).order_by().values_list("arm", "methodology", "category")
    return StoredBoards(frozenset(rows.distinct()))
