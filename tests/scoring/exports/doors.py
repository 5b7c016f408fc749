"""The two commands, with arguments as a shell gives them; and archives as their readers open them."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from scoring.exports.files import read_table
from scoring.exports.tables import BY_NAME
from tests.venue import Ran


def shell(command: str, *arguments: object) -> Ran:
    """How a command ended."""
    said, complained, code = StringIO(), StringIO(), 0
    try:
        call_command(command, *map(str, arguments), "--json", stdout=said, stderr=complained)
    except SystemExit as end:
        code = int(end.code or 0)
    except CommandError as error:
        return Ran(error.returncode, {}, str(error))
    return Ran(code, json.loads(said.getvalue().strip().splitlines()[-1]), complained.getvalue())


def rows(folder: Path, name: str, format: str = "csv") -> list[dict[str, Any]]:
    """The rows of a table as they were meant."""
    return list(read_table(folder / format / f"{name}.{format}", BY_NAME[name]))


def cells(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """The cells of a CSV file as a spreadsheet gets them."""
    with (folder / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
