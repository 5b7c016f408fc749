"""Boards as they were published: the last one of a selection at or before an instant."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Min, QuerySet

from scoring.models import PublishedBoard


def published_boards(
    protocol: str, *, methodology: str = "", arm: str = "", category: str = "", track: str = ""
) -> QuerySet[PublishedBoard]:
    """The published boards of a selection, newest first."""
    selection = {"methodology": methodology, "arm": arm, "category": category, "track": track}
    return PublishedBoard.objects.filter(protocol=protocol, **selection).order_by("-at")


def published_board(protocol: str, at: datetime, **selection: str) -> PublishedBoard | None:
    """The last board of a selection that was published by an instant."""
    return published_boards(protocol, **selection).filter(at__lte=at).first()


def first_publication(protocol: str, **selection: str) -> datetime | None:
    """The instant of the first published board of a selection."""
    first: datetime | None = published_boards(protocol, **selection).aggregate(first=Min("at"))["first"]
    return first


def citable_instant(entries: Sequence[Mapping[str, Any]], protocol: str, **selection: str) -> datetime | None:
    """The instant of the last published board of a selection, if its ranks are those of `entries`."""
    board = published_boards(protocol, **selection).first()
    return board.at if board is not None and _ranks(board.entries) == _ranks(entries) else None


def _ranks(entries: Iterable[Mapping[str, Any]]) -> dict[str, int | None]:
    return {entry.get("forecaster") or entry["family"]: entry["rank"] for entry in entries}
