"""Evidence from its source to the prompt: what is gathered, what is dropped and why, and what a bad day costs."""

import hashlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db.models import Sum
from django.test import Client, override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.models import Elicitation, Forecast, ModelCall
from agents.services.run_settings import set_condition_paused
from agents.services.spending import week_spending
from arena_verifier.program import verify
from cohorts.models import Methodology
from foundation import failpoints
from foundation.models import Alert
from markets.models import EvidenceSnippet, QuestionBatch, QuestionSet
from markets.services import evidence
from markets.services.evidence import evidence_sha256
from scoring.exports.verification.ledger_audit import violations_about
from tests.commands import SUNDAY, CommandOutput, run
from tests.faults.test_prompt_frame import HOSTILE
from tests.guards import remove_guards
from tests.sandbox import Venue
from tests.scoring.exports.forgery import read_cells, rewrite
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.server import running

MONDAY = SUNDAY + timedelta(days=1, hours=2)
RAIN, CUP, FED = "Will it rain?", "Lakers or Celtics?", "Will the Fed cut rates in June?"
BEFORE, AFTER = "2026-03-08T12:00:00Z", "2026-03-20T12:00:00Z"
PLAIN = "Clouds gather over the city, and farmers wait."


def open_season(venue: Venue) -> None:
    """Three markets synced and cohort 1 started, Sunday midnight."""
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    venue.market(FED)
    venue.start_first_cohort()


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    """The season, whose forecasts are asked by methodology v3."""
    Methodology.objects.filter(version="v3").update(published_at=SUNDAY)
    return venue.as_left(season[0])


@pytest.fixture
def folder(opened: Venue, tmp_path: Path, settings: Any) -> Path:
    settings.ARENA_EVIDENCE = f"file:{tmp_path}"
    return tmp_path


def text(query: Any = RAIN, **fields: Any) -> dict[str, Any]:
    """A row of a file; retrieved before the day unless told otherwise."""
    fields = {"url": f"https://news.example/{abs(hash(str(fields)))}", "text": PLAIN} | fields
    return {"query": query, "title": "Weather", "source": "", "published_at": None, "retrieved_at": BEFORE} | fields


def write(folder: Path, rows: Sequence[dict[str, Any] | bytes]) -> None:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    (folder / "texts.jsonl").write_bytes(b"\n".join(lines))


def shown(query: str = RAIN) -> list[EvidenceSnippet]:
    return list(EvidenceSnippet.objects.filter(entry__question__text=query).order_by("entry", "position"))


def prompts(venue: Venue) -> list[ModelRequest]:
    return [prompt for prompt in venue.asked if "\nEVIDENCE\n" in prompt.user]


def asked_conditions() -> set[str]:
    return set(Elicitation.objects.values_list("batch__arm", flat=True))


def ask(at: datetime = MONDAY) -> CommandOutput:
    """A forecast run that asks one family, for speed."""
    return run("run_forecasts", at, "--family", "gpt-5.1")


def left_out(ran: CommandOutput) -> dict[str, str]:
    """The conditions left out of the day, which is marked, while the others are asked."""
    assert asked_conditions() == {"priced", "blind"}
    assert (ran.code, ran["left_out"], ran["failed"]) == (0, 2, 0), ran.stderr
    assert [alert.kind for alert in Alert.objects.open()] == ["conditions-left-out"]
    reasons = QuestionSet.objects.get().left_out
    assert set(reasons) == {"evidence", "full"}
    assert not EvidenceSnippet.objects.exists()
    assert QuestionSet.objects.get().evidence_sha256 == ""
    return reasons


# what is shown


