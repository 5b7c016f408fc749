"""Two workers that freeze the same day: the evidence is gathered, and paid for, by one of them."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.faults.processes import FORK, LINE_UP, SUNDAY, CommandRunner, _command

pytestmark = pytest.mark.each_database

FREEZE = (SUNDAY + timedelta(hours=2), "run_forecasts --questions=2")
WAIT_S = 60


class SlowService:
    """A search service in a process of its own, which holds its first query until it is released."""

    def __init__(self) -> None:
        self.asked, self.released, self.queries = FORK.Event(), FORK.Event(), FORK.SimpleQueue()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SlowHandler, self))
        self.process = FORK.Process(target=self.server.serve_forever, daemon=True)
        self.process.start()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def asked_queries(self) -> Counter[str]:
        queries = Counter[str]()
        while not self.queries.empty():
            queries[self.queries.get()] += 1
        return queries


class SlowHandler(BaseHTTPRequestHandler):
    def __init__(self, service: SlowService, *arguments: Any) -> None:
        self.service = service
        super().__init__(*arguments)

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
        self.service.queries.put(query)
        if not self.service.asked.is_set():
            self.service.asked.set()
            self.service.released.wait(WAIT_S)
        result = {"title": "T", "url": "https://n.example/1", "text": f"About {query}"}
        body = json.dumps({"results": [result]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None: ...


@pytest.fixture
def service(settings: Any) -> Iterator[SlowService]:
    service = SlowService()
    settings.ARENA_EVIDENCE, settings.ARENA_EVIDENCE_KEY = "exa", "evidence-key-0123456789"
    settings.ARENA_EVIDENCE_BASE_URL = service.url
    yield service
    service.process.kill()
    service.process.join(WAIT_S)


@pytest.fixture
def day(arena: CommandRunner) -> Iterator[str]:
    """The name of a database at the morning of a day that methodology v3 asks one model about."""
    name = arena.migrated(LINE_UP[:1])
    arena.read(name, _publish_v3)
    arena.run(name, (FREEZE[0], "sync_markets"))
    yield name
    arena.database.drop(name)


def _publish_v3() -> int:
    from cohorts.models import Methodology

    return Methodology.objects.filter(version="v3").update(published_at=SUNDAY)


def _day_state() -> dict[str, Any]:
    from agents.models import Elicitation
    from markets.models import EvidenceClaim, EvidenceSnippet, QuestionSet

    return {
        "sets": QuestionSet.objects.filter(day=SUNDAY, methodology="v3", part=0).count(),
        "left out": list(QuestionSet.objects.filter(methodology="v3").values_list("left_out", flat=True)),
        "snippets": EvidenceSnippet.objects.exists(),
        "conditions": set(Elicitation.objects.values_list("batch__arm", flat=True)),
        "claims": EvidenceClaim.objects.count(),
    }


def test_second_worker_pays_nothing_while_the_first_gathers_and_takes_over_at_once_if_it_dies(
    arena: CommandRunner, day: str, service: SlowService
) -> None:
    first = arena.start(day, partial(_command, FREEZE[1], FREEZE[0]))
    assert service.asked.wait(WAIT_S)
    second = arena.call(day, FREEZE[1], at=FREEZE[0])
    assert (second.code, second["asked"], second["questions"], second["unasked"]) == (0, 0, 0, 1), second.stderr
    assert set(service.asked_queries().values()) == {1}
    first.kill()
    first.join(WAIT_S)
    assert arena.read(day, _day_state)["claims"] == 1
    service.released.set()
    again = arena.call(day, FREEZE[1], at=FREEZE[0])
    assert again["questions"] >= 2, again.stderr
    assert again["left_out"] == 0
    state = arena.read(day, _day_state)
    assert (state["sets"], state["snippets"], state["claims"]) == (1, True, 0)
    assert state["conditions"] == {"priced", "blind", "evidence", "full"}
