"""Requested exports: one archive per selection and formats, built once by a worker."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from foundation.json_lines import instant_text
from foundation.models import Run
from scoring.exports.selection import ExportSelection
from scoring.models import Export

REUSED_FOR = timedelta(hours=1)
"""Age up to which a completed export answers another request for the same."""
MAX_STORED_FILES = 20
"""Exports whose files are stored; those of older ones are removed."""
MAX_UNFINISHED = 10
"""Exports that may wait or be built at a time: each takes a worker for minutes."""
UNFINISHED = (Export.Status.QUEUED, Export.Status.BUILDING)


class TooManyExports(Exception):
    """So many exports wait that no other is taken."""

    def __init__(self) -> None:
        super().__init__(f"{MAX_UNFINISHED} exports are waiting or being built; request another when one is done")


def request_export(
    *, selection: ExportSelection, formats: tuple[str, ...], by: str, at: datetime
) -> tuple[Export, bool]:
    """The export of a selection, and whether it is new: an unfinished or recent one answers the request too.

    Raises TooManyExports.
    """
    formats = tuple(sorted(formats))
    key = _selection_key(selection, formats)
    abandoned = Q(status=Export.Status.BUILDING, started_at__lt=at - Run.LONGEST)
    abandoned |= Q(status=Export.Status.QUEUED, requested_at__lt=at - Run.LONGEST)
    Export.objects.filter(abandoned).update(status=Export.Status.FAILED, finished_at=at, error="its worker was lost")
    recent = Q(status=Export.Status.COMPLETED, finished_at__gt=at - REUSED_FOR)
    reusable = Export.objects.filter(Q(status__in=UNFINISHED) | recent, selection=key)
    if (export := reusable.first()) is not None:
        return export, False
    if Export.objects.filter(status__in=UNFINISHED).count() >= MAX_UNFINISHED:
        raise TooManyExports
    try:
        with transaction.atomic():
            export = Export.objects.create(
                selection=key, cohort=selection.cohort, start=selection.start, end=selection.end,
                formats=",".join(formats), requested_by=by, requested_at=at,
            )  # fmt: skip
    except IntegrityError:  # another request created it at the same moment
        return reusable.get(), False
    return export, True


def run_export(export_id: int, *, at: datetime) -> Export:
    """Builds a queued export; one that another worker builds, or that has ended, stays as it is."""
    queued = Export.objects.filter(pk=export_id, status=Export.Status.QUEUED)
    claimed = queued.update(status=Export.Status.BUILDING, started_at=at)
    export = Export.objects.get(pk=export_id)
    if not claimed:
        return export
    try:
        rows, file, sha256 = _build(export, at)
    except Exception as error:
        building = Export.objects.filter(pk=export_id, status=Export.Status.BUILDING)
        building.update(status=Export.Status.FAILED, finished_at=at, error=str(error) or type(error).__name__)
        raise
    export.status, export.finished_at = Export.Status.COMPLETED, at
    export.rows, export.bytes, export.sha256 = rows, file.stat().st_size, sha256
    export.save()
    _remove_old_files()
    return export


def export_file(export: Export) -> Path | None:
    """The export's zip file; None if it is not built yet or no longer stored."""
    file = Path(settings.ARENA_EXPORT_DIR) / export.file_name
    return file if export.status == Export.Status.COMPLETED and file.is_file() else None


def _build(export: Export, at: datetime) -> tuple[int, Path, str]:
    from forecast_rank.files.checksums import file_sha256, zip_archive
    from scoring.exports.archive import build_archive  # polars, which only the worker needs

    folder = Path(settings.ARENA_EXPORT_DIR) / Path(export.file_name).stem
    selection = ExportSelection(export.cohort, export.start, export.end)
    try:
        archive = build_archive(folder=folder, selection=selection, formats=export.formats.split(","), at=at)
        file = zip_archive(folder)
        return archive.rows, file, file_sha256(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_old_files() -> None:
    from forecast_rank.files.checksums import zip_checksum

    for export in Export.objects.filter(status=Export.Status.COMPLETED).order_by("-pk")[MAX_STORED_FILES:]:
        file = Path(settings.ARENA_EXPORT_DIR) / export.file_name
        for path in (file, zip_checksum(file)):
            path.unlink(missing_ok=True)


def _selection_key(selection: ExportSelection, formats: tuple[str, ...]) -> str:
    parts = [
        f"cohort {selection.cohort}" if selection.cohort is not None else "",
        f"from {instant_text(selection.start)}" if selection.start else "",
        f"to {instant_text(selection.end)}" if selection.end else "",
    ]
    return f"{' '.join(filter(None, parts)) or 'everything'} as {','.join(formats)}"