def test_every_model_is_shown_the_same_frozen_snippets(folder: Path, opened: Venue) -> None:
    rows = [text(title="A", published_at="2026-03-07"), text(FED, text="The Fed meets in June.", source="Wire")]
    write(folder, [*rows, text("*", text="Of all of them.")])
    ran = run("run_forecasts", MONDAY)
    assert ran.code == 0, ran.stderr
    assert asked_conditions() == {"priced", "blind", "evidence", "full"}
    blocks = [json.dumps(prompt.block("EVIDENCE")) for prompt in prompts(opened)]
    assert len(blocks) == 14
    assert len(set(blocks)) == 1
    header, *lines = prompts(opened)[0].block("EVIDENCE")
    assert header == ["question_id", "title", "source", "url", "published", "text"]
    by_id = {row["question_id"]: row["question"] for row in prompts(opened)[0].questions}
    assert [(by_id[line[0]], *line[1:3], *line[4:]) for line in lines] == [
        (RAIN, "A", "news.example", "2026-03-07", PLAIN),
        (RAIN, "Weather", "news.example", None, "Of all of them."),
        (CUP, "Weather", "news.example", None, "Of all of them."),
        (FED, "Weather", "Wire", None, "The Fed meets in June."),
        (FED, "Weather", "news.example", None, "Of all of them."),
    ]
    question_set = QuestionSet.objects.get()
    snippets = EvidenceSnippet.objects.order_by("entry__position", "position").select_related("entry")
    assert evidence_sha256((row.entry.position, row) for row in snippets) == question_set.evidence_sha256
    assert all(row.retrieved_at <= question_set.frozen_at for row in snippets)
    assert question_set.frozen_at >= MONDAY
    assert not QuestionBatch.objects.filter(arm__in=["priced", "blind"]).exclude(evidence_block="").exists()


def test_twelve_snippets_of_1500_characters_at_most(folder: Path) -> None:
    write(folder, [text(text=f"{number} " + "x" * 5000) for number in range(14)])
    ask()
    assert [len(row.text) for row in shown()] == [1500] * 12
    assert [row.position for row in shown()] == list(range(1, 13))
    assert QuestionSet.objects.get().evidence_dropped == {"over the limit": 2}


DROPPED = [
    ("excluded host", text(url="https://polymarket.com/event/rain", text="a")),
    ("excluded host", text(url="https://news.kalshi.com/rain", text="b")),
    ("excluded host", text(url="HTTPS://WWW.Metaculus.com./questions/1", text="c")),
    ("excluded host", text(url="https://web.archive.org/web/2026/https://manifold.markets/rain", text="d")),
    ("excluded host", text(url="", source="Polymarket", text="e")),
    ("excluded host", text(url="https://testserver.example/questions/1/", text="f")),
    ("excluded host", text(url="https://api.testserver.example:8443/questions/1/", text="g")),
    ("states a market's price", text(text="Polymarket gives rain a 62% chance.")),
    ("states a market's price", text(text="Bookmakers\nhave the rain at 5/2.")),
    ("states a market's price", text(text="YES shares trade at 62 cents.")),
    ("states a market's price", text(text="See title.", title="Rain at 40¢ on Ｋalshi")),
    ("states a market's price", text(text="A predic\u200btion market says 0.4 for rain.")),
    ("duplicate", text(url="https://www.news.example/first?ref=1", text="Other words.")),
    ("duplicate", text(text=PLAIN.upper().replace(",", " ;"))),
    ("answers a sibling", text(text="On Wednesday the Fed cut rates by a quarter point.")),
    ("answers a sibling", text(text="The Lakers won.")),
    ("answers a sibling", text(text=f"{FED} Answer: no.")),
    ("too late", text(retrieved_at=AFTER, text="h")),
    ("too late", text(published_at=AFTER, text="i")),
    ("unreadable", text(text="")),
    ("unreadable", text(text=None)),
    ("unreadable", text(query=None)),
    ("unreadable", b'{"query": "*", "text": '),
    ("unreadable", b"[" * 100_000),
    ("unreadable", b'"a text"'),
]
SHOWN = [
    "Inflation rose by 3% in May.",
    "The Fed is expected to cut rates in June.",
    "In 2019 the Fed cut rates.",
    "A poll has 62% of farmers asking for rain.",
]


