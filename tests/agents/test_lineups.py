"""Who plays: line-ups are proposed, seen, approved for cohorts to come, and never change what a cohort froze."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from agents.models import Agent, Family, LineUp, LineUpEntry, Release
from agents.services.lineups import lineup_approve, lineup_preview, lineup_propose, lineup_reject
from arena_site.sandbox.server import running
from markets.models import Alert, Run
from tests.factories import FamilyFactory, ReleaseFactory
from tests.venue import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN, SUNDAY, Venue, run

pytestmark = pytest.mark.django_db
WEEK = timedelta(weeks=1)
MONDAY = SUNDAY + timedelta(days=1)
ALL = (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN)
CAPTURED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "openrouter" / "models__sinkers.json"
FREE = {"prompt": "0", "completion": "0"}
CREATED = int(datetime(2025, 12, 1, tzinfo=UTC).timestamp())


def releases() -> list[Release]:
    return [entry.release for entry in LineUp.objects.earliest("pk").entries.all()]


def proposed(*wanted: Release, at: datetime = MONDAY) -> LineUp:
    return lineup_propose(releases=wanted, by="ann", reason="a try", at=at)


def players(at: datetime) -> list[str]:
    number = run("start_cohort", at)["cohort"]
    return list(Agent.objects.filter(cohort__number=number).order_by("pk").values_list("model_id", flat=True))


# ── proposing and approving ───────────────────────────────────────────────────────────────────────


def test_migrate_leaves_the_line_up_of_2026_approved() -> None:
    line_up = LineUp.objects.get()
    assert (line_up.status, len(releases())) == ("approved", 7)
    assert players(SUNDAY) == list(ALL)


def test_an_approved_line_up_counts_from_the_next_week_on_and_touches_no_cohort_before(venue: Venue) -> None:
    newcomer = FamilyFactory(slug="newcomer").releases.get()
    run("start_cohort", SUNDAY)
    line_up = proposed(*releases()[1:], newcomer)
    seen = lineup_preview(line_up, at=MONDAY)
    assert seen.effective_from == SUNDAY + WEEK
    assert [change.says.partition(":")[0] for change in seen.changes] == ["newcomer comes in", "gpt-5.1 leaves"]
    assert LineUp.objects.in_force(SUNDAY + 5 * WEEK) != line_up
    assert lineup_approve(line_up, by="ann", reason="yes", at=MONDAY)
    assert players(SUNDAY) == list(ALL)
    assert players(SUNDAY + WEEK) == [*ALL[1:], newcomer.model_id]
    assert players(SUNDAY - WEEK) == list(ALL)


def test_one_approved_after_the_week_began_waits_for_a_week_without_a_cohort() -> None:
    run("start_cohort", SUNDAY + 3 * WEEK)
    line_up = proposed(*releases()[:3])
    lineup_approve(line_up, by="ann", reason="yes", at=MONDAY)
    line_up.refresh_from_db()
    assert line_up.effective_from == SUNDAY + 4 * WEEK


def test_what_was_decided_is_decided() -> None:
    first, second = proposed(*releases()[:3]), proposed(*releases()[:2])
    assert lineup_approve(first, by="ann", reason="yes", at=MONDAY)
    assert not lineup_approve(first, by="bob", reason="again", at=MONDAY)
    assert not lineup_reject(first, by="bob", reason="no", at=MONDAY)
    assert lineup_reject(second, by="bob", reason="no", at=MONDAY)
    assert not lineup_approve(second, by="ann", reason="after all", at=MONDAY)
    assert [(up.status, up.decided_by) for up in LineUp.objects.order_by("pk")[1:]] == [
        ("approved", "ann"),
        ("rejected", "bob"),
    ]
    assert not Alert.objects.filter(cleared_at=None).exists()


@pytest.mark.parametrize("bend", ["change", "delete", "add", "status", "foreign"])
def test_a_line_up_that_was_approved_lists_what_it_lists(bend: str) -> None:
    line_up = LineUp.objects.get()
    entry = line_up.entries.get(position=1)
    other = FamilyFactory().releases.get()
    bends: dict[str, Any] = {
        "change": lambda: LineUpEntry.objects.filter(pk=entry.pk).update(release=other),
        "delete": lambda: entry.delete(),
        "add": lambda: LineUpEntry.objects.create(line_up=line_up, family=other.family, release=other, position=9),
        "status": lambda: LineUp.objects.update(status="proposed", effective_from=None, decided_at=None),
        "foreign": lambda: LineUpEntry.objects.create(
            line_up=proposed(other), family=entry.family, release=other, position=9
        ),
    }
    with pytest.raises(IntegrityError, match="can not be"), transaction.atomic():
        bends[bend]()


def test_the_terms_of_a_release_that_a_line_up_names_are_settled() -> None:
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        Release.objects.filter(model_id=GPT).update(price_prompt=Decimal("0.1"))


def test_a_list_that_can_be_none_is_refused_with_what_is_wrong() -> None:
    gpt = Release.objects.get(model_id=GPT)
    again = ReleaseFactory(family=gpt.family, model_id="openai/gpt-6")
    guest = FamilyFactory(external=True, active=False).releases.get()
    later = ReleaseFactory(model_id="acme/later", effective_from=SUNDAY + 9 * WEEK)
    for wrong, said in (([], "at least one"), ([gpt, again], "two releases"), ([guest], "external"), ([later], "from")):
        with pytest.raises(ValidationError, match=said):
            lineup_propose(releases=wrong, by="ann", reason="a try", at=MONDAY)
    assert LineUp.objects.count() == 1


def test_a_family_that_was_withdrawn_does_not_play_whatever_lists_it() -> None:
    Family.objects.filter(slug="kimi-k2").update(active=False)
    assert players(SUNDAY) == [model for model in ALL if model != KIMI]
    Family.objects.update(active=False)
    ran = run("start_cohort", SUNDAY + WEEK)
    assert (ran.code, ran["cohort"]) == (1, None)


def test_a_family_shows_the_release_that_was_approved_and_not_a_newer_one(client: Any) -> None:
    ReleaseFactory(family=Family.objects.get(slug="gpt-5.1"), model_id="openai/gpt-6", effective_from=SUNDAY)
    assert client.get("/api/v1/families/gpt-5.1/").json()["release"] == GPT


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────


def row(model: str, **changed: Any) -> dict[str, Any]:
    release = Release.objects.filter(model_id=model).first()
    price = {"prompt": f"{release.price_prompt:f}", "completion": f"{release.price_completion:f}"} if release else {}
    listed = {"id": model, "name": f"Vendor: {model}", "created": CREATED, "pricing": price, "expiration_date": None}
    return listed | changed


def listed(venue: Venue, *rows: Any, status: int = 200, without: tuple[str, ...] = ()) -> None:
    """The catalogue: the line-up as it stands, with these rows in place of their namesakes or besides."""
    named = {row["id"] for row in rows if isinstance(row, dict) and "id" in row}
    data = [*(row(model) for model in ALL if model not in named and model not in without), *rows]
    venue.server.clear()
    venue.server.expect_request("/gateway/models").respond_with_json({"data": data}, status=status)


def terms(line_up: LineUp) -> dict[str, tuple[str, Decimal]]:
    entries = line_up.entries.select_related("release", "family")
    return {entry.family.slug: (entry.release.model_id, entry.release.price_prompt) for entry in entries}


def test_a_catalogue_that_bears_the_line_up_out_proposes_nothing(venue: Venue) -> None:
    listed(venue, "nonsense", {"id": 7}, row("openrouter/auto", pricing={"prompt": "-1", "completion": "-1"}))
    ran = run("check_lineup", MONDAY)
    assert (ran.code, ran.summary) == (
        0,
        {"models": 7, "skipped": 3, "findings": 0, "proposal": None, "new": False},
    )


def test_newer_models_other_prices_and_announced_ends_make_one_proposal_and_nothing_else(venue: Venue) -> None:
    listed(
        venue,
        row("openai/gpt-5.5", created=CREATED + 9, pricing={"prompt": "0.000005", "completion": "0.00003"}),
        row("openai/gpt-5.6", created=CREATED + 10, pricing=FREE, expiration_date="2026-04-01"),
        row("openai/o9", created=CREATED + 11, pricing={"prompt": "0.1", "completion": "0.1"}),
        row(DEEPSEEK, pricing={"prompt": "0.0000003", "completion": "0.0000004"}),
        row(GROK, expiration_date="2026-03-20"),
        row(CLAUDE, expiration_date="2027-03-20"),
        row("google/gemini-3.1-pro-preview", pricing={"prompt": "0.000002", "completion": "0.000012"}),
        without=(GEMINI, KIMI),
    )
    ran = run("check_lineup", MONDAY)
    assert (ran.code, ran["new"]) == (0, True)
    line_up = LineUp.objects.get(pk=ran["proposal"])
    assert line_up.status == "proposed"
    assert terms(line_up) == {
        "gpt-5.1": ("openai/gpt-5.5", Decimal("0.000005")),
        "gemini-2.5-flash": ("google/gemini-3.1-pro-preview", Decimal("0.000002")),
        "claude-opus-4.5": (CLAUDE, Decimal("0.000005")),
        "deepseek-v3.1": (DEEPSEEK, Decimal("0.0000003")),
        "qwen-3-next": (QWEN, Decimal("0.000000071")),
    }
    said = "\n".join(line_up.findings)
    for words in (
        "gpt-5.1: openai/gpt-5.5 of 2025-12-01 follows openai/gpt-5.2", "openai also has openai/o9",
        "grok-4: x-ai/grok-4.1-fast will be taken off on 2026-03-20",
        "kimi-k2: moonshotai/kimi-k2-thinking is listed no more",
        "claude-opus-4.5: anthropic/claude-opus-4.5 will be taken off on 2027-03-20",
        "deepseek-v3.1: deepseek/deepseek-v3.2 costs $0.0000003 and $0.0000004 per token, not $0.000000252",
    ):  # fmt: skip
        assert words in said, said
    assert Alert.objects.get(cleared_at=None).subject == str(line_up.pk)
    assert players(SUNDAY + WEEK) == list(ALL)
    assert lineup_approve(line_up, by="ann", reason="yes", at=MONDAY + WEEK)
    assert players(SUNDAY + 2 * WEEK)[0] == "openai/gpt-5.5"
    assert Release.objects.get(model_id="openai/gpt-5.5").display_name == "openai/gpt-5.5"


def test_the_same_is_proposed_once_also_after_it_was_rejected_and_what_is_new_takes_its_place(venue: Venue) -> None:
    listed(venue, row(QWEN, pricing={"prompt": "0.001", "completion": "0.001"}))
    first = run("check_lineup", MONDAY)
    again = run("check_lineup", MONDAY + WEEK)
    assert (again["proposal"], again["new"]) == (first["proposal"], False)
    listed(venue, row(QWEN, pricing={"prompt": "0.002", "completion": "0.002"}))
    other = run("check_lineup", MONDAY + 2 * WEEK)
    assert other["new"]
    assert LineUp.objects.get(pk=first["proposal"]).status == "rejected"
    lineup_reject(LineUp.objects.get(pk=other["proposal"]), by="ann", reason="too dear", at=MONDAY + 2 * WEEK)
    assert not run("check_lineup", MONDAY + 3 * WEEK)["new"]
    assert Release.objects.filter(model_id=QWEN).count() == 3


@pytest.mark.parametrize("answer", ["down", "empty", "odd"])
def test_a_gateway_that_gives_no_catalogue_fails_the_check_and_proposes_nothing(venue: Venue, answer: str) -> None:
    if answer == "down":
        listed(venue, status=503)
    else:
        venue.server.clear()
        venue.server.expect_request("/gateway/models").respond_with_json({"data": []} if answer == "empty" else [1])
    ran = run("check_lineup", MONDAY)
    assert ran.code == 1
    assert "gateway" in ran.complaint
    assert Run.objects.get(kind="check_lineup").status == "failed"
    assert LineUp.objects.count() == 1


@pytest.mark.skipif(not CAPTURED.is_file(), reason=f"NO CAPTURED CATALOGUE: {CAPTURED} is missing")
def test_the_catalogue_of_may_2026_as_it_was(venue: Venue) -> None:
    venue.server.clear()
    venue.server.expect_request("/gateway/models").respond_with_json(json.loads(CAPTURED.read_text()))
    ran = run("check_lineup", datetime(2026, 5, 7, tzinfo=UTC))
    assert (ran["models"], ran["skipped"]) == (365, 3)
    assert terms(LineUp.objects.get(pk=ran["proposal"])) == {
        "gpt-5.1": ("openai/gpt-5.5", Decimal("0.000005")),
        "gemini-2.5-flash": ("google/gemini-3.1-pro-preview", Decimal("0.000002")),
        "claude-opus-4.5": ("anthropic/claude-opus-4.7", Decimal("0.000005")),
        "deepseek-v3.1": (DEEPSEEK, Decimal("0.000000252")),
        "kimi-k2": (KIMI, Decimal("0.0000006")),
        "qwen-3-next": (QWEN, Decimal("0.000000071")),
    }


def test_the_sandbox_lists_the_line_up_at_its_prices(settings: Any) -> None:
    with running() as addresses:
        settings.OPENROUTER_BASE_URL = addresses.openrouter
        ran = run("check_lineup", MONDAY)
    assert (ran.code, ran["models"], ran["proposal"]) == (0, 7, None)
