"""Tables that are read once where they are small."""

from collections.abc import Callable, Hashable, Iterator
from itertools import chain, islice

from arena_verifier.rows import Row

Read = Callable[[], Iterator[Row]]


class SmallTables:
    """The rows of tables that have few, in memory after the first reading; those of others are streams."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, list[Row]] = {}

    def rows(self, table: Hashable, read: Read, most: int) -> Iterator[Row]:
        if table not in self._rows:
            rows = read()
            try:
                first = list(islice(rows, most + 1))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                return read()  # what stands before a malformed row is checked too
            if len(first) > most:
                return chain(first, rows)
            self._rows[table] = first
        return iter(self._rows[table])
