"""Imports other people's forecasts into a collection with a board of its own."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from markets.commands import ArenaCommand, Result, rendered
from scoring.imports.formats import FORMATS
from scoring.models import ImportBoard, ImportCollection
from scoring.ranking.files import UnreadableFile
from scoring.services.import_boards import import_board_compute
from scoring.services.imports import Imported, collection_drop_empty, collection_of, part_import

SHOWN = 50
"""Rejected rows that are printed; all of them stay on record."""


class Command(ArenaCommand):
    help = (
        "Imports forecasts from FILEs into a collection and ranks it, apart from the arena's own boards. Files that "
        "explain others (resolutions, questions, metadata) go into the same command. The same contents again change "
        "nothing. Rows that can not be used are named with their line and the reason."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
        parser.add_argument("--format", choices=list(FORMATS), required=True)
        parser.add_argument("--collection", metavar="NAME", help="default: the format and the first file's name")
        parser.add_argument("--fractional-outcomes", action="store_true", help="allow outcomes between 0 and 1")

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        files, format = options["files"], options["format"]
        if missing := [file for file in files if not file.is_file()]:
            self.refuse(f"{missing[0]}: no such file")
        try:
            parts = FORMATS[format](files)
            collection = collection_of(name=options["collection"] or _usual_name(format, files[0]), at=at)
        except UnreadableFile as error:
            self.refuse(str(error))
        except ValueError as error:
            self.refuse(f"--collection: {error}")
        self.done: list[Imported] = []
        failures: list[str] = []
        for part in parts:
            with self.progress(part.files[0].name) as progress:
                try:
                    imported = part_import(
                        collection=collection,
                        format=format,
                        part=part,
                        at=at,
                        fractional_outcomes=options["fractional_outcomes"],
                        progress=progress,
                    )
                except UnreadableFile as error:
                    failures.append(str(error))
                else:
                    self.done.append(imported)
        if not self.done:
            collection_drop_empty(collection=collection)
            self.refuse("\n".join(failures))
        board = self._board(collection, at)
        failures += [
            f"{item.imported.name}: none of its {item.imported.rows} rows can be used"
            for item in self.done
            if item.imported.rows and item.imported.rows == item.imported.rejected
        ]
        return Result(self._summary(board), log=[_told(item) for item in self.done], failures=failures)

    def _board(self, collection: ImportCollection, at: datetime) -> ImportBoard:
        board = ImportBoard.objects.filter(collection=collection).first()
        if board is not None and all(item.unchanged for item in self.done):
            return board
        with self.progress("ranking") as progress:
            return import_board_compute(collection=collection, at=at, progress=progress)

    def _summary(self, board: ImportBoard) -> dict[str, Any]:
        return {
            "rows": sum(item.imported.rows for item in self.done),
            "rejected": sum(item.imported.rejected for item in self.done),
            "added": sum(item.imported.forecasts for item in self.done if not item.unchanged),
            "files": len(self.done),
            "unchanged": sum(item.unchanged for item in self.done),
            "collection": board.collection.slug,
            "forecasters": board.forecasters,
            "questions": board.questions,
            "open_questions": board.open_questions,
        }

    def _report(self, result: Result, *, as_json: bool) -> None:
        if not as_json:
            for line in result.log:
                self.stdout.write(line)
            if rejected := sum(item.imported.rejected for item in self.done):
                self.stdout.write(self._rejections(rejected))
        super()._report(result, as_json=as_json)

    def _rejections(self, total: int) -> str:
        table = Table("file", "row", "why", title="Rejected rows")
        for item in self.done:
            for rejected in item.imported.rejections.order_by("row")[: SHOWN - table.row_count]:
                table.add_row(item.imported.name, str(rejected.row), rejected.why)
        hidden = total - table.row_count
        return rendered(table) + (f"… and {hidden} more, all of them on record\n" if hidden else "")


def _usual_name(format: str, file: Path) -> str:
    return file.stem if file.stem.startswith(format) else f"{format} {file.stem}"


def _told(item: Imported) -> str:
    """What became of a file, in one line."""
    made = item.imported
    if item.unchanged:
        return f"{made.name}: imported on {made.imported_at:%Y-%m-%d %H:%M}, nothing changed"
    return f"{made.name}: {made.rows} rows, {made.rejected} rejected, {made.forecasts} probabilities added"
