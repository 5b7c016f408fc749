"""Excel workbooks (.xlsx): the first sheet whose first row has the headings of forecasts."""

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


def read_workbook(path: Path, column_headings: NamedHeadings = NOT_NAMED) -> UnparsedTable:
    """The columns of a sheet; a row's line is its number in the sheet. Raises UnreadableFile."""
    _check_archive(path)
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with CalamineWorkbook.from_path(str(path)) as workbook:
            sheets = {name: workbook.get_sheet_by_name(name) for name in workbook.sheet_names}
            name = max(sheets, key=lambda name: _known_headings(sheets[name], column_headings), default=None)
            cells = [] if name is None else sheets[name].to_python(skip_empty_area=False)
    except (CalamineError, OSError) as error:
        raise UnreadableFile(f"{path} is not a readable Excel workbook: {error}") from error
    if not cells:
        raise UnreadableFile(f"{path} is empty")
    texts = [list(map(_text, row)) for row in cells]
    top = next((k for k, row in enumerate(texts) if any(row)), 0)
    header = [heading or "" for heading in texts[top]]
    headings = understand_headings(path, header, column_headings=column_headings)
    at = [header.index(heading) for heading in headings.read]
    rows, numbers = [], []
    for number, row in enumerate(texts[top + 1 :], start=top + 2):
        if any(row):
            rows.append([row[k] for k in at])
            numbers.append(number)
    lines = np.array(numbers, dtype=np.int64)
    table = UnparsedTable(text_frame(rows, headings), headings, lambda: lines)
    table.understood["sheet"] = str(name)
    if len(sheets) > 1:
        table.notes.append(f"sheet {name!r}, one of {len(sheets)}")
    return table


def _check_archive(path: Path) -> None:
    """Raises UnreadableFile for an archive that is no workbook, is broken, or expands too far."""
    try:
        with zipfile.ZipFile(path) as archive:
            if "xl/workbook.xml" not in archive.namelist():
                raise UnreadableFile(f"{path} is a zip archive and no Excel workbook: unpack it first")
            check_expansion(path, sum(member.file_size for member in archive.infolist()))
            if broken := archive.testzip():  # a member that is longer than it says has another checksum
                raise UnreadableFile(f"{path} is not a readable Excel workbook: {broken} is broken")
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError) as error:
        raise UnreadableFile(f"{path} is not a readable Excel workbook: {error}") from error


def _known_headings(sheet: Any, column_headings: NamedHeadings) -> int:
    """How many headings of the first row that is not empty are known."""
    for row in sheet.iter_rows():
        names = [known_name(str(cell), column_headings) for cell in row]
        if set(row) - {""}:
            return len(names) - names.count(None)
    return 0


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    return cell.isoformat() if isinstance(cell, date | datetime) else str(cell)
