"""The sandbox on a local port: its addresses, its clock, and the two ways to run it."""

import json
import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from venue_sandbox.catalogue import Season, load_season
from venue_sandbox.clob import Clob
from venue_sandbox.controls import Controls
from venue_sandbox.editions import extend_season
from venue_sandbox.exa import Exa
from venue_sandbox.exchange import Exchange
from venue_sandbox.gamma import Gamma
from venue_sandbox.http_messages import EventStream, Refusal, Reply, Request, zulu
from venue_sandbox.kalshi import Kalshi
from venue_sandbox.openrouter import OpenRouter
from venue_sandbox.script import KalshiScript, Script

HOST = "127.0.0.1"
EMPTY_STARTS = datetime(2026, 3, 1, tzinfo=UTC)
"""The start of a season without markets."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running sandbox is reached: the values for the arena's base-URL settings, and its root."""

    root: str
    gamma: str
    clob: str
    kalshi: str
    openrouter: str
    exa: str

    @classmethod
    def at(cls, port: int) -> "Addresses":
        root = f"http://{HOST}:{port}"
        paths = ("gamma", "clob", "kalshi/trade-api/v2", "openrouter/api/v1", "exa")
        return cls(root, *(f"{root}/{path}" for path in paths))

    @property
    def clock(self) -> str:
        return f"{self.root}/sandbox/clock"


class Sandbox:
    """All simulated services of one seed, and their clock, which stands still until it is set.

    `empty` leaves the markets of the season out, so that there are those of the scripts alone.
    """

    def __init__(
        self,
        seed: int = 0,
        weeks: int = 0,
        *,
        empty: bool = False,
        script: Script | None = None,
        kalshi_script: KalshiScript | None = None,
    ):
        self.script, self.kalshi_script = script or Script(), kalshi_script or KalshiScript()
        season = Season(EMPTY_STARTS, ()) if empty else extend_season(load_season(), weeks)
        exchange = Exchange(season, seed)
        gamma, clob = Gamma(exchange, self.script), Clob(exchange, self.script)
        kalshi = Kalshi(exchange, self.kalshi_script)
        openrouter = OpenRouter(self.script, exchange, kalshi.exchange)
        controls = Controls(self.script, gamma, kalshi)
        self.now = exchange.season.starts
        table: dict[str, Callable[..., Reply]] = {
            "GET /gamma/markets/keyset": gamma.markets_keyset,
            "GET /gamma/markets/(?P<id>[^/]+)": gamma.market,
            "POST /clob/midpoints": clob.midpoints,
            "POST /clob/books": clob.books,
            "GET /clob/markets/(?P<condition_id>[^/]+)": clob.market,
            "GET /kalshi/trade-api/v2/events": kalshi.events,
            "GET /kalshi/trade-api/v2/markets": kalshi.markets,
            "GET /kalshi/trade-api/v2/(?P<tier>historical/)?markets/(?P<ticker>[^/]+)": kalshi.market,
            "POST /openrouter/api/v1/chat/completions": openrouter.complete,
            "GET /openrouter/api/v1/(?P<name>models|generation|key|credits)": openrouter.endpoint,
            "POST /exa/search": Exa(seed).search,
            "POST /sandbox/markets": controls.list_market,
            "POST /sandbox/prices": controls.move,
            "POST /sandbox/resolutions": controls.resolve,
            "POST /sandbox/answers": controls.say,
            "POST /sandbox/outages": controls.set_outages,
            "POST /sandbox/models": openrouter.end_model,
            "POST /sandbox/faults": openrouter.set_faults,
            "POST /sandbox/key": openrouter.billing.set_limits,
            "GET /sandbox/clock": self.read_clock,
            "POST /sandbox/clock": self.set_clock,
        }
        self._routes = [(re.compile(path), endpoint) for path, endpoint in table.items()]

    def read_clock(self, request: Request) -> Reply:
        return Reply(200, {"now": zulu(self.now)})

    def set_clock(self, request: Request) -> Reply:
        try:
            now = datetime.fromisoformat(request.json()["now"])
        except (ValueError, TypeError, KeyError):
            raise Refusal(Reply(400, {"error": 'now: expected {"now": "2026-03-01T00:05:00Z"}'})) from None
        if now.tzinfo is None:
            raise Refusal(Reply(400, {"error": "now: a naive time is refused, write it with Z"}))
        self.now = now.astimezone(UTC)
        return self.read_clock(request)

    def answer(self, request: Request) -> Reply:
        if outage := self.script.reply(request) or self.kalshi_script.reply(request):
            return outage
        for path, endpoint in self._routes:
            if match := path.fullmatch(f"{request.method} {request.path}"):
                try:
                    return endpoint(request, **match.groupdict())
                except Refusal as refusal:
                    return refusal.reply
        return Reply(404, {"error": f"no such path: {request.method} {request.path}"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body leave together
    server: "_Server"

    def do_GET(self) -> None:
        length = self.headers.get("Content-Length", "0")
        body = self.rfile.read(int(length)) if length.isdigit() else b""
        sandbox = self.server.sandbox
        request = Request.parse(self.command, self.path, self.headers, body, sandbox.now)
        try:
            reply = sandbox.answer(request)
        except Exception:
            log.exception("%s %s", self.command, self.path)
            reply = Reply(500, {"type": "internal error", "error": "the sandbox failed; its log says why"})
        if isinstance(reply, EventStream):
            self._stream(reply)
        else:
            self._send(reply)

    do_POST = do_GET

    def _send(self, reply: Reply) -> None:
        content = reply.encode()
        self.send_response(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, stream: EventStream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Generation-Id", stream.body["id"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in stream.events():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        if stream.fault in ("cut", "stall"):
            self.close_connection = True
            self.wfile.flush()
            if stream.fault == "stall":
                self.connection.recv(1)  # until the client hangs up
        else:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        log.debug(format, *args)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # idle keep-alive connections must not hold up the end

    def __init__(self, port: int, sandbox: Sandbox):
        self.sandbox = sandbox
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is a fault of ours and shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def running(*, port: int = 0, seed: int = 0, weeks: int = 0) -> Iterator[Addresses]:
    """The addresses of a sandbox that serves from a thread of this process until the block ends."""
    server = _Server(port, Sandbox(seed, weeks))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="sandbox", daemon=True)
    thread.start()
    try:
        yield Addresses.at(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def serve(*, port: int = 0, seed: int = 0, weeks: int = 0) -> None:
    """Serves until SIGTERM or SIGINT, in the main thread; its first line of output is its addresses as JSON."""
    stopped = Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stopped.set())
    with running(port=port, seed=seed, weeks=weeks) as addresses:
        print(json.dumps(asdict(addresses)), flush=True)
        stopped.wait()