def test_what_must_not_be_shown_is_dropped_and_counted(folder: Path, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["testserver.example"]
    first = text(url="https://news.example/first")
    write(folder, [first, *(row for _, row in DROPPED), *(text(text=words) for words in SHOWN)])
    assert ask().code == 0
    assert [row.text for row in shown()] == [PLAIN, *SHOWN]
    assert QuestionSet.objects.get().evidence_dropped == Counter(reason for reason, _ in DROPPED)


# text from outside is data


def test_hostile_snippets_change_neither_headings_nor_rows(folder: Path, opened: Venue) -> None:
    hostile = [{"title": words, "source": words, "url": words} for words in HOSTILE.values()]
    rows = [text(text=f"{number} {fields['title']}", **fields) for number, fields in enumerate(hostile)]
    write(folder, rows)
    assert ask().code == 0
    assert len(shown()) == len(HOSTILE)
    prompt = prompts(opened)[0]
    headings = [line for line in prompt.user.splitlines() if line in ("QUESTIONS", "EVIDENCE", "MARKETS", "NOTE")]
    assert headings == ["QUESTIONS", "EVIDENCE"]
    assert {len(row) for row in prompt.block("EVIDENCE")} == {6}
    assert len(prompt.block("EVIDENCE")) == 1 + len(HOSTILE)
    rows_and_frame = [line for line in prompt.user.splitlines() if line and not line.startswith("[")]
    rules = Methodology.objects.get(version="v3").forecast_rules
    assert rules is not None
    frame = rules.user_prompt.format(
        date="2026-03-09", questions="", evidence=rules.evidence_prompt.format(evidence=""), search=""
    )
    assert rows_and_frame == [line for line in frame.splitlines() if line]


def test_file_of_5_mb_rows_and_bytes_that_are_not_utf_8_costs_nobody_a_thing(folder: Path) -> None:
    large = json.dumps(text(text="Rain clouds. " * 400_000)).encode()
    latin = json.dumps(text(text="Caf# weather")).encode().replace(b"#", b"\xe9")
    unknown = json.dumps(text(text="\ud83d\x00 half a pair", title=["no", "title"], url=7)).encode()
    write(folder, [large, latin, unknown, b"\xff\xfe\x00" * 1000, text(text="The last row.")])
    assert ask().code == 0
    texts = [row.text for row in shown()]
    assert [len(texts[0]), *texts[1:]] == [1499, "Caf\ufffd weather", "\ufffd half a pair", "The last row."]
    assert QuestionSet.objects.get().evidence_dropped == {"unreadable": 1}


# bad days


def test_source_that_gives_nothing_leaves_its_conditions_out_and_marks_the_day(folder: Path) -> None:
    reasons = left_out(ask())
    assert "gave nothing to show" in reasons["evidence"]
    assert Forecast.objects.count() == 6


def test_next_day_with_evidence_resolves_the_alert_of_a_day_without(folder: Path) -> None:
    left_out(ask())
    again = ask(MONDAY + timedelta(hours=10))
    assert (again.code, again["left_out"], Alert.objects.open().count()) == (0, 2, 1)
    write(folder, [text("*")])
    ran = ask(MONDAY + timedelta(days=1))
    assert (ran.code, ran["left_out"], Alert.objects.open().count()) == (0, 0, 0)


def overtaken_by(other: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> CommandOutput:
    """A run during which another one works, between its reading of prices and its freeze."""
    with monkeypatch.context() as patch:

        def overtake(*_: int) -> None:
            patch.undo()
            other()

        patch.setattr(failpoints, "_NAME", "questions.priced")
        patch.setattr(failpoints, "_countdown", 1)
        patch.setattr(failpoints.os, "kill", overtake)
        return ask()


def test_two_workers_at_once_freeze_one_set_of_evidence(
    folder: Path, opened: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, [text("*")])

    def ask_and_rewrite() -> None:
        assert ask().code == 0
        write(folder, [text("*", text="Of a later reading.")])

    assert overtaken_by(ask_and_rewrite, monkeypatch).code == 0
    snippets = EvidenceSnippet.objects.order_by("entry__position", "position").select_related("entry")
    rows = [(row.entry.position, row) for row in snippets]
    assert [row.text for row in snippets] == [PLAIN] * 3
    assert QuestionSet.objects.get().evidence_sha256 == evidence_sha256(rows)
    assert len(opened.asked) == 4


def test_folder_that_has_gone_leaves_its_conditions_out(folder: Path) -> None:
    folder.rmdir()
    assert "is down" in left_out(ask())["full"]


def test_condition_that_is_switched_on_at_noon_begins_next_day(folder: Path, opened: Venue, settings: Any) -> None:
    write(folder, [text()])
    source, settings.ARENA_EVIDENCE = settings.ARENA_EVIDENCE, ""
    assert ask()["asked"] == 2
    settings.ARENA_EVIDENCE = source
    ran = ask(MONDAY + timedelta(hours=10))
    assert (ran.code, ran["asked"]) == (0, 0)
    assert asked_conditions() == {"priced", "blind"}
    assert QuestionSet.objects.get().left_out == {}
    assert ask(MONDAY + timedelta(days=1))["asked"] == 4
    assert asked_conditions() == {"priced", "blind", "evidence", "full"}


DATED = {"retrieved_at": AFTER, "published_at": "2026-03-01"}
PAST = [
    ("", text(retrieved_at=BEFORE, text="The vote is on 3 November 2026.")),
    ("", text(**DATED, text="An old text.")),
    ("", text(retrieved_at=None, published_at="2026-03-01", text="As of March 2026.")),
    ("too late", text(retrieved_at=AFTER, text="a")),
    ("too late", text(retrieved_at=None, text="b")),
    ("too late", text(retrieved_at=AFTER, published_at=AFTER, text="c")),
    ("holds a later date", text(**DATED, text="Updated 2026-03-15.")),
    ("holds a later date", text(**DATED, text="Rain on April 2nd.")),
    ("holds a later date", text(**DATED, text="Since the 12th of March, 2026")),
    ("holds a later date", text(**DATED, text="d", url="https://n.example/2026/03/19/x")),
    ("holds a later date", text(**DATED, text="x " * 3000 + "In May 2026")),
    ("holds a later date", text(**DATED, text="Rain until 2027.")),
]


def test_replay_shows_what_was_stored_before_or_is_dated_before_throughout(folder: Path) -> None:
    run("sync_markets", MONDAY + timedelta(days=9))
    write(folder, [row for _, row in PAST])
    assert ask().code == 0
    assert [row.text for row in shown()] == [row["text"] for reason, row in PAST if not reason]
    question_set = QuestionSet.objects.get()
    assert question_set.evidence_dropped == Counter(reason for reason, _ in PAST if reason)
    assert question_set.frozen_at == MONDAY
    assert all(row.retrieved_at <= MONDAY for row in shown())


# services

RESULTS = {
    "exa": ("POST", "/search", {"results": [{"title": "T", "url": "https://n.example/1", "id": "1", "score": 0.3,
            "publishedDate": "2026-03-07T00:00:00.000Z", "author": None, "text": PLAIN}]}),
    "tavily": ("POST", "/search", {"query": RAIN, "results": [{"title": "T", "url": "https://n.example/1",
               "content": PLAIN, "score": 0.9, "published_date": "Sat, 07 Mar 2026 00:00:00 GMT"}]}),
}  # fmt: skip
KEY = "evidence-key-0123456789"


@pytest.fixture
def service(opened: Venue, httpserver: HTTPServer, settings: Any) -> HTTPServer:
    """A server for Exa, with no answer yet."""
    settings.ARENA_EVIDENCE, settings.ARENA_EVIDENCE_KEY = "exa", KEY
    settings.ARENA_EVIDENCE_BASE_URL = httpserver.url_for("/")
    settings.ARENA_VENUE_TIMEOUT_S = 5
    return httpserver


@pytest.mark.parametrize("name", RESULTS)
def test_each_service_is_asked_once_for_a_question(service: HTTPServer, settings: Any, name: str) -> None:
    method, path, answer = RESULTS[name]
    settings.ARENA_EVIDENCE = name
    service.expect_request(path, method=method).respond_with_json(answer)
    assert ask().code == 0
    (row,) = shown()
    assert (row.title, row.url, row.source, row.text.split()) == (
        "T",
        "https://n.example/1",
        "n.example",
        PLAIN.split(),
    )
    assert row.published_at == datetime.fromisoformat("2026-03-07T00:00:00Z")
    assert MONDAY < row.retrieved_at <= QuestionSet.objects.get().frozen_at < MONDAY + timedelta(minutes=1)
    requests = [request for request, _ in service.log]
    queries = [
        request.args.get("q") or request.args.get("query") or request.get_json()["query"] for request in requests
    ]
    assert sorted(queries) == sorted([RAIN, CUP, FED])
    assert all(KEY in " ".join(request.headers.values()) for request in requests)


def test_run_that_was_overtaken_pays_no_query(service: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    service.expect_request("/search").respond_with_json(RESULTS["exa"][2])
    assert overtaken_by(ask, monkeypatch).code == 0
    assert len(service.log) == 3
    assert QuestionSet.objects.count() == 1


def slow_bytes(request: Request) -> Response:
    """A body that comes byte by byte and does not end."""

    def body() -> Iterator[bytes]:
        for _ in range(600):
            time.sleep(0.05)
            yield b" "

    return Response(body(), content_type="application/json")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda request: Response("<html>down</html>", 503), "exa: POST /search answered 503"),
        (lambda request: Response('{"error": "no credits"}', 402), "exa: POST /search answered 402"),
        (lambda request: Response("[1, 2]", content_type="application/json"), "no list of results"),
        (lambda request: Response('{"results": {"a": 1}}', content_type="application/json"), "no list of results"),
        (lambda request: Response('{"results": [', content_type="application/json"), "broken or truncated JSON"),
        (lambda request: Response(b" " * (17 * 2**20)), "more than 16777216 bytes"),
        (lambda request: Response('{"results": []}', content_type="application/json"), "gave nothing to show"),
        (lambda request: Response('{"error": "bad query"}', 422), "dropped: {'unreadable': 3}"),
        (slow_bytes, "did not finish within the 1 s for all requests"),
    ],
    ids=["down", "unpaid", "list", "object", "cut", "17 MB", "empty", "refused", "endless"],
)
def test_service_that_fails_leaves_its_conditions_out_and_the_others_go_on(
    service: HTTPServer, retries_without_waits: None, monkeypatch: pytest.MonkeyPatch, answer: Any, reason: str
) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE_S", 1 if answer is slow_bytes else 60)
    service.expect_request("/search").respond_with_handler(answer)
    started_at = time.monotonic()
    reasons = left_out(ask())
    assert reason in reasons["evidence"]
    assert KEY not in str(reasons)
    assert time.monotonic() - started_at < 15


