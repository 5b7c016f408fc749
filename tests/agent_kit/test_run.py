"""`arena-agent run`: one answer for each task, whatever the agent, the network or the host does."""

import json
import os
import random
import signal
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_agent import api, live
from arena_agent.arena_api import Arena, ArenaUnavailable
from arena_agent.cli import main
from tests.agent_kit.scripted_arena import QUESTIONS, TOKEN, ScriptedArena
from tests.agent_kit.test_check import agent_file

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

EVEN = "def forecast(self, question): return question.even()"
RANDOM = """\
def forecast(self, question):
    from random import random
    p = random()
    return {option: p if n == 0 else (1 - p) / (len(question.options) - 1) for n, option in enumerate(question.options)}
"""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARENA_AGENT_TOKEN", TOKEN)
    monkeypatch.delenv("ARENA_AGENT_URL", raising=False)
    monkeypatch.setattr(live, "FIRST_PAUSE", 0.01)


def run_once(url: str, file: str, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, summary and standard error of `run --once`."""
    code = main(["run", file, "--once", "--json", "--url", url, *options])
    output = capfd.readouterr()
    return code, json.loads(output.out) if output.out else {}, output.err


def receipts(capfd: pytest.CaptureFixture[str]) -> list[Any]:
    assert main(["receipts", "--json"]) == 0
    return json.loads(capfd.readouterr().out)["receipts"]


def test_each_open_task_is_answered_once(server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arena = ScriptedArena(server, batches=2, decisions=2)
    file = agent_file(tmp_path, EVEN + "\ndef trade(self, portfolio, markets): return [Bet(markets[0], 'YES', 100)]")
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary) == (0, {"answered": 4, "refused": 0, "failed": 0, "pending": 0, "cost_usd": 0.0})
    assert json.loads(arena.answers["agent=1&universe=1"][0][1]) == {
        "action": "BET",
        "bets": [{"market_id": "1204", "side": "YES", "amount": "100"}],
    }
    assert [receipt["body"]["sequence"] for receipt in receipts(capfd)] == [1, 2, 3, 4]
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary["answered"], arena.posts) == (0, 0, 4)
    assert main(["receipts"]) == 0
    first, *_, hint = capfd.readouterr().out.splitlines()
    assert first.startswith("agent-1-universe-1: receipt 1, received ")
    assert hint.endswith("to check them: arena-agent verify receipts.json")


def test_agent_without_trade_leaves_decisions_alone(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server, batches=1, decisions=1)
    code, summary, _ = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
    assert (code, summary["answered"], summary["failed"]) == (0, 1, 0)


def test_dry_run_sends_and_stores_nothing(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    code, summary, events = run_once(arena.url, agent_file(tmp_path, EVEN), capfd, "--dry-run")
    assert (code, summary["answered"], arena.posts) == (0, 1, 0)
    assert json.loads(events)["answer"]["forecasts"][1]["probabilities"] == {"YES": 0.5, "NO": 0.5}
    assert not (tmp_path / "home").exists()


# kills


KILLS = 12


def test_a_loop_killed_at_any_point_leaves_one_answer_and_its_reply(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The agent answers at random, so that asking it again would show. It has enough to do for every kill."""
    arena = ScriptedArena(server, batches=4 * KILLS)
    arena.delay = 0.05
    command = [sys.executable, "-m", "arena_agent", "run", agent_file(tmp_path, RANDOM), "--once", "--url", arena.url]
    moments, cut = random.Random(7), 0
    for _ in range(KILLS):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        posts = arena.posts
        while process.poll() is None and arena.posts == posts and time.monotonic() < until:
            time.sleep(0.002)  # the first submission of this run; starting Python is no point of interest
        time.sleep(moments.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        cut += process.wait() == -signal.SIGKILL
    assert cut == KILLS
    last = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert last.returncode == 0, last.stderr
    assert sorted(arena.answers) == sorted(arena.open)
    assert {task: len({body for _, body in answers}) for task, answers in arena.answers.items()} == dict.fromkeys(
        arena.open, 1
    )
    assert {len(answers) for answers in arena.answers.values()} == {1}
    assert {receipt["body"]["task"] for receipt in receipts(capfd)} == set(arena.open)


def test_line_that_a_kill_cut_is_dropped_and_the_task_answered(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"event": "answer", "task": "batch-1", "bo')
    code, summary, _ = run_once(arena.url, agent_file(tmp_path, EVEN), capfd, "--journal", str(journal))
    assert (code, summary["answered"]) == (0, 1)
    assert [json.loads(line)["event"] for line in journal.read_text().splitlines()] == ["answer", "reply"]


def test_folder_as_journal_is_refused(server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arena = ScriptedArena(server)
    code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd, "--journal", str(tmp_path))
    assert (code, f"--journal: {tmp_path} is a folder" in error) == (2, True)


def test_page_of_a_front_that_refuses_access_is_no_access(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.expect_request("/api/v1/submissions/agent/").respond_with_data("<h1>no</h1>", 401, content_type="text/html")
    code, _, error = run_once(server.url_for("").rstrip("/"), agent_file(tmp_path, EVEN), capfd)
    assert (code, "<h1>" in error) == (3, False)


def test_sentence_of_a_server_commands_no_terminal(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.expect_request("/api/v1/submissions/agent/").respond_with_json(
        {"detail": "no \x1b[2J\x1b]0;owned\x07 \u202e entry"}, 403
    )
    code, _, error = run_once(server.url_for("").rstrip("/"), agent_file(tmp_path, EVEN), capfd)
    assert code == 3
    assert "entry" in error
    assert not any(letter in error for letter in "\x1b\x07\u202e")


def test_damaged_journal_is_refused_by_line(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text("rubbish\n")
    arena = ScriptedArena(server)
    code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd, "--journal", str(journal))
    assert (code, "line 1: it is not as it was written" in error) == (2, True)


def test_second_loop_on_one_journal_is_refused(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from arena_agent.journal import Journal

    arena = ScriptedArena(server)
    with Journal(tmp_path / "journal.jsonl") as journal:
        code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd, "--journal", str(journal.path))
    assert (code, "another loop is at work" in error, arena.posts) == (1, True, 0)


# faults of the network


def cut() -> Response:
    """An answer that ends before its stated length."""
    return Response(iter([b"{"]), 201, {"Content-Length": "1000", "Content-Type": "application/json"})


@pytest.mark.parametrize(
    "fault",
    [
        Response("{}", 503, content_type="application/json"),
        Response("slow down", 429, {"Retry-After": "0"}),
        Response("<h1>Bad Gateway</h1>", 502, content_type="text/html"),
        *(Response("<h1>edge</h1>", status, content_type="text/html") for status in (403, 404, 520)),
        cut,
    ],
    ids=["503", "429", "502", "403", "404", "520", "cut"],
)
def test_fault_that_passes_is_outlived(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], fault: Any
) -> None:
    arena = ScriptedArena(server)
    arena.faults = [fault, fault]
    code, summary, _ = run_once(arena.url, agent_file(tmp_path, RANDOM), capfd)
    assert (code, summary["answered"], arena.posts) == (0, 1, 3)
    assert len(arena.answers["batch=1"]) == 1


def test_answer_that_could_not_be_sent_in_time_is_sent_by_the_next_run(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    arena.seconds_open = 6
    file = agent_file(tmp_path, RANDOM)
    arena.faults = [Response("", 503, {"Retry-After": "60"})]
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary) == (1, {"answered": 0, "refused": 0, "failed": 0, "pending": 1, "cost_usd": 0.0})
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary) == (0, {"answered": 1, "refused": 0, "failed": 0, "pending": 0, "cost_usd": 0.0})
    assert len(arena.answers["batch=1"]) == 1


def test_refused_answer_is_stored_and_not_repeated(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    file = agent_file(tmp_path, EVEN)
    refusal = json.dumps({"status": 410, "detail": "batch 1 was to be answered before noon"})
    arena.faults = [Response(refusal, 410, content_type="application/problem+json")]
    code, summary, events = run_once(arena.url, file, capfd)
    assert (code, summary["refused"]) == (1, 1)
    assert "was to be answered before noon" in events
    run_once(arena.url, file, capfd)
    assert arena.posts == 1


# faults of the agent


def test_failing_agent_costs_its_task_alone_and_is_asked_again_by_the_next_run(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server, batches=1, decisions=1)
    file = agent_file(tmp_path, EVEN + "\ndef trade(self, portfolio, markets): return 1 / 0")
    code, summary, events = run_once(arena.url, file, capfd, "--patience", "0.05")
    assert (code, summary["answered"], summary["failed"]) == (1, 1, 1)
    assert "ZeroDivisionError: division by zero" in events
    file = agent_file(tmp_path, EVEN + "\ndef trade(self, portfolio, markets): return []")
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary["answered"], len(arena.answers)) == (0, 1, 2)


THIRD_TIME = """\
def forecast(self, question):
    from pathlib import Path
    tries = Path({tries!r})
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    if len(tries.read_text()) < 7:  # three questions a task
        raise ConnectionError("the model is away")
    return question.even()
"""


@pytest.mark.parametrize("once", [True, False])
def test_failed_task_is_tried_again_with_longer_and_longer_pauses(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.02)
    arena = ScriptedArena(server)
    file = agent_file(tmp_path, THIRD_TIME.format(tries=str(tmp_path / "tries")))
    options = ["--once"] if once else ["--for", "0.05"]
    code = main(["run", file, "--json", "--url", arena.url, *options])
    output = capfd.readouterr()
    assert (code, json.loads(output.out)["answered"], json.loads(output.out)["failed"]) == (0, 1, 0)
    assert output.err.count("the model is away") == 2 * 3  # questions
    assert len(arena.answers["batch=1"]) == 1


def test_late_agent_costs_its_task_alone(server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arena = ScriptedArena(server, batches=2)
    arena.seconds_open = 9  # of which five are kept for sending
    marker = tmp_path / "asked"
    body = (
        "def forecast(self, question):\n    import pathlib, time\n"
        f"    try:\n        pathlib.Path({str(marker)!r}).touch(exist_ok=False)\n"
        "    except FileExistsError:\n        return question.even()\n    time.sleep(60)"
    )
    code, summary, events = run_once(arena.url, agent_file(tmp_path, body), capfd, "--patience", "0.01")
    assert (code, summary["answered"], summary["failed"]) == (1, 1, 1)
    assert "did not answer within 2 seconds" in events


def test_part_of_an_answer_is_sent_and_the_rest_named(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    body = "def forecast(self, question): return question.even() if question.id == '89' else {'x': 1}"
    code, summary, events = run_once(arena.url, agent_file(tmp_path, body), capfd)
    assert (code, summary["answered"]) == (0, 1)
    assert [f["question_id"] for f in json.loads(arena.answers["batch=1"][0][1])["forecasts"]] == ["89"]
    assert 'question 88: "x" is none of its options' in json.loads(events.splitlines()[0])["reason"]


def test_answer_is_replaced_while_its_task_is_open(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    arena.takes_replacements = True
    file = agent_file(tmp_path, RANDOM)
    for options in ((), (), ("--replace",)):
        assert run_once(arena.url, file, capfd, *options)[0] == 0
    assert len({key for key, _ in arena.answers["batch=1"]}) == 2
    assert [receipt["body"]["sequence"] for receipt in receipts(capfd)] == [1, 2]


def test_task_that_is_answered_from_another_machine_is_left_alone(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    arena.takes_replacements = True
    file = agent_file(tmp_path, RANDOM)
    for machine in ("one", "other"):
        assert run_once(arena.url, file, capfd, "--journal", str(tmp_path / machine))[0] == 0
    assert len(arena.answers["batch=1"]) == 1
    assert run_once(arena.url, file, capfd, "--journal", str(tmp_path / "third"), "--replace")[0] == 0
    assert len(arena.answers["batch=1"]) == 2


DECLARED = {"track = 'open'": "declares the track open; own is registered for closed", "version = 2": "version 1 is"}


@pytest.mark.parametrize("declaration", DECLARED)
def test_declaration_that_is_not_the_registered_one_is_refused(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], declaration: str
) -> None:
    arena = ScriptedArena(server)
    code, _, error = run_once(arena.url, agent_file(tmp_path, f"{declaration}\n{EVEN}"), capfd)
    assert (code, DECLARED[declaration] in error, arena.answers) == (2, True, {})
    other = tmp_path / "other"  # bytecode of a file of the same size and second would be taken for it
    other.mkdir()
    code, summary, _ = run_once(arena.url, agent_file(other, f"version = 1\n{EVEN}"), capfd)
    assert (code, summary["answered"]) == (0, 1)
    assert main(["whoami", "--url", arena.url]) == 0
    assert capfd.readouterr().out == f"Own (own) at {arena.url}: track closed, version 1, plays forecast\n"


def test_deadline_in_thousands_of_years_is_one(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    arena.seconds_open = 250_000_000_000
    code, summary, _ = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
    assert (code, summary["answered"]) == (0, 1)


def test_clock_that_is_off_changes_nothing(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arena = ScriptedArena(server)
    arena.clock -= timedelta(days=400)
    code, summary, _ = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
    assert (code, summary["answered"]) == (0, 1)


# the host


def test_token_never_follows_a_redirect(server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(threaded=True) as other_server:
        arena = ScriptedArena(other_server)
        elsewhere = Response("", 307, {"Location": f"{arena.url}/api/v1/submissions/agent/"})
        server.expect_request("/api/v1/submissions/agent/").respond_with_response(elsewhere)
        code, _, error = run_once(server.url_for("").rstrip("/"), agent_file(tmp_path, EVEN), capfd)
        assert code == 1
        assert f"redirects to {arena.url}" in error
        assert arena.tokens == set()


@pytest.mark.parametrize("status", [200, 403, 404])
def test_host_that_is_no_arena_is_named(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    page = Response("<h1>Welcome</h1>", status, content_type="text/html")
    server.expect_request("/api/v1/submissions/agent/").respond_with_response(page)
    code, _, error = run_once(server.url_for("").rstrip("/"), agent_file(tmp_path, EVEN), capfd)
    assert code == 1
    assert ("not found" if status == 404 else f"answers {status} with text/html and not JSON") in error


TASK = {"batch": 1, "frozen_at": "2026-03-08T02:00:00Z", "deadline": "9999-12-31T23:59:59Z", "blocks": QUESTIONS}
STRANGE_TASKS = {
    "a time without a zone": (TASK | {"deadline": "2026-03-08T02:15:00"}, "forecast.0.deadline: "),
    "no ids": (TASK | {"batch": None, "agent": 3}, "forecast.0: Value error, it names neither batch"),
    "no blocks": (TASK | {"blocks": []}, "forecast.0.blocks: "),
    "no number": (TASK | {"week": float("nan")}, "broken JSON"),
}


@pytest.mark.parametrize("name", STRANGE_TASKS)
def test_task_that_no_arena_gives_is_named(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    task, message = STRANGE_TASKS[name]
    content = json.dumps({"now": "2026-03-08T02:00:00Z", "forecast": [task]})
    arena = ScriptedArena(server)
    server.clear_all_handlers()
    server.expect_request("/api/v1/submissions/agent/").respond_with_handler(arena.describe_agent)
    server.expect_request("/api/v1/submissions/open/").respond_with_data(content, content_type="application/json")
    code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
    assert (code, error.count("\n"), message in error) == (1, 1, True), error


RECEIPT = {"body": {"sequence": 1}, "sha256": "0" * 64}
STRANGE_REPLIES = {
    "a text for a receipt": ({"receipt": "signed"}, "receipt: "),
    "an empty receipt": ({"receipt": {}}, "receipt.body: "),
    "a number of forecasts": ({"receipt": RECEIPT, "forecasts": 3}, "forecasts: "),
    "a reason without an object": ({"receipt": RECEIPT, "refused": ["why"]}, "refused.0: "),
}


@pytest.mark.parametrize("name", STRANGE_REPLIES)
def test_reply_that_no_arena_gives_is_named_and_not_stored(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    arena, (reply, message) = ScriptedArena(server), STRANGE_REPLIES[name]
    arena.faults = [Response(json.dumps(reply), 201, content_type="application/json")]
    file = agent_file(tmp_path, EVEN)
    assert main(["run", file, "--once", "--url", arena.url]) == 1
    error = capfd.readouterr().err
    assert f"/api/v1/submissions/: {message}" in error
    assert "Traceback" not in error
    assert receipts(capfd) == []
    code, summary, _ = run_once(arena.url, file, capfd)
    assert (code, summary["answered"], len(receipts(capfd))) == (0, 1, 1)


def test_text_that_no_terminal_shows_is_escaped(server: HTTPServer, tmp_path: Path) -> None:
    arena = ScriptedArena(server)
    problem = json.dumps({"status": 422, "detail": "half \ud83d – whole"})
    arena.faults = [Response(problem, 422, content_type="application/problem+json")]
    command = [sys.executable, "-m", "arena_agent", "run", agent_file(tmp_path, EVEN), "--once", "--url", arena.url]
    result = subprocess.run(
        command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (1, "")
    assert "refused batch-1: half \\ud83d \\u2013 whole" in result.stdout


def test_endless_answer_ends(server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def endless(request: Request) -> Response:
        return Response((b"x" * 65536 for _ in range(10**9)), 200, content_type="application/json")

    server.expect_request("/api/v1/submissions/agent/").respond_with_handler(endless)
    code, _, error = run_once(server.url_for("").rstrip("/"), agent_file(tmp_path, EVEN), capfd)
    assert (code, "the answer is longer than 5,000,000 bytes" in error) == (1, True)


def test_answer_that_trickles_ends(server: HTTPServer) -> None:
    def trickle(request: Request) -> Response:
        return Response((time.sleep(0.05) or b" " for _ in range(20)), 200, content_type="application/json")

    server.expect_request("/api/v1/submissions/open/").respond_with_handler(trickle)
    with Arena(server.url_for(""), TOKEN, timeout=0.3) as arena, pytest.raises(ArenaUnavailable, match="does not end"):
        arena.open_tasks()


def test_certificate_of_nobody_is_refused_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(ssl_context=own_certificate(tmp_path)) as server:
        arena = ScriptedArena(server)
        code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
        assert (code, "its certificate is not valid" in error, arena.tokens) == (1, True, set())


def own_certificate(folder: Path) -> ssl.SSLContext:
    """A context with a certificate that no authority signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + timedelta(days=9))
    certificate = builder.sign(key, hashes.SHA256())
    encodings = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    path = folder / "own.pem"
    path.write_bytes(key.private_bytes(*encodings) + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


# access


def test_unknown_token_is_no_access(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = ScriptedArena(server)
    monkeypatch.setenv("ARENA_AGENT_TOKEN", "arena_other")
    code, _, error = run_once(arena.url, agent_file(tmp_path, EVEN), capfd)
    assert (code, "the token is unknown or revoked" in error) == (3, True)


def login(url: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "arena_agent", "login", "--json", "--url", url]
    environment = {name: value for name, value in os.environ.items() if name != "ARENA_AGENT_TOKEN"}
    return subprocess.run(command, input=f"{token}\n", capture_output=True, text=True, env=environment, timeout=60)


def test_login_stores_the_token_for_its_owner_and_its_host_alone(
    server: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = ScriptedArena(server)
    assert login(arena.url, "arena_other").returncode == 3
    assert not (tmp_path / "home").exists()
    process = login(arena.url)
    assert process.returncode == 0, process.stderr
    assert TOKEN not in process.stdout + process.stderr
    path = Path(json.loads(process.stdout)["file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.delenv("ARENA_AGENT_TOKEN")
    file = agent_file(tmp_path, EVEN)
    assert main(["run", file, "--once"]) == 0  # the address is that of the login
    capfd.readouterr()
    assert len(arena.answers) == 1
    with HTTPServer(threaded=True) as other_server:
        elsewhere = ScriptedArena(other_server)
        code, _, error = run_once(elsewhere.url, file, capfd)
        assert (code, "is not sent to" in error, elsewhere.tokens) == (3, True, set())
    path.chmod(0o644)
    code, _, error = run_once(arena.url, file, capfd)
    assert (code, f"chmod 600 {path}" in error) == (3, True)


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        (None, 3, "no arena is named"),
        ("arena.example", 2, "is no address"),
        ("ftp://arena.example", 2, "is no address"),
        ("https://me:secret@arena.example", 2, "must hold no user"),
        ("http://arena.example:99999", 2, "Port out of range"),
        ("http://127.0.0.1:9", 1, "127.0.0.1:9"),
        ("https://exa mple.com", 2, "is no name of a host"),
        ("https://a..example", 2, "is no name of a host"),
        (f"https://{'a' * 64}.example", 2, "is no name of a host"),
    ],
)
def test_address_that_leads_nowhere_is_refused(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    url: Any,
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr(api, "PATIENCE_SECONDS", 0.05)
    assert main(["run", agent_file(tmp_path, EVEN), "--once", *(["--url", url] if url else [])]) == code
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 0)])
def test_loop_goes_on_until_it_is_stopped_and_its_agent_closes_what_it_opened(
    server: HTTPServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    arena, closed = ScriptedArena(server), tmp_path / "closed"
    body = f"{EVEN}\ndef teardown(self): __import__('pathlib').Path({str(closed)!r}).touch()"
    command = [sys.executable, "-m", "arena_agent", "run", agent_file(tmp_path, body), "--url", arena.url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        first_line = process.stdout.readline()  # it has read the arena's reply
        assert process.poll() is None
    finally:
        process.send_signal(number)
        output, error = process.communicate(timeout=30)
    assert first_line.startswith("answered ")
    assert len(arena.answers) == 1
    assert (process.returncode, closed.exists()) == (code, True)
    if code:
        assert error == "arena-agent: stopped\n"
    else:
        assert (output.splitlines()[-1], error) == ("1 answered, 0 refused, 0 failed, 0 pending", "")
