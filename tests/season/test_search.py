"""The search tool of a condition, through the commands: what is sent, what is read of an answer, and what it costs."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.models import Elicitation, Forecast, ModelCall, Release
from agents.services.registrations import register_external_agent
from agents.services.run_settings import set_condition_paused
from cohorts.models import Methodology
from markets.models import QuestionBatch
from scoring.exports.verification.verifier import verify_archive
from tests.answers import GPT, forecast
from tests.arena_site.dashboard.accounts import sign_in
from tests.captured import CAPTURED
from tests.commands import SUNDAY, CommandOutput, run
from tests.guards import guards_removed
from tests.markup import get_page
from tests.sandbox import Venue
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgery import read_cells, rewrite, standalone_violations
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.http_messages import Reply
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Failure, ModelAnswer

RAIN = "Will it rain?"
ASKED_AT = SUNDAY + timedelta(days=1, hours=2)
NAMES = ("searches", "search_cost_usd", "excluded")


def open_season(venue: Venue) -> None:
    """Only the condition with search is asked, about one question."""
    Methodology.objects.filter(version="v3").update(published_at=SUNDAY)
    for name in ("priced", "blind"):
        set_condition_paused(name, paused=True)
    venue.market(RAIN)
    run("sync_markets", SUNDAY)


season = shared_rows_at_venue(open_season)


@pytest.fixture(autouse=True)
def searching(season: tuple[Venue, None], venue: Venue, settings: Any) -> None:
    venue.as_left(season[0])
    settings.ARENA_SEARCH = True
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", ".arena.example.org", "*"]
    settings.ARENA_SITE_URL = "https://forecasts.example.net:8443"
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1


def ask(at: Any = ASKED_AT, **options: Any) -> CommandOutput:
    return run("run_forecasts", at, family="gpt-5.1", **options)


def cited(url: Any, title: Any = "A page", content: Any = "Clouds.") -> dict[str, Any]:
    citation = {"url": url, "title": title, "start_index": 0, "end_index": 0, "content": content}
    return {"type": "url_citation", "url_citation": citation}


def found(
    *annotations: Any, usage: Any = None, finish_reason: str = "stop", **message: Any
) -> Callable[[ModelRequest], Any]:
    """An answer with forecasts, these annotations and this usage."""

    def answer(prompt: ModelRequest) -> ModelAnswer:
        content = message.get("content", json.dumps(forecast()(prompt)))
        return ModelAnswer(content, usage=usage, finish_reason=finish_reason, annotations=annotations)

    return answer


def searched(number: Any, **usage: Any) -> dict[str, Any]:
    usage_fields = {"server_tool_use_details": {"web_search_requests": number}}
    return {"prompt_tokens": 2000, "completion_tokens": 100, "cost": 0.009, **usage_fields, **usage}


# what is sent


def test_the_tool_is_sent_with_its_limits_and_every_excluded_host(venue: Venue) -> None:
    assert ask()["asked"] == 1
    (prompt,) = venue.asked
    (tool,) = prompt.body["tools"]
    assert tool["type"] == "openrouter:web_search"
    hosts = tool["parameters"].pop("excluded_domains")
    assert tool["parameters"] == {"engine": "exa", "max_results": 5, "max_uses": 3, "max_total_results": 15}
    assert prompt.body["max_tool_calls"] == 3
    assert {"polymarket.com", "kalshi.com", "arena.example.org", "forecasts.example.net"} <= set(hosts)
    assert not {"*", "localhost", "127.0.0.1", ""} & set(hosts)
    assert "search the web" in prompt.user
    assert ModelCall.objects.get().parameters["tools"][0]["parameters"]["excluded_domains"] == hosts


def test_a_condition_without_the_tool_is_sent_none_and_counts_none(venue: Venue) -> None:
    set_condition_paused("search", paused=True)
    set_condition_paused("blind", paused=False)
    venue.says(GPT, found(cited("https://polymarket.com/x"), usage=searched(2)))
    assert ask()["asked"] == 1
    assert not {"tools", "max_tool_calls"} & venue.asked[0].body.keys()
    call = ModelCall.objects.get()
    assert (call.searches, call.results, call.search_cost_usd, call.excluded) == (None, None, None, "")
    assert Forecast.objects.get().searches is None


@pytest.mark.parametrize("status", [400, 404, 422])
def test_schema_is_left_out_once_it_is_refused_beside_the_tool(venue: Venue, status: int) -> None:
    Release.objects.filter(model_id=GPT).update(supported_parameters=["structured_outputs"])
    venue.says(GPT, Failure(status))
    assert ask()["recorded"] == 1
    assert ["response_format" in prompt.body for prompt in venue.asked] == [True, False]
    assert all("tools" in prompt.body for prompt in venue.asked)


@pytest.mark.parametrize(("flag", "asks"), [(None, True), (True, True), (False, False)])
def test_schema_beside_the_tool_is_as_it_was_tested(venue: Venue, flag: Any, asks: bool) -> None:
    Release.objects.filter(model_id=GPT).update(supported_parameters=["structured_outputs"], schema_beside_search=flag)
    ask()
    assert ["response_format" in prompt.body for prompt in venue.asked] == [asks]


# what is read


def captured_answers(prompt: ModelRequest, *, streamed: bool) -> Reply:
    """A captured answer with the text of this prompt's forecasts."""
    lines = [json.loads(line) for line in (CAPTURED / "openrouter" / "web_search.jsonl").read_text().splitlines()]
    text = json.dumps(forecast()(prompt))
    if not streamed:
        body = lines[0]["body"] | {"model": GPT}
        body["choices"][0]["message"]["content"] = text
        return Reply(200, body)
    *head, end = lines[1]["body"].replace("deepseek/deepseek-chat", GPT).split("\n\n"), ""
    events = [event for event in head[0] if event]
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    text_events = [event for event in events if '"content":""' in event or "[DONE]" in event or "PROCESSING" in event]
    last_events = [event for event in events if '"finish_reason":"stop"' in event]
    at = text_events.index(last_events[0])
    events = [*text_events[:at], f"data: {json.dumps(chunk)}", *text_events[at:]]
    return Reply(200, ("\n\n".join(events) + "\n\n" + end).encode(), {"Content-Type": "text/event-stream"})


