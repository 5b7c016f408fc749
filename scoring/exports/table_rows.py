"""The rows of archive tables: read from one model each, or computed from several."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from agents.models import Agent
from agents.records import sha256
from cohorts.models import Methodology
from foundation.bulk import chunks, mappings_by
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.exports.dictionary import ArchiveTable
from scoring.exports.encoding import csv_text, encode
from scoring.exports.selection import ExportSelection
from scoring.exports.tables import TABLES_BY_NAME
from scoring.leaderboard_keys import versions_in_play
from scoring.models import Leaderboard
from scoring.selectors.forecast_panels import family_names, of_category, resolved_entries
from scoring.selectors.valuations import NO_RECORD, bet_records, valuations
from scoring.services.after_costs import Figures, agents_after_costs
from scoring.services.agents_boards import agents_board, board_keys
from scoring.services.condition_differences import condition_differences
from scoring.services.forecast_leaderboards import leaderboard_selections
from scoring.services.forecast_ranking import SLOW_FIGURES, forecast_leaderboard
from scoring.services.trading_leaderboards import trading_leaderboard

Rows = list[tuple[Any, ...]]
BLOCKS = (
    ("universes", "markets", "market_block"), ("question_batches", "questions", "block"),
    ("question_batches", "evidence", "evidence_block"),
)  # fmt: skip
"""The tables whose rows have blocks, the kind of block, and its column."""
FITTED_FIGURES = (*SLOW_FIGURES, "bt_ability", "bt_se", "bt_ability_ci", "pool_weight")
"""The figures that take seconds to fit, taken from the stored leaderboard."""


def row_batches(table: ArchiveTable, selection: ExportSelection, **narrowed: Any) -> Iterator[Rows]:
    """The selected rows of a table as encoded values, in batches; `narrowed` are further filters."""
    rows: Iterable[Sequence[Any]]
    if compute := COMPUTED_TABLES.get(table.name):
        rows = map(itemgetter(*table.names), compute(selection))
    else:
        columns = selection.rows(table).filter(**narrowed).values_list(*(column.path for column in table.columns))
        rows = columns.iterator(chunk_size=table.batch_size)
    kinds = [column.kind for column in table.columns]
    for batch in chunks(rows, table.batch_size):
        yield [tuple(map(encode, row, kinds)) for row in batch]


def _agents(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    agents = selection.rows(TABLES_BY_NAME["agents"]).select_related("family").prefetch_related("cohort__methodology")
    for batch in chunks(agents.iterator(chunk_size=500), 500):
        values, scores = valuations(batch), bet_records(batch)
        for agent in batch:
            valuation = values[agent.pk]
            yield {
                "id": agent.pk,
                "cohort": agent.cohort.number,
                "family": agent.family.slug,
                "release": agent.release_id,
                "model_id": agent.model_id,
                "status": agent.status,
                "starting_balance": valuation.starting_balance,
                "cash": valuation.cash,
                "positions_value": valuation.positions_value,
                "total_value": valuation.total,
                "pnl": valuation.pnl,
                "return_percent": valuation.return_percent,
                **asdict(scores.get(agent.pk, NO_RECORD)),
            }


def _prompt_blocks(selection: ExportSelection) -> Iterator[tuple[str, int, str]]:
    """The kind of block, the id of its universe or question batch, and its text."""
    for name, kind, column in BLOCKS:
        rows = selection.rows(TABLES_BY_NAME[name]).exclude(**{column: ""}).values_list("pk", column)
        for pk, text in rows.iterator(chunk_size=20):
            yield kind, pk, text


def _blocks(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    for kind, pk, text in _prompt_blocks(selection):
        yield {"kind": kind, "id": pk, "sha256": sha256(text)}


def _prompts(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    digests: set[str] = set()
    for kind, first_use, text in _prompt_texts(selection):
        digest = sha256(text)
        if digest not in digests:
            digests.add(digest)
            yield {"sha256": digest, "kind": kind, "first_use": first_use, "text": text}


def _prompt_texts(selection: ExportSelection) -> Iterator[tuple[str, str, str]]:
    """The kind of text, the methodology, universe or batch that uses it, and the text."""
    for methodology in Methodology.objects.order_by("version"):
        yield "system", f"{methodology.version} trading", methodology.system_prompt
        yield "user", f"{methodology.version} trading", methodology.user_prompt
        if rules := methodology.forecast_rules:
            yield "system", f"{methodology.version} forecast", rules.system_prompt
            yield "user", f"{methodology.version} forecast", rules.user_prompt
    for kind, pk, text in _prompt_blocks(selection):
        yield kind, f"{'universe' if kind == 'markets' else 'batch'} {pk}", text


def _trading_leaderboard(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    """Computed from the rows that the archive holds: the stored leaderboard may be older."""
    if not selection.is_whole:
        return
    after_costs: dict[int, Figures] = {}
    for version in (ALL_METHODOLOGIES, *versions_in_play(TRADING)):
        for entry in trading_leaderboard(version, after_costs=after_costs).entries:
            yield {**entry, "methodology": version}


def _after_costs(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    if selection.is_whole:
        agents = Agent.objects.select_related("cohort").prefetch_related("cohort__methodology").order_by("pk")
        for pk, figures in agents_after_costs(agents).items():
            yield {"agent": pk, **figures}


def _forecast_leaderboards(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    if not selection.is_whole:
        return
    for forecasts_selection, versions in leaderboard_selections():
        resolved = resolved_entries(forecasts_selection)
        families, externals = family_names(forecasts_selection), family_names(forecasts_selection, external=True)
        by_category = {}
        for category in ("", *sorted({entry.category for entry in resolved} - {""})):
            computed = forecast_leaderboard(of_category(resolved, category), families, externals, reported=False)
            by_category[category] = computed.entries
        for version in versions:
            stored = Leaderboard.objects.filter(
                protocol=FORECAST, arm=forecasts_selection.arm, methodology=version, category=""
            )
            entries_fitted = stored.values_list("entries", flat=True).first() or []
            fitted = mappings_by("forecaster", entries_fitted)
            for category, leaderboard in by_category.items():
                key = {"arm": forecasts_selection.arm, "methodology": version, "category": category}
                for entry in leaderboard:
                    before = fitted.get(entry["forecaster"], {})
                    figures = entry if category else entry | {name: before.get(name) for name in FITTED_FIGURES}
                    yield {**entry, **key, "figures": figures}


def _agents_boards(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    if not selection.is_whole:
        return
    for key in board_keys():
        for entry in agents_board(key).entries:
            yield {**entry, "ranked_by": entry["ranked_by"] or "", "track": key.track, "protocol": key.protocol}


def _condition_differences(selection: ExportSelection) -> Iterator[dict[str, Any]]:
    if selection.is_whole:
        yield from map(asdict, condition_differences())


COMPUTED_TABLES: dict[str, Any] = {
    "agents": _agents,
    "prompts": _prompts,
    "blocks": _blocks,
    "leaderboard_trading": _trading_leaderboard,
    "leaderboard_forecast": _forecast_leaderboards,
    "leaderboard_agents": _agents_boards,
    "after_costs": _after_costs,
    "condition_differences": _condition_differences,
}


def methodology_rows() -> list[dict[str, Any]]:
    """Every methodology with its frozen fields and its hash."""
    rows = []
    for methodology in Methodology.objects.order_by("version"):
        row: dict[str, Any] = {
            "version": methodology.version,
            "title": methodology.title,
            "published_at": csv_text(methodology.published_at, "time") or None,
            "sha256": methodology.sha256,
        }
        for field in Methodology.frozen_fields():
            value = getattr(methodology, field.name)
            row[field.name] = value if isinstance(value, dict | list | int | float) else str(value)
        rows.append(row)
    return rows
