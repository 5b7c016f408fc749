"""Monitors' addresses: answered whatever Host a monitor names; the metrics are for monitors alone."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from arena_site.middleware import METRICS, PROBES
from arena_site.middleware.clients import is_monitor


class Probes:
    """Middleware that answers monitors before hosts are checked, and shows nobody else the metrics."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info not in PROBES:
            return self.get_response(request)
        if is_monitor(request.META):
            response: HttpResponse = resolve(request.path_info).func(request)
            return response
        if request.path_info == METRICS:
            return HttpResponse("not found\n", status=404, content_type="text/plain; charset=utf-8")
        return self.get_response(request)
