"""The library's own long form in CSV, Parquet, JSON Lines or Excel, compressed or not."""

from pathlib import Path

from forecast_rank.files.plain_files import plain_file
from forecast_rank.files.reading import read_plain_file
from forecast_rank.readers.records import ParsedFile


def read(file: Path) -> ParsedFile:
    with plain_file(file) as plain:
        table = read_plain_file(plain)
        lines = table.lines()
        table.lines = lambda: lines
        if plain.compression:
            table.written = None  # the plain copy ends here
    return ParsedFile(table, len(table))
