"""Middleware: reads by anybody outside leave out what is sealed.

Operators see that a sealed task exists and its state. Its answer they see once they have asked for it by an action,
which the audit log stores.
"""

import re
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from importlib import import_module
from typing import Any

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse

from agents.models.sealed_rows import current_scope
from agents.sealing import respecting_seals
from arena_site.middleware import ADMIN, READS, SUBMISSIONS
from arena_site.models import AuditEntry
from foundation.clock import now

UNSEALED = (SUBMISSIONS, "/healthz", "/readyz", "/static/")
"""Beginnings of the addresses that show no answers, or to an agent its own."""
ADMIN_LIST = re.compile(r"/admin/(?!actions/|agents/registration/)[a-z_]+/[a-z]+/(csv/)?")
"""A list or its file, which an unsafe method shows too. Its actions write nothing: they lead to the dashboard's."""
TASK_PAGE = re.compile(r"/admin/agents/(decision|elicitation)/[0-9]+/change/")
READ_SEALED = "read-sealed"
"""The action that opens a sealed answer to the operator who performed it."""


class SealedReads:
    """Middleware that lets safe requests, and all to the admin's lists, respect the seals."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        # Views hold queries: one that is made while a read respects seals would leave their rows out for ever.
        import_module(settings.ROOT_URLCONF)
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_read = request.method in READS or ADMIN_LIST.fullmatch(request.path_info)
        if not is_read or request.path_info.startswith(UNSEALED):
            return self.get_response(request)
        with respecting_seals(at=now(), shows_tasks=request.path_info.startswith(ADMIN)):
            response = self.get_response(request)
            if isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse):
                # Its rows are read after this block: each part in a copy of the block's context.
                following = partial(copy_context().run, next, iter(response.streaming_content), None)
                response.streaming_content = iter(following, None)
        return response

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, options: Any) -> None:
        """Shows the page of a task whole to an operator who asked for its answer."""
        if not TASK_PAGE.fullmatch(request.path_info) or not request.user.is_authenticated:
            return
        entries = AuditEntry.objects.filter(action=READ_SEALED, by=request.user.get_username(), path=request.path_info)
        if entries.filter(result=AuditEntry.Result.DONE).exists():
            current_scope.set(None)
