"""An arena of a few scripted tasks on a real local server, with the faults that a network and a hostile host have."""

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_agent.checking import sample_lines

TOKEN = "arena_secret"
QUESTIONS = json.loads(sample_lines()[1])["blocks"]
DECISION = json.loads(sample_lines()[2])["blocks"]


class ScriptedArena:
    """Open tasks until each is answered; stores answers by key as the arena does."""

    def __init__(self, server: HTTPServer, batches: int = 1, decisions: int = 0) -> None:
        self.url = server.url_for("").rstrip("/")
        self.open: dict[str, dict[str, Any]] = {f"batch={n}": {"batch": n} for n in range(1, batches + 1)}
        self.open |= {f"agent={n}&universe=1": {"agent": n, "universe": 1} for n in range(1, decisions + 1)}
        self.answers: dict[str, list[tuple[str, str]]] = {}
        """Key and body of each answer that was taken, by task."""
        self.posts = 0
        self.tokens: set[str | None] = set()
        self.seconds_open = 600.0
        self.delay = 0.0
        """Seconds before and after an answer is stored."""
        self.faults: list[Response | Callable[[], Response]] = []
        """Given in place of the next answers to a submission."""
        self.registration = {"slug": "own", "name": "Own", "track": "closed", "protocols": ["forecast"], "version": 1}
        self.takes_replacements = False
        self.clock = datetime.now(UTC)
        self._lock = threading.Lock()
        self._stored: dict[str, tuple[str, dict[str, Any]]] = {}
        server.expect_request("/api/v1/submissions/open/").respond_with_handler(self._open)
        server.expect_request("/api/v1/submissions/agent/").respond_with_handler(self.describe_agent)
        server.expect_request("/api/v1/submissions/").respond_with_handler(self._submit)

    def _open(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        times = {
            "frozen_at": self.clock.isoformat(),
            "deadline": (self.clock + timedelta(seconds=self.seconds_open)).isoformat(),
        }
        tasks = []
        for name, task in self.open.items():
            if self._is_open(name):
                tasks.append(times | task | {"state": "answered" if name in self.answers else "open"})
        trading = [task | {"blocks": DECISION} for task in tasks if "agent" in task]
        forecast = [task | {"blocks": QUESTIONS} for task in tasks if "batch" in task]
        return _json({"now": self.clock.isoformat(), "trading": trading, "forecast": forecast})

    def _submit(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        time.sleep(self.delay)
        key, body, task = (
            request.headers["Idempotency-Key"],
            request.get_data(as_text=True),
            request.query_string.decode(),
        )
        with self._lock:
            self.posts += 1
            if self.faults:
                fault = self.faults.pop(0)
                return fault if isinstance(fault, Response) else fault()
            if key not in self._stored:
                is_open = self._is_open(task)
                self.answers.setdefault(task, []).append((key, body))
                if not is_open:
                    return _problem(409, f"{task} is completed already")
                receipt = {"body": {"task": task, "sequence": len(self._stored) + 1}, "sha256": "0" * 64}
                self._stored[key] = body, {"submission": len(self._stored) + 1, "receipt": receipt}
        time.sleep(self.delay)
        stored, reply = self._stored[key]
        return _json(reply, 201) if stored == body else _problem(409, "this key came with another answer before")

    def describe_agent(self, request: Request) -> Response:
        return self._refusal(request) or _json(self.registration)

    def _is_open(self, task: str) -> bool:
        return self.takes_replacements or task not in self.answers

    def _refusal(self, request: Request) -> Response | None:
        token = request.headers.get("Authorization")
        self.tokens.add(token)
        return None if token == f"Bearer {TOKEN}" else _problem(401, "the token is unknown or revoked")


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


def _problem(status: int, detail: str) -> Response:
    body = json.dumps({"title": "", "status": status, "detail": detail})
    return Response(body, status, content_type="application/problem+json")
