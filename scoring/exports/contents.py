"""What an archive's tables hold: rows of the database as they are, and those that are made of several."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from agents.models import Agent
from agents.records import sha256
from cohorts.models import Methodology
from markets.models import QuestionSheet
from scoring.exports.cells import stored, stored_row
from scoring.exports.dictionary import Table
from scoring.exports.selection import Selection
from scoring.exports.tables import BY_NAME
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES, trading_entries
from scoring.services.forecast_boards import FORECAST, forecast_board
from scoring.services.forecast_panels import Selection as Asked
from scoring.services.forecast_panels import asked_entries, family_slugs
from scoring.valuations import NO_RECORD, records, valuations

Rows = list[tuple[Any, ...]]
BOARD_METRICS = ("brier", "log", "spherical", "average_return", "alpha", "calibration", "adjusted_brier")


def chunks(table: Table, selection: Selection) -> Iterator[Rows]:
    """The selected rows of a table as stored values, a chunk at a time."""
    made = _MADE.get(table.name)
    if made is not None:
        rows = (stored_row(table.columns, row) for row in made(selection))
        yield from _batches(rows, table.chunk)
        return
    kinds = [column.kind for column in table.columns]
    found = selection.rows(table).values_list(*(column.path for column in table.columns))
    for batch in _batches(found.iterator(chunk_size=table.chunk), table.chunk):
        yield [tuple(stored(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in batch]


def _agents(selection: Selection) -> Iterator[dict[str, Any]]:
    agents = selection.rows(BY_NAME["agents"]).select_related("family").prefetch_related("cohort__methodology")
    for batch in _batches(agents.iterator(chunk_size=500), 500):
        worth, scores = valuations(batch), records([agent.pk for agent in batch])
        for agent in batch:
            yield _agent(agent, worth[agent.pk], scores.get(agent.pk, NO_RECORD))


def _agent(agent: Agent, worth: Any, record: Any) -> dict[str, Any]:
    return {
        "id": agent.pk,
        "cohort": agent.cohort.number,
        "family": agent.family.slug,
        "release": agent.release_id,
        "model_id": agent.model_id,
        "status": agent.status,
        "starting_balance": worth.starting_balance,
        "cash": worth.cash,
        "positions_value": worth.positions_value,
        "total_value": worth.total,
        "pnl": worth.pnl,
        "return_percent": worth.return_percent,
        "brier": record.brier,
        "resolved_bets": record.resolved_bets,
        "win_rate": record.win_rate,
    }


def _blocks(selection: Selection) -> Iterator[tuple[str, int, str]]:
    """Which universe or sheet has which block of text."""
    for name, kind, column in (("universes", "markets", "market_block"), ("question_sheets", "questions", "block")):
        rows = selection.rows(BY_NAME[name]).values_list("pk", column)
        for pk, text in rows.iterator(chunk_size=20):
            yield kind, pk, text


def _block_rows(selection: Selection) -> Iterator[dict[str, Any]]:
    for kind, pk, text in _blocks(selection):
        yield {"kind": kind, "id": pk, "sha256": sha256(text)}


def _prompts(selection: Selection) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for kind, of, text in _texts(selection):
        digest = sha256(text)
        if digest not in seen:
            seen.add(digest)
            yield {"sha256": digest, "kind": kind, "of": of, "text": text}


def _texts(selection: Selection) -> Iterator[tuple[str, str, str]]:
    for methodology in Methodology.objects.order_by("version"):
        yield "system", f"{methodology.version} trading", methodology.system_prompt
        yield "user", f"{methodology.version} trading", methodology.user_prompt
        if rules := methodology.forecast_rules:
            yield "system", f"{methodology.version} forecast", rules.system_prompt
            yield "user", f"{methodology.version} forecast", rules.user_prompt
    for kind, pk, text in _blocks(selection):
        yield kind, f"{'universe' if kind == 'markets' else 'sheet'} {pk}", text


def _trading_board(selection: Selection) -> Iterator[dict[str, Any]]:
    """Made afresh, of the very rows that the archive holds: a stored board may be older than they are."""
    if not selection.is_whole:
        return
    versions = Methodology.objects.filter(cohorts__isnull=False).order_by("version").distinct()
    for version in (ALL_METHODOLOGIES, *versions.values_list("version", flat=True)):
        for entry in trading_entries(version):
            yield {**entry, "methodology": version}


def _forecast_boards(selection: Selection) -> Iterator[dict[str, Any]]:
    if not selection.is_whole:
        return
    sheets = QuestionSheet.objects.order_by("arm")
    versions = list(sheets.order_by().values_list("question_set__methodology", flat=True).distinct())
    for arm in sheets.values_list("arm", flat=True).distinct():
        for version in (ALL_METHODOLOGIES, *sorted(versions)):
            asked, families = asked_entries(Asked(arm, version)), family_slugs(Asked(arm, version))
            externals = family_slugs(Asked(arm, version), external=True)
            stored_board = Leaderboard.objects.filter(protocol=FORECAST, arm=arm, methodology=version, category="")
            on_record: list[dict[str, Any]] = next(iter(stored_board.values_list("entries", flat=True)), [])
            known = {entry["forecaster"]: entry for entry in on_record}
            for category in ("", *sorted({entry.category for entry in asked} - {""})):
                entries = [entry for entry in asked if category in ("", entry.category)]
                metrics = BOARD_METRICS if not category else BOARD_METRICS[:-1]
                board = forecast_board(entries, families, externals=externals, metrics=metrics, reported=False)
                for entry in board.entries:
                    fitted = {} if category else _slowly_fitted(known.get(entry["forecaster"], {}))
                    yield {
                        **entry,
                        "arm": arm,
                        "methodology": version,
                        "category": category,
                        "figures": entry | fitted,
                    }


def _slowly_fitted(entry: dict[str, Any]) -> dict[str, Any]:
    """What takes seconds to fit is taken over from the board on record."""
    names = ("irt_ability", "irt_se", "weighted_brier", "bt_ability", "bt_se", "pool_weight")
    return {name: entry.get(name) for name in names}


def _batches(rows: Iterable[Any], size: int) -> Iterator[Any]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch


_MADE: dict[str, Any] = {
    "agents": _agents,
    "prompts": _prompts,
    "blocks": _block_rows,
    "leaderboard_trading": _trading_board,
    "leaderboard_forecast": _forecast_boards,
}


def methodology_rows() -> list[dict[str, Any]]:
    """Every methodology with all that a result depends on, as it is frozen, and its hash."""
    return [
        {
            "version": methodology.version,
            "title": methodology.title,
            "published_at": stored(methodology.published_at, "time"),
            "sha256": methodology.sha256,
            **{
                field.name: value if isinstance(value, dict | list | int | float) else str(value)
                for field in Methodology.frozen_fields()
                for value in [getattr(methodology, field.name)]
            },
        }
        for methodology in Methodology.objects.order_by("version")
    ]
