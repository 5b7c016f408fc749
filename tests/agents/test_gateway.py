"""The gateway client: answers, failures, and which failures are retried."""

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from time import time
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from agents.gateway.client import Gateway
from agents.gateway.completions import Completion, FailureScope, GatewayFailure
from agents.model_ids import same_model
from arena_verifier.answer_texts import content_of
from tests.captured import CAPTURED
from tests.faults.upstream import Act, misbehaving, reset, silent

KEY = "sk-or-v1-0123456789abcdef"


@cache
def captured(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CAPTURED / "openrouter" / name).read_text().splitlines()]


@pytest.fixture
def gateway(httpserver: HTTPServer) -> Iterator[Gateway]:
    with Gateway(httpserver.url_for("/api/v1"), KEY, timeout_s=5) as gateway:
        yield gateway


def ask(gateway: Gateway, **changes: Any) -> Completion:
    question: dict[str, Any] = {
        "model": "openai/gpt-5.2",
        "system": "You trade.",
        "user": "MARKETS",
        "parameters": {"temperature": 0, "max_tokens": 1000, "provider": {"allow_fallbacks": False}},
        "idempotency_key": "decision-7-try-1",
    }
    return gateway.complete(**(question | changes))


def failure(gateway: Gateway) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as caught:
        ask(gateway)
    return caught.value


def answer(httpserver: HTTPServer, body: Any, status: int = 200, **headers: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    httpserver.expect_request("/api/v1/chat/completions", method="POST").respond_with_data(
        text,
        status=status,
        content_type="application/json",
        headers={key.replace("_", "-"): value for key, value in headers.items()},
    )


def completed(**changes: Any) -> dict[str, Any]:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "HOLD", "refusal": None}}
    body = {
        "id": "gen-1",
        "model": "openai/gpt-5.2-2025-12-11",
        "provider": "OpenAI",
        "choices": [choice],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 3},
            "cost": 0.00019325,
        },
    }
    return body | changes


def message(**changes: Any) -> dict[str, Any]:
    return completed(choices=[{"finish_reason": "stop", "message": {"content": "HOLD"} | changes}])


# ── the question ──────────────────────────────────────────────────────────────────────────────────


def test_request_is_one_post_with_the_settings_of_the_methodology(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, completed())
    ask(gateway)
    ((request, _),) = httpserver.log
    assert request.json == {
        "model": "openai/gpt-5.2",
        "messages": [{"role": "system", "content": "You trade."}, {"role": "user", "content": "MARKETS"}],
        "temperature": 0,
        "max_tokens": 1000,
        "stream": True,
        "usage": {"include": True},
        "provider": {"allow_fallbacks": False},
    }
    assert request.headers["Idempotency-Key"] == "decision-7-try-1"
    assert request.headers["Authorization"] == f"Bearer {KEY}"


def test_missing_key_is_not_sent(httpserver: HTTPServer) -> None:
    answer(httpserver, completed())
    with Gateway(httpserver.url_for("/api/v1"), None) as gateway:
        ask(gateway)
    ((request, _),) = httpserver.log
    assert "Authorization" not in request.headers


def test_key_invalid_in_a_header_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match=r"^gateway: api_key holds characters") as caught:
        Gateway("https://gateway.example", "sk-\u2713-secret")
    assert "secret" not in str(caught.value)


# ── the answer ────────────────────────────────────────────────────────────────────────────────────


def test_completion_has_content_tokens_and_cost(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, completed())
    reply = ask(gateway)
    assert (reply.content, reply.refusal, reply.finish_reason, reply.status) == ("HOLD", None, "stop", 200)
    assert (reply.returned_model, reply.provider, reply.generation_id) == (
        "openai/gpt-5.2-2025-12-11",
        "OpenAI",
        "gen-1",
    )
    assert (reply.tokens_input, reply.tokens_output, reply.tokens_reasoning) == (10, 5, 3)
    assert str(reply.cost_usd) == "0.00019325"
    assert json.loads(reply.raw) == completed()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": '{"action": '}, {"type": "text", "text": '"HOLD"}'}], '{"action": "HOLD"}'),
        ([{"type": "image"}, {"type": "text", "text": "HOLD"}], "HOLD"),
        ("a\x00b\ud800", "ab\ufffd"),
    ],
)
def test_content_is_text_in_every_form(httpserver: HTTPServer, gateway: Gateway, content: object, text: str) -> None:
    answer(httpserver, message(content=content))
    assert ask(gateway).content == text


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "free",
        {"prompt_tokens": -1, "completion_tokens": "5", "cost": "abc"},
        {"prompt_tokens": True, "completion_tokens": 10**12, "cost": -0.1},
        {"prompt_tokens": 1.5, "completion_tokens_details": [], "cost": True},
        {"cost": "NaN"},
        {"cost": "1e999999999"},
    ],
)
def test_invalid_usage_is_unknown(httpserver: HTTPServer, gateway: Gateway, usage: object) -> None:
    answer(httpserver, completed(usage=usage, model=7, provider=[], id={}))
    reply = ask(gateway)
    assert (reply.tokens_input, reply.tokens_output, reply.tokens_reasoning, reply.cost_usd) == (None,) * 4
    assert (reply.returned_model, reply.provider, reply.generation_id) == (None,) * 3


