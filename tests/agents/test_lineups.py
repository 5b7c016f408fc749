"""Line-ups: proposed, approved for later cohorts, without effect on earlier ones."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from agents.models import Agent, Family, LineUp, LineUpEntry, Release
from agents.services.lineups import approve_lineup, preview_lineup, propose_lineup, reject_lineup
from arena_site.sandbox.server import running
from markets.models import Alert, Run
from tests.captured import CAPTURED
from tests.commands import run
from tests.factories import FamilyFactory, ReleaseFactory
from tests.venue import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN, SUNDAY, Venue

pytestmark = pytest.mark.django_db
WEEK = timedelta(weeks=1)
MONDAY = SUNDAY + timedelta(days=1)
ALL = (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN)
FREE = {"prompt": "0", "completion": "0"}
CREATED = int(datetime(2025, 12, 1, tzinfo=UTC).timestamp())


def releases() -> list[Release]:
    return [entry.release for entry in LineUp.objects.earliest("pk").entries.all()]


def proposed(*wanted: Release, at: datetime = MONDAY) -> LineUp:
    return propose_lineup(releases=wanted, by="ann", reason="a try", at=at)


def line_up_of(at: datetime) -> list[str]:
    number = run("start_cohort", at)["cohort"]
    return list(Agent.objects.filter(cohort__number=number).order_by("pk").values_list("model_id", flat=True))


# ── proposing and approving ───────────────────────────────────────────────────────────────────────


def test_migrate_leaves_the_line_up_of_2026_approved() -> None:
    line_up = LineUp.objects.get()
    assert (line_up.status, len(releases())) == ("approved", 7)
    assert line_up_of(SUNDAY) == list(ALL)


def test_approved_line_up_takes_effect_next_week_and_changes_no_earlier_cohort(venue: Venue) -> None:
    newcomer = FamilyFactory(slug="newcomer").releases.get()
    run("start_cohort", SUNDAY)
    line_up = proposed(*releases()[1:], newcomer)
    seen = preview_lineup(line_up, at=MONDAY)
    assert seen.effective_from == SUNDAY + WEEK
    assert [str(change).partition(":")[0] for change in seen.changes] == ["newcomer comes in", "gpt-5.1 leaves"]
    assert LineUp.objects.in_force(SUNDAY + 5 * WEEK) != line_up
    assert approve_lineup(line_up, by="ann", reason="yes", at=MONDAY)
    assert line_up_of(SUNDAY) == list(ALL)
    assert line_up_of(SUNDAY + WEEK) == [*ALL[1:], newcomer.model_id]
    assert line_up_of(SUNDAY - WEEK) == list(ALL)


def test_line_up_approved_after_the_cohort_started_takes_effect_next_week() -> None:
    run("start_cohort", SUNDAY + 3 * WEEK)
    line_up = proposed(*releases()[:3])
    approve_lineup(line_up, by="ann", reason="yes", at=MONDAY)
    line_up.refresh_from_db()
    assert line_up.effective_from == SUNDAY + 4 * WEEK


def test_decision_on_a_line_up_is_final() -> None:
    first, second = proposed(*releases()[:3]), proposed(*releases()[:2])
    assert approve_lineup(first, by="ann", reason="yes", at=MONDAY)
    assert not approve_lineup(first, by="bob", reason="again", at=MONDAY)
    assert not reject_lineup(first, by="bob", reason="no", at=MONDAY)
    assert reject_lineup(second, by="bob", reason="no", at=MONDAY)
    assert not approve_lineup(second, by="ann", reason="after all", at=MONDAY)
    assert [(up.status, up.decided_by) for up in LineUp.objects.order_by("pk")[1:]] == [
        ("approved", "ann"),
        ("rejected", "bob"),
    ]
    assert not Alert.objects.filter(cleared_at=None).exists()


@pytest.mark.parametrize("tampering", ["change", "delete", "add", "status", "foreign"])
def test_entries_of_an_approved_line_up_are_fixed(tampering: str) -> None:
    line_up = LineUp.objects.get()
    entry = line_up.entries.get(position=1)
    other = FamilyFactory().releases.get()
    tamperings: dict[str, Any] = {
        "change": lambda: LineUpEntry.objects.filter(pk=entry.pk).update(release=other),
        "delete": lambda: entry.delete(),
        "add": lambda: LineUpEntry.objects.create(line_up=line_up, family=other.family, release=other, position=9),
        "status": lambda: LineUp.objects.update(status="proposed", effective_from=None, decided_at=None),
        "foreign": lambda: LineUpEntry.objects.create(
            line_up=proposed(other), family=entry.family, release=other, position=9
        ),
    }
    with pytest.raises(IntegrityError, match="can not be"), transaction.atomic():
        tamperings[tampering]()


def test_release_in_a_line_up_is_fixed() -> None:
    with pytest.raises(IntegrityError, match="can not be changed"), transaction.atomic():
        Release.objects.filter(model_id=GPT).update(price_prompt=Decimal("0.1"))


def test_invalid_line_up_is_refused_with_reasons() -> None:
    gpt = Release.objects.get(model_id=GPT)
    again = ReleaseFactory(family=gpt.family, model_id="openai/gpt-6")
    guest = FamilyFactory(external=True, active=False).releases.get()
    later = ReleaseFactory(model_id="acme/later", effective_from=SUNDAY + 9 * WEEK)
    for wrong, said in (([], "at least one"), ([gpt, again], "two releases"), ([guest], "external"), ([later], "from")):
        with pytest.raises(ValidationError, match=said):
            propose_lineup(releases=wrong, by="ann", reason="a try", at=MONDAY)
    assert LineUp.objects.count() == 1


def test_inactive_family_does_not_take_part() -> None:
    Family.objects.filter(slug="kimi-k2").update(active=False)
    assert line_up_of(SUNDAY) == [model for model in ALL if model != KIMI]
    Family.objects.update(active=False)
    ran = run("start_cohort", SUNDAY + WEEK)
    assert (ran.code, ran["cohort"]) == (1, None)


def test_family_shows_the_approved_release(client: Any) -> None:
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


def test_catalogue_that_matches_the_line_up_proposes_nothing(venue: Venue) -> None:
    listed(venue, "nonsense", {"id": 7}, row("openrouter/auto", pricing={"prompt": "-1", "completion": "-1"}))
    ran = run("check_lineup", MONDAY)
    assert (ran.code, ran.summary) == (
        0,
        {"models": 7, "skipped": 3, "findings": 0, "proposal": None, "new": False},
    )


def test_newer_models_changed_prices_and_expirations_make_one_proposal(venue: Venue) -> None:
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
        "grok-4: x-ai/grok-4.1-fast expires on 2026-03-20",
        "kimi-k2: moonshotai/kimi-k2-thinking is no longer listed",
        "claude-opus-4.5: anthropic/claude-opus-4.5 expires on 2027-03-20",
        "deepseek-v3.1: deepseek/deepseek-v3.2 costs $0.0000003 and $0.0000004 per token, not $0.000000252",
    ):  # fmt: skip
        assert words in said, said
    assert Alert.objects.get(cleared_at=None).subject == str(line_up.pk)
    assert line_up_of(SUNDAY + WEEK) == list(ALL)
    assert approve_lineup(line_up, by="ann", reason="yes", at=MONDAY + WEEK)
    assert line_up_of(SUNDAY + 2 * WEEK)[0] == "openai/gpt-5.5"
    assert Release.objects.get(model_id="openai/gpt-5.5").display_name == "openai/gpt-5.5"


def test_same_findings_are_proposed_once_and_new_findings_replace_the_proposal(venue: Venue) -> None:
    listed(venue, row(QWEN, pricing={"prompt": "0.001", "completion": "0.001"}))
    first = run("check_lineup", MONDAY)
    again = run("check_lineup", MONDAY + WEEK)
    assert (again["proposal"], again["new"]) == (first["proposal"], False)
    listed(venue, row(QWEN, pricing={"prompt": "0.002", "completion": "0.002"}))
    other = run("check_lineup", MONDAY + 2 * WEEK)
    assert other["new"]
    assert LineUp.objects.get(pk=first["proposal"]).status == "rejected"
    reject_lineup(LineUp.objects.get(pk=other["proposal"]), by="ann", reason="too dear", at=MONDAY + 2 * WEEK)
    assert not run("check_lineup", MONDAY + 3 * WEEK)["new"]
    assert Release.objects.filter(model_id=QWEN).count() == 3


@pytest.mark.parametrize("answer", ["down", "empty", "odd"])
def test_check_fails_without_a_catalogue(venue: Venue, answer: str) -> None:
    if answer == "down":
        listed(venue, status=503)
    else:
        venue.server.clear()
        venue.server.expect_request("/gateway/models").respond_with_json({"data": []} if answer == "empty" else [1])
    ran = run("check_lineup", MONDAY)
    assert ran.code == 1
    assert "gateway" in ran.stderr
    assert Run.objects.get(kind="check_lineup").status == "failed"
    assert LineUp.objects.count() == 1


@pytest.mark.captured
def test_captured_catalogue_of_may_2026(venue: Venue) -> None:
    venue.server.clear()
    catalogue = json.loads((CAPTURED / "openrouter" / "models__sinkers.json").read_text())
    venue.server.expect_request("/gateway/models").respond_with_json(catalogue)
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
