"""Every act by every role: what it changes, once, who may, and what the audit log says of it."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from agents.models import Agent, Decision, Elicitation, Family, JournalEntry, ModelCall, Position
from agents.services.audit import verify_ledger
from arena_site import jobs
from arena_site.dashboard.actions import ACTIONS
from arena_site.models import AuditEntry, OperatorToken, Worker
from cohorts.models import Cohort
from markets.models import Alert, Market, Question, Run
from scoring.models import BrierScore, Export
from tests.arena_site.dashboard.people import REASON, do, page, person, signed_in, token_of
from tests.factories import (
    WEEK,
    AgentFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    UniverseFactory,
    bet,
)
from tests.venue import Venue

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(minutes=40)


@pytest.fixture(autouse=True)
def _sunday_night() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


def failed() -> Decision:
    market = MarketFactory()
    universe = UniverseFactory(markets=[market])
    return DecisionFactory(failed=True, universe=universe)


def dead_claim() -> Decision:
    decision = DecisionFactory(
        status="claimed", action=None, decided_at=None, lease_id=uuid.uuid4(), lease_until=NOW - timedelta(hours=1)
    )
    ModelCallFactory(decision=decision, result="sent")
    return decision


def stuck() -> tuple[Agent, Market]:
    """A closed market without an end, on which an agent bet 500 dollars at 0.40."""
    agent, market = AgentFactory(), MarketFactory(question="Did it happen?")
    bet(agent, market)
    market.status, market.closed_at, market.accepts_orders = Market.Status.CLOSED, WEEK, False
    market.save()
    return agent, market


def alert() -> Alert:
    return Alert.objects.create(kind="closed-unresolved", subject="1", message="Closed for long.", raised_at=WEEK)


@dataclass(frozen=True)
class Case:
    """An act that has something to do, and what shows that it did it."""

    name: str
    scene: Callable[[], dict[str, Any]]
    shows: Callable[[], Any]


def end(market: Market, side: str) -> dict[str, Any]:
    return {"market": market.pk, "result": f"outcome-{market.outcomes.get(side=side).pk}", "source": "the venue's page"}


def queue() -> list[Any]:
    return sorted((message.task["func"], message.task["args"]) for message in OrmQ.objects.all())


def installed(**changed: Any) -> dict[str, Any]:
    jobs.install()
    Schedule.objects.filter(name__in=["sync", "scores"]).update(**changed)
    return {"schedule": ["sync", "scores"]}


def nobody() -> dict[str, Any]:
    return {}


def deciding() -> dict[str, Any]:
    failed()
    return {}


def forecasting() -> dict[str, Any]:
    return {}


def schedules() -> Any:
    return sorted(Schedule.objects.values_list("name", "repeats"))


def made_token() -> OperatorToken:
    token_of(person("ann"))
    return OperatorToken.objects.get()


def tokens() -> Any:
    return sorted(OperatorToken.objects.values_list("name", "owner__username", "revoked_at"))


CASES = [
    Case("sync", nobody, queue),
    Case("resolutions", nobody, queue),
    Case("snapshot", nobody, queue),
    Case("scores", nobody, queue),
    Case("ledger", nobody, queue),
    Case("decisions", deciding, queue),
    Case("forecasts", forecasting, queue),
    Case("start-cohort", nobody, lambda: (Cohort.objects.count(), Agent.objects.count())),
    Case("export", lambda: {"formats": ["csv"]}, lambda: (Export.objects.count(), queue())),
    Case("retry-decision", lambda: {"decision": failed().pk}, queue),
    Case("release-claim", lambda: {"decision": dead_claim().pk}, lambda: list(Decision.objects.values_list("status"))),
    Case(
        "settle",
        lambda: end(stuck()[1], "YES"),
        lambda: list(Market.objects.values_list("status", "resolved_at", "winning_outcome")),
    ),
    Case("acknowledge", lambda: {"alert": [alert().pk]}, lambda: list(Alert.objects.values_list("cleared_at"))),
    Case("pause", installed, schedules),
    Case("resume", lambda: installed(repeats=0), schedules),
    Case("make-token", lambda: {"name": "nightly", "scope": "exports", "days": 90}, tokens),
    Case("revoke-token", lambda: {"token": made_token().pk}, tokens),
    Case("withdraw", lambda: {"family": "grok-4"}, lambda: sorted(Family.objects.values_list("slug", "active"))),
]


def everything() -> str:
    """All rows that an act could touch, as text."""
    models = (
        Run, OrmQ, Schedule, Cohort, Agent, Decision, ModelCall, Elicitation, Market, Question, Position, JournalEntry,
        BrierScore, Alert, Family, Export, AuditEntry, OperatorToken,
    )  # fmt: skip
    return serializers.serialize("json", [row for model in models for row in model._default_manager.order_by("pk")])


def test_every_act_is_walked_here() -> None:
    elsewhere = {name for name, act in ACTIONS.items() if type(act).__module__.endswith((".lineups", ".reversals"))}
    assert {case.name for case in CASES} == set(ACTIONS) - elsewhere


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_acts_once_and_a_repeat_changes_nothing(case: Case) -> None:
    operator, asked = signed_in("operator"), case.scene()
    before = case.shows()
    shown = operator.get(page(case.name), asked)
    assert shown.status_code == 200
    assert shown.context["preview"].possible, shown.context["preview"].summary
    assert case.shows() == before

    # A token is shown on the page that answers; all else leads to where it is to be seen.
    assert do(operator, case.name, **asked).status_code == (200 if case.name == "make-token" else 302)
    after = case.shows()
    assert after != before

    again = operator.post(page(case.name), {**asked, "reason": REASON, "confirmed": "yes"}, follow=True)
    assert again.status_code == 200
    assert case.shows() == after
    repeat, first = AuditEntry.objects.all()[:2]
    assert (first.action, first.by, first.reason, first.result) == (case.name, "operator", REASON, "done")
    assert (repeat.result, repeat.before) == ("unchanged", repeat.after)
    assert repeat.message in [str(message) for message in again.context["messages"]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_may_not_is_refused_and_the_attempt_is_on_record(case: Case) -> None:
    viewer, asked = signed_in("viewer"), case.scene()
    before = case.shows()
    assert viewer.get(page(case.name), asked).status_code == 403
    assert not AuditEntry.objects.exists()
    assert do(viewer, case.name, **asked).status_code == 403
    assert case.shows() == before
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.result, entry.reason) == (case.name, "viewer", "refused", REASON)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stranger_is_sent_to_the_login_and_leaves_nothing(client: Client, case: Case) -> None:
    asked = case.scene()
    before = everything()
    for answer in (client.get(page(case.name), asked), do(client, case.name, **asked)):
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/admin/login/")
    client.force_login(User.objects.create_user("reader"))
    assert do(client, case.name, **asked).status_code == 302
    assert everything() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_looking_changes_nothing_and_neither_does_a_post_that_confirms_nothing(case: Case) -> None:
    administrator, asked = signed_in("administrator"), case.scene()
    before = everything()
    assert administrator.get(page(case.name)).status_code == 200
    assert (
        administrator.get(page(case.name), {**asked, "asked": 1, "confirmed": "yes", "reason": "x"}).status_code == 200
    )
    assert administrator.post(page(case.name), {**asked, "reason": REASON}).status_code == 200
    assert do(administrator, case.name, reason="  ", **asked).status_code == 400
    assert everything() == before


def test_an_administrator_may_do_what_an_operator_may() -> None:
    assert do(signed_in("administrator"), "sync").status_code == 302
    assert queue() == [("arena_site.jobs.sync", ())]


def test_an_act_needs_the_token_of_its_page() -> None:
    operator = signed_in("operator", enforce_csrf_checks=True)
    assert do(operator, "sync").status_code == 403
    assert queue() == []
    operator.get(page("sync"))
    token = operator.cookies["csrftoken"].value
    assert do(operator, "sync", csrfmiddlewaretoken=token).status_code == 302
    assert queue() == [("arena_site.jobs.sync", ())]


@pytest.mark.parametrize("name", ["no-such-act", "delete-everything"])
def test_an_act_that_is_none_is_not_found(name: str) -> None:
    assert signed_in("operator").get(page(name)).status_code == 404


@pytest.mark.parametrize("asked", [{"decision": "x"}, {"decision": "0"}, {"decision": "9" * 30}, {"decision": "-1"}])
def test_a_row_that_is_none_is_said_so(asked: dict[str, str]) -> None:
    operator = signed_in("operator")
    assert operator.get(page("retry-decision"), asked).context["form"].errors
    assert do(operator, "retry-decision", **asked).status_code == 400
    assert do(operator, "settle", market=asked["decision"], result="cancelled", source="x").status_code == 400


def test_a_worker_that_is_there_needs_no_warning() -> None:
    operator = signed_in("operator")
    assert "No worker" in operator.get(page("sync")).context["preview"].warning
    Worker.objects.create(name="one", seen_at=NOW - timedelta(seconds=20))
    assert operator.get(page("sync")).context["preview"].warning == ""


def test_a_run_that_is_under_way_is_not_rung_again() -> None:
    Run.objects.create(kind="sync_markets", at=NOW, started_at=NOW - timedelta(minutes=1))
    operator = signed_in("operator")
    assert not operator.get(page("sync")).context["preview"].possible
    do(operator, "sync")
    assert queue() == []
    assert AuditEntry.objects.get().result == "unchanged"


def test_a_dry_run_says_who_would_be_asked_and_what_it_may_cost() -> None:
    decision = failed()
    preview = signed_in("operator").get(page("decisions")).context["preview"]
    assert preview.details == [f"{decision.agent.display_name} ({decision.agent.model_id}), cohort 1"]
    assert preview.summary.startswith("1 would be asked, 0 have decided. Expected cost: $0.0")


def test_nobody_is_asked_on_a_monday() -> None:
    failed()
    with time_machine.travel(WEEK + timedelta(days=1, minutes=6), tick=False):
        operator = signed_in("operator")
        assert "Monday" in operator.get(page("decisions")).context["preview"].summary
        decision = Decision.objects.get()
        assert (
            "window ended" in operator.get(page("retry-decision"), {"decision": decision.pk}).context["preview"].summary
        )
        do(operator, "retry-decision", decision=decision.pk)
    assert queue() == []


def test_what_is_rung_for_a_decision_asks_that_agent_alone(venue: Venue) -> None:
    venue.market("Will it rain?")
    jobs.sync()
    jobs.cohort()
    venue.asked.clear()
    first, second = Agent.objects.all()[:2]
    universe = UniverseFactory(markets=list(Market.objects.all()))
    for agent in (first, second):
        DecisionFactory(agent=agent, failed=True, universe=universe)
    do(signed_in("operator"), "retry-decision", decision=second.decisions.get().pk)
    (message,) = OrmQ.objects.all()
    getattr(jobs, message.task["func"].rpartition(".")[2])(*message.task["args"])
    assert [prompt.model for prompt in venue.asked] == [second.model_id]
    assert second.decisions.get().status == "completed"
    assert first.decisions.get().status == "failed"


def test_a_live_claim_is_not_released() -> None:
    decision = dead_claim()
    Decision.objects.update(lease_until=timezone.now() + timedelta(minutes=1))
    do(signed_in("operator"), "release-claim", decision=decision.pk)
    decision.refresh_from_db()
    assert (decision.status, decision.calls.get().result) == ("claimed", "sent")


def test_a_released_claim_leaves_its_request_as_lost_and_can_be_claimed() -> None:
    decision = dead_claim()
    do(signed_in("operator"), "release-claim", decision=decision.pk)
    decision.refresh_from_db()
    assert (decision.status, decision.lease_id, decision.calls.get().result) == ("failed", None, "lost")
    assert decision.error == f"its claim was released by operator: {REASON}"


def test_a_market_settled_by_hand_pays_scores_and_leaves_sound_books() -> None:
    agent, market = stuck()
    do(signed_in("operator"), "settle", **end(market, "YES"))
    market.refresh_from_db()
    agent.refresh_from_db()
    assert (market.status, market.winning_side, market.resolved_at) == ("resolved", "YES", NOW)
    assert agent.cash == Decimal("10750.00")
    assert BrierScore.objects.get().outcome
    assert verify_ledger().violations == []
    entry = AuditEntry.objects.get()
    assert entry.form_data["source"] == "the venue's page"
    assert (entry.before["status"], entry.after["status"], entry.after["winner"]) == ("closed", "resolved", "YES")
    assert entry.path == reverse("admin:markets_market_change", args=[market.pk])


def test_a_market_cancelled_by_hand_gives_every_cost_basis_back() -> None:
    agent, market = stuck()
    do(signed_in("operator"), "settle", market=market.pk, result="cancelled", source="the venue")
    agent.refresh_from_db()
    assert agent.cash == Decimal("10000.00")
    assert Market.objects.get().status == "cancelled"


def test_its_questions_end_with_a_market_settled_by_hand() -> None:
    _, market = stuck()
    question = QuestionFactory(markets=[market])
    do(signed_in("operator"), "settle", **end(market, "NO"))
    question.refresh_from_db()
    assert question.status == "resolved"


def test_an_open_market_is_not_settled_by_hand() -> None:
    market = MarketFactory()
    do(signed_in("operator"), "settle", **end(market, "YES"))
    market.refresh_from_db()
    assert market.status == "active"
    assert "still open" in AuditEntry.objects.get().message


def test_another_market_s_outcome_is_no_end() -> None:
    _, market = stuck()
    other = MarketFactory().outcomes.get(side="YES")
    answer = do(signed_in("operator"), "settle", market=market.pk, result=f"outcome-{other.pk}", source="x")
    assert answer.status_code == 400
    assert Market.objects.get(pk=market.pk).status == "closed"


def test_a_paused_schedule_stays_paused_when_the_arena_starts_anew() -> None:
    do(signed_in("operator"), "pause", **installed())
    jobs.install()
    assert Schedule.objects.get(name="sync").repeats == 0
    assert Schedule.objects.get(name="snapshots").repeats == -1


def test_a_withdrawn_family_plays_on_but_enters_no_new_cohort() -> None:
    jobs.cohort()
    do(signed_in("operator"), "withdraw", family="grok-4")
    with time_machine.travel(WEEK + timedelta(weeks=1, hours=1), tick=False):
        jobs.cohort()
    first, second = Cohort.objects.order_by("number")
    assert (first.agents.count(), second.agents.count()) == (7, 6)
    assert not second.agents.filter(family__slug="grok-4").exists()


def test_an_archive_asked_for_at_the_desk_is_of_what_was_asked() -> None:
    jobs.cohort()
    do(signed_in("operator"), "export", cohort=1, formats=["csv", "parquet"])
    export = Export.objects.get()
    assert (export.selection, export.requested_by) == ("cohort 1 as csv,parquet", "operator")
    assert queue() == [("arena_site.jobs.export", (export.pk,))]


def test_what_an_outsider_wrote_is_escaped_on_an_act_s_page() -> None:
    _, market = stuck()
    Market.objects.update(question="<script>alert(1)</script>")
    text = signed_in("operator").get(page("settle"), end(market, "YES")).content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_audit_log_is_read_and_never_written(admin_client: Client) -> None:
    do(signed_in("operator"), "sync", reason="=HYPERLINK(1)")
    entry = AuditEntry.objects.get()
    address = reverse("admin:arena_site_auditentry_change", args=[entry.pk])
    assert REASON not in admin_client.get(address).content.decode()
    assert "=HYPERLINK(1)" in admin_client.get(address).content.decode()
    assert admin_client.post(address, {"reason": "other"}).status_code == 403
    assert (
        admin_client.post(reverse("admin:arena_site_auditentry_delete", args=[entry.pk]), {"post": "yes"}).status_code
        == 403
    )
    assert json.loads(json.dumps(entry.before)) == entry.before


def test_acts_are_dated_by_the_real_clock_whatever_season_is_shown(settings: Any) -> None:
    settings.ARENA_CLOCK = datetime(2026, 4, 12, 0, 6, tzinfo=UTC)
    do(signed_in("operator"), "start-cohort")
    assert Cohort.objects.get().week_start == datetime(2026, 4, 12, tzinfo=UTC)
    assert AuditEntry.objects.get().at == NOW


def test_the_api_tells_that_an_act_has_changed_rows(client: Client) -> None:
    def changed() -> str:
        return client.get("/api/v1/cohorts/").headers["Last-Modified"]

    with time_machine.travel(NOW + timedelta(days=400), tick=False):
        before = changed()
    with time_machine.travel(NOW + timedelta(days=400, minutes=1), tick=False):
        do(signed_in("operator"), "start-cohort")
    with time_machine.travel(NOW + timedelta(days=400, minutes=2), tick=False):
        assert changed() != before