def test_usage_with_nan_is_unknown(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, json.dumps(completed(usage={"prompt_tokens": 3, "cost": float("nan")})))
    reply = ask(gateway)
    assert (reply.tokens_input, reply.cost_usd) == (3, None)


def test_cost_may_be_text_or_missing(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, completed(usage={"cost": "0.10"}))
    assert str(ask(gateway).cost_usd) == "0.10"
    httpserver.clear()
    answer(httpserver, completed(usage={"cost": 0}))
    assert ask(gateway).cost_usd == 0


def test_stored_response_has_no_key_no_account_and_no_nul(httpserver: HTTPServer, gateway: Gateway) -> None:
    inner = json.dumps({"user_id": "user_inner"})
    answer(
        httpserver,
        {"error": {"code": 401, "message": f"bad key {KEY}", "metadata": {"raw": inner}}, "user_id": "user_9"},
        status=401,
    )
    failed = failure(gateway)
    stored = failed.raw + str(failed)
    assert "bad key [redacted]" in failed.reason
    assert not any(secret in stored for secret in (KEY, "user_9", "user_inner"))
    httpserver.clear()
    answer(httpserver, json.dumps(completed())[:-1] + "\x00}")
    assert "\x00" not in ask(gateway).raw


def test_answer_is_parsed_as_it_is_stored(httpserver: HTTPServer, gateway: Gateway) -> None:
    """A secret in a model's own words is gone from both, so that the stored answer proves the parsed one."""
    answer_body = {"action": "HOLD", "reasoning": f'use {KEY} or sk-or-v1-0123456789abcdef, "user_id": "u-17"'}
    answer(httpserver, completed(**message(content=json.dumps(answer_body))))
    read = ask(gateway)
    assert json.loads(read.content)["reasoning"] == 'use [redacted] or [redacted], "user_id": "[redacted]"'
    assert content_of(read.raw, 200) == read.content


def test_escaped_secret_is_gone_from_every_part_of_an_answer(httpserver: HTTPServer, gateway: Gateway) -> None:
    """In the content, which is JSON in JSON, at the start of a line, and in the arguments of a tool."""
    key = KEY.replace("-", "\\u002d").replace("s", "\\u0073", 1)
    content = f'{{"action": "HOLD", "reasoning": "use {key}"}}'
    call = {"function": {"name": "search", "arguments": f'{{"query": "{key}"}}'}}
    texts = {"content": content, "reasoning": f"first\n{KEY}\nlast", "tool_calls": [call]}
    answer(httpserver, message(**texts))
    read = ask(gateway)
    assert json.loads(read.content) == {"action": "HOLD", "reasoning": "use [redacted]"}
    assert content_of(read.raw, 200) == read.content
    stored = json.loads(read.raw)["choices"][0]["message"]
    assert stored["reasoning"] == "first\n[redacted]\nlast"
    assert stored["tool_calls"][0]["function"]["arguments"] == '{"query": "[redacted]"}'


def test_secret_in_two_parts_of_a_content_is_redacted_too(httpserver: HTTPServer, gateway: Gateway) -> None:
    parts = [{"type": "text", "text": part} for part in (f"use {KEY[:12]}", f"{KEY[12:]} now")]
    answer(httpserver, message(content=parts))
    read = ask(gateway)
    assert read.content == content_of(read.raw, 200) == "use [redacted] now"
    assert KEY[12:] not in read.raw