@pytest.mark.captured
@pytest.mark.parametrize(
    ("streamed", "searches", "cost", "search_cost"),
    [(False, 1, "0.007637029", "0.007"), (True, 1, "0.0077585", "0.007")],
)
def test_captured_answer_is_read(venue: Venue, streamed: bool, searches: int, cost: str, search_cost: str) -> None:
    venue.says(GPT, lambda prompt: captured_answers(prompt, streamed=streamed))
    assert ask()["recorded"] == 1
    call = ModelCall.objects.get()
    assert [row["url"] for row in call.results] == [
        "https://github.com/pydantic/pydantic-ai",
        "https://pydantic.dev/pydantic-ai",
        "https://github.com/pydantic/pydantic-ai/releases/tag/v2.0.0",
        "https://pydantic.dev/docs/ai/overview/",
        "https://github.com/pydantic/pydantic-ai/tree/refs/tags/v1.44.0",
    ]
    assert (call.results[1]["title"], call.results[2]["title"]) == ("", "v2.0.0 (2026-06-23)")
    assert call.results[4]["content"] == "GitHub - pydantic/pydantic-ai at refs/tags/v1.44.0 · GitHub"
    assert (call.searches, call.cost_usd, call.search_cost_usd) == (searches, Decimal(cost), Decimal(search_cost))
    assert Forecast.objects.get().searches == searches


PAGES = [cited(f"https://example.com/{number}") for number in range(6)]
COSTS = {"upstream_inference_prompt_cost": 0.0015, "upstream_inference_completions_cost": 0.0005}
OWN_COSTS = {"upstream_inference_prompt_cost": 0.0032696, "upstream_inference_completions_cost": 4.8e-05}
KEY = "sk-or-v1-0123456789abcdef"


