"""External agents over HTTP: open tasks, submissions and refusals."""

import json
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client

from agents.models import (
    Agent,
    Decision,
    Elicitation,
    Family,
    Forecast,
    ModelCall,
    Position,
    Registration,
    Submission,
    Trade,
)
from agents.services.registrations import add_version, register_external_agent, revoke_registration
from foundation.models import Run
from markets.models import Market, QuestionBatch, Universe
from tests.answers import GEMINI, GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.problems import problem
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

RAIN, SNOW = "Will it rain?", "Will it snow?"
MINUTE = timedelta(minutes=1)
IN_TIME = DECISION + 10 * MINUTE
DEADLINE = DECISION + 15 * MINUTE
FORECASTS = SUNDAY + timedelta(hours=2)
OPEN = "/api/v1/submissions/open/"
HOLD = {"action": "HOLD", "reasoning": "nothing to do"}


def register() -> str:
    return register_external_agent(name="Visitor", protocol="both", at=SUNDAY - timedelta(days=1)).token


def freeze(venue: Venue) -> str:
    """Two markets, cohort 1 with the visitor in it, the universe frozen. Returns the visitor's token."""
    token = register()
    venue.market(RAIN)
    venue.market(SNOW)
    line_up(GPT, GEMINI)
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY)["agents"] == 3
    assert run("run_decisions", DECISION).code == 0
    return token


frozen = shared_rows_at_venue(freeze)


@pytest.fixture
def week(frozen: tuple[Venue, str], venue: Venue, settings: Any) -> Venue:
    """The venue of that week, ten minutes past the freeze."""
    settings.ARENA_CLOCK = IN_TIME
    return venue.as_left(frozen[0])


@pytest.fixture
def visitor(request: pytest.FixtureRequest, db: None) -> str:
    """The token of an external agent that was registered before the week, if the test has one, or in an empty arena."""
    token: str = request.getfixturevalue("frozen")[1] if "week" in request.fixturenames else register()
    return token


def submit(client: Client, token: str | None, body: Any, *, key: str | None = None, **target: int) -> Any:
    """Submits an answer for the visitor's agent and week, unless another target is named."""
    target = target or {"agent": visitor_agent().pk, "universe": Universe.objects.latest("pk").pk}
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    if key != "":
        headers["Idempotency-Key"] = key or str(uuid4())
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    if not text:
        headers |= {"Content-Length": "0", "Content-Type": "application/json"}  # which the test client leaves out
    path = f"/api/v1/submissions/?{'&'.join(f'{name}={value}' for name, value in target.items())}"
    return client.post(path, text, content_type="application/json", headers=headers)


def end_seal(settings: Any, at: datetime = DEADLINE) -> None:
    """Sets the clock to the end of the seal and opens what is due."""
    settings.ARENA_CLOCK = at
    assert run("open_envelopes", at).code == 0