@pytest.mark.parametrize("stray", ['"all is well"', '{"results": null}', "[]"])
def test_one_stray_answer_among_a_days_queries_leaves_no_condition_out(
    service: HTTPServer, retries_without_waits: None, stray: str
) -> None:
    service.expect_oneshot_request("/search").respond_with_data(stray, content_type="application/json")
    row = {"title": "Weather", "url": "https://n.example/a", "text": PLAIN}
    service.expect_request("/search").respond_with_json({"results": [row]})
    ran = ask()
    assert (ran.code, ran["left_out"]) == (0, 0)
    assert asked_conditions() == {"priced", "blind", "evidence", "full"}


def test_secrets_in_texts_and_in_errors_are_redacted(service: HTTPServer) -> None:
    leaked = "sk-or-v1-0123456789abcdef"
    service.expect_request("/search").respond_with_json({"error": f"bad keys {KEY} and {leaked}"}, status=401)
    assert "bad keys [redacted] and [redacted]" in left_out(ask())["evidence"]
    service.clear()
    row = {"title": leaked, "url": f"https://n.example/{leaked.replace('-', '%2D')}", "text": f"Use {leaked} now."}
    service.expect_request("/search").respond_with_json({"results": [row]})
    assert ask(MONDAY + timedelta(days=1)).code == 0
    (snippet,) = shown()
    assert (snippet.title, snippet.url) == ("[redacted]", "https://n.example/[redacted]")
    assert snippet.text == "Use [redacted] now."


