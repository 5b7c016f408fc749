"""The spend cap and the pauses that operators set on the dashboard, and the runs that respect them at once."""

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Forecast, RunSetting
from arena_site.models import AuditEntry
from foundation.models import Run
from tests.answers import GPT
from tests.arena_site.dashboard.accounts import REASON, action_path, perform, sign_in
from tests.commands import DECISION, run
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.django_db
NOW = DECISION
FORECASTS = DECISION + timedelta(hours=2)


def start(venue: Venue) -> None:
    venue.market("Will it rain?")
    venue.start_first_cohort()


started = shared_rows_at_venue(start)


@pytest.fixture(autouse=True)
def cohort(started: tuple[Venue, None], venue: Venue) -> None:
    venue.as_left(started[0])


def test_cap_that_is_set_stops_the_run_and_its_removal_lets_it_go_on(venue: Venue) -> None:
    operator = sign_in("operator")
    perform(operator, "set-cap", protocol="trading", limit="0")
    stopped = run("run_decisions", DECISION)
    assert (stopped.code, stopped["completed"], len(venue.asked)) == (1, 0, 0)
    assert "spend cap reached: $0.00 of $0.00" in stopped.stderr
    page = operator.get("/admin/").context
    assert [f"{spending.week.cap:.2f}" for spending in page["overview"].spending] == ["0.00", "25.00"]
    assert [concern.action_path for concern in page["concerns"] if "spend cap" in concern.message] == [
        action_path("set-cap")
    ]

    perform(operator, "set-cap", protocol="trading", limit="")
    assert run("run_decisions", DECISION)["completed"] == 7
    removed, first = AuditEntry.objects.filter(action="set-cap")
    assert (first.by, first.reason, first.before, first.after) == ("operator", REASON, {"cap": None}, {"cap": "0.00"})
    assert removed.after == {"cap": None}


@pytest.mark.parametrize("limit", ["-1", "NaN", "1e20", "much"])
def test_cap_that_is_no_amount_is_an_error_of_the_form(limit: str) -> None:
    assert perform(sign_in("operator"), "set-cap", protocol="trading", limit=limit).status_code == 400
    assert not RunSetting.objects.exists()


@pytest.mark.parametrize(("command", "protocol", "at"), [
    ("run_decisions", "trading", DECISION), ("run_forecasts", "forecast", FORECASTS),
])  # fmt: skip
def test_paused_model_is_left_out_counted_and_named(venue: Venue, command: str, protocol: str, at: Any) -> None:
    operator = sign_in("operator")
    perform(operator, "pause-models", protocol=[protocol], family="gpt-5.1")
    ran = run(command, at)
    assert (ran.code, ran["paused"] > 0, ran["failed"]) == (0, True, 0)
    assert GPT not in {prompt.model for prompt in venue.asked}
    assert len({prompt.model for prompt in venue.asked}) == 6
    assert "paused by an operator" in str(Run.objects.get(kind=command).log)
    concerns = operator.get("/admin/").context["concerns"]
    assert [concern.message for concern in concerns if concern.button == "Resume"] != []

    venue.asked.clear()
    perform(operator, "resume-models", protocol=[protocol], family="gpt-5.1")
    assert run(command, at)["paused"] == 0
    assert {prompt.model for prompt in venue.asked} == {GPT}


def test_paused_protocol_asks_nobody_and_its_form_says_so(venue: Venue) -> None:
    operator = sign_in("operator")
    perform(operator, "pause-models", protocol=["trading"])
    assert run("run_decisions", DECISION)["paused"] == 7
    assert venue.asked == []
    assert not operator.get(action_path("run_decisions")).context["preview"].possible
    assert run("run_forecasts", FORECASTS)["paused"] == 0


def test_paused_condition_is_not_asked_and_the_pause_is_on_record(venue: Venue) -> None:
    operator = sign_in("operator")
    assert perform(operator, "pause-models", protocol=["trading", "forecast"], condition="blind").status_code == 302
    ran = run("run_forecasts", FORECASTS)
    assert (ran.code, ran["asked"]) == (0, 7)
    assert set(Forecast.objects.values_list("arm", flat=True)) == {"priced"}
    (concern,) = [row for row in operator.get("/admin/").context["concerns"] if row.button == "Resume"]
    assert concern.message == "Paused: forecasts under the condition blind"
    perform(operator, "resume-models", condition="blind", protocol=["forecast"])
    resumed, paused = AuditEntry.objects.filter(action__endswith="-models")
    assert (paused.by, paused.reason, paused.target) == ("operator", REASON, "forecasts under the condition blind")
    assert (paused.before, paused.after) == ({"blind": False}, {"blind": True})
    assert resumed.after == {"blind": False}


def test_pause_of_a_condition_is_neither_the_protocols_nor_its_cap(venue: Venue) -> None:
    operator = sign_in("operator")
    perform(operator, "pause-models", protocol=["forecast"], condition="search")
    assert run("run_forecasts", FORECASTS)["asked"] == 14
    form = {"protocol": ["forecast"]}
    assert operator.get(action_path("pause-models"), form).context["preview"].possible
    assert not operator.get(action_path("resume-models"), form).context["preview"].possible
    perform(operator, "set-cap", protocol="forecast", limit="7")
    perform(operator, "set-cap", protocol="forecast", limit="8")
    assert AuditEntry.objects.filter(action="set-cap")[0].before == {"cap": "7.00"}


@pytest.mark.parametrize("form", [{"condition": "nothing"}, {"condition": "blind", "family": "gpt-5.1"}])
def test_condition_that_is_none_or_of_one_model_is_an_error_of_the_form(form: dict[str, str]) -> None:
    assert perform(sign_in("operator"), "pause-models", protocol=["forecast"], **form).status_code == 400
    assert not RunSetting.objects.exists()
