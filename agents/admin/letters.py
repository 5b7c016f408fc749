"""Letters in the admin: published ones, and all on the page of a task whose answer the operator asked to read."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from agents.letters import published
from foundation.admin.readonly import ReadOnlyAdmin


def reads_sealed(request: HttpRequest) -> bool:
    """Whether the request is for the page of a task whose sealed answer the operator asked for, which is on record."""
    return getattr(request, "reads_sealed", False)


def readable(request: HttpRequest, letters: Any) -> Any:
    """The letters that are shown in the response."""
    return letters if reads_sealed(request) else published(letters)


class LetterAdmin(ReadOnlyAdmin):
    """Base for letters: sealed ones are neither listed nor found."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return readable(request, super().get_queryset(request))  # type: ignore[no-any-return]
