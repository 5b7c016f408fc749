"""The tests in the newest published boards, which need NumPy."""

from collections.abc import Iterator
from typing import Any

from arena_verifier.intervals import return_pairs
from arena_verifier.published_boards import board_name, current_boards, newest_boards
from arena_verifier.rows import mismatches
from arena_verifier.trading_leaderboard import agent_costs, families_of, family_weeks
from arena_verifier.weeks import weekly_returns
from foundation.bulk import subset
from scoring.constants import FORECAST, TRADING
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.forecasts import computed_leaderboards
from scoring.leaderboard_keys import to_json
from scoring.selectors.return_pairs import pair_values


def check_published_tests(archive: Archive) -> Iterator[str]:
    """The tests of the newest leaderboards follow from forecasts and from the returns of weeks."""
    if not archive.is_whole:
        return
    newest = newest_boards(archive)
    for key, _ in current_boards(archive):
        protocol, track, methodology, arm, category = key
        board = newest.get(key)
        if board is None or track:
            continue
        computed: dict[str, Any] = {}
        if protocol == FORECAST:
            computed = computed_leaderboards(archive).contents(arm, methodology, category).report
        elif protocol == TRADING and not category:
            computed = {"pairs": trading_pairs(archive, methodology, board["report"]["pairs"])}
        figures = to_json(subset(computed, board["report"]))
        yield from mismatches(f"published_boards: {board_name(board)}", board["report"], figures)


def trading_pairs(archive: Archive, methodology: str, stated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paired tests of families' returns, in the order in which a board states them."""
    weeks = family_weeks(families_of(archive, methodology, agent_costs(archive))[1], weekly_returns(archive))
    families = {row["slug"]: row for row in archive.rows("families")}
    ranked = {slug for slug in weeks if not families[slug]["external"]}
    order = dict.fromkeys(name for pair in stated for name in (pair["first"], pair["second"]) if name in ranked)
    return pair_values(return_pairs(subset(weeks, [*order, *sorted(ranked - order.keys())])))