# ── failures ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (413, False), (429, True), (502, True), (529, True)])
@pytest.mark.parametrize("hidden", [False, True])
def test_error_code_decides_on_a_retry_in_status_and_body(
    httpserver: HTTPServer, gateway: Gateway, status: int, retryable: bool, hidden: bool
) -> None:
    body = {"id": "gen-9", "error": {"code": status, "message": "no"}, "usage": {"cost": 0.5}}
    answer(httpserver, body, status=200 if hidden else status)
    failed = failure(gateway)
    assert (failed.status, failed.retryable, failed.reason) == (status, retryable, f"gateway answered {status}: no")
    assert (failed.accounting.generation_id, failed.accounting.cost_usd) == ("gen-9", Decimal("0.5"))


@pytest.mark.parametrize(
    ("body", "retryable"),
    [
        ("[]", True),
        ({}, True),
        ({"choices": ["HOLD"]}, True),
        ({"choices": [{"error": {"code": 502, "message": "gone"}, "message": {"content": ""}}]}, True),
        ({"choices": [{"error": {"code": 403, "message": "moderated"}}]}, False),
        ({"error": "plain words"}, True),
        ({"error": {"message": "typed", "error_type": "payment_required"}}, False),
        ({"error": {"message": "typed", "metadata": {"error_type": "provider_overloaded"}}}, True),
        ({"error": {"code": "17", "message": ["odd"]}}, True),
    ],
)
def test_status_200_without_an_answer_is_a_failure(
    httpserver: HTTPServer, gateway: Gateway, body: object, retryable: bool
) -> None:
    answer(httpserver, body)
    failed = failure(gateway)
    assert failed.retryable is retryable
    assert failed.reason.startswith("gateway ")
    assert "\n" not in failed.reason


def test_error_takes_precedence_over_choices(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, completed(error={"code": 502, "message": "broke off"}))
    assert failure(gateway).reason == "gateway answered 502: broke off"


def test_page_for_people_is_named_and_kept(httpserver: HTTPServer, gateway: Gateway) -> None:
    answer(httpserver, "<!DOCTYPE html><title>Blocked</title>", status=502, Retry_After="3")
    failed = failure(gateway)
    assert failed.reason == "gateway answered 502 with an HTML page"
    assert (failed.retryable, failed.retry_after) == (True, 3.0)
    assert "Blocked" in failed.raw


def test_retry_after_is_read_from_header_then_body_then_quota(httpserver: HTTPServer, gateway: Gateway) -> None:
    midnight = datetime.now(UTC) + timedelta(hours=1)
    quota = {"headers": {"X-RateLimit-Reset": str(round(midnight.timestamp() * 1000))}}
    error = {"code": 429, "message": "busy", "availability": {"retry_after": 40}, "metadata": quota}
    answer(httpserver, {"error": error}, status=429, Retry_After="7")
    assert failure(gateway).retry_after == 7
    httpserver.clear()
    answer(httpserver, {"error": error}, status=429)
    assert failure(gateway).retry_after == 40
    httpserver.clear()
    answer(httpserver, {"error": error | {"availability": None}}, status=429)
    assert failure(gateway).retry_after == pytest.approx(3600, abs=10)


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Generation-Id: gen-9\r\nConnection: close\r\n\r\n"
)


def events(*events: object, end: str = "data: [DONE]\n\n") -> str:
    """A stream of these chunks, with the gateway's comments among them."""
    lines = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    return ": OPENROUTER PROCESSING\n\n" + ": OPENROUTER PROCESSING\n\n".join(lines) + end


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "gen-1", "model": "openai/gpt-5.2-2025-12-11", "provider": "OpenAI", "choices": choices} | more