def open_tasks(client: Client, token: str) -> Any:
    answer = client.get(OPEN, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.content
    return answer.json()


def visitor_agent() -> Agent:
    return Agent.objects.get(family__slug="visitor")


def market_id(question: str) -> str:
    return str(Market.objects.get(question=question).pk)


def buy(question: str, amount: str, side: str = "YES") -> dict[str, Any]:
    bets = [{"market_id": market_id(question), "side": side, "amount": amount}]
    return {"action": "BET", "bets": bets, "reasoning": "because"}


# who takes part


def test_registering_prints_the_token_once_and_stores_only_its_hash(db: None) -> None:
    stdout = StringIO()
    call_command("register_agent", "Deep Thought", protocol="trading", at=SUNDAY, json=True, stdout=stdout)
    token = json.loads(stdout.getvalue())["token"]
    registration = Registration.objects.select_related("family").get()
    assert (registration.family.slug, registration.family.external, registration.family.active) == (
        "deep-thought", True, False,
    )  # fmt: skip
    release = registration.family.release_at(SUNDAY)
    assert release is not None
    assert release.model_id == "external/deep-thought"
    stored = [list(Registration.objects.values_list()), list(Run.objects.values_list("summary", "log", "error"))]
    assert token not in repr(stored)


def test_a_track_is_declared_at_registration_and_never_changed(client: Client, db: None) -> None:
    run("register_agent", SUNDAY, "Deep Thought", track="open")
    Registration.objects.update(revoked_at=SUNDAY)
    with pytest.raises(CommandError, match="deep-thought is of the open track, which never changes"):
        call_command("register_agent", "Deep Thought", track="closed", at=SUNDAY)
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        Family.objects.filter(slug="deep-thought").update(track="closed")
    with pytest.raises(IntegrityError, match="external_family_has_a_track"), transaction.atomic():
        Family.objects.create(slug="another", display_name="Another", color="#000000", active=False, external=True)
    add_version(Family.objects.get(slug="deep-thought"), note="Reads the news.", at=SUNDAY)
    family = client.get("/api/v1/families/deep-thought/").json()
    assert (family["track"], family["version"]) == ("open", 2)
    model = client.get("/api/v1/families/gpt-5.1/").json()
    assert (model["track"], model["version"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Visitor", "is registered already"),
        ("GPT 5.1", "name of another"),
        ("Ensemble", "name of another"),
        ("?!", "no letter or digit"),
    ],
)
def test_a_name_that_can_not_be_registered_is_refused(visitor: str, name: str, why: str) -> None:
    with pytest.raises(CommandError, match=why) as refused:
        call_command("register_agent", name, at=SUNDAY)
    assert refused.value.returncode == 2


def test_external_agent_joins_the_cohort_and_is_never_asked(week: Venue) -> None:
    assert visitor_agent().cash == 10_000
    assert run("run_decisions", DECISION + timedelta(hours=1))["asked"] == 0
    assert {prompt.model for prompt in week.asked}.isdisjoint({"external/visitor"})
    assert run("run_decisions", DECISION + timedelta(hours=1), dry_run=True)["asked"] == 0


def test_revoked_agent_joins_no_later_cohort_and_a_forecaster_none(week: Venue) -> None:
    register_external_agent(name="Oracle", protocol="forecast", at=SUNDAY)
    revoke_registration(Registration.objects.get(family__slug="visitor"), at=IN_TIME)
    assert run("start_cohort", SUNDAY + timedelta(weeks=1))["agents"] == 2


# what it is shown


def test_open_tasks_have_the_prompts_of_the_models(client: Client, week: Venue, visitor: str) -> None:
    (task,) = open_tasks(client, visitor)["trading"]
    prompt = week.asked[0]
    assert task["user_prompt"] == prompt.user
    assert task["system_prompt"] == prompt.body["messages"][0]["content"]
    assert task["blocks"]["MARKETS"] == Universe.objects.get().market_block
    assert json.loads(task["blocks"]["PORTFOLIO"]) == prompt.portfolio
    assert (task["frozen_at"], task["deadline"]) == ("2026-03-08T00:05:00Z", "2026-03-08T00:20:00Z")
    assert (task["cohort"], task["week"]) == (1, 1)


def test_open_tasks_are_neither_cached_nor_readable_from_other_origins(
    client: Client, week: Venue, visitor: str
) -> None:
    answer = client.get(OPEN, headers={"Authorization": f"Bearer {visitor}"})
    assert answer["Cache-Control"] == "no-store"
    assert not {"ETag", "Last-Modified", "Access-Control-Allow-Origin"} & set(answer.headers)


def test_no_task_is_open_before_the_freeze_or_from_the_deadline_on(
    client: Client, week: Venue, visitor: str, settings: Any
) -> None:
    for at in (DECISION - MINUTE, DEADLINE, DECISION + timedelta(days=7)):
        settings.ARENA_CLOCK = at
        assert open_tasks(client, visitor)["trading"] == [], at


def test_open_track_answers_for_twelve_hours(client: Client, week: Venue, settings: Any) -> None:
    token = register_external_agent(name="Scout", protocol="forecast", track="open", at=SUNDAY).token
    late = register_external_agent(name="Late", protocol="forecast", track="open", at=FORECASTS + MINUTE).token
    assert run("run_forecasts", FORECASTS).code == 0
    settings.ARENA_CLOCK = FORECASTS + timedelta(hours=12) - MINUTE
    (task, _) = open_tasks(client, token)["forecast"]
    assert task["deadline"] == "2026-03-08T14:00:00Z"
    assert open_tasks(client, late)["forecast"] == []
    question = json.loads(task["blocks"]["QUESTIONS"].splitlines()[1])[0]
    answer = {"forecasts": [{"question_id": question, "probabilities": {"YES": 0.5, "NO": 0.5}}]}
    refused = submit(client, late, answer, batch=task["batch"])
    assert (refused.status_code, "was frozen before Late was registered" in refused.json()["detail"]) == (409, True)
    assert submit(client, token, answer, batch=task["batch"]).status_code == 201
    assert run("run_forecasts", FORECASTS + timedelta(hours=11)).code == 0
    missed = Elicitation.objects.filter(status="missed")
    assert not missed.filter(family__slug="scout").exists()
    assert missed.filter(family__slug="visitor").exists()
    settings.ARENA_CLOCK = FORECASTS + timedelta(hours=12)
    assert open_tasks(client, token)["forecast"] == []
    assert run("run_forecasts", FORECASTS + timedelta(hours=12)).code == 0
    assert missed.filter(family__slug="scout").count() == 1


# decisions


def test_bet_is_executed_at_the_frozen_price_once_the_seal_has_ended(
    client: Client, week: Venue, visitor: str, settings: Any
) -> None:
    week.move(RAIN, Yes="0.90", No="0.10")
    run("sync_markets", DECISION + 5 * MINUTE)
    answer = submit(client, visitor, buy(RAIN, "2500"))
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["protocol"], body["action"]) == ("trading", "BET")
    assert body["instructions"][0]["executed"] is True
    assert (Trade.objects.count(), visitor_agent().cash) == (0, 10_000)
    assert Decision.objects.get(pk=body["decision"]).status == "answered"
    assert open_tasks(client, visitor)["trading"][0]["state"] == "answered"
    end_seal(settings)
    trade = Trade.objects.get(agent=visitor_agent())
    assert (str(trade.price), str(trade.shares), trade.executed_at) == ("0.4000000000", "6250.000000", DEADLINE)
    assert visitor_agent().cash == 7_500
    decision = Decision.objects.get(pk=body["decision"])
    assert (decision.status, decision.action, decision.decided_at) == ("completed", "BET", IN_TIME)
    call = decision.calls.get()
    assert (call.result, call.model, call.cost_usd, json.loads(call.raw_response)) == (
        "answered", "external/visitor", 0, buy(RAIN, "2500"),
    )  # fmt: skip
    assert ModelCall.fingerprint(call.system_prompt, call.user_prompt) == call.prompt_sha256
    assert open_tasks(client, visitor)["trading"] == []