def test_hostile_results_cost_themselves_alone(service: HTTPServer) -> None:
    rows = [
        None,
        7,
        "text",
        {},
        {"text": ["no", "text"]},
        {"text": PLAIN, "title": 1, "url": [], "publishedDate": 5e99},
    ]
    service.expect_request("/search").respond_with_json({"results": rows})
    assert ask().code == 0
    assert [(row.title, row.url, row.published_at) for row in shown()] == [("", "", None)]
    assert QuestionSet.objects.get().evidence_dropped == {"unreadable": 15}


def test_replay_asks_no_service(service: HTTPServer) -> None:
    run("sync_markets", MONDAY + timedelta(days=9))
    assert "a replay asks no service" in left_out(ask())["evidence"]
    assert not service.log


# what it costs


def test_estimate_knows_the_price_of_each_query(service: HTTPServer, settings: Any) -> None:
    settings.ARENA_EVIDENCE_QUERY_USD = Decimal(0)
    free = run("run_forecasts", MONDAY, "--family", "gpt-5.1", "--dry-run")
    settings.ARENA_EVIDENCE_QUERY_USD = None
    ran = run("run_forecasts", MONDAY, "--family", "gpt-5.1", "--dry-run")
    assert (ran["questions"], ran["evidence_usd"], free["evidence_usd"]) == (3, "0.051000", "0.000000")
    assert Decimal(ran["cost_usd"]) - Decimal(free["cost_usd"]) == Decimal("0.051")
    assert Decimal(ran["week_usd"]) - Decimal(free["week_usd"]) == pytest.approx(Decimal("0.36"), abs=Decimal("0.01"))
    for name in ("evidence", "full"):
        set_condition_paused(name, paused=True)
    assert run("run_forecasts", MONDAY, "--family", "gpt-5.1", "--dry-run")["evidence_usd"] == "0.000000"


