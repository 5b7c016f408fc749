"""The publication of boards: what readers may cite is stored once, chained, and never changed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from agents.models import ChainLink
from agents.records import BOARD, canonical, sha256
from agents.services.chain import append_publication, lock_chain
from foundation.bulk import subset
from foundation.consistent_reads import second_connection
from foundation.json_lines import instant_text
from markets.services.cache_versions import Scope, renew_versions
from scoring.constants import FORECAST, TRADING
from scoring.leaderboard_keys import to_json, versions_in_play
from scoring.models import AgentsBoard, Leaderboard, PublishedBoard
from scoring.selectors.forecast_panels import family_names, of_category, resolved_entries
from scoring.selectors.leaderboard_entries import category_entries, narrowed_entries
from scoring.selectors.published_boards import published_boards
from scoring.selectors.scored_bets import SCORED
from scoring.services.agents_boards import agents_board, board_keys
from scoring.services.forecast_inputs import NO_PARTICIPATION, inputs_version
from scoring.services.forecast_leaderboards import (
    compute_forecast_leaderboards,
    leaderboard_selections,
    stored_leaderboards,
)
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.trading_leaderboards import compute_trading_leaderboards, stored_accounts, trading_leaderboard

INTERVAL = timedelta(hours=1)
"""The least time between two published boards of one selection."""
PARTS = ("pairs", "data", "market")
"""The parts of a report that are published: what headlines and intervals rest on."""
SELECTION = ("protocol", "methodology", "arm", "category", "track")


def publish_boards(*, at: datetime) -> int:
    """Publishes each board that changed since its last publication, which was an hour ago at least; returns how many.

    Of an instant before the newest publication the boards are computed as they stood then, where none is stored of it
    or of the hour before.
    """
    is_past = PublishedBoard.objects.filter(at__gt=at).exists()
    boards = list(_past_boards(at) if is_past else _current_boards())
    with transaction.atomic():
        lock_chain(BOARD)
        return _publish(list(_due(boards, at, is_past=is_past)), at)


def publish_for_archive(*, at: datetime) -> ChainLink | None:
    """Publishes, in the consistent reads of an archive, each board that its facts make another than was published.

    So the newest boards of an archive follow from its facts, whatever the time since the last publication. They are
    dated after every published one. Returns the last link of the chain of boards; None where nothing was ever
    published.
    """
    boards = list(_recomputed_boards(at))
    with second_connection(), transaction.atomic():
        lock_chain(BOARD)
        newest = PublishedBoard.objects.order_by("-at").values_list("at", flat=True).first()
        later = at if newest is None else max(at, newest + timedelta(microseconds=1))
        _publish([board for board in boards if _is_new(board, later)], later)
        return ChainLink.objects.filter(protocol=BOARD).order_by("-sequence").first()


def _publish(boards: Sequence[PublishedBoard], at: datetime) -> int:
    """Stores boards with the link of their publication; returns how many. The caller has locked the chain."""
    if not boards:
        return 0
    records = []
    for board in boards:
        board.at = at
        records.append(subset(board.__dict__, (*SELECTION, "sha256")) | {"at": instant_text(at)})
    link = append_publication(records)
    for board in boards:
        board.link = link
    PublishedBoard.objects.bulk_create(boards)
    renew_versions(Scope.LEADERBOARDS)
    return len(boards)


def _due(boards: Iterable[PublishedBoard], at: datetime, *, is_past: bool) -> Iterator[PublishedBoard]:
    """The boards to publish at an instant; of a past one all, since they have no slow fits to compare."""
    for board in boards:
        last = _last_published(board, at)
        if last is None or (at - last.at >= INTERVAL and (is_past or _has_changed(board, last))):
            yield board


def _has_changed(board: PublishedBoard, last: PublishedBoard) -> bool:
    """Whether a board is another than the last one; a trading leaderboard by category where its bets are.

    Returns are of all categories and move every hour. Stored with each category they would be 1 GB a year.
    """
    if board.protocol == TRADING and board.category:
        return _bet_figures(board) != _bet_figures(last)
    return board.sha256 != last.sha256


def _bet_figures(board: PublishedBoard) -> dict[str, Any]:
    """The figures of bets by family, which alone follow from the category."""
    return {entry["family"]: subset(entry, SCORED) for entry in board.entries}


def _is_new(board: PublishedBoard, at: datetime) -> bool:
    last = _last_published(board, at)
    return last is None or last.sha256 != board.sha256


def _last_published(board: PublishedBoard, at: datetime) -> PublishedBoard | None:
    selection = subset(board.__dict__, SELECTION)
    return published_boards(**selection).filter(at__lte=at).only("at", "sha256").first()


def _board(entries: Any, report: Any, **selection: str) -> PublishedBoard:
    contents = to_json({"entries": entries, "report": {part: report[part] for part in PARTS if part in report}})
    return PublishedBoard(**selection, **contents, sha256=sha256(canonical(contents)))


def _current_boards() -> Iterator[PublishedBoard]:
    """The stored leaderboards and boards of agents, and the trading leaderboards by category."""
    columns = ("protocol", "methodology", "arm", "category", "entries", *(f"report__{part}" for part in PARTS))
    versions, categories = set(), set()
    for protocol, methodology, arm, category, entries, *parts in Leaderboard.objects.order_by("pk").values_list(
        *columns
    ):
        if protocol == TRADING:
            versions.add(methodology)
        elif category:
            categories.add(category)
        selection = {"protocol": protocol, "methodology": methodology, "arm": arm, "category": category}
        yield _board(entries, _known(parts), **selection)
    for methodology in sorted(versions):
        for category in sorted(categories):
            entries = category_entries(methodology, category)
            yield _board(entries, {}, protocol=TRADING, methodology=methodology, category=category)
    for row in AgentsBoard.objects.all():
        yield _board(row.entries, row.report, protocol=row.protocol, track=row.track)


def _recomputed_boards(at: datetime) -> Iterator[PublishedBoard]:
    """The boards over the facts of now, as a scoring pass would store them; slow fits are those of the last pass."""
    categories: set[str] = set()
    for selection, versions in leaderboard_selections():
        before = stored_leaderboards(selection.arm, versions[0]).filter(category="").first()
        leaderboards, _ = compute_forecast_leaderboards(selection, inputs_version(selection), before, at=at, slow=False)
        categories.update(leaderboards)
        for category, contents in leaderboards.items():
            for version in versions:
                key = {"protocol": FORECAST, "methodology": version, "arm": selection.arm, "category": category}
                yield _board(contents.entries, contents.report, **key)
    for board_key, contents in compute_trading_leaderboards(stored_accounts()).items():
        yield _board(contents.entries, contents.report, **board_key._asdict())
        for category in sorted(categories - {""}):
            entries = narrowed_entries(contents.entries, board_key.methodology, category)
            yield _board(entries, {}, **board_key._replace(category=category)._asdict())
    for agents_key in board_keys():
        contents = agents_board(agents_key)
        yield _board(contents.entries, contents.report, **agents_key._asdict())


def _known(parts: Iterable[Any]) -> dict[str, Any]:
    return {name: part for name, part in zip(PARTS, parts, strict=True) if part is not None}


def _past_boards(at: datetime) -> Iterator[PublishedBoard]:
    """The boards over what had resolved by an instant, and the portfolios then; without slow fits and costs."""
    categories = set()
    for selection, versions in leaderboard_selections():
        until = replace(selection, until=at)
        resolved = resolved_entries(until)
        names = family_names(until), family_names(until, external=True)
        of_selection = sorted({entry.category for entry in resolved} | {""})
        categories.update(of_selection)
        for category in of_selection:
            contents = forecast_leaderboard(of_category(resolved, category), *names)
            entries = [entry | dict.fromkeys(NO_PARTICIPATION) for entry in contents.entries]
            for version in versions:
                key = {"protocol": FORECAST, "methodology": version, "arm": selection.arm, "category": category}
                yield _board(entries, contents.report, **key)
    for version in ["", *versions_in_play(TRADING)]:
        for category in sorted(categories | {""}):
            contents = trading_leaderboard(version, at=at, category=category)
            report = {} if category else contents.report
            yield _board(contents.entries, report, protocol=TRADING, methodology=version, category=category)
    for board_key in board_keys():
        contents = agents_board(board_key, until=at)
        yield _board(contents.entries, contents.report, protocol=board_key.protocol, track=board_key.track)


def rewritten_boards() -> Iterator[str]:
    """A line for each published board whose contents have another hash than when it was published."""
    for board in PublishedBoard.objects.order_by("pk").iterator(chunk_size=100):
        contents = {"entries": board.entries, "report": board.report}
        if sha256(canonical(contents)) != board.sha256:
            yield f"published board {board} of {board.at:%Y-%m-%d %H:%M} is not what was published"
