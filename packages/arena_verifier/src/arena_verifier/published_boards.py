"""Published boards: each is as it was published, and the newest of each selection follows from the facts."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from arena_verifier.rows import Row, Tables, Violations, canonical, mismatches, sha256
from arena_verifier.trading_leaderboard import agent_costs, bet_figures, families_of, scored_bets

SELECTION = ("protocol", "track", "methodology", "arm", "category")
LEADERBOARDS = {
    "leaderboard_trading": ("trading", "family"), "leaderboard_forecast": ("forecast", "forecaster"),
    "leaderboard_agents": ("", "forecaster"),
}  # fmt: skip
"""The tables of current boards: their protocol where no column names it, and the column that names a row."""
WHOLE_ENTRY = "figures"
Board = dict[str, Row]
"""The entries of a board by forecaster or family."""


def check_published_boards(tables: Tables, violations: Violations) -> None:
    """Each board has the hash with which the chain records it, none is missing, and the newest ones are proven."""
    recorded: dict[Any, tuple[int, str]] = {}
    for link in tables.rows("chain"):
        if link["protocol"] == "board":
            for board in link["record"]["boards"]:
                recorded[selection_of(board), board["at"]] = link["sequence"], board["sha256"]
    for row in tables.rows("published_boards"):
        key, contents = selection_of(row), {"entries": row["entries"], "report": row["report"]}
        if sha256(canonical(contents)) != row["sha256"]:
            violations.append(f"published_boards: {board_name(row)} has another hash than when it was published")
        if recorded.pop((key, row["at"]), None) != (row["link"], row["sha256"]):
            violations.append(f"published_boards: {board_name(row)} is not as the chain records it")
    for key, at in recorded:
        violations.append(f"published_boards: {' '.join(filter(None, key))} of {at} is missing")
    check_newest_boards(tables, newest_boards(tables), violations)


def newest_boards(tables: Tables) -> dict[Any, Row]:
    """The last published board of each selection."""
    newest: dict[Any, Row] = {}
    for row in tables.rows("published_boards"):
        key = selection_of(row)
        if key not in newest or newest[key]["at"] < row["at"]:
            newest[key] = row
    return newest


def selection_of(board: Row) -> tuple[str, ...]:
    return tuple(board[name] for name in SELECTION)


def board_name(board: Row) -> str:
    return f"{' '.join(filter(None, selection_of(board)))} of {board['at']}"


def check_newest_boards(tables: Tables, newest: dict[Any, Row], violations: Violations) -> None:
    """The newest board of each selection is the one that the archive's tables hold."""
    for key, computed in current_boards(tables):
        board = newest.get(key)
        if board is None:
            violations.append(f"published_boards: none of {' '.join(filter(None, key))} was published")
            continue
        column = "family" if key[0] == "trading" and not key[1] else "forecaster"
        entries, name = {entry[column]: entry for entry in board["entries"]}, f"published_boards: {board_name(board)}"
        if entries.keys() != computed.keys():
            violations.append(f"{name} lists {sorted(entries)}, on it are {sorted(computed)}")
            continue
        for slug, figures in computed.items():
            stated = {place: as_stated(entries[slug].get(place), value) for place, value in figures.items()}
            violations.extend(mismatches(f"{name}, {slug}", stated, figures))


def current_boards(tables: Tables) -> Iterator[tuple[Any, Board]]:
    """The boards of an archive's tables by their selections, and the trading leaderboards by category."""
    boards: dict[Any, Board] = defaultdict(dict)
    for table, (protocol, column) in LEADERBOARDS.items():
        for row in tables.rows(table):
            key = selection_of({**dict.fromkeys(SELECTION, ""), "protocol": protocol, **row})
            figures = {name: value for name, value in row.items() if name not in (*SELECTION, WHOLE_ENTRY)}
            boards[key][row[column]] = figures
    yield from boards.items()
    categories = sorted({key[-1] for key in boards if key[-1]})
    bets, costs = tables.grouped("brier_scores", "agent"), agent_costs(tables)
    for key, board in boards.items():
        if key[:2] == ("trading", ""):
            players = families_of(tables, key[2], costs)[1]
            for category in categories:
                yield (*key[:-1], category), of_category(tables, board, players, bets, category)


def of_category(
    tables: Tables, board: Board, players: dict[str, list[Row]], bets: dict[int, list[Row]], category: str
) -> Board:
    """A trading leaderboard, the scores of bets narrowed to those on markets of a category."""
    markets, narrowed = tables.by("markets"), {}
    for agent, scores in bets.items():
        narrowed[agent] = [score for score in scores if markets[score["market"]]["category"] == category]
    return {family: row | bet_figures(scored_bets(tables, players[family], narrowed)) for family, row in board.items()}


def as_stated(stated: Any, computed: Any) -> Any:
    """A figure of a board in the type of the computed one: boards hold money as text, and null for no text."""
    if isinstance(computed, Decimal) and isinstance(stated, str):
        return Decimal(stated)
    return "" if stated is None and computed == "" else stated