def test_queries_count_against_the_cap_and_are_not_sent_beyond_it(service: HTTPServer, settings: Any) -> None:
    service.expect_request("/search").respond_with_json(RESULTS["exa"][2])
    settings.ARENA_EVIDENCE_QUERY_USD = Decimal("0.5")
    settings.ARENA_SPEND_LIMIT_USD = Decimal("2.6")
    assert ask().code == 0
    of_calls = ModelCall.objects.aggregate(total=Sum("cost_usd"))["total"]
    assert week_spending("forecast", SUNDAY).spent - of_calls == Decimal("1.5")
    ask(MONDAY + timedelta(days=1))
    assert len(service.log) == 3
    reasons = QuestionSet.objects.latest("day").left_out
    assert reasons["evidence"].startswith("3 queries at $0.5 each do not fit into the week's spend limit")


# what readers see


def test_question_sets_and_their_snippets_over_rest(folder: Path, client: Client) -> None:
    write(
        folder,
        [text(title="A", published_at="2026-03-07"), text(FED, text="Of the Fed."), text(url="https://kalshi.com")],
    )
    ask()
    (row,) = client.get("/api/v1/question-sets/").json()["results"]
    stored = QuestionSet.objects.get()
    assert row["evidence"] == {"sha256": stored.evidence_sha256, "shown": 2, "dropped": {"excluded host": 1}}
    assert row["left_out"] == {}
    one = client.get(f"/api/v1/question-sets/{row['id']}/").json()
    assert one["evidence"] == row["evidence"]
    first, second = one["snippets"]
    assert first | {"question": 0, "url": "", "sha256": ""} == {
        "question": 0, "position": 1, "title": "A", "source": "news.example", "url": "", "text": PLAIN, "sha256": "",
        "published_at": "2026-03-07T00:00:00Z", "retrieved_at": BEFORE, "states_outcome": None,
    }  # fmt: skip
    assert second["text"] == "Of the Fed."
    question = client.get(f"/api/v1/questions/{first['question']}/").json()
    assert (question["question"], question["days_asked"][0]["question_set"]) == (RAIN, row["id"])


def test_day_without_evidence_is_marked_over_rest(folder: Path, client: Client) -> None:
    ask()
    (row,) = client.get("/api/v1/question-sets/").json()["results"]
    assert row["evidence"] == {"sha256": None, "shown": 0, "dropped": {}}
    assert sorted(row["left_out"]) == ["evidence", "full"]


