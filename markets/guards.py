"""Database triggers that keep rows from being changed, whoever asks: code, admin or plain SQL.

SQLite drops a table's triggers when Django remakes it, so they are installed again after every migrate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Guard:
    """Refuses an UPDATE of `columns` on rows of `table` for which the SQL condition `when` (over OLD) holds."""

    name: str
    table: str
    columns: Sequence[str]
    when: str
    message: str

    def install(self, connection: Any) -> None:
        statements = self._postgresql() if connection.vendor == "postgresql" else self._sqlite()
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def _sqlite(self) -> list[str]:
        return [
            f"DROP TRIGGER IF EXISTS {self.name}",
            f"CREATE TRIGGER {self.name} BEFORE UPDATE OF {', '.join(self.columns)} ON {self.table} "
            f"WHEN {self.when} BEGIN SELECT RAISE(ABORT, '{self.message}'); END",
        ]

    def _postgresql(self) -> list[str]:
        # The condition looks into another table, which a trigger's WHEN may not: it stands in the function.
        return [
            f"CREATE OR REPLACE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {self.when} THEN RAISE EXCEPTION '{self.message}' USING ERRCODE = 'integrity_constraint_violation'; "
            f"END IF; RETURN NEW; END $$",
            f"DROP TRIGGER IF EXISTS {self.name} ON {self.table}",
            f"CREATE TRIGGER {self.name} BEFORE UPDATE OF {', '.join(self.columns)} ON {self.table} "
            f"FOR EACH ROW EXECUTE FUNCTION {self.name}()",
        ]
