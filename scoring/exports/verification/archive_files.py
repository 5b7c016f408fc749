"""Tables of an archive against each other's formats, and its documents against this version of the arena."""

from collections.abc import Iterator
from itertools import zip_longest

from cohorts.models import Methodology
from scoring.exports.dictionary import dictionary_json
from scoring.exports.tables import TABLES
from scoring.exports.verification.archive_reader import Archive


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
