"""Asking for an archive and building it: one for each selection, whoever asks, however often."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from agents.records import instant_text
from markets.models import Run
from scoring.exports.archive import export_build, zipped
from scoring.exports.files import file_sha256, seal_of
from scoring.exports.selection import Selection
from scoring.models import Export

FRESH = timedelta(hours=1)
"""An archive as young as this is given to whoever asks for the same."""
KEPT = 20
"""Archives whose files are kept; older ones make room."""
UNFINISHED = (Export.Status.QUEUED, Export.Status.BUILDING)


def export_request(*, selection: Selection, formats: tuple[str, ...], by: str, at: datetime) -> tuple[Export, bool]:
    """The export of a selection, and whether it is new: one under way or fresh is given again."""
    formats = tuple(sorted(formats))
    asked = _written(selection, formats)
    lost = Q(status=Export.Status.BUILDING, started_at__lt=at - Run.LONGEST)
    lost |= Q(status=Export.Status.QUEUED, requested_at__lt=at - Run.LONGEST)
    Export.objects.filter(lost).update(status=Export.Status.FAILED, finished_at=at, error="its worker was lost")
    fresh = Q(status=Export.Status.COMPLETED, finished_at__gt=at - FRESH)
    known = Export.objects.filter(Q(status__in=UNFINISHED) | fresh, selection=asked)
    if (export := known.first()) is not None:
        return export, False
    try:
        with transaction.atomic():
            export = Export.objects.create(
                selection=asked, cohort=selection.cohort, start=selection.start, end=selection.end,
                formats=",".join(formats), requested_by=by, requested_at=at,
            )  # fmt: skip
    except IntegrityError:  # somebody asked for it in the same moment
        return known.get(), False
    return export, True


def export_run(export_id: int, *, at: datetime) -> Export:
    """Builds an export that is queued; one that somebody else builds, or that has ended, is left as it is."""
    queued = Export.objects.filter(pk=export_id, status=Export.Status.QUEUED)
    claimed = queued.update(status=Export.Status.BUILDING, started_at=at)
    export = Export.objects.get(pk=export_id)
    if not claimed:
        return export
    try:
        rows, file = _build(export, at)
    except Exception as error:
        building = Export.objects.filter(pk=export_id, status=Export.Status.BUILDING)
        building.update(status=Export.Status.FAILED, finished_at=at, error=str(error) or type(error).__name__)
        raise
    export.status, export.finished_at = Export.Status.COMPLETED, at
    export.rows, export.bytes, export.sha256 = rows, file.stat().st_size, file_sha256(file)
    export.save()
    _make_room()
    return export


def export_file(export: Export) -> Path | None:
    """The export's zip file; None where there is none, or none any more."""
    file = Path(settings.ARENA_EXPORT_DIR) / export.file_name
    return file if export.status == Export.Status.COMPLETED and file.is_file() else None


def _build(export: Export, at: datetime) -> tuple[int, Path]:
    folder = Path(settings.ARENA_EXPORT_DIR) / Path(export.file_name).stem
    selection = Selection(export.cohort, export.start, export.end)
    try:
        made = export_build(folder=folder, selection=selection, formats=export.formats.split(","), at=at)
        return made.rows, zipped(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_room() -> None:
    for export in Export.objects.filter(status=Export.Status.COMPLETED).order_by("-pk")[KEPT:]:
        file = Path(settings.ARENA_EXPORT_DIR) / export.file_name
        for old in (file, seal_of(file)):
            old.unlink(missing_ok=True)


def _written(selection: Selection, formats: tuple[str, ...]) -> str:
    parts = [
        f"cohort {selection.cohort}" if selection.cohort is not None else "",
        f"from {instant_text(selection.start)}" if selection.start else "",
        f"to {instant_text(selection.end)}" if selection.end else "",
    ]
    return f"{' '.join(filter(None, parts)) or 'everything'} as {','.join(formats)}"