def test_results_of_strangers_are_bounded_storable_and_without_secrets(venue: Venue) -> None:
    hostile = [
        *PAGES[:1], *PAGES[:1],
        cited("https://example.com/long", "t" * 9_000, "c" * 100_000),
        cited("https://example.com/\0", "half \ud800", f"the key {KEY} and \0"),
        cited(f"https://example.com/?key={KEY}", None, None),
        cited("javascript:alert(1)", "a script", 7), cited("http://[", "no host"), cited(7, [], {}),
        {"type": "file", "file": {}}, {"type": "url_citation"}, "url_citation", None,
    ]  # fmt: skip
    venue.says(GPT, found(*hostile, usage=searched(1)))
    assert ask()["recorded"] == 1
    results = ModelCall.objects.get().results
    assert [(row["url"], row["title"][:9]) for row in results] == [
        ("https://example.com/0", "A page"),
        ("https://example.com/long", "ttttttttt"),
        ("https://example.com/\ufffd", "half \ufffd"),
        ("https://example.com/?key=[redacted]", ""),
        ("", "a script"),
        ("", "no host"),
    ]
    assert [len(results[1][name]) for name in ("title", "content")] == [500, 10_000]
    assert KEY not in json.dumps(results)
    assert results[2]["content"] == "the key [redacted] and \ufffd"


def test_answer_that_was_shown_an_excluded_host_is_marked(venue: Venue) -> None:
    venue.says(GPT, found(*PAGES[:2], cited("http://www.arena.example.org/leaderboard/"), usage=searched(1)))
    assert ask()["recorded"] == 1
    reason = "a search showed a page of www.arena.example.org, which is excluded"
    assert (ModelCall.objects.get().excluded, Forecast.objects.get().excluded) == (reason, reason)
    assert not Forecast.objects.counted().exists()


def test_answer_whose_searches_showed_no_excluded_host_counts(venue: Venue) -> None:
    venue.says(GPT, found(*PAGES[:2], usage=searched(2, cost_details=COSTS)))
    assert ask()["recorded"] == 1
    call, row = ModelCall.objects.get(), Forecast.objects.counted().get()
    assert (call.searches, row.searches, call.search_cost_usd, row.excluded) == (2, 2, Decimal("0.007"), "")


@pytest.mark.parametrize("streamed", [False, True])
def test_searches_of_which_no_result_is_known_count_on_no_board(venue: Venue, streamed: bool) -> None:
    usage = searched(1, cost=0.0133176, cost_details=OWN_COSTS)

    def answer(prompt: ModelRequest) -> Reply:
        message = {"role": "assistant", "content": json.dumps(forecast()(prompt))}
        choice = {"index": 0, "finish_reason": "stop", "delta" if streamed else "message": message}
        text = json.dumps({"id": "gen-2", "model": GPT, "choices": [choice], "usage": usage})
        return Reply(200, (f"data: {text}\n\ndata: [DONE]\n\n" if streamed else text).encode())

    venue.says(GPT, answer)
    assert ask()["recorded"] == 1
    call, row = ModelCall.objects.get(), Forecast.objects.get()
    assert (call.searches, call.results, call.search_cost_usd) == (1, [], Decimal("0.01"))
    assert (call.excluded, row.excluded, row.searches) == (*["searched, results unknown"] * 2, 1)
    assert not Forecast.objects.counted().exists()
    assert "searched, results unknown" in Client().get(f"/forecasts/{row.pk}/").content.decode()


# how it ends


def test_readable_answer_counts_whatever_its_end(venue: Venue) -> None:
    venue.says(GPT, found(*PAGES, finish_reason="tool_calls", usage=searched(1)))
    assert ask()["recorded"] == 1
    assert ModelCall.objects.get().result == "answered"


