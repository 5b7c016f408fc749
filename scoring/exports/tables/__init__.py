"""The tables of an archive, declared once for the writer, the verifier and the data dictionary."""

from foundation.bulk import rows_by
from scoring.exports.dictionary import ArchiveTable
from scoring.exports.tables.forecasting import FORECAST_TABLES
from scoring.exports.tables.markets import COMPETITION_TABLES, MARKET_TABLES
from scoring.exports.tables.receipts import AGENT_TABLES
from scoring.exports.tables.results import (
    AFTER_COSTS,
    AGENTS_BOARD,
    CHAIN,
    CONDITION_DIFFERENCES,
    ENVELOPES,
    FORECAST_LEADERBOARD,
    PROMPT_BLOCKS,
    PROMPTS,
    PUBLISHED_BOARDS,
    TRADING_LEADERBOARD,
)
from scoring.exports.tables.trading import TRADING_TABLES

TABLES: tuple[ArchiveTable, ...] = (
    *COMPETITION_TABLES, *MARKET_TABLES, PROMPTS, PROMPT_BLOCKS, *TRADING_TABLES, *FORECAST_TABLES, *AGENT_TABLES,
    CHAIN, ENVELOPES, TRADING_LEADERBOARD, FORECAST_LEADERBOARD, AGENTS_BOARD, CONDITION_DIFFERENCES,
    AFTER_COSTS, PUBLISHED_BOARDS,
)  # fmt: skip
TABLES_BY_NAME = rows_by("name", TABLES)