def test_audit_after_the_resolution_marks_what_states_the_outcome(folder: Path, opened: Venue, client: Client) -> None:
    rows = [text(text="It rained all day."), text(text="It did not rain."), text(text="In 2019 it rained.")]
    write(folder, [*rows, text(text="Rain is expected."), text(CUP, text="The Lakers signed a guard.")])
    ask()
    ask_later = MONDAY + timedelta(days=1)
    assert run("check_resolutions", ask_later, "--skip-leaderboards").code == 0
    assert not EvidenceSnippet.objects.exclude(audited_at=None).exists()
    opened.resolve(RAIN, "Yes")
    assert run("check_resolutions", ask_later + timedelta(hours=1), "--skip-leaderboards").code == 0
    assert [row.states_outcome for row in shown()] == [True, False, False, False]
    assert {row.audited_at for row in shown()} == {ask_later + timedelta(hours=1)}
    assert [row.states_outcome for row in shown(CUP)] == [None]
    counted_forecasts = Forecast.objects.counted().filter(question__text=RAIN)
    assert set(counted_forecasts.values_list("arm", flat=True)) == {"priced", "blind"}
    assert Forecast.objects.filter(question__text=RAIN).count() == 4
    listed = client.get(f"/api/v1/question-sets/{QuestionSet.objects.get().pk}/").json()["snippets"]
    assert [row["states_outcome"] for row in listed] == [True, False, False, False, None]
    data, window = folder.parent / "data", ("--from=2026-03-09", "--to=2026-03-10")
    assert run("build_dataset", ask_later + timedelta(hours=1), *window, out=data).code == 0
    tasks = [json.loads(line) for line in (data / "tasks.jsonl").read_text().splitlines()]
    scored = {json.loads(line)["task"] for line in (data / "outcomes.jsonl").read_text().splitlines()}
    assert {task["arm"] for task in tasks} == {"priced", "blind", "evidence", "full"}
    assert {task["arm"] for task in tasks if "EVIDENCE" in task["blocks"]} == {"evidence", "full"}
    assert {task["arm"] for task in tasks if task["task"] in scored} == {"priced", "blind"}
    assert {task["arm"] for task in tasks if "It rained all day." in task["user_prompt"]} == {"evidence", "full"}


def test_question_page_lists_the_snippets_as_text(folder: Path, opened: Venue, client: Client) -> None:
    script = text(title="<script>alert(1)</script>", url="javascript:alert(1)", text="It <b>rained</b>.")
    write(folder, [script, text(url="https://news.example/a", title="Linked", text="Dry.", published_at="2026-03-07")])
    ask()
    path = f"/questions/{shown()[0].entry.question_id}/"
    page = client.get(path).content.decode()
    section = page[page.index('id="evidence"') : page.index("</section>", page.index('id="evidence"'))]
    assert "<script>alert" not in section
    assert "javascript:" not in section
    assert "It &lt;b&gt;rained&lt;/b&gt;." in section
    assert '<a href="https://news.example/a"' in section
    assert "7 Mar 2026" in section
    assert "no date" in section
    assert "states the outcome" not in section
    opened.resolve(RAIN, "Yes")
    run("check_resolutions", MONDAY + timedelta(days=1), "--skip-leaderboards")
    assert client.get(path).content.decode().count("states the outcome") == 1


def test_operator_sees_the_snippets_and_what_was_sent(folder: Path, admin_client: Client) -> None:
    write(folder, [text(text="Of the day.")])
    ask()
    (snippet,) = shown()
    assert (
        "Of the day." in admin_client.get(f"/admin/markets/questionentry/{snippet.entry_id}/change/").content.decode()
    )
    batch = QuestionBatch.objects.get(arm="full")
    assert "Of the day." in admin_client.get(f"/admin/markets/questionbatch/{batch.pk}/change/").content.decode()
    day = admin_client.get(f"/admin/markets/questionset/{batch.question_set_id}/change/").content.decode()
    assert QuestionSet.objects.get().evidence_sha256 in day


