"""The tables of an archive in any format, as the rules of verification take them, and the check of its files."""

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from arena_verifier.files import ArchiveTables
from arena_verifier.rows import Row
from cohorts.models import Methodology
from scoring.exports.dictionary import CSV, dictionary_json
from scoring.exports.table_files import parquet_digest, read_table
from scoring.exports.tables import TABLES, TABLES_BY_NAME
from scoring.exports.verification.small_tables import SmallTables

MOST_ROWS = 500
"""The most rows of a table that is held in memory; fewer where its rows are large."""


class Archive(ArchiveTables):
    """The tables of an archive, read from the first of its formats unless another is named."""

    def __init__(self, folder: Path, manifest: Row, formats: list[str]) -> None:
        super().__init__(folder, manifest)
        self.formats = formats
        self._small_tables = SmallTables()

    def table_path(self, name: str, format: str = "") -> Path:
        format = format or self.formats[0]
        return self.folder / format / f"{name}.{format}"

    def row_count(self, name: str, format: str = "") -> int:
        """The number of rows of a table by the manifest."""
        path = self.table_path(name, format).relative_to(self.folder).as_posix()
        count: int = self.manifest["files"][path]["rows"]
        return count

    def rows(self, table: str, format: str = "") -> Iterator[Row]:
        path, declared = self.table_path(table, format), TABLES_BY_NAME[table]
        return self._small_tables.rows(path, partial(read_table, path, declared), min(declared.batch_size, MOST_ROWS))

    def table_names(self) -> list[str]:
        return [table.name for table in TABLES]

    def digest(self, table: str) -> tuple[int, str]:
        if self.formats[0] == CSV:
            return super().digest(table)
        return self.row_count(table), parquet_digest(self.table_path(table), TABLES_BY_NAME[table])


def check_tables(archive: Archive) -> Iterator[str]:
    """Tables have as many rows as the manifest says, the same in every format; the dictionary is this version's."""
    if archive.json("dictionary.json") != dictionary_json(TABLES):
        yield "dictionary.json: differs from the tables of this version"
    for rules in archive.methodologies():
        fields = {name: value for name, value in rules.items() if name != "sha256"}
        if Methodology(**fields).sha256 != rules["sha256"]:
            yield f"methodologies: {rules['version']} differs from its hash"
    formats = archive.formats
    for table in TABLES:
        count = 0
        for count, rows in enumerate(zip_longest(*(archive.rows(table.name, format) for format in formats)), start=1):
            if any(row != rows[0] for row in rows[1:]):
                yield f"{table.name}: row {count} differs between {' and '.join(formats)}"
                break
        for format in formats:
            if (rows_listed := archive.row_count(table.name, format)) != count:
                yield f"{format}/{table.name}.{format}: {count} rows, the manifest says {rows_listed}"