@pytest.mark.parametrize("content", [None, "", "I look for more."])
def test_search_that_never_ends_is_tried_again_and_never_malformed(venue: Venue, content: Any) -> None:
    endless = found(*PAGES, finish_reason="tool_calls", usage=searched(3, cost=0.03), content=content)
    venue.says(GPT, endless)
    first = ask()
    assert (first["failed"], first["recorded"], first["declined"]) == (1, 0, 0)
    call = ModelCall.objects.get()
    assert (call.result, call.searches, call.cost_usd) == ("failed", 3, Decimal("0.03"))
    assert "went on searching" in call.error
    assert ask(ASKED_AT + timedelta(hours=1))["recorded"] == 1


def test_search_without_an_end_is_missed_at_last_and_its_cost_stays_booked(venue: Venue) -> None:
    """No bill comes: the worst case counts, and the cap holds."""
    for hours in range(3):
        venue.says(GPT, found(finish_reason="tool_calls", usage={}, content=None))
        assert ask(ASKED_AT + timedelta(hours=hours))["failed"] == 1
    assert set(ModelCall.objects.values_list("result", "cost_source")) == {("failed", "booked")}
    assert ask(ASKED_AT + timedelta(days=1, hours=1))["missed"] >= 1
    endless = Elicitation.objects.get(status="missed", release__model_id=GPT)
    assert (endless.calls.count(), endless.forecasts.count()) == (3, 0)


def test_worst_case_knows_every_search_and_the_results_of_each_round(venue: Venue) -> None:
    """Each of three searches asks the model anew: .015 dollars at most, five results of 4,000 characters."""
    venue.says(GPT, found(usage={}))
    ask()
    call = ModelCall.objects.get()
    characters = sum(len(message["content"]) for message in venue.asked[0].body["messages"])
    prompt, result_tokens = -(-characters * 10 // 26), 5 * -(-4000 * 10 // 26)
    tokens = 4 * prompt + (1 + 2 + 3) * result_tokens
    worst = tokens * Decimal("0.00000175") + 4 * 16_000 * Decimal("0.000014") + 3 * Decimal("0.015")
    assert (call.cost_usd, call.booked_usd, call.cost_source) == (worst, worst, "booked")


def test_searches_cost_where_the_gateway_names_no_cost(venue: Venue) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "server_tool_use": {"web_search_requests": 2}}
    venue.says(GPT, found(*PAGES, usage=usage))
    ask()
    call = ModelCall.objects.get()
    assert (call.cost_usd, call.cost_source) == (Decimal("0.00315") + 2 * Decimal("0.015"), "computed")
    assert call.search_cost_usd is None


def test_external_agent_is_offered_no_batch_of_a_tool_that_it_lacks(client: Client, settings: Any) -> None:
    token = register_external_agent(name="Visitor", protocol="forecast", at=SUNDAY).token
    set_condition_paused("blind", paused=False)
    ask()
    settings.ARENA_CLOCK = ASKED_AT + timedelta(minutes=5)
    headers = {"Authorization": f"Bearer {token}"}
    opened = client.get("/api/v1/submissions/open/", headers=headers).json()["forecast"]
    assert [task["arm"] for task in opened] == ["blind"]
    batch = QuestionBatch.objects.get(arm="search").pk
    refused = client.post(
        f"/api/v1/submissions/?batch={batch}", "{}", content_type="application/json",
        headers=headers | {"Idempotency-Key": "first"},
    )  # fmt: skip
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["batch"])
    run("run_forecasts", ASKED_AT + timedelta(days=1))
    missed = Elicitation.objects.filter(family__slug="visitor", status="missed")
    assert list(missed.values_list("batch__arm", flat=True)) == ["blind"]


# what it is expected to cost


