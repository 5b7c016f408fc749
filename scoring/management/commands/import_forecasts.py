"""Imports others' forecasts into a collection with a leaderboard of its own."""

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.readers.formats import FORMATS
from foundation.commands import ArenaCommand, CommandResult, table_text
from scoring.models import ImportLeaderboard
from scoring.services.import_leaderboards import compute_import_leaderboard
from scoring.services.imports import (
    ImportResult,
    delete_if_empty,
    get_or_create_collection,
    import_source,
    mark_people,
)

MAX_PRINTED = 50
"""Rejected rows that are printed; all of them are stored."""


class Command(ArenaCommand):
    help = (
        "Imports forecasts from FILEs into a collection and ranks it, apart from the arena's own leaderboards. Pass "
        "files that explain others (resolutions, questions, metadata) in the same command. Importing the same contents "
        "again changes nothing. Rejected rows are listed with their line and the reason."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
        parser.add_argument("--format", choices=list(FORMATS), required=True)
        parser.add_argument("--collection", metavar="NAME", help="default: the format and the first file's name")
        parser.add_argument(
            "--people",
            metavar="NAME",
            nargs="*",
            help="mark these forecasters as people, or all of the files: the board shows their gap to models",
        )
        parser.add_argument("--fractional-outcomes", action="store_true", help="allow outcomes between 0 and 1")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        files, format = options["files"], options["format"]
        if missing := [file for file in files if not file.is_file()]:
            self.refuse(f"{missing[0]}: no such file")
        try:
            sources = FORMATS[format](files)
            collection = get_or_create_collection(name=options["collection"] or _default_name(format, files[0]), at=at)
        except UnreadableFile as error:
            self.refuse(str(error))
        except ValueError as error:
            self.refuse(f"--collection: {error}")
        self.results: list[ImportResult] = []
        failures: list[str] = []
        for source in sources:
            with self.progress(source.files[0].name) as progress:
                try:
                    imported = import_source(
                        collection=collection,
                        format=format,
                        source=source,
                        at=at,
                        fractional_outcomes=options["fractional_outcomes"],
                        progress=progress,
                    )
                except UnreadableFile as error:
                    failures.append(str(error))
                else:
                    self.results.append(imported)
        if not self.results:
            delete_if_empty(collection=collection)
            self.refuse("\n".join(failures))
        is_new = not all(item.unchanged for item in self.results)
        if options["people"] is not None:
            imports = [item.forecast_import for item in self.results]
            try:
                is_new |= mark_people(collection=collection, imports=imports, names=options["people"])
            except ValueError as error:
                failures.append(f"--people: {error}")
        leaderboard = ImportLeaderboard.objects.filter(collection=collection).first()
        if leaderboard is None or is_new:
            with self.progress("ranking") as progress:
                leaderboard = compute_import_leaderboard(collection=collection, at=at, progress=progress)
        for item in self.results:
            file = item.forecast_import
            if file.rows == file.rejected:
                problem = f"none of its {file.rows} rows can be used" if file.rows else "there is no row to import"
                failures.append(f"{file.name}: {problem}")
        return CommandResult(self._summary(leaderboard), log=list(map(_summary_line, self.results)), failures=failures)

    def _summary(self, leaderboard: ImportLeaderboard) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        warnings = []
        for item in self.results:
            file = item.forecast_import
            counts.update(rows=file.rows, rejected=file.rejected, unchanged=int(item.unchanged))
            counts.update(added=0 if item.unchanged else file.forecasts)
            warnings += [f"{file.name}: {text}" for text in item.warnings]
        return {
            "rows": counts["rows"],
            "rejected": counts["rejected"],
            "added": counts["added"],
            "files": len(self.results),
            "warnings": warnings,
            "unchanged": counts["unchanged"],
            "collection": leaderboard.collection.slug,
            "forecasters": leaderboard.forecasters,
            "questions": leaderboard.questions,
            "open_questions": leaderboard.open_questions,
        }

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        if not as_json:
            for line in result.log:
                self.stdout.write(line)
            for warning in result.summary["warnings"]:
                self.stdout.write(self.style.WARNING(f"Warning: {warning}"))
            if rejected := sum(item.forecast_import.rejected for item in self.results):
                self.stdout.write(self._rejections(rejected))
        super()._report(result, as_json=as_json)

    def _rejections(self, total: int) -> str:
        table = Table("file", "row", "reason", title="Rejected rows")
        for item in self.results:
            for rejected in item.forecast_import.rejections.order_by("row")[: MAX_PRINTED - table.row_count]:
                table.add_row(item.forecast_import.name, str(rejected.row), rejected.reason)
        hidden = total - table.row_count
        return table_text(table) + (f"… and {hidden} more, all of them are stored\n" if hidden else "")


def _default_name(format: str, file: Path) -> str:
    return file.stem if file.stem.startswith(format) else f"{format} {file.stem}"


def _summary_line(result: ImportResult) -> str:
    file = result.forecast_import
    if result.unchanged:
        return f"{file.name}: imported on {file.imported_at:%Y-%m-%d %H:%M}, nothing changed"
    return f"{file.name}: {file.rows} rows, {file.rejected} rejected, {file.forecasts} probabilities added"
