"""Middleware: an operator who asked for a sealed answer, which the audit log stores, sees it on its task's page."""

import re
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

from arena_site.models import AuditEntry

TASK_PAGE = re.compile(r"/admin/agents/(decision|elicitation)/[0-9]+/change/")
READ_SEALED = "read-sealed"
"""The action that opens a sealed answer to the operator who performed it."""


class SealedReads:
    """Middleware that marks a request by `reads_sealed`, which the admin of tasks looks for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, options: Any) -> None:
        if not TASK_PAGE.fullmatch(request.path_info) or not request.user.is_authenticated:
            return
        entries = AuditEntry.objects.filter(action=READ_SEALED, by=request.user.get_username(), path=request.path_info)
        request.reads_sealed = entries.filter(result=AuditEntry.Result.DONE).exists()  # type: ignore[attr-defined]
