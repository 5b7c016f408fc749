"""The arena's own long form, in CSV, Parquet or JSON Lines: the file that `rank` takes."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from scoring.imports.rows import Part, Reading
from scoring.ranking.files import read_table


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file."""
    return [Part((file,), partial(_read, file)) for file in files]


def _read(file: Path) -> Reading:
    table = read_table(file)
    return Reading(table, len(table))
