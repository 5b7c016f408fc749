"""The command `import_forecasts` as a user runs it, and what it leaves behind."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from scoring.models import ImportCollection, ImportLeaderboard, RejectedRow

AT = "2026-03-08T12:00:00Z"


def printed(format: str, *files: Path, **options: Any) -> str:
    out = StringIO()
    options = {"at": AT, "stderr": StringIO(), **options}
    words = [word for name in ("at", "collection") if name in options for word in (f"--{name}", options.pop(name))]
    call_command("import_forecasts", *map(str, files), "--format", format, *words, stdout=out, **options)
    return out.getvalue()


def imported(format: str, *files: Path, **options: Any) -> dict[str, Any]:
    """The summary that `--json` prints last, on one line."""
    return dict(json.loads(printed(format, *files, json=True, **options).splitlines()[-1]))


def collection() -> ImportCollection:
    return ImportCollection.objects.get()


def leaderboard(slug: str | None = None) -> Any:
    """The report of the one collection, or of the one named."""
    return ImportLeaderboard.objects.get(**({} if slug is None else {"collection__slug": slug})).report


def rejections() -> list[tuple[int, str]]:
    return list(RejectedRow.objects.order_by("forecast_import_id", "row").values_list("row", "reason"))


def written(path: Path, *records: Any) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
