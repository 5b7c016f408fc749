"""Every action by every role: its effect, its repetition, its permission and its audit entry."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core import serializers
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from selectolax.lexbor import LexborHTMLParser

from agents.models import (
    Agent,
    Application,
    Decision,
    Elicitation,
    Family,
    JournalEntry,
    LineUp,
    Maintenance,
    ModelCall,
    Position,
    Release,
    RunSetting,
)
from agents.services.lineups import propose_lineup
from agents.services.run_settings import begin_maintenance
from arena_site import jobs
from arena_site.dashboard.actions import ACTIONS, GROUPS
from arena_site.middleware.sealed_reads import READ_SEALED
from arena_site.models import AuditEntry, Worker
from cohorts.models import Cohort
from foundation.models import Alert, Run
from markets.models import Market, Question
from scoring.models import BrierScore
from tests.arena_site.dashboard.accounts import REASON, action_path, outcome_form, perform, sign_in
from tests.commands import run
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    FamilyFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    UniverseFactory,
    ask,
    bet,
    resolve,
)
from tests.markup import elements, get_page, visible_text
from tests.sandbox import Venue
from tests.selection import one_per_rule

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NOW = WEEK + timedelta(minutes=40)


NEWCOMER = "acme/anvil-2"


@pytest.fixture(autouse=True)
def channel(settings: Any) -> None:
    """One that nothing here sends by: the queue is not worked off."""
    settings.ARENA_ALERT_WEBHOOK = "http://127.0.0.1:1/"


@pytest.fixture(autouse=True)
def catalogue(request: pytest.FixtureRequest, settings: Any) -> None:
    """A gateway that lists a newcomer, for the action that adds one."""
    if "case" in request.fixturenames and request.getfixturevalue("case").name == "add-model":
        server = request.getfixturevalue("httpserver")
        row = {"id": NEWCOMER, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}
        server.expect_request("/models").respond_with_json({"data": [row]})
        settings.ARENA_LINEUP, settings.OPENROUTER_BASE_URL = "approve", server.url_for("")


def failed_decision() -> Decision:
    return DecisionFactory(failed=True, universe=UniverseFactory(markets=[MarketFactory()]))


def expired_claim() -> Decision:
    decision = DecisionFactory(
        status="claimed", action=None, decided_at=None, lease_id=uuid.uuid4(), lease_until=NOW - timedelta(hours=1)
    )
    ModelCallFactory(decision=decision, result="sent")
    return decision


def unresolved() -> tuple[Agent, Market]:
    """A closed market without a resolution, on which an agent bet 500 dollars at 0.40."""
    agent, market = AgentFactory(), MarketFactory(question="Did it happen?")
    bet(agent, market)
    market.status, market.closed_at, market.accepts_orders = Market.Status.CLOSED, WEEK, False
    market.save()
    return agent, market


def alert() -> Alert:
    return Alert.objects.create(kind="closed-unresolved", subject="1", message="Closed for long.", raised_at=WEEK)


def applicant() -> Application:
    return Application.objects.create(
        name="Guest", slug="guest", maker_name="Ada", address="ada@a.example", requested_at=WEEK, status="waiting"
    )


@dataclass(frozen=True)
class Case:
    """An action with something to do: its name, a function that prepares it and returns its form, and its effect."""

    name: str
    prepare: Callable[[], dict[str, Any]]
    effect: Callable[[], Any]
    role: str = "operator"


def queue() -> list[Any]:
    return sorted((message.task["func"], message.task["args"]) for message in OrmQ.objects.all())


def install_schedules(**values: Any) -> dict[str, Any]:
    jobs.install()
    Schedule.objects.filter(name__in=["sync", "scores"]).update(**values)
    return {"schedule": ["sync", "scores"]}


def settled() -> Market:
    _, market = unresolved()
    return resolve(market, "YES", at=WEEK)


def first_releases(number: int) -> list[int]:
    return list(Release.objects.order_by("pk").values_list("pk", flat=True)[:number])


def under_maintenance() -> dict[str, Any]:
    begin_maintenance("new disks", at=NOW)
    return {}


def propose() -> LineUp:
    releases = list(Release.objects.filter(pk__in=first_releases(6)))
    newcomer = FamilyFactory(slug="newcomer").releases.get()
    return propose_lineup(releases=[*releases, newcomer], by="ann", reason="a try", at=NOW)


def values(model: Any, *fields: str) -> Callable[[], Any]:
    return lambda: sorted(model.objects.values_list(*fields), key=str)


def paused_family() -> dict[str, Any]:
    RunSetting.objects.create(protocol="forecast", family=Family.objects.get(slug="grok-4"), paused=True)
    return {"protocol": ["forecast"], "family": "grok-4"}


JOBS = (
    "sync_markets", "check_resolutions", "take_snapshots", "compute_scores", "verify_ledger", "run_forecasts",
    "check_lineup", "reconcile_costs", "missed_decisions", "publish_archive", "send_alerts", "open_envelopes",
    "prune", "backup",
)  # fmt: skip
"""Actions that enqueue a job and need nothing to do."""
CASES = [
    *(Case(name, dict, queue) for name in JOBS),
    Case("run_decisions", lambda: {"decision": failed_decision().pk}, queue),
    Case("start_cohort", dict, values(Agent, "cohort__number", "family")),
    Case("retry", lambda: {"decision": [failed_decision().pk]}, queue),
    Case("release-claim", lambda: {"decision": expired_claim().pk}, values(Decision, "status")),
    Case(
        "settle",
        lambda: outcome_form(unresolved()[1], "YES"),
        values(Market, "status", "resolved_at", "winning_outcome"),
    ),
    Case("reverse", lambda: outcome_form(settled(), "NO"), values(Market, "status", "winning_outcome")),
    Case("void-week", lambda: {"cohort": CohortFactory().pk}, values(Cohort, "voided_at"), "administrator"),
    Case("add-model", lambda: {"model": NEWCOMER}, values(LineUp, "status")),
    Case("propose-line-up", lambda: {"release": first_releases(2)}, values(LineUp, "status")),
    Case("approve-line-up", lambda: {"line_up": propose().pk}, values(LineUp, "status"), "administrator"),
    Case("reject-line-up", lambda: {"line_up": propose().pk}, values(LineUp, "status"), "administrator"),
    Case("approve-agent", lambda: {"application": applicant().pk}, values(Application, "status")),
    Case("reject-agent", lambda: {"application": applicant().pk}, values(Application, "status")),
    Case("acknowledge", lambda: {"alert": [alert().pk]}, values(Alert, "cleared_at")),
    Case("test-alert", dict, lambda: (values(Alert, "kind")(), queue())),
    Case("pause", install_schedules, values(Schedule, "name", "repeats")),
    Case("resume", lambda: install_schedules(repeats=0), values(Schedule, "name", "repeats")),
    Case("set-cap", lambda: {"protocol": "trading", "limit": "12.50"}, values(RunSetting, "spend_limit_usd")),
    Case("pause-models", lambda: {"protocol": ["trading"], "family": "grok-4"}, values(RunSetting, "paused")),
    Case("resume-models", paused_family, values(RunSetting, "paused")),
    Case("maintenance", dict, values(Maintenance, "is_open")),
    Case("end-maintenance", under_maintenance, values(Maintenance, "is_open")),
    Case("withdraw", lambda: {"family": "grok-4"}, values(Family, "slug", "active")),
]


def name_of(case: Case) -> str:
    return case.name


def rule_of(case: Case) -> str:
    """Actions that enqueue a job are alike."""
    return "job" if case.name in JOBS else case.name


def group_of(case: Case) -> str:
    return next(group for group, names in GROUPS.items() if case.name in names)


each_action = pytest.mark.parametrize("case", one_per_rule(CASES, rule_of), ids=name_of)
each_group = pytest.mark.parametrize("case", one_per_rule(CASES, group_of), ids=name_of)
"""For what holds of an action whatever it does."""


def all_rows() -> str:
    """All rows that an action could change, as text."""
    models = (
        Run, OrmQ, Schedule, Cohort, Agent, Decision, ModelCall, Elicitation, Market, Question, Position, JournalEntry,
        BrierScore, Alert, Application, Family, LineUp, AuditEntry, RunSetting,
    )  # fmt: skip
    return serializers.serialize("json", [row for model in models for row in model._default_manager.order_by("pk")])


def test_every_action_has_a_case() -> None:
    assert {case.name for case in CASES} == set(ACTIONS) - {READ_SEALED}, "which changes nothing but what one may read"


@each_action
def test_action_is_performed_once_after_its_preview_and_a_repeat_changes_nothing(case: Case) -> None:
    operator, form = sign_in(case.role), case.prepare()
    before, rows = case.effect(), all_rows()
    page = operator.get(action_path(case.name), {**form, "preview": 1, "confirmed": "yes", "reason": "x"})
    assert page.status_code == 200
    assert page.context["preview"].possible, page.context["preview"].summary
    assert all_rows() == rows

    assert perform(operator, case.name, **form).status_code == 302
    after = case.effect()
    assert after != before

    assert perform(operator, case.name, **form).status_code in (200, 302)
    assert case.effect() == after
    repeat, first = AuditEntry.objects.all()[:2]
    assert (first.action, first.by, first.reason, first.result) == (case.name, case.role, REASON, "done")
    assert (repeat.result, repeat.before) == ("unchanged", repeat.after)


@each_group
def test_administrator_performs_a_confirmed_action_with_a_reason_and_nobody_below_its_role(
    client: Client, case: Case
) -> None:
    viewer, administrator, form = sign_in("viewer"), sign_in("administrator"), case.prepare()
    before, rows = case.effect(), all_rows()
    for response in (client.get(action_path(case.name), form), perform(client, case.name, **form)):
        assert response.status_code == 302
        assert response.headers["Location"].startswith("/admin/login/")
    client.force_login(User.objects.create_user("reader"))
    assert perform(client, case.name, **form).status_code == 302
    assert viewer.get(action_path(case.name), form).status_code == 403
    assert administrator.get(action_path(case.name)).status_code == 200
    assert administrator.post(action_path(case.name), {**form, "reason": REASON}).status_code == 200, "unconfirmed"
    assert perform(administrator, case.name, reason="  ", **form).status_code == 400
    assert all_rows() == rows
    assert perform(viewer, case.name, **form).status_code == 403
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.result, entry.reason) == (case.name, "viewer", "refused", REASON)
    assert case.effect() == before
    performed = administrator.post(action_path(case.name), {**form, "reason": REASON, "confirmed": "yes"}, follow=True)
    assert performed.status_code == 200
    assert AuditEntry.objects.all()[0].message in [str(message) for message in performed.context["messages"]]
    assert case.effect() != before


def test_action_needs_a_csrf_token() -> None:
    operator = sign_in("operator", enforce_csrf_checks=True)
    assert perform(operator, "sync_markets").status_code == 403
    assert queue() == []
    operator.get(action_path("sync_markets"))
    token = operator.cookies["csrftoken"].value
    assert perform(operator, "sync_markets", csrfmiddlewaretoken=token).status_code == 302
    assert queue() == [("arena_site.jobs.sync", ())]


@pytest.mark.parametrize("name", ["no-such-action", "delete-everything"])
def test_unknown_action_is_not_found(name: str) -> None:
    assert sign_in("operator").get(action_path(name)).status_code == 404


@pytest.mark.parametrize("row_id", ["x", "0", "9" * 30, "-1"])
def test_unknown_row_is_an_error_of_the_form(row_id: str) -> None:
    operator = sign_in("operator")
    assert operator.get(action_path("retry"), {"decision": row_id}).context["form"].errors
    assert perform(operator, "retry", decision=row_id).status_code == 400
    assert perform(operator, "settle", market=row_id, result="cancelled", source="x").status_code == 400


def test_live_worker_needs_no_warning() -> None:
    operator = sign_in("operator")
    assert "No worker" in operator.get(action_path("sync_markets")).context["preview"].warning
    Worker.objects.create(name="one", seen_at=NOW - timedelta(seconds=20))
    assert operator.get(action_path("sync_markets")).context["preview"].warning == ""


def test_active_run_is_not_enqueued_again() -> None:
    Run.objects.create(kind="sync_markets", at=NOW, started_at=NOW - timedelta(minutes=1))
    operator = sign_in("operator")
    assert not operator.get(action_path("sync_markets")).context["preview"].possible
    perform(operator, "sync_markets")
    assert queue() == []
    assert AuditEntry.objects.get().result == "unchanged"


def test_preview_names_agents_and_the_expected_cost() -> None:
    decision = failed_decision()
    preview = sign_in("operator").get(action_path("run_decisions")).context["preview"]
    (queued,) = preview.details
    assert queued.startswith(f"{decision.agent.display_name} ({decision.agent.model_id}), cohort 1: $0.")
    assert queued.endswith(" a call (assumed)")
    assert preview.summary.startswith("1 would be asked, 0 have decided. Expected cost: $0.0")


def test_no_decision_is_asked_for_on_a_monday() -> None:
    failed_decision()
    with time_machine.travel(WEEK + timedelta(days=1, minutes=6), tick=False):
        operator = sign_in("operator")
        assert "Monday" in operator.get(action_path("run_decisions")).context["preview"].summary
        decision = Decision.objects.get()
        assert (
            "window ended" in operator.get(action_path("retry"), {"decision": decision.pk}).context["preview"].summary
        )
        perform(operator, "retry", decision=decision.pk)
    assert queue() == []


def test_retried_decision_asks_that_agent_alone(venue: Venue) -> None:
    venue.market("Will it rain?")
    jobs.sync()
    jobs.cohort()
    venue.asked.clear()
    first, second = Agent.objects.all()[:2]
    universe = UniverseFactory(markets=list(Market.objects.all()))
    for agent in (first, second):
        DecisionFactory(agent=agent, failed=True, universe=universe)
    perform(sign_in("operator"), "retry", decision=second.decisions.get().pk)
    (message,) = OrmQ.objects.all()
    getattr(jobs, message.task["func"].rpartition(".")[2])(*message.task["args"])
    assert [prompt.model for prompt in venue.asked] == [second.model_id]
    assert second.decisions.get().status == "completed"
    assert first.decisions.get().status == "failed"


def test_chosen_decisions_of_a_list_are_retried_together() -> None:
    universe = UniverseFactory(markets=[MarketFactory()])
    cohort = AgentFactory().cohort
    failed = [DecisionFactory(agent=AgentFactory(cohort=cohort), failed=True, universe=universe) for _ in range(2)]
    decided = DecisionFactory(agent=AgentFactory(cohort=cohort), universe=universe)
    operator = sign_in("operator")
    form = {"action": "retry", "_selected_action": [decision.pk for decision in (*failed, decided)]}
    page = operator.post(reverse("admin:agents_decision_changelist"), form, follow=True)
    preview = page.context["preview"]
    assert preview.summary.startswith("2 of 3 are asked again")
    assert f"{decided}: It is completed: there is nothing to retry." in preview.details
    perform(operator, "retry", decision=[decision.pk for decision in (*failed, decided)])
    queued = [("arena_site.jobs.decision", (cohort.number, decision.agent.family.slug)) for decision in failed]
    assert queue() == sorted(queued)


def test_all_failed_question_batches_of_the_week_are_retried() -> None:
    batch = ask(QuestionFactory(), {"gpt-5.1": [0.6, 0.4]}).question_set.batches.get(arm="priced")
    decided = batch.elicitations.get()
    release = Release.objects.exclude(family=decided.family).earliest("pk")
    Elicitation.objects.create(
        batch=batch,
        methodology=decided.methodology,
        release=release,
        family=release.family,
        status="failed",
        error="down",
    )
    operator = sign_in("operator")
    assert operator.get(action_path("retry"), {"kind": "elicitation"}).context["preview"].possible
    perform(operator, "retry", kind="elicitation")
    assert queue() == [("arena_site.jobs.forecasts", ())]
    assert perform(operator, "retry", kind="decision").status_code == 400


def test_live_claim_is_not_released() -> None:
    decision = expired_claim()
    Decision.objects.update(lease_until=timezone.now() + timedelta(minutes=1))
    perform(sign_in("operator"), "release-claim", decision=decision.pk)
    decision.refresh_from_db()
    assert (decision.status, decision.calls.get().result) == ("claimed", "sent")


def test_released_claim_leaves_its_request_as_lost() -> None:
    decision = expired_claim()
    perform(sign_in("operator"), "release-claim", decision=decision.pk)
    decision.refresh_from_db()
    assert (decision.status, decision.lease_id, decision.calls.get().result) == ("failed", None, "lost")
    assert decision.error == f"its claim was released by operator: {REASON}"


def test_manual_settlement_pays_scores_and_keeps_the_ledger_consistent() -> None:
    agent, market = unresolved()
    perform(sign_in("operator"), "settle", **outcome_form(market, "YES"))
    market.refresh_from_db()
    agent.refresh_from_db()
    assert (market.status, market.winning_side, market.resolved_at) == ("resolved", "YES", NOW)
    assert agent.cash == Decimal("10750.00")
    assert BrierScore.objects.get().outcome
    entry = AuditEntry.objects.get()
    assert entry.form_data["source"] == "the venue"
    assert (entry.before["status"], entry.after["status"], entry.after["winner"]) == ("closed", "resolved", "YES")
    assert entry.path == reverse("admin:markets_market_change", args=[market.pk])


def test_manual_cancellation_refunds_every_cost_basis() -> None:
    agent, market = unresolved()
    perform(sign_in("operator"), "settle", **outcome_form(market, None))
    agent.refresh_from_db()
    assert agent.cash == Decimal("10000.00")
    assert Market.objects.get().status == "cancelled"


def test_manual_settlement_resolves_the_markets_questions() -> None:
    _, market = unresolved()
    question = QuestionFactory(markets=[market])
    perform(sign_in("operator"), "settle", **outcome_form(market, "NO"))
    question.refresh_from_db()
    assert question.status == "resolved"


def test_open_market_is_not_settled_manually() -> None:
    market = MarketFactory()
    perform(sign_in("operator"), "settle", **outcome_form(market, "YES"))
    market.refresh_from_db()
    assert market.status == "active"
    assert "still open" in AuditEntry.objects.get().message


@pytest.mark.parametrize("name", ["settle", "reverse"])
def test_form_offers_the_markets_to_act_on_and_a_link_may_name_any(name: str) -> None:
    _, closed = unresolved()
    final, untraded = settled(), MarketFactory(closed=True)
    operator = sign_in("operator")
    offered, refused = (closed, final) if name == "settle" else (final, closed)

    def page(**query: Any) -> LexborHTMLParser:
        return get_page(operator, f"{action_path(name)}?{urlencode(query)}")

    def options(page: LexborHTMLParser) -> list[str | None]:
        return [option.attributes["value"] for option in elements(page, "select[name=market] option")]

    assert options(page()) == ["", str(offered.pk)]
    assert elements(page(), "[name=result]") == []
    form = page(market=offered.pk, preview=1)
    assert len(elements(form, "input[name=result]")) == 3
    assert elements(form, ".errorlist") == []
    assert options(page(market=refused.pk)) == ["", str(offered.pk), str(refused.pk)]
    assert options(page(market=untraded.pk)) == ["", str(offered.pk), str(untraded.pk)]


def test_form_offers_the_interrupted_tasks_and_no_others() -> None:
    interrupted = expired_claim()
    failed_decision()
    page = get_page(sign_in("operator"), action_path("release-claim"))
    offered = [option.attributes["value"] for option in elements(page, "select[name=decision] option")]
    assert offered == ["", str(interrupted.pk)]
    assert "There is no question batch to act on" in visible_text(page)


@pytest.mark.parametrize("name", ["approve-line-up", "reject-line-up"])
def test_form_offers_the_proposed_line_ups(name: str) -> None:
    proposed = propose()
    page = get_page(sign_in("administrator"), action_path(name))
    options = [option.attributes["value"] for option in elements(page, "select[name=line_up] option")]
    assert options == ["", str(proposed.pk)]


def test_test_alert_takes_the_way_of_every_alert(settings: Any, mailoutbox: list[Any]) -> None:
    settings.ARENA_ALERT_WEBHOOK, settings.ARENA_ALERT_EMAIL = "", ["ops@example.org"]
    operator = sign_in("operator")
    assert "mail never" in visible_text(get_page(operator, "/admin/"), "#alerts")
    perform(operator, "test-alert")
    run("send_alerts", NOW)
    assert ["A test alert, sent by operator" in mail.subject for mail in mailoutbox] == [True]
    assert "mail just now" in visible_text(get_page(operator, "/admin/"), "#alerts")
    settings.ARENA_ALERT_EMAIL = []
    assert "No channel" in operator.get(action_path("test-alert")).context["preview"].summary


def test_every_action_is_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(ACTIONS)


def test_every_job_with_a_title_has_an_action() -> None:
    assert {job.command or job.function for job in jobs.JOBS if job.title} <= set(ACTIONS)


def test_another_markets_outcome_is_refused() -> None:
    _, market = unresolved()
    other_outcome = MarketFactory().outcomes.get(side="YES")
    response = perform(
        sign_in("operator"), "settle", market=market.pk, result=f"outcome-{other_outcome.pk}", source="x"
    )
    assert response.status_code == 400
    assert Market.objects.get(pk=market.pk).status == "closed"


def test_paused_schedule_stays_paused_across_a_restart() -> None:
    perform(sign_in("operator"), "pause", **install_schedules())
    jobs.install()
    assert Schedule.objects.get(name="sync").repeats == 0
    assert Schedule.objects.get(name="snapshots").repeats == -1


def test_withdrawn_family_finishes_its_cohort_and_enters_no_new_one() -> None:
    jobs.cohort()
    perform(sign_in("operator"), "withdraw", family="grok-4")
    with time_machine.travel(WEEK + timedelta(weeks=1, hours=1), tick=False):
        jobs.cohort()
    first, second = Cohort.objects.order_by("number")
    assert (first.agents.count(), second.agents.count()) == (7, 6)
    assert not second.agents.filter(family__slug="grok-4").exists()


def test_family_withdrawn_by_command_at_once_decides_no_more(venue: Venue) -> None:
    venue.market("Will it rain?")
    for command in ("sync_markets", "start_cohort"):
        run(command, NOW)
    assert run("withdraw_family", NOW, "grok-5", reason="gone").code == 2
    for changed in (True, False):
        assert run("withdraw_family", NOW, "grok-4", now=True, reason="its maker asked")["changed"] is changed
    output = run("run_decisions", NOW)
    assert (output["completed"], output["paused"]) == (6, 1)
    entry = AuditEntry.objects.earliest("pk")
    assert (entry.action, entry.by, entry.reason, entry.target) == (
        "withdraw", "manage.py", "its maker asked", "Grok 4.1",
    )  # fmt: skip
    assert (entry.before, entry.after) == (
        {"active": True, "trading paused": False}, {"active": False, "trading paused": True},
    )  # fmt: skip


def test_text_of_a_venue_is_escaped_on_an_actions_page() -> None:
    _, market = unresolved()
    Market.objects.update(question="<script>alert(1)</script>")
    text = sign_in("operator").get(action_path("settle"), outcome_form(market, "YES")).content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_audit_log_is_read_only(admin_client: Client) -> None:
    perform(sign_in("operator"), "sync_markets", reason="=HYPERLINK(1)")
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


def test_audit_entries_are_dated_by_the_real_clock(settings: Any) -> None:
    settings.ARENA_CLOCK = datetime(2026, 4, 12, 0, 6, tzinfo=UTC)
    perform(sign_in("operator"), "start_cohort")
    assert Cohort.objects.get().week_start == datetime(2026, 4, 12, tzinfo=UTC)
    assert AuditEntry.objects.get().at == NOW


def test_action_renews_last_modified_of_the_api(client: Client) -> None:
    def changed() -> str:
        return client.get("/api/v1/cohorts/").headers["Last-Modified"]

    with time_machine.travel(NOW + timedelta(days=400), tick=False):
        before = changed()
    with time_machine.travel(NOW + timedelta(days=400, minutes=1), tick=False):
        perform(sign_in("operator"), "start_cohort")
    with time_machine.travel(NOW + timedelta(days=400, minutes=2), tick=False):
        assert changed() != before