USAGE = chunk(usage={"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00019325})
HALVES = chunk({"role": "assistant", "content": '{"action": '}), chunk({"role": "assistant", "content": '"HOLD"}'})
THINKING = {"reasoning": "hm \ud83d", "reasoning_details": [{"text": "hm"}]}
FINISHED = chunk({"content": ""}, "stop")


@pytest.mark.parametrize(
    "stream",
    [
        events(*HALVES, FINISHED, USAGE),
        events(*HALVES, FINISHED, USAGE).replace("\n", "\r\n"),
        events(*HALVES, FINISHED, USAGE, end=""),
        events(*HALVES, FINISHED, USAGE, end="data: [DO"),
        events(*HALVES, FINISHED, USAGE | {"choices": []}),
        events(*HALVES, FINISHED | {"usage": None}, USAGE),
        events(*HALVES, chunk({"content": None}, "stop", usage=USAGE["usage"])),
        events(chunk(THINKING), chunk({"reasoning": "\ude42"}), *HALVES, FINISHED, USAGE),
        events(json.dumps(HALVES[0], indent=1).replace("\n", "\ndata: "), HALVES[1], FINISHED, USAGE),
    ],
)
def test_streamed_answer_is_the_same_completion(httpserver: HTTPServer, gateway: Gateway, stream: str) -> None:
    answer(httpserver, stream)
    reply = ask(gateway)
    assert (reply.content, reply.finish_reason, reply.status) == ('{"action": "HOLD"}', "stop", 200)
    assert (reply.returned_model, reply.provider, reply.generation_id) == (
        "openai/gpt-5.2-2025-12-11",
        "OpenAI",
        "gen-1",
    )
    assert (reply.tokens_input, reply.tokens_output, str(reply.cost_usd)) == (10, 5, "0.00019325")
    stored = json.loads(reply.raw)
    assert stored["choices"][0]["message"]["content"] == '{"action": "HOLD"}'
    assert stored["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00019325}
    if "hm" in stream:
        assert stored["choices"][0]["message"]["reasoning"] == "hm \U0001f642"


@pytest.mark.parametrize(
    ("stream", "reason", "cost"),
    [
        (events(HALVES[0], USAGE, end=""), "gateway broke off the stream before the answer's end", "0.00019325"),
        (events(*HALVES[:1], '{"choi', *HALVES[1:], FINISHED), "gateway broke off the stream before", None),
        (events(HALVES[0], chunk({}, "error")), "gateway broke off with finish_reason error", None),
        (
            events(HALVES[0], chunk({"content": ""}, "error", error={"code": "server_error", "message": "gone"})),
            "gateway answered 500: gone",
            None,
        ),
        (
            events({"id": "gen-1", "error": {"code": 502, "message": "gone"}}, end=""),
            "gateway answered 502: gone",
            None,
        ),
        (events(), "gateway answered without choices", None),
    ],
)
def test_stream_without_an_answer_is_a_failure(
    httpserver: HTTPServer, gateway: Gateway, stream: str, reason: str, cost: str | None
) -> None:
    answer(httpserver, stream, X_Generation_Id="gen-1")
    failed = failure(gateway)
    assert failed.reason.startswith(reason)
    assert (failed.retryable, failed.accounting.generation_id) == (True, "gen-1")
    assert failed.billable is (reason != "gateway answered 502: gone")  # nothing of an answer had come
    assert failed.accounting.cost_usd == (cost and Decimal(cost))


@pytest.mark.parametrize(
    ("stream_text", "reason"),
    [
        ("", "sent nothing for 0.3 s"),
        (": OPENROUTER PROCESSING\n\n", "sent nothing for 0.3 s"),
        (events(HALVES[0], end=""), "sent nothing for 0.3 s"),
        (None, "did not finish within 0.6 s"),
    ],
)
def test_stalled_stream_is_given_up_and_its_connection_closed(stream_text: str | None, reason: str) -> None:
    closed = threading.Event()

    def act(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(STREAM_HEAD + (stream_text or "").encode())
        if stream_text is not None:
            silent(connection, over)
            closed.set()
        while stream_text is None and not over.wait(0.02):  # comments alone must not hold it for ever
            connection.sendall(b": OPENROUTER PROCESSING\n\n")

    with (
        misbehaving(act) as url,
        Gateway(url, KEY, timeout_s=0.6 if stream_text is None else 5, stall_s=0.3) as gateway,
    ):
        failed = failure(gateway)
        assert failed.reason == f"gateway: POST /chat/completions {reason}"
        assert (failed.retryable, failed.billable, failed.status) == (True, True, 200)
        assert failed.accounting.generation_id == ("gen-1" if stream_text and "data" in stream_text else "gen-9")
        assert stream_text is None or closed.wait(2)
    if stream_text and "data" in stream_text:
        assert json.loads(failed.raw)["choices"][0]["message"]["content"] == '{"action": '


@pytest.mark.parametrize("fate", [reset, silent])
def test_answer_that_is_there_is_not_lost_with_the_connection(fate: Act) -> None:
    def act(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(STREAM_HEAD.replace(b"Connection: close", b"Content-Length: 9999"))
        connection.sendall(events(*HALVES, FINISHED, end='data: {"usage": {"cost').encode())
        if fate is silent:
            silent(connection, over)

    with misbehaving(act) as url, Gateway(url, KEY, timeout_s=5, stall_s=0.3) as gateway:
        answer = ask(gateway)
    assert (answer.content, answer.finish_reason, answer.cost_usd) == ('{"action": "HOLD"}', "stop", None)


PROVIDER = {"provider_name": "DigitalOcean", "limit_source": "upstream_provider_shared_pool"}
USED_UP = {"X_RateLimit_Remaining": "0"}


@pytest.mark.parametrize(
    ("status", "error", "headers", "scope"),
    [
        (400, {}, {}, FailureScope.REQUEST),
        (401, {}, {}, FailureScope.ACCOUNT),
        (402, {}, {}, FailureScope.ACCOUNT),
        (403, {"message": "moderated"}, {}, FailureScope.REQUEST),
        (403, {"message": "Key limit exceeded (total limit)."}, {}, FailureScope.ACCOUNT),
        (404, {}, {}, FailureScope.RELEASE),
        (429, {}, {}, FailureScope.MODEL),
        (429, {}, USED_UP, FailureScope.ACCOUNT),
        (429, {"metadata": {"headers": {"X-RateLimit-Remaining": "0"}}}, {}, FailureScope.ACCOUNT),
        (429, {"message": "free-models-per-day"}, {}, FailureScope.ACCOUNT),
        (429, {"metadata": PROVIDER}, {}, FailureScope.MODEL),
        (429, {"metadata": PROVIDER}, USED_UP, FailureScope.MODEL),
        (503, {}, {}, FailureScope.REQUEST),
    ],
)
def test_scope_of_a_failure(
    httpserver: HTTPServer, gateway: Gateway, status: int, error: Any, headers: dict[str, str], scope: FailureScope
) -> None:
    answer(httpserver, {"error": {"code": status, "message": "no"} | error}, status, **headers)
    assert failure(gateway).scope == scope


# ── captured answers ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.captured
def test_every_captured_answer_is_a_completion(httpserver: HTTPServer, gateway: Gateway) -> None:
    assert len(captured("chat.jsonl")) == 89
    for exchange in captured("chat.jsonl"):
        httpserver.clear()
        answer(httpserver, exchange["body"], exchange["status"])
        body, reply = exchange["body"], ask(gateway)
        choice = body["choices"][0]
        assert reply.content == (choice["message"]["content"] or "")
        assert reply.finish_reason == choice["finish_reason"]
        assert (reply.returned_model, reply.provider) == (body["model"], body["provider"])
        assert reply.generation_id == body["id"]
        assert reply.tokens_input == body["usage"]["prompt_tokens"]
        assert reply.tokens_output == body["usage"]["completion_tokens"]
        cost = body["usage"].get("cost")
        assert reply.cost_usd == (None if cost is None else Decimal(str(cost)))


@pytest.mark.captured
def test_every_captured_stream_is_a_completion(httpserver: HTTPServer, gateway: Gateway) -> None:
    bodies = [exchange["body"] for exchange in captured("chat_stream_sse.jsonl")]
    chats = [body for body in bodies if "chat.completion.chunk" in body and not body.startswith("{")]
    assert len(chats) == 17
    for body in chats:
        httpserver.clear()
        answer(httpserver, body)
        reply = ask(gateway)
        assert reply.finish_reason in {"stop", "end_turn", "tool_calls"}
        assert bool(reply.content) or reply.finish_reason == "tool_calls"
        assert (reply.generation_id or "").startswith("gen-")
        assert reply.provider
        assert reply.tokens_output


@pytest.mark.captured
def test_captured_answers_but_one_are_by_the_requested_model() -> None:
    other_models = set()
    for exchange in captured("chat.jsonl"):
        request = exchange["request"] or {}
        model = request.get("model") or request.get("json", {}).get("model")
        if model and not same_model(model, exchange["body"]["model"]):
            other_models.add((model, exchange["body"]["model"]))
    assert other_models == {("google/gemini-2.0-flash-exp:free", "x-ai/grok-4")}


@pytest.mark.captured
def test_captured_errors_are_not_retryable(httpserver: HTTPServer, gateway: Gateway) -> None:
    assert len(captured("errors.jsonl")) == 6
    for exchange in captured("errors.jsonl"):
        httpserver.clear()
        answer(httpserver, exchange["body"], exchange["status"])
        failed = failure(gateway)
        assert (failed.status, failed.retryable) == (exchange["status"], False)
        assert failed.reason.startswith(
            f"gateway answered {exchange['status']}: {exchange['body']['error']['message'][:60]}"
        )
        assert "user_REDACTED" not in failed.raw


QUOTED = [
    # (status, retryable, retry_after), in the order of the file
    (429, True, None),
    (429, False, pytest.approx(max(0, 1777420800 - time()), abs=60)),  # until the next free day
    (402, False, None),
    (402, False, None),
    (502, True, None),
    (404, False, None),
    (429, True, None),
    (429, True, 40.0),
    (404, False, None),
    (401, False, None),
    (401, False, None),
    (403, False, None),
    (408, True, None),
    (422, False, None),
    (500, True, None),
    (503, True, None),
    (529, True, None),
]


@pytest.mark.captured
@pytest.mark.parametrize(("place", "expected"), list(enumerate(QUOTED)))
def test_quoted_error_is_judged_as_documented(
    httpserver: HTTPServer, gateway: Gateway, place: int, expected: tuple[int, bool, float | None]
) -> None:
    assert len(captured("errors_quoted.jsonl")) == len(QUOTED)
    quoted = captured("errors_quoted.jsonl")[place]
    answer(httpserver, quoted["body"], quoted["http_status"] or 200, **quoted.get("headers") or {})
    failed = failure(gateway)
    assert (failed.status, failed.retryable, failed.retry_after) == expected
    assert "no message" not in failed.reason


# ── who answered ──────────────────────────────────────────────────────────────────────────────────


QWEN, QWEN_SLUG = "qwen/qwen3-235b-a22b-2507", "qwen/qwen3-235b-a22b-07-25"


@pytest.mark.parametrize(
    ("model", "returned", "slug"),
    [
        ("openai/gpt-5.2", None, ""),
        ("openai/gpt-5.2", "", ""),
        ("openai/gpt-5.2", "openai/gpt-5.2", ""),
        ("openai/gpt-5.2", "OpenAI/GPT-5.2", ""),
        ("openai/gpt-5.2", "openai/gpt-5.2-2025-12-11", ""),
        ("openai/gpt-5.2", "gpt-5.2-2025-12-11", "openai/gpt-5.2-20251211"),
        ("openai/gpt-5.2", "openai/gpt-5.2", "openai/gpt-5.2-20251211"),
        ("anthropic/claude-opus-4.5", "anthropic/claude-4.5-opus-20251124", ""),
        ("anthropic/claude-opus-4.5", "anthropic/claude-4.5-opus", "anthropic/claude-4.5-opus-20251124"),
        ("deepseek/deepseek-v3.2:free", "deepseek/deepseek-v3.2", ""),
        ("deepseek/deepseek-chat", "deepseek/deepseek-chat-v3", "deepseek/deepseek-chat-v3"),
        ("openai/gpt-4o-2024-05-13", "openai/gpt-4o", ""),
        (QWEN, QWEN_SLUG, QWEN_SLUG),
        (QWEN, QWEN, QWEN_SLUG),
    ],
)
def test_canonical_slug_and_snapshot_are_the_same_model(model: str, returned: str | None, slug: str) -> None:
    assert same_model(model, returned, slug)


@pytest.mark.parametrize(
    ("model", "returned", "slug"),
    [
        ("openai/gpt-5.2", "openai/gpt-5.2-mini", ""),
        ("openai/gpt-5.2", "openai/gpt-5.1", ""),
        ("openai/gpt-5.2", "openai/gpt-5", ""),
        ("openai/gpt-5.2", "azure/gpt-5.2", ""),
        ("openai/gpt-5.2", "x-ai/grok-4", ""),
        ("openai/gpt-5.2", "openai/gpt-5.2-20260301", "openai/gpt-5.2-20251211"),
        ("openai/gpt-4o-2024-05-13", "openai/gpt-4o-2024-08-06", ""),
        ("deepseek/deepseek-v3.2", "deepseek/deepseek-v3.2-exp", ""),
        ("anthropic/claude-opus-4.5", "anthropic/claude-sonnet-4.5", ""),
        ("meta-llama/llama-3.3-70b", "meta-llama/llama-3.3-8b", ""),
        ("moonshotai/kimi-k2", "moonshotai/kimi-k2-0905", "moonshotai/kimi-k2"),
        ("moonshotai/kimi-k2-0905", "moonshotai/kimi-k2", "moonshotai/kimi-k2-0905"),
        (QWEN, "qwen/qwen3-235b-a22b-04-28", QWEN_SLUG),
        (QWEN, "qwen/qwen3-235b-a22b", QWEN_SLUG),
    ],
)
def test_another_vendor_size_weight_or_snapshot_is_another_model(model: str, returned: str, slug: str) -> None:
    assert not same_model(model, returned, slug)
