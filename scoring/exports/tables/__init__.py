"""The tables of an archive, declared once: the writer, the proof and the data dictionary all read them here."""

from scoring.exports.dictionary import Table
from scoring.exports.tables.forecasting import FORECASTS
from scoring.exports.tables.markets import COMPETITORS, MARKETS
from scoring.exports.tables.results import BLOCKS, CHAIN, FORECAST_BOARD, PROMPTS, TRADING_BOARD
from scoring.exports.tables.trading import DECISIONS

TABLES: tuple[Table, ...] = (
    *COMPETITORS, *MARKETS, PROMPTS, BLOCKS, *DECISIONS, *FORECASTS, CHAIN, TRADING_BOARD, FORECAST_BOARD,
)  # fmt: skip
BY_NAME = {table.name: table for table in TABLES}