def test_each_cohort_has_its_own_task(client: Client, week: Venue, visitor: str, settings: Any) -> None:
    next_week = timedelta(weeks=1)
    run("sync_markets", SUNDAY + next_week)
    run("start_cohort", SUNDAY + next_week)
    run("run_decisions", DECISION + next_week)
    settings.ARENA_CLOCK = IN_TIME + next_week
    tasks = open_tasks(client, visitor)["trading"]
    assert [(task["cohort"], task["week"]) for task in tasks] == [(1, 2), (2, 1)]
    for task in tasks:
        assert submit(client, visitor, HOLD, agent=task["agent"], universe=task["universe"]).status_code == 201
    decisions = Decision.objects.filter(agent__family__slug="visitor", status="answered").order_by("cohort__number")
    assert list(decisions.values_list("cohort__number", "week")) == [(1, 2), (2, 1)]


def test_position_of_another_agent_can_not_be_sold(client: Client, venue: Venue, visitor: str, settings: Any) -> None:
    venue.market(RAIN)
    venue.says(GPT, bet(RAIN, "YES", 500))
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    settings.ARENA_CLOCK = IN_TIME
    run("open_envelopes", DEADLINE)
    other_position = Position.objects.get()
    answer = submit(
        client, visitor, {"action": "SELL", "sells": [{"position_id": str(other_position.pk), "percentage": 100}]}
    )
    assert answer.status_code == 422
    assert f"sells[0].position_id: '{other_position.pk}' is none of your open positions" in answer.json()["detail"]
    other_position.refresh_from_db()
    assert other_position.status == "open"


