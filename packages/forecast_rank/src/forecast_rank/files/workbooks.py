"""Excel workbooks (.xlsx): the first sheet whose first row has the headings of forecasts."""

import re
import zipfile
import zlib
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.headings import NOT_NAMED, NamedHeadings, known_name, understand_headings
from forecast_rank.files.input_table import UnparsedTable
from forecast_rank.files.limits import check_expansion
from forecast_rank.files.text_files import text_frame

CELL_BYTES = 64
"""Memory that a cell of a sheet takes at least, an empty one between others too."""
_BLOCK, _LONGEST_REFERENCE = 1 << 20, 16
_REFERENCE = re.compile(rb"""\br=["']([A-Z]{1,3})([0-9]{1,7})["']""")


def read_workbook(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a sheet; a row's line is its number in the sheet. Raises UnreadableFile."""
    _check_archive(path)
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with CalamineWorkbook.from_path(str(path)) as workbook:
            name, sheet, most = "", None, -1
            for candidate in workbook.sheet_names:
                cells = workbook.get_sheet_by_name(candidate)
                count = _known_headings(cells, column_headings)
                if count > most:
                    name, sheet, most = candidate, cells, count
            rows_of_cells = [] if sheet is None else sheet.to_python(skip_empty_area=False)
            sheet_count = len(workbook.sheet_names)
    except (CalamineError, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Excel workbook: {error}") from error
    if not rows_of_cells:
        raise UnreadableFile(f"{path} is empty")
    texts = [list(map(_text, row)) for row in rows_of_cells]
    numbers = [number for number, row in enumerate(texts) if any(row)] or [0]
    header = [heading or "" for heading in texts[numbers[0]]]
    headings = understand_headings(path, header, column_headings=column_headings)
    columns = list(map(header.index, headings.read))
    rows = []
    for number in numbers[1:]:
        rows.append([texts[number][column] for column in columns])
    lines = np.array(numbers[1:], dtype=np.int64) + 1
    table = UnparsedTable(text_frame(rows, headings), headings, lambda: lines)
    table.understood["sheet"] = name
    if sheet_count > 1:
        table.notes.append(f"sheet {name!r}, one of {sheet_count}")
    return table


def _check_archive(path: Path) -> None:
    """Raises UnreadableFile for an archive that is no workbook, is broken, or expands too far."""
    try:
        with zipfile.ZipFile(path) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                raise UnreadableFile(f"{path} is a zip archive and no Excel workbook: unpack it first")
            check_expansion(path, sum(member.file_size for member in archive.infolist()))
            for member in archive.namelist():
                if member.startswith("xl/worksheets/") and member.endswith(".xml"):
                    check_expansion(path, _cell_count(archive, member) * CELL_BYTES)
            if broken := archive.testzip():  # a member that is longer than it says has another checksum
                raise UnreadableFile(f"{path} is not a readable Excel workbook: {broken} is broken")
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError) as error:
        raise UnreadableFile(f"{path} is not a readable Excel workbook: {error}") from error


def _cell_count(archive: zipfile.ZipFile, member: str) -> int:
    """The cells of the rectangle that a sheet fills; a single cell far out makes it large."""
    rows = columns = 0
    with archive.open(member) as file:
        end = b""
        while block := file.read(_BLOCK):
            for letters, number in _REFERENCE.findall(end + block):
                rows, columns = max(rows, int(number)), max(columns, _column_number(letters))
            end = block[-_LONGEST_REFERENCE:]
    return rows * columns


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _known_headings(sheet: Any, column_headings: NamedHeadings) -> int:
    """How many headings of the first row that is not empty are known."""
    for row in sheet.iter_rows():
        if set(row) - {""}:
            return sum(known_name(str(cell), column_headings) is not None for cell in row)
    return 0


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return cell.isoformat() if isinstance(cell, date | datetime) else str(cell)
