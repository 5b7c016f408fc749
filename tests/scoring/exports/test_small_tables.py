"""Tables that the rules of verification read several times: small ones are read once, others are streams."""

from collections.abc import Iterator

import pytest

from arena_verifier.rows import Row
from scoring.exports.verification.small_tables import SmallTables


class Source:
    """A table whose readings are counted, and whose last row may be malformed."""

    def __init__(self, rows: int, *, malformed: bool = False) -> None:
        self.number, self.malformed, self.readings = rows, malformed, 0

    def read(self) -> Iterator[Row]:
        self.readings += 1
        yield from ({"id": place} for place in range(self.number))
        if self.malformed:
            raise ValueError("not a number")


@pytest.mark.parametrize(("rows", "readings"), [(0, 1), (3, 1), (4, 2)])
def test_table_of_at_most_so_many_rows_is_read_once(rows: int, readings: int) -> None:
    tables, source = SmallTables(), Source(rows)
    for _ in range(2):
        assert [row["id"] for row in tables.rows("trades", source.read, most=3)] == list(range(rows))
    assert source.readings == readings


def test_rows_before_a_malformed_one_are_given() -> None:
    rows = SmallTables().rows("trades", Source(2, malformed=True).read, most=3)
    assert [next(rows), next(rows)] == [{"id": 0}, {"id": 1}]
    with pytest.raises(ValueError, match="not a number"):
        next(rows)
