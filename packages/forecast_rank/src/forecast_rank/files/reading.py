"""Tables of files and frames, by the format that their content shows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from forecast_rank.files.csv_files import csv_header, read_csv
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import read_frame, read_parquet
from forecast_rank.files.headings import NOT_NAMED, NamedHeadings, known_name
from forecast_rank.files.input_table import InputTable, UnparsedTable
from forecast_rank.files.json_lines import read_json_lines
from forecast_rank.files.parsing import parse_cells
from forecast_rank.files.plain_files import PlainFile, first_bytes, plain_file
from forecast_rank.files.workbooks import read_workbook

FORMATS = {"csv": (".csv", ".tsv"), "parquet": (".parquet", ".pq"), "jsonl": (".jsonl", ".ndjson"), "xlsx": (".xlsx",)}
_READERS: dict[str, Callable[[Path, NamedHeadings], UnparsedTable]] = {
    "csv": read_csv, "parquet": read_parquet, "jsonl": read_json_lines, "xlsx": read_workbook,
}  # fmt: skip
_NAMES = {"csv": "CSV", "parquet": "Parquet", "jsonl": "JSON Lines", "xlsx": "Excel workbook"}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_SPACE = b"\xef\xbb\xbf \t\r\n"


def read_table(source: Any, format: str | None = None, column_headings: NamedHeadings = NOT_NAMED) -> InputTable:
    """The known columns of a file, by its format or its content, or of a polars, pandas or Arrow table.

    Raises UnreadableFile.
    """
    if not isinstance(source, Path | str):
        return parse_cells(read_frame(source, column_headings))
    with plain_file(source) as plain:
        return read_plain_file(plain, format, column_headings)


def read_plain_file(
    plain: PlainFile, format: str | None = None, column_headings: NamedHeadings = NOT_NAMED
) -> InputTable:
    """The known columns of a file. Raises UnreadableFile."""
    path = plain.path
    try:
        with path.open("rb") as file:
            start = file.read(1)
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror or error}") from error
    if not start:
        raise UnreadableFile(f"{path} is empty")
    format = format or format_of(path, column_headings)
    table = _READERS[format](path, column_headings)
    compressed = {"compression": plain.compression} if plain.compression else {}
    table.understood = {"file": plain.name, "format": _NAMES[format], **compressed, **table.understood}
    return parse_cells(table)


def format_of(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> str:
    """The format that the content shows, else that of the suffix. Raises UnreadableFile."""
    start = first_bytes(path, 256)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        return "xlsx"
    if start.startswith(_OLD_EXCEL):
        raise UnreadableFile(f"{path} is an Excel workbook of the old kind or with a password: save it as .xlsx")
    text = start.lstrip(_SPACE)
    if text.startswith(b"{"):
        return "jsonl"
    if text.startswith(b"["):
        raise UnreadableFile(f"{path} is a JSON list: write one object to a line (jq -c '.[]')")
    by_suffix = next((format for format, suffixes in FORMATS.items() if path.suffix.lower() in suffixes), None)
    if by_suffix != "csv" and _has_headings(path, column_headings):
        return "csv"
    if by_suffix is None:
        raise UnreadableFile(
            f"{path}: neither the content nor the suffix {path.suffix!r} names a format; use --format "
            f"{'|'.join(FORMATS)}"
        )
    return by_suffix


def _has_headings(path: Path, column_headings: NamedHeadings) -> bool:
    """Whether the first line has known headings."""
    try:
        return any(known_name(heading, column_headings) for heading in csv_header(path, column_headings)[1])
    except UnreadableFile:
        return False