def test_malformed_answer_is_stored_refused_and_may_be_followed_by_another(
    client: Client, week: Venue, visitor: str
) -> None:
    refused = submit(client, visitor, '{"action": "BET", "bets": []')
    assert refused.status_code == 422
    assert "(2 more tries)" in refused.json()["detail"]
    call = ModelCall.objects.get(model="external/visitor")
    assert (call.result, call.raw_response) == ("malformed", '{"action": "BET", "bets": []')
    assert call.error in open_tasks(client, visitor)["trading"][0]["user_prompt"]
    assert submit(client, visitor, HOLD).status_code == 201
    assert call.decision is not None
    assert list(call.decision.calls.values_list("result", flat=True)) == ["malformed", "answered"]


@pytest.mark.parametrize(
    "body", ['{"action": "HOLD", "action": "SELL"}', '{"action": "HOLD", "bets": NaN}', "I hold.", '{"action": "HOL']
)
def test_answers_follow_the_rules_for_models(client: Client, week: Venue, visitor: str, body: str) -> None:
    assert submit(client, visitor, body).status_code == 422
    assert not Decision.objects.filter(agent=visitor_agent(), status="completed").exists()


def test_answer_is_parsed_before_the_database_is_locked(
    client: Client, week: Venue, visitor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions, outside = [], len(connection.savepoint_ids)
    parse = Decision.parse

    def spy(task: Decision, content: str) -> Any:
        transactions.append(len(connection.savepoint_ids))
        return parse(task, content)

    monkeypatch.setattr(Decision, "parse", spy)
    assert submit(client, visitor, HOLD).status_code == 201
    assert transactions == [outside]


def test_answer_of_many_objects_is_malformed(client: Client, week: Venue, visitor: str) -> None:
    for body in ("{}" * 499_000, '{"a":' * 100_000, "[" * 100_000):  # as many tries as there are
        assert "holds more than 10,000 objects and lists" in problem(submit(client, visitor, body), 422)["detail"]


def test_last_malformed_answer_becomes_a_fallback_hold(
    client: Client, week: Venue, visitor: str, settings: Any
) -> None:
    responses = [submit(client, visitor, "no") for _ in range(3)]
    assert [answer.status_code for answer in responses] == [422, 422, 422]
    assert "no try is left" in responses[2].json()["detail"]
    decision = Decision.objects.get(agent=visitor_agent())
    assert (decision.status, decision.action) == ("answered", None)
    assert "no try is left" in problem(submit(client, visitor, HOLD), 409)["detail"]
    end_seal(settings)
    decision.refresh_from_db()
    assert (decision.status, decision.action, decision.fallback) == ("completed", "HOLD", True)


def test_answer_without_valid_instruction_has_as_many_tries_as_a_models(
    client: Client, week: Venue, visitor: str
) -> None:
    responses = [submit(client, visitor, buy(RAIN, "20")) for _ in range(4)]
    assert [answer.status_code for answer in responses] == [422, 422, 422, 409]
    assert "bets[0].amount: 20 is below the minimum of 50.00" in responses[0].json()["detail"]
    assert "2 more tries" in responses[0].json()["detail"]
    assert "no try is left" in responses[2].json()["detail"]
    assert not Trade.objects.exists()
    run("run_decisions", DEADLINE)
    assert Decision.objects.get(agent=visitor_agent()).status == "missed"


def test_rejected_instruction_does_not_stop_the_others(client: Client, week: Venue, visitor: str) -> None:
    answer_body = buy(RAIN, "500")
    answer_body["bets"] += buy(SNOW, "20")["bets"]
    body = submit(client, visitor, answer_body).json()
    assert [row["executed"] for row in body["instructions"]] == [True, False]
    assert "below the minimum" in body["instructions"][1]["reason"]


# the clock


def test_answer_just_before_the_deadline_is_in_time(client: Client, week: Venue, visitor: str, settings: Any) -> None:
    settings.ARENA_CLOCK = DEADLINE - timedelta(microseconds=1)
    assert submit(client, visitor, buy(RAIN, "500")).status_code == 201


def test_decision_without_an_answer_is_recorded_as_missed(client: Client, week: Venue, visitor: str) -> None:
    assert run("run_decisions", DEADLINE - MINUTE)["missed"] == 0
    assert run("run_decisions", DEADLINE)["missed"] == 1
    missed = Decision.objects.get(agent=visitor_agent())
    assert (missed.status, missed.error) == ("missed", "nothing was submitted in time")
    refused = submit(client, visitor, HOLD)
    assert (refused.status_code, problem(refused, 409)["detail"]) == (409, "week 1 of cohort 1 is missed already")


# once


def test_the_same_key_and_answer_get_the_same_response(
    client: Client, week: Venue, visitor: str, settings: Any
) -> None:
    first = submit(client, visitor, buy(RAIN, "500"), key="once")
    settings.ARENA_CLOCK = DEADLINE + MINUTE
    again = submit(client, visitor, buy(RAIN, "500"), key="once")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    end_seal(settings, DEADLINE + MINUTE)
    assert Trade.objects.count() == 1


def test_response_outlives_the_token(client: Client, week: Venue, visitor: str, settings: Any) -> None:
    first = submit(client, visitor, buy(RAIN, "500"), key="once")
    assert revoke_registration(Registration.objects.get(), at=IN_TIME)
    renewed = register_external_agent(name="Visitor", protocol="both", at=IN_TIME).token
    again = submit(client, renewed, buy(RAIN, "500"), key="once")
    assert (again.status_code, again.json()) == (201, first.json())
    end_seal(settings)
    assert submit(client, renewed, HOLD, key="once").status_code == 409
    assert Trade.objects.count() == 1


def test_repeated_refused_submission_uses_up_no_try(client: Client, week: Venue, visitor: str) -> None:
    responses = [submit(client, visitor, "no", key="once") for _ in range(5)]
    assert [answer.status_code for answer in responses] == [422] * 5
    assert len({answer.content for answer in responses}) == 1
    assert ModelCall.objects.filter(model="external/visitor").count() == 1


def test_the_same_key_with_another_answer_is_a_conflict(client: Client, week: Venue, visitor: str) -> None:
    submit(client, visitor, "no", key="once")
    conflict = submit(client, visitor, HOLD, key="once")
    assert conflict.status_code == 409
    assert "this Idempotency-Key came with another answer before" in conflict.json()["detail"]
    assert not Decision.objects.filter(agent=visitor_agent(), status="completed").exists()


def test_two_agents_may_use_the_same_key(client: Client, venue: Venue, visitor: str, settings: Any) -> None:
    second = register_external_agent(name="Second", protocol="both", at=SUNDAY - MINUTE).token
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    settings.ARENA_CLOCK = IN_TIME
    universe = Universe.objects.get().pk
    for token, slug in ((visitor, "visitor"), (second, "second")):
        agent = Agent.objects.get(family__slug=slug).pk
        assert submit(client, token, HOLD, key="1", agent=agent, universe=universe).status_code == 201


# who may


REFUSALS = {
    # what is wrong with a submission: (status, the only field named by a 400, a part of the message, the difference)
    "before the freeze": (409, "detail", "does not open before 2026-03-08T00:05:00Z", {"clock": DECISION - MINUTE}),
    "at the deadline": (410, "detail", "was to be answered before 2026-03-08T00:20:00.000000Z", {"clock": DEADLINE}),
    "late by the real clock": (410, "detail", "week 1 of cohort 1 was to be answered", {"clock": None}),
    "no key": (400, "Idempotency-Key", "is required", {"key": ""}),
    "no key, and an unknown token": (400, "Idempotency-Key", "is required", {"key": "", "token": "arena_wrong"}),
    "no token": (401, "detail", "credentials were not provided", {"token": None}),
    "an empty token": (401, "detail", "token", {"token": ""}),
    "an unknown token": (401, "detail", "the token is unknown or revoked", {"token": "arena_wrong"}),
    "another's task": (400, "agent", "no agent of yours has the id", {"target": {"agent": "other", "universe": 1}}),
    "no universe": (400, "universe", "give agent and universe, or batch", {"target": {"agent": 1}}),
    "two tasks": (
        400,
        "batch",
        "give agent and universe, or batch",
        {"target": {"batch": 1, "agent": 1, "universe": 1}},
    ),
    "an unknown batch": (400, "batch", "no batch has the id 99", {"target": {"batch": 99}}),
    "an unknown parameter": (400, "mood", "", {"target": {"mood": 1, "batch": 1}}),
    "an unknown universe": (400, "universe", "no decision at", {"target": {"agent": "own", "universe": 99}}),
    "no body": (400, "body", "is empty", {"body": ""}),
    "bytes": (400, "body", "is not UTF-8", {"body": b"\xff"}),
    "a NUL": (400, "body", "NUL", {"body": '{"a": "\0"}'}),
    "a megabyte": (413, "detail", "longer than 1,000,000 bytes", {"body": "x" * 1_000_001}),
}


def test_refused_submission_changes_nothing(client: Client, week: Venue, visitor: str, settings: Any) -> None:
    agents = {"own": visitor_agent().pk, "other": Agent.objects.exclude(family__slug="visitor")[0].pk}
    for name, (status, key, message, wrong) in REFUSALS.items():
        settings.ARENA_CLOCK = wrong.get("clock", IN_TIME)
        target = {parameter: agents.get(value, value) for parameter, value in wrong.get("target", {}).items()}
        body = wrong.get("body", buy(RAIN, "500"))
        refused = submit(client, wrong.get("token", visitor), body, key=wrong.get("key"), **target)
        content = problem(refused, status)
        assert list(content.get("errors", ["detail"])) == [key], name
        assert message in content["detail"], name
        assert status != 401 or refused["WWW-Authenticate"] == "Bearer"
        assert not Submission.objects.exists(), name
        assert not Trade.objects.exists()


def test_open_tasks_need_a_token(client: Client, week: Venue) -> None:
    assert client.get(OPEN).status_code == 401
    for token in ("", "arena_wrong"):
        assert client.get(OPEN, headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_revoked_token_is_refused(client: Client, week: Venue, visitor: str) -> None:
    registration = Registration.objects.get()
    assert submit(client, visitor, "no").status_code == 422
    registration.refresh_from_db()
    assert registration.last_used_at is not None
    assert revoke_registration(registration, at=IN_TIME)
    assert submit(client, visitor, HOLD).status_code == 401


def test_admin_session_is_no_token(admin_client: Client, week: Venue) -> None:
    assert submit(admin_client, None, HOLD).status_code == 401


def test_wrong_tokens_are_throttled_by_client_and_right_ones_never(client: Client, week: Venue, visitor: str) -> None:
    def knock(token: str, address: str) -> Any:
        return client.get(OPEN, headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR=address)

    codes = [knock(f"arena_{n}", "203.0.113.1").status_code for n in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert int(knock("arena_wrong", "203.0.113.1")["Retry-After"]) > 0
    assert knock("arena_wrong", "203.0.113.2").status_code == 401
    assert knock(visitor, "203.0.113.1").status_code == 200


# forecasts


@pytest.fixture
def forecast_week(week: Venue, settings: Any) -> Venue:
    """The venue at 02:05, after the forecast run of 02:00."""
    assert run("run_forecasts", FORECASTS).code == 0
    settings.ARENA_CLOCK = FORECASTS + 5 * MINUTE
    return week


def even(task: dict[str, Any]) -> dict[str, Any]:
    _, *rows = [json.loads(line) for line in task["blocks"]["QUESTIONS"].splitlines()]
    return {
        "forecasts": [{"question_id": row[0], "probabilities": dict.fromkeys(row[4], 1 / len(row[4]))} for row in rows]
    }


def test_forecasts_are_recorded_by_batch(client: Client, forecast_week: Venue, visitor: str, settings: Any) -> None:
    tasks = open_tasks(client, visitor)["forecast"]
    assert [task["arm"] for task in tasks] == ["blind", "priced"]
    prompt = next(p for p in forecast_week.asked if "\nQUESTIONS\n" in p.user and p.questions[0]["prices"] is None)
    assert tasks[0]["user_prompt"] == prompt.user
    for task in tasks:
        answer = submit(client, visitor, even(task), batch=task["batch"])
        assert answer.status_code == 201, answer.content
        assert [row["probabilities"] for row in answer.json()["forecasts"]] == [{"YES": 0.5, "NO": 0.5}] * 2
    assert not Forecast.objects.filter(family__slug="visitor").exists()
    end_seal(settings, FORECASTS + 15 * MINUTE)
    forecasts = Forecast.objects.filter(family__slug="visitor")
    assert forecasts.count() == 4
    assert set(forecasts.values_list("made_at", flat=True)) == {FORECASTS + 5 * MINUTE}
    assert open_tasks(client, visitor)["forecast"] == []


def test_forecasts_are_checked_by_question(client: Client, forecast_week: Venue, visitor: str) -> None:
    task = open_tasks(client, visitor)["forecast"][0]
    answer = even(task)
    answer["forecasts"][0]["probabilities"]["YES"] = 0.9
    response = submit(client, visitor, answer, batch=task["batch"])
    assert response.status_code == 201
    assert (len(response.json()["forecasts"]), len(response.json()["refused"])) == (1, 1)
    assert "sum to 1.4, not 1" in response.json()["refused"][0]["reason"]


def test_batch_without_a_valid_forecast_is_refused(client: Client, forecast_week: Venue, visitor: str) -> None:
    batch = open_tasks(client, visitor)["forecast"][0]["batch"]
    empty_answer = {"forecasts": [{"question_id": "0", "probabilities": {"YES": 1}}]}
    responses = [submit(client, visitor, empty_answer, batch=batch) for _ in range(4)]
    assert [answer.status_code for answer in responses] == [422, 422, 422, 409]
    malformed = submit(client, visitor, HOLD, batch=open_tasks(client, visitor)["forecast"][0]["batch"])
    assert malformed.status_code == 422
    assert not Forecast.objects.filter(family__slug="visitor").exists()


def test_a_late_batch_is_gone_and_missed(client: Client, forecast_week: Venue, visitor: str, settings: Any) -> None:
    batch = QuestionBatch.objects.order_by("pk")[0].pk
    settings.ARENA_CLOCK = FORECASTS + 15 * MINUTE
    late = submit(client, visitor, {"forecasts": []}, batch=batch)
    assert late.status_code == 410
    ran = run("run_forecasts", FORECASTS + timedelta(hours=6))
    assert (ran["asked"], ran["failed"]) == (0, 0)
    missed = Elicitation.objects.filter(family__slug="visitor")
    assert list(missed.values_list("status", flat=True)) == ["missed", "missed"]


def test_token_covers_only_its_protocol(client: Client, venue: Venue, settings: Any) -> None:
    tokens = {}
    for protocol in ("trading", "forecast"):
        registered = register_external_agent(name=f"Only {protocol}", protocol=protocol, at=SUNDAY - MINUTE)
        tokens[protocol] = registered.token
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    run("run_forecasts", DECISION + MINUTE)
    settings.ARENA_CLOCK = IN_TIME
    others = {"trading": {"batch": QuestionBatch.objects.earliest("pk").pk}, "forecast": {"agent": 1, "universe": 1}}
    for protocol, token in tokens.items():
        tasks = open_tasks(client, token)
        assert {name for name in tokens if tasks[name]} == {protocol}
        problem(submit(client, token, HOLD, **others[protocol]), 403)