def test_sandbox_serves_a_source_in_its_own_format(opened: Venue, settings: Any) -> None:
    settings.ARENA_EVIDENCE, settings.ARENA_EVIDENCE_KEY = "exa", KEY
    with running(seed=3) as addresses:
        settings.ARENA_EVIDENCE_BASE_URL = addresses.exa
        httpx.post(addresses.clock, json={"now": MONDAY.isoformat()})
        assert ask().code == 0
        assert httpx.post(f"{addresses.exa}/search", json={"query": RAIN}).status_code == 401
        assert httpx.post(f"{addresses.exa}/search", headers={"x-api-key": "k"}, content="[").status_code == 400
    for query in (RAIN, CUP, FED):
        assert 8 <= len(shown(query)) <= 12
    assert not [row.url for row in shown() if "polymarket" in row.url]
    assert all(row.published_at is None or row.published_at < MONDAY for row in shown())


# what others can prove


def play_two_days(venue: Venue) -> Path:
    """A whole archive with evidence of two days."""
    Methodology.objects.filter(version="v3").update(published_at=SUNDAY)
    folder = Path(tempfile.mkdtemp(prefix="arena-evidence-"))
    rows = [text(title="A", published_at="2026-03-07"), text(FED, text="'Of the Fed\nalone.", source="=Wire")]
    with override_settings(ARENA_EVIDENCE=f"file:{folder}"):
        write(folder, rows)
        ask()
        write(folder, [text("*", text="Of all of them.", retrieved_at="2026-03-09T01:02:03.456789Z")])
        ask(MONDAY + timedelta(days=1))
    venue.resolve(RAIN, "Yes")
    run("check_resolutions", MONDAY + timedelta(days=2), "--skip-leaderboards")
    assert run("export_dataset", None, "--out", folder / "whole", "--format", "csv").code == 0
    return folder / "whole"


two_days = shared_rows_at_venue(play_two_days, after=season, name="season")


@pytest.fixture
def archive(two_days: tuple[Venue, Path], db: None, tmp_path: Path) -> Path:
    """A copy of the archive, beside the rows that it is of."""
    return Path(shutil.copytree(two_days[1], tmp_path / "whole"))


def violations(archive: Path) -> list[str]:
    """What the verifier says of prompts and evidence."""
    by_check, _, _ = verify(archive)
    return [*by_check["evidence"], *by_check["prompts"]]


def test_archive_holds_the_evidence_and_proves_it(archive: Path) -> None:
    assert violations(archive) == []
    rows = read_cells(archive, "evidence")
    assert [row["text"] for row in rows] == [PLAIN, "''Of the Fed\nalone.", *["Of all of them."] * 3]
    assert {row["states_outcome"] for row in rows} == {"", "false"}
    assert Counter(row["kind"] for row in read_cells(archive, "blocks")) == {"questions": 8, "evidence": 4}


FORGERIES: list[tuple[str, dict[str, str]]] = [
    ("evidence", {"text": "Forged."}),
    ("evidence", {"text": "Forged.", "sha256": hashlib.sha256(b"Forged.").hexdigest()}),
    ("evidence", {"title": "Forged"}),
    ("evidence", {"source": "Forged"}),
    ("evidence", {"url": "https://forged.example"}),
    ("evidence", {"position": "2"}),
    ("evidence", {"published_at": "2026-03-01T00:00:00.000000Z"}),
    ("evidence", {"retrieved_at": "2026-03-01T00:00:00.000000Z"}),
    ("evidence", {"entry": "999"}),
    ("question_sets", {"evidence_sha256": ""}),
]


def test_changed_evidence_is_found(archive: Path, tmp_path: Path) -> None:
    for number, (table, changed) in enumerate(FORGERIES):
        forged = shutil.copytree(archive, tmp_path / f"forged {number}")
        rewrite(forged, table, lambda cells, changed=changed: cells[0].update(changed))
        assert violations(forged), changed
    rewrite(archive, "evidence", lambda cells: cells.pop())
    assert violations(archive)


def test_ledger_recomputes_the_evidence(archive: Path) -> None:
    assert not [line for line in violations_about("forecasts") if "evidence" in line.lower()]
    remove_guards(EvidenceSnippet)
    EvidenceSnippet.objects.filter(pk=shown()[0].pk).update(text="Forged.")
    assert [line for line in violations_about("forecasts") if line.startswith("evidence: text 1 of entry")]
