"""The rows of the database as the rules of verification take them: small tables read once, others as streams."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from agents.records import sha256
from agents.services.signing_keys import chain_heads
from arena_verifier.rows import Row, Tables
from foundation.bulk import rows_by
from foundation.clock import now
from foundation.json_lines import instant_text
from markets.models import QuestionBatch, Universe
from scoring.exports.table_rows import methodology_rows
from scoring.exports.tables import TABLES_BY_NAME
from scoring.exports.verification.small_tables import SmallTables

ROWS_AT_A_TIME = 2_000
COLUMNS = {
    "agents": "id cohort family release model_id cash",
    "calls": (
        "id decision elicitation sequence attempt model returned_model provider quantization result late "
        "finish_reason error prompt_sha256 parameters raw_response http_status parsed searches results search_cost_usd "
        "excluded"
    ),
    "journal": "id agent sequence kind amount balance trade settlement occurred_at",
    "snapshots": "agent taken_at cash positions_value total_value pnl pnl_percent",
}
"""The columns that the rules read, of tables with more; a journal's entries are named by their ids here."""


class DatabaseRows(Tables):
    """The tables of an archive, read from the database."""

    def __init__(self) -> None:
        super().__init__()
        self._instants: dict[datetime, str] = {}
        self._small_tables = SmallTables()

    def rows(self, table: str) -> Iterator[Row]:
        return self._small_tables.rows(table, partial(self._read, table), _rows_at_a_time(table))

    def _read(self, table: str) -> Iterator[Row]:
        if table == "blocks":
            yield from self._blocks()
            return
        declared = TABLES_BY_NAME[table]
        columns = rows_by("name", declared.columns)
        names = COLUMNS[table].split() if table in COLUMNS else list(columns)
        paths = [columns[name].path if name in columns else name for name in names]
        converters: list[tuple[int, Callable[[Any], Any]]] = []
        for place, name in enumerate(names):
            kind = columns[name].kind if name in columns else ""
            if kind in ("time", "text"):
                converters.append((place, self._instant if kind == "time" else _text))
        rows = declared.model._base_manager.order_by(*declared.order).values_list(*paths)
        for stored in rows.iterator(chunk_size=_rows_at_a_time(table)):
            values = list(stored)
            for place, convert in converters:
                values[place] = convert(values[place])
            yield dict(zip(names, values, strict=True))

    def made_at(self) -> str:
        return instant_text(now())

    def methodologies(self) -> list[Row]:
        return methodology_rows()

    def heads(self) -> dict[str, tuple[int, str]]:
        return {protocol: (head["length"], head["head"]) for protocol, head in chain_heads().items()}

    def _instant(self, at: datetime | None) -> str | None:
        if at is None:
            return None
        if at not in self._instants:
            self._instants[at] = instant_text(at)
        return self._instants[at]

    def _blocks(self) -> list[Row]:
        """The hash of the text of each universe and question batch, whose texts are read once."""
        if "blocks" not in self.cache:
            blocks = []
            universes = Universe.objects.values_list("pk", "market_block").iterator(chunk_size=10)
            for pk, text in universes:
                blocks.append({"kind": "markets", "id": pk, "sha256": sha256(text)})
            batches = QuestionBatch.objects.values_list("pk", "block", "evidence_block")
            for pk, text, evidence in batches.iterator(chunk_size=100):
                blocks.append({"kind": "questions", "id": pk, "sha256": sha256(text)})
                if evidence:
                    blocks.append({"kind": "evidence", "id": pk, "sha256": sha256(evidence)})
            self.cache["blocks"] = blocks
        rows: list[Row] = self.cache["blocks"]
        return rows


def _rows_at_a_time(table: str) -> int:
    return min(TABLES_BY_NAME[table].batch_size, ROWS_AT_A_TIME)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
