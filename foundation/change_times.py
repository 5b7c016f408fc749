"""The real time at which a row was last written, for clients that ask what has changed since they last asked.

The instants of the domain can not tell: a run that replays a past Sunday, or that takes hours, writes rows of earlier
instants than its own writing.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models
from django.utils import timezone

UPDATED_AT = "updated_at"
Row = TypeVar("Row", bound=models.Model)


class TimedQuerySet(models.QuerySet[Row]):
    """Rows whose updates set the time of the change; `bulk_update` goes through `update` too."""

    def update(self, **values: Any) -> int:
        return super().update(**{UPDATED_AT: timezone.now()} | values)


class ChangeTime(models.Model):
    """A row with the real time of its last change. Its manager's rows are a `TimedQuerySet`."""

    updated_at = models.DateTimeField(auto_now=True, null=True, help_text="Wall-clock time, in replays too.")

    class Meta:
        abstract = True

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:  # type: ignore[override]
        names = update_fields if update_fields is None else {*update_fields, UPDATED_AT}
        super().save(update_fields=names, **options)
