"""JSON logs: each step of a decision on a line of its own, with its agent."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Decision
from arena_site import logs
from tests.answers import GPT
from tests.arena_site.dashboard.accounts import sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue
from venue_sandbox.script import Failure


def test_a_record_is_one_line_of_json_with_its_fields_and_traceback() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        fields = {"cohort": 3}
        record = logging.getLogger("agents").makeRecord(
            "agents", logging.INFO, "f.py", 1, "asked %s", ("x\ny",), sys.exc_info(), extra=fields
        )
    (line,) = logs.JsonFormatter().format(record).split("\n")
    entry = json.loads(line)
    assert (entry["message"], entry["level"], entry["logger"], entry["cohort"]) == ("asked x\ny", "info", "agents", 3)
    assert entry["time"].endswith("Z")
    assert "ValueError: two" in entry["traceback"]


@pytest.mark.django_db
def test_each_step_of_a_decision_names_its_cohort_agent_and_decision(
    venue: Venue, caplog: pytest.LogCaptureFixture
) -> None:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    venue.says(GPT, Failure(503))
    with caplog.at_level(logging.INFO, logger="agents"):
        run("run_decisions", DECISION)
    lines = [
        json.loads(logs.JsonFormatter().format(record)) for record in caplog.records if record.name.startswith("agents")
    ]
    steps: dict[int, list[str]] = {}
    for line in lines:
        steps.setdefault(line["decision"], []).append(line["message"])
    for decision in Decision.objects.select_related("agent__family"):
        failed = decision.agent.family.slug == "gpt-5.1"
        ending = ["failed", "failed"] if failed else ["answered", "executed"]
        assert steps[decision.pk] == ["claimed", "asked", *ending]
    assert {(line["cohort"], line["week"]) for line in lines} == {(1, 1)}
    assert {line["agent"] for line in lines} == set(Decision.objects.values_list("agent", flat=True))
    assert "503" in next(line["reason"] for line in lines if line["message"] == "failed")


@contextmanager
def logged(form: str) -> Iterator[io.StringIO]:
    """The lines that a server with this format logs about requests."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(logs.configuration(form)["filters"]["short"]["()"]())
    handler.setFormatter(logs.JsonFormatter() if form == "json" else logging.Formatter())
    logging.getLogger("django.request").addHandler(handler)
    try:
        yield stream
    finally:
        logging.getLogger("django.request").removeHandler(handler)


@pytest.mark.django_db
@pytest.mark.parametrize("form", logs.FORMATS)
def test_a_long_path_is_cut_in_the_log(client: Client, form: str) -> None:
    with logged(form) as stream:
        assert client.get(f"/{'x' * 70_000}").status_code == 404
    assert "Not Found: /xxx" in stream.getvalue()
    assert "70,012 characters" in stream.getvalue()
    assert len(stream.getvalue()) < 5_000


@pytest.mark.django_db
@pytest.mark.parametrize("form", logs.FORMATS)
def test_a_refused_page_logs_one_line(form: str) -> None:
    with logged(form) as stream:
        assert sign_in("viewer").get(reverse("admin:agents_family_add")).status_code == 403
    (line,) = stream.getvalue().splitlines()
    assert "Forbidden (Permission denied): /admin/agents/family/add/" in line
    assert "raceback" not in line


def test_only_the_json_format_logs_each_step() -> None:
    assert logs.configuration("line")["handlers"]["stderr"]["level"] == "WARNING"
    assert logs.configuration("json")["handlers"]["stderr"]["level"] == "INFO"