def test_estimate_knows_searches_samples_and_paused_conditions(venue: Venue) -> None:
    with_search = ask(dry_run=True)
    assert (with_search["asked"], with_search["searches"]) == (1, 3)
    assert "at most 3 searches" in with_search.stderr
    week = Decimal(with_search["week_usd"])
    set_condition_paused("search", paused=True)
    set_condition_paused("blind", paused=False)
    without = ask(dry_run=True)
    assert (without["asked"], without["searches"]) == (1, 0)
    assert Decimal(with_search["cost_usd"]) - Decimal(without["cost_usd"]) > 3 * Decimal("0.007")
    assert Decimal(without["week_usd"]) < week
    rules = Methodology.objects.get(version="v3")
    rules.forecast["conditions"][1]["samples"] = 3
    Methodology.objects.filter(version="v3").update(forecast=rules.forecast)
    sampled = ask(dry_run=True)
    assert sampled["asked"] == 3
    assert float(sampled["cost_usd"]) == pytest.approx(3 * float(without["cost_usd"]), abs=3e-6)


def test_estimate_of_a_frozen_day_is_of_what_is_still_asked(venue: Venue) -> None:
    set_condition_paused("blind", paused=False)
    ask()
    again = ask(dry_run=True)
    assert (again["asked"], again["cost_usd"]) == (0, "0.000000")
    day_after = ask(ASKED_AT + timedelta(days=1), dry_run=True)
    assert (day_after["asked"], day_after["searches"]) == (2, 3)
    set_condition_paused("search", paused=True)
    assert ask(ASKED_AT + timedelta(days=1), dry_run=True)["asked"] == 1


def test_condition_that_is_switched_on_later_is_expected_like_the_others(venue: Venue, settings: Any) -> None:
    set_condition_paused("blind", paused=False)
    settings.ARENA_SEARCH = False
    ask()
    settings.ARENA_SEARCH = True
    assert ask(ASKED_AT + timedelta(days=1), dry_run=True)["asked"] == 2


# where it is shown


def say_what_was_found(venue: Venue) -> None:
    venue.says(GPT, found(cited("https://polymarket.com/<b>x"), *PAGES[:1], usage=searched(2, cost_details=COSTS)))


def asked_with_search(venue: Venue) -> Forecast:
    say_what_was_found(venue)
    assert ask()["recorded"] == 1
    return Forecast.objects.get()


def test_a_forecast_tells_its_searches_and_one_by_one_what_they_showed(venue: Venue) -> None:
    row = asked_with_search(venue)
    client = Client()
    (listed,) = client.get("/api/v1/forecasts/").json()["results"]
    details = {name: listed[name] for name in ("samples_asked", "samples_read", "spread", "searches", "excluded")}
    assert details == {
        "samples_asked": 1, "samples_read": 1, "spread": None, "searches": 2,
        "excluded": "a search showed a page of polymarket.com, which is excluded",
    }  # fmt: skip
    assert "results" not in listed
    detail = client.get(f"/api/v1/forecasts/{row.pk}/").json()
    assert [result["url"] for result in detail["results"]] == ["https://polymarket.com/<b>x", "https://example.com/0"]
    assert detail["results"][1] == {"url": "https://example.com/0", "title": "A page", "content": "Clouds."}
    assert (detail["samples"], detail["log_odds_mean"]) == (None, None)
    (call,) = detail["calls"]
    assert (call["searches"], call["search_cost_usd"], len(call["results"])) == (2, "0.007000", 2)


def test_a_forecasts_page_shows_the_results_as_text(venue: Venue) -> None:
    row = asked_with_search(venue)
    document = get_page(Client(), f"/forecasts/{row.pk}/")
    assert "What 2 searches showed" in [summary.text() for summary in document.css("summary")]
    page = Client().get(f"/forecasts/{row.pk}/").content.decode()
    assert "https://polymarket.com/&lt;b&gt;x" in page
    assert 'href="https://polymarket.com' not in page
    assert "Counts on no leaderboard" in page
    admin = sign_in("administrator")
    markup = admin.get(f"/admin/agents/modelcall/{row.call_id}/change/").content.decode()
    assert "https://example.com/0" in markup


