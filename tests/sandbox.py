"""The sandbox in this process without its season: what a test scripts is all that it holds.

Tests set its markets (`market`, `move`, `close`, `resolve`) and the answers of models (`says`); the arena reaches it
only over HTTP, through the same settings as the real services.
"""

import re
from copy import deepcopy
from email.message import Message
from typing import Any
from urllib.parse import parse_qs

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.answers import hold_or_even_forecast
from tests.commands import SUNDAY, run
from venue_sandbox import http_messages
from venue_sandbox.script import KalshiScript, Script
from venue_sandbox.server import Addresses, Sandbox


def addresses(server: HTTPServer) -> dict[str, str]:
    """The settings by which the arena reaches Polymarket and the gateway on a server."""
    at = Addresses.at(server.port)
    return {"GAMMA_BASE_URL": at.gamma, "CLOB_BASE_URL": at.clob, "OPENROUTER_BASE_URL": at.openrouter}


def kalshi_address(server: HTTPServer) -> str:
    return Addresses.at(server.port).kalshi


def take_over(script: object, source: object) -> None:
    """Gives a script the state of another of its kind; each keeps its server."""
    state = {name: value for name, value in vars(source).items() if name not in ("server", "sandbox")}
    vars(script).update(deepcopy(state))


class _Served:
    """Some services of a sandbox as handlers of a server, to which a test may add others."""

    def __init__(self, server: HTTPServer, sandbox: Sandbox, services: str) -> None:
        self.server = server
        self.sandbox = sandbox
        self.requests: list[str] = []
        self.sent = 0
        """Bytes of all bodies."""
        server.expect_request(re.compile(rf"^/({services})/.+$")).respond_with_handler(self.respond)

    def respond(self, request: Request, path: str = "") -> Response:
        """The sandbox's response, as if the request were for `path`."""
        path = path or request.path
        self.requests.append(f"{request.method} {path}")
        headers = Message()
        for name, value in request.headers.items():
            headers[name] = value
        query = parse_qs(request.query_string.decode(), keep_blank_values=True)
        body, now = request.get_data(), self.sandbox.now
        reply = self.sandbox.answer(http_messages.Request(request.method, path, query, headers, body, now))
        content = reply.encode()
        self.sent += len(content)
        return Response(content, reply.status, {"Content-Type": "application/json"} | reply.headers)


class Venue(_Served, Script):
    """Polymarket and the gateway."""

    bills: dict[str, Any]

    def __init__(self, server: HTTPServer) -> None:
        Script.__init__(self)
        _Served.__init__(self, server, Sandbox(empty=True, script=self), "gamma|clob|openrouter")
        self.bills = {}
        self.default_answer = hold_or_even_forecast

    def as_left(self, source: "Venue") -> "Venue":
        """Takes over the other one's markets, prices, answers and recorded requests."""
        take_over(self, source)
        return self

    def everyone_holds(self) -> None:
        self.answers.clear()

    def start_first_cohort(self) -> None:
        """Has the arena sync the markets and start cohort 1, Sunday midnight."""
        assert run("sync_markets", SUNDAY).code == 0
        assert run("start_cohort", SUNDAY)["cohort"] == 1


class Kalshi(_Served, KalshiScript):
    """The second venue, beside the first on the same server."""

    def __init__(self, server: HTTPServer) -> None:
        KalshiScript.__init__(self)
        _Served.__init__(self, server, Sandbox(empty=True, kalshi_script=self), "kalshi")
        self.page_cap = 2