def test_sealed_results_stay_sealed(venue: Venue, settings: Any) -> None:
    register_external_agent(name="Scout", protocol="forecast", track="open", at=SUNDAY - timedelta(weeks=1))
    say_what_was_found(venue)
    assert (ask()["completed"], Forecast.objects.count()) == (1, 0)
    settings.ARENA_CLOCK = ASKED_AT + timedelta(hours=1)
    client = Client()
    assert client.get("/api/v1/forecasts/").json()["results"] == []
    (elicitation,) = client.get("/api/v1/elicitations/").json()["results"]
    assert "example.com" not in client.get(f"/api/v1/elicitations/{elicitation['id']}/").content.decode()
    settings.ARENA_CLOCK = ASKED_AT + timedelta(hours=13)
    assert run("open_envelopes", settings.ARENA_CLOCK)["forecasts"] == 1
    assert "example.com" in client.get(f"/api/v1/forecasts/{Forecast.objects.get().pk}/").content.decode()


# in an archive


def violations(folder: Path) -> list[str]:
    return verify_archive(folder).violations


def archive(folder: Path) -> Path:
    assert run("export_dataset", ASKED_AT + timedelta(hours=1), out=folder).code == 0
    return folder


FORGERIES = [
    ("calls", "searches", "1", "states searches 1, computed is 2"),
    ("calls", "results", "[]", "states results"),
    ("calls", "search_cost_usd", "0.001", "states search_cost_usd"),
    ("calls", "excluded", "", "states excluded"),
    ("forecasts", "searches", "", "states searches"),
    ("forecasts", "excluded", "", "states excluded"),
    ("forecasts", "rationale", "Another.", "states rationale"),
]


def test_archive_proves_searches_results_and_exclusions(venue: Venue, tmp_path: Path) -> None:
    asked_with_search(venue)
    folder = archive(tmp_path / "archive")
    assert violations(folder) == []
    (call,) = table_rows(folder, "calls")
    assert (call["searches"], call["search_cost_usd"], len(call["results"])) == (2, Decimal("0.007"), 2)
    for table, column, value, message in FORGERIES:
        sound = [row[column] for row in read_cells(folder, table)]
        rewrite(folder, table, lambda rows, column=column, value=value: rows[0].update({column: value}))
        assert any(message in line for line in violations(folder)), (table, column)
        assert any(message in line for line in standalone_violations(folder)), (table, column)
        rewrite(folder, table, lambda rows, column=column, sound=sound: rows[0].update({column: sound[0]}))


def test_archive_proves_the_searches_of_several_samples(venue: Venue, tmp_path: Path) -> None:
    rules = Methodology.objects.get(version="v3")
    rules.forecast["conditions"][4]["samples"] = 3
    Methodology.objects.filter(version="v3").update(forecast=rules.forecast)
    for lean in (0.1, 0.2):
        venue.says(GPT, lambda prompt, lean=lean: forecast(lean=lean)(prompt))
    venue.says(GPT, "no answer", "no answer", "no answer")
    assert ask()["recorded"] == 1
    row = Forecast.objects.get()
    assert (row.samples_asked, row.samples_read, row.searches) == (3, 2, 0)
    folder = archive(tmp_path / "archive")
    assert violations(folder) == []
    detail = Client().get(f"/api/v1/forecasts/{row.pk}/").json()
    assert (sorted(detail["samples"]), detail["results"]) == (["1", "2"], [])
    rewrite(folder, "forecasts", lambda rows: rows[0].update(searches="3"))
    assert any("states searches 3, computed is 0" in line for line in violations(folder))
    assert any("states searches 3, computed is 0" in line for line in standalone_violations(folder))


@pytest.mark.forged_record
def test_ledger_names_searches_that_were_rewritten(venue: Venue) -> None:
    row = asked_with_search(venue)
    with guards_removed(ModelCall, Forecast):
        ModelCall.objects.update(searches=1, results=[], excluded="")
    output = run("verify_ledger", ASKED_AT + timedelta(hours=1))
    assert output.code == 1
    for column in ("searches", "results", "excluded"):
        assert f"(elicitation {row.elicitation_id}): call {row.call_id} has {column} " in output.stdout
    assert f"forecast {row.pk} is excluded for another reason than its call" in output.stdout
