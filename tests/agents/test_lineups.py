"""Line-ups: proposed, approved for later cohorts, without effect on earlier ones."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from agents.gateway.catalogue import parse_catalogue
from agents.models import Agent, Family, LineUp, LineUpEntry, Release
from agents.services.catalogue_check import check_lineup
from agents.services.lineups import approve_lineup, preview_lineup, propose_lineup, reject_lineup
from cohorts.models import Cohort
from foundation.models import Alert, Run
from tests.answers import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.captured import CAPTURED
from tests.commands import SUNDAY, run
from tests.factories import FamilyFactory, ReleaseFactory
from tests.sandbox import Venue
from venue_sandbox.server import running

pytestmark = pytest.mark.django_db
WEEK = timedelta(weeks=1)
MONDAY = SUNDAY + timedelta(days=1)
ALL = (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN)
FREE = {"prompt": "0", "completion": "0"}
CREATED = int(datetime(2025, 12, 1, tzinfo=UTC).timestamp())


def releases() -> list[Release]:
    return [entry.release for entry in LineUp.objects.earliest("pk").entries.all()]


def proposed(*releases: Release, at: datetime = MONDAY) -> LineUp:
    return propose_lineup(releases=releases, by="ann", reason="a try", at=at)


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
    preview = preview_lineup(line_up, at=MONDAY)
    assert preview.effective_from == SUNDAY + WEEK
    assert [str(change).partition(":")[0] for change in preview.changes] == ["newcomer comes in", "gpt-5.1 leaves"]
    assert LineUp.objects.in_force(SUNDAY + 5 * WEEK) != line_up
    assert approve_lineup(line_up, by="ann", reason="yes", at=MONDAY)
    assert line_up_of(SUNDAY) == list(ALL)
    assert line_up_of(SUNDAY + WEEK) == [*ALL[1:], newcomer.model_id]
    assert line_up_of(SUNDAY - WEEK) == list(ALL)


def test_line_up_takes_effect_after_the_last_cohort() -> None:
    run("start_cohort", SUNDAY + 3 * WEEK)
    approve_lineup(proposed(*releases()[:3]), by="ann", reason="yes", at=MONDAY)
    assert LineUp.objects.latest("pk").effective_from == SUNDAY + 4 * WEEK


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


@pytest.mark.parametrize("tampering", ["change", "delete", "add", "status", "foreign", "release"])
def test_approved_line_up_is_fixed(tampering: str) -> None:
    line_up = LineUp.objects.get()
    entry = line_up.entries.get(position=1)
    other_release = FamilyFactory().releases.get()
    tamperings: dict[str, Any] = {
        "change": lambda: LineUpEntry.objects.filter(pk=entry.pk).update(release=other_release),
        "delete": lambda: entry.delete(),
        "add": lambda: LineUpEntry.objects.create(
            line_up=line_up, family=other_release.family, release=other_release, position=9
        ),
        "status": lambda: LineUp.objects.update(status="proposed", effective_from=None, decided_at=None),
        "foreign": lambda: LineUpEntry.objects.create(
            line_up=proposed(other_release), family=entry.family, release=other_release, position=9
        ),
        "release": lambda: Release.objects.filter(model_id=GPT).update(price_prompt=Decimal("0.1")),
    }
    with pytest.raises(IntegrityError, match="can not be"), transaction.atomic():
        tamperings[tampering]()


def test_invalid_line_up_is_refused_with_reasons() -> None:
    gpt = Release.objects.get(model_id=GPT)
    again = ReleaseFactory(family=gpt.family, model_id="openai/gpt-6")
    guest = FamilyFactory(external=True, active=False, track="closed").releases.get()
    later = ReleaseFactory(model_id="acme/later", effective_from=SUNDAY + 9 * WEEK)
    for wrong, words in (
        ([], "at least one"),
        ([gpt, again], "two releases"),
        ([guest], "external"),
        ([later], "from"),
    ):
        with pytest.raises(ValidationError, match=words):
            propose_lineup(releases=wrong, by="ann", reason="a try", at=MONDAY)
    assert LineUp.objects.count() == 1


def test_inactive_family_does_not_take_part() -> None:
    Family.objects.filter(slug="kimi-k2").update(active=False)
    assert line_up_of(SUNDAY) == [model for model in ALL if model != KIMI]
    Family.objects.update(active=False)
    ran = run("start_cohort", SUNDAY + WEEK)
    assert (ran.code, ran["cohort"]) == (1, None)


def test_address_with_a_display_name_leads_to_its_family(client: Any) -> None:
    for name, status in (("gpt-5.2", 200), ("gpt-5.1", 301), ("GPT-5.2", 404), ("gpt-6", 404)):
        assert client.get(f"/models/{name}/").status_code == status
    assert client.get("/models/gpt-5.1/?page=2").headers["Location"] == "/models/gpt-5.2/?page=2"
    assert client.get("/cohorts/1/gpt-5.1/trades/").headers["Location"] == "/cohorts/1/gpt-5.2/trades/"
    assert client.get("/compare/gpt-5.1/grok-4/").headers["Location"] == "/compare/gpt-5.2/grok-4.1/"
    assert client.get("/models/gpt-5.1/charts/returns.csv").headers["Location"] == "/models/gpt-5.2/charts/returns.csv"
    page = client.get("/models/gpt-5.2/").content.decode()
    assert "Model line <code>gpt-5.1</code>" in page
    assert "The display name “GPT-5.2” may change with the current release." in page


def test_family_takes_the_name_of_its_release_once_that_plays(client: Any) -> None:
    run("start_cohort", SUNDAY)
    named_family, renamed = Family.objects.get(slug="gpt-5.1"), Family.objects.get(slug="kimi-k2")
    Family.objects.filter(pk=renamed.pk).update(display_name="Ours")
    old = releases()
    after = [ReleaseFactory(family=family, display_name=f"{family.slug} Next") for family in (named_family, renamed)]
    approve_lineup(proposed(*after, *old[1:5]), by="ann", reason="yes", at=MONDAY)
    assert Family.objects.get(slug="gpt-5.1").display_name == "GPT-5.2"
    run("start_cohort", SUNDAY + WEEK)
    for week in (SUNDAY, SUNDAY - WEEK):  # an earlier cohort tells nothing new
        run("start_cohort", week)
    assert Family.objects.get(slug="gpt-5.1").display_name == "gpt-5.1 Next"
    assert Family.objects.get(slug="kimi-k2").display_name == "Ours"
    assert "gpt-5.1 Next" in client.get("/models/gpt-5.1-next/").content.decode()
    assert client.get("/models/gpt-5.2/").headers["Location"] == "/models/gpt-5.1-next/"
    assert Agent.objects.earliest("pk").display_name == "GPT-5.2"


def test_release_outside_the_line_up_is_not_the_familys(client: Any) -> None:
    ReleaseFactory(family=Family.objects.get(slug="gpt-5.1"), model_id="openai/gpt-6", effective_from=SUNDAY)
    assert client.get("/api/v1/families/gpt-5.1/").json()["release"] == GPT
    page = client.get("/models/").content.decode()
    assert (GPT in page, "openai/gpt-6" in page) == (True, False)


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────


def row(model: str, **changed: Any) -> dict[str, Any]:
    release = Release.objects.filter(model_id=model).first()
    price = {"prompt": f"{release.price_prompt:f}", "completion": f"{release.price_completion:f}"} if release else {}
    listed = {"id": model, "name": f"Vendor: {model}", "created": CREATED, "pricing": price, "expiration_date": None}
    return listed | changed


def serve(venue: Venue, body: Any, status: int = 200) -> None:
    venue.server.clear()
    venue.server.expect_request("/openrouter/api/v1/models").respond_with_json(body, status=status)


def listed(venue: Venue, *rows: Any, without: tuple[str, ...] = ()) -> None:
    """The catalogue: the line-up as it stands, with these rows in place of their namesakes or besides."""
    listed_ids = {row["id"] for row in rows if isinstance(row, dict) and "id" in row}
    serve(venue, {"data": [*(row(model) for model in ALL if model not in {*listed_ids, *without}), *rows]})


def terms(line_up: LineUp) -> dict[str, tuple[str, Decimal]]:
    entries = line_up.entries.select_related("release", "family")
    return {entry.family.slug: (entry.release.model_id, entry.release.price_prompt) for entry in entries}


@pytest.fixture
def checked(venue: Venue, settings: Any) -> Venue:
    settings.ARENA_LINEUP = "approve"
    return venue


def test_catalogue_that_matches_the_line_up_proposes_nothing(checked: Venue) -> None:
    listed(checked, "nonsense", {"id": 7}, row("openrouter/auto", pricing={"prompt": "-1", "completion": "-1"}))
    ran = run("check_lineup", MONDAY)
    assert (ran.code, ran.summary) == (
        0,
        {"models": 7, "skipped": 3, "findings": 0, "proposal": None, "new": False, "lineup": []},
    )


def test_newer_models_changed_prices_and_expirations_make_one_proposal(checked: Venue) -> None:
    listed(
        checked,
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
    assert (ran.code, ran["new"]) == (1, True)
    assert [row["family"] for row in ran["lineup"]] == ["gemini-2.5-flash", "grok-4", "kimi-k2"]
    line_up = LineUp.objects.get(pk=ran["proposal"])
    assert line_up.status == "proposed"
    assert terms(line_up) == {
        "gpt-5.1": ("openai/gpt-5.5", Decimal("0.000005")),
        "gemini-2.5-flash": ("google/gemini-3.1-pro-preview", Decimal("0.000002")),
        "claude-opus-4.5": (CLAUDE, Decimal("0.000005")),
        "deepseek-v3.1": (DEEPSEEK, Decimal("0.0000003")),
        "qwen-3-next": (QWEN, Decimal("0.000000071")),
    }
    findings = "\n".join(line_up.findings)
    for words in (
        "gpt-5.1: openai/gpt-5.5 of 2025-12-01 follows openai/gpt-5.2", "openai also has openai/o9",
        "grok-4: x-ai/grok-4.1-fast expires on 2026-03-20",
        "kimi-k2: moonshotai/kimi-k2-thinking is no longer listed",
        "claude-opus-4.5: anthropic/claude-opus-4.5 expires on 2027-03-20",
        "deepseek-v3.1: deepseek/deepseek-v3.2 costs $0.0000003 and $0.0000004 per token, not $0.000000252",
    ):  # fmt: skip
        assert words in findings, findings
    assert Alert.objects.get(kind="line-up-proposed", cleared_at=None).subject == str(line_up.pk)
    assert approve_lineup(line_up, by="ann", reason="yes", at=MONDAY)
    assert line_up_of(SUNDAY + WEEK)[0] == "openai/gpt-5.5"
    assert Release.objects.get(model_id="openai/gpt-5.5").display_name == "openai/gpt-5.5"


def test_same_findings_are_proposed_once_and_new_findings_replace_the_proposal(checked: Venue) -> None:
    listed(checked, row(QWEN, pricing={"prompt": "0.001", "completion": "0.001"}))
    first = run("check_lineup", MONDAY)
    message = Alert.objects.get(kind="line-up-proposed").message
    assert "is proposed by the catalogue's check: 1 finding in the gateway's catalogue. Dearer: " in message
    assert "Dearer: qwen-3-next: qwen/qwen3-235b-a22b-2507 costs $0.001 and $0.001 per token" in message
    coming, usual = map(
        float, re.search(r"A week will cost about \$(\d+\.\d+); until now \$(\d+\.\d+)", message).groups()
    )
    assert coming > usual > 0
    again = run("check_lineup", MONDAY + WEEK)
    assert (again["proposal"], again["new"]) == (first["proposal"], False)
    listed(checked, row(QWEN, pricing={"prompt": "0.002", "completion": "0.002"}))
    second_check = run("check_lineup", MONDAY + 2 * WEEK)
    assert second_check["new"]
    assert LineUp.objects.get(pk=first["proposal"]).status == "rejected"
    reject_lineup(LineUp.objects.get(pk=second_check["proposal"]), by="ann", reason="too dear", at=MONDAY + 2 * WEEK)
    assert not run("check_lineup", MONDAY + 3 * WEEK)["new"]
    assert Release.objects.filter(model_id=QWEN).count() == 3


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_two_checks_at_once_make_one_proposal() -> None:
    listed = parse_catalogue([row(model) for model in ALL] + [row("openai/gpt-5.5", pricing=FREE, created=CREATED + 9)])
    start = threading.Barrier(2)

    def check() -> None:
        connection.ensure_connection()
        start.wait()
        try:
            check_lineup(listed, at=MONDAY)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(check), pool.submit(check)]:
            future.result()
    assert list(LineUp.objects.order_by("pk").values_list("status", flat=True)) == ["approved", "proposed"]
    assert Release.objects.filter(model_id="openai/gpt-5.5").count() == 1


@pytest.mark.captured
def test_captured_catalogue_of_may_2026(checked: Venue) -> None:
    serve(checked, json.loads((CAPTURED / "openrouter" / "models__sinkers.json").read_text()))
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


# ── releases that have ended ──────────────────────────────────────────────────────────────────────

GEMINI_NEXT = "google/gemini-3.1-pro-preview"
GROK_NEXT = "x-ai/grok-5-fast"
FLAGSHIPS = [
    "openai/gpt-5.6-sol", GEMINI_NEXT, "x-ai/grok-4.5", "anthropic/claude-opus-5",
    "deepseek/deepseek-v4-pro", "moonshotai/kimi-k3", "qwen/qwen3.7-max",
]  # fmt: skip


def gemini_vanished_and_grok_expiring(venue: Venue, *more: Any) -> None:
    """Gemini has two successors, a variant, one that expires and another tier beside it; Grok ends in the last week."""
    listed(
        venue,
        row("google/gemini-3.2-pro-preview", pricing=FREE, created=CREATED - 1),
        row(GEMINI_NEXT, pricing=FREE, created=CREATED + 5),
        row(f"{GEMINI_NEXT}:batch", pricing=FREE, created=CREATED + 6),
        row("google/gemini-3.3-pro-preview", pricing=FREE, created=CREATED + 7, expiration_date="2027-01-01"),
        row("google/gemini-3.5-flash", pricing=FREE, created=CREATED + 8),
        row(GROK, expiration_date="2026-04-11"),
        row("x-ai/grok-4.5", pricing=FREE, created=CREATED + 9),
        *more,
        without=(GEMINI,),
    )


def ended(family: str, release: str, why: str, successor: str | None) -> dict[str, str | None]:
    return {"family": family, "release": release, "why": why, "successor": successor}


GEMINI_ENDED = ended("gemini-2.5-flash", GEMINI, "is no longer listed", GEMINI_NEXT)


def test_release_that_has_ended_is_approved_before_a_cohort_starts(checked: Venue) -> None:
    gemini_vanished_and_grok_expiring(checked, row(GROK_NEXT, pricing=FREE, created=CREATED + 1))
    refused = run("start_cohort", SUNDAY)
    assert refused.summary == {
        "cohort": None, "created": False, "agents": 0,
        "lineup": [GEMINI_ENDED, ended("grok-4", GROK, "expires on 2026-04-11", GROK_NEXT)],
    }  # fmt: skip
    assert refused.code == 1
    assert refused.stderr.splitlines()[-1] == "Approve with: uv run manage.py approve_lineup"
    assert not Cohort.objects.exists()
    unusable = Alert.objects.filter(cleared_at=None).exclude(kind="line-up-proposed")
    assert [(alert.kind, alert.count) for alert in unusable] == [("release-unusable", 2)]
    assert sorted(unusable.values_list("items__subject", flat=True)) == ["gemini-2.5-flash", "grok-4"]
    approved = run("approve_lineup", SUNDAY)
    assert (approved.code, approved["replaced"]) == (0, [
        {"family": "gemini-2.5-flash", "from": GEMINI, "to": GEMINI_NEXT},
        {"family": "grok-4", "from": GROK, "to": GROK_NEXT},
    ])  # fmt: skip
    assert not unusable.all()
    assert run("approve_lineup", SUNDAY)["line_up"] is None, "approved once"
    assert line_up_of(SUNDAY) == [GPT, GEMINI_NEXT, GROK_NEXT, CLAUDE, DEEPSEEK, KIMI, QWEN]


@pytest.mark.parametrize("mode", ["approve", "auto"])
def test_moving_alias_is_no_release_and_no_successor(checked: Venue, settings: Any, mode: str) -> None:
    settings.ARENA_LINEUP = mode
    alias = row("x-ai/grok-4.9-fast", alias_target={"slug": "x-ai/grok-5"}, pricing=FREE, created=CREATED + 99)
    listed(checked, row(GROK, alias_target={"slug": "x-ai/grok-5-fast"}), alias)
    output = run("start_cohort", SUNDAY)
    (refusal,) = output["lineup"]
    assert (output.code, refusal["family"], refusal["successor"]) == (1, "grok-4", None)
    assert "is a moving alias of x-ai/grok-5-fast" in refusal["why"]
    assert "x-ai/grok-5-fast" in output.stderr
    approval = run("approve_lineup", SUNDAY, "grok-4=x-ai/grok-4.9-fast")
    assert approval.code == 1
    assert "x-ai/grok-5" in approval.stderr
    assert Cohort.objects.count() == 0


def test_alias_without_a_price_is_refused_as_an_alias(checked: Venue) -> None:
    listed(checked, row(GROK, alias_target={"slug": "x-ai/grok-5"}, pricing=None))
    output = run("start_cohort", SUNDAY)
    assert (output.code, output["lineup"][0]["why"]) == (1, "is a moving alias of x-ai/grok-5")
    approval = run("approve_lineup", SUNDAY, f"grok-4={GROK}")
    assert (approval.code, approval["lineup"][0]["why"]) == (1, "is a moving alias of x-ai/grok-5")
    checking = run("check_lineup", SUNDAY)
    assert f"grok-4: {GROK} is a moving alias of x-ai/grok-5" in checking.stderr
    assert "no longer listed" not in checking.stderr


def test_alias_with_a_suffix_is_named_with_its_target(checked: Venue) -> None:
    alias = row("~x-ai/grok-latest", alias_target={"slug": "x-ai/grok-5"}, pricing=FREE)
    listed(checked, row(GROK, alias_target={"slug": "x-ai/grok-5"}), alias)
    for name in (GROK, "~x-ai/grok-latest"):
        approval = run("approve_lineup", SUNDAY, f"grok-4={name}:online")
        assert approval.code == 1
        assert "is a moving alias of x-ai/grok-5" in approval.stderr


def test_suffix_that_the_catalogue_does_not_list_is_named(checked: Venue) -> None:
    listed(checked)
    approval = run("approve_lineup", SUNDAY, f"grok-4={GROK}:online")
    assert approval.code == 1
    assert f"{GROK}:online" in approval.stderr
    assert "':online'" in approval.stderr


def test_alias_is_known_by_its_canonical_slug() -> None:
    alias = row("x-ai/grok", canonical_slug="~x-ai/grok-latest", pricing=FREE)
    assert parse_catalogue([alias]).models["x-ai/grok"].alias_target == ""


def test_marked_alias_is_refused_without_a_catalogue() -> None:
    alias = ReleaseFactory(family=Family.objects.get(slug="grok-4"), model_id="~x-ai/grok-latest")
    with pytest.raises(ValidationError, match="~x-ai/grok-latest is a moving alias"):
        proposed(alias)
    line_up = LineUp.objects.create(proposed_at=SUNDAY, proposed_by="an earlier version", reason="-")
    LineUpEntry.objects.create(line_up=line_up, family=alias.family, release=alias, position=1)
    with pytest.raises(ValidationError, match="~x-ai/grok-latest is a moving alias"):
        approve_lineup(line_up, by="ann", reason="yes", at=SUNDAY)
    LineUp.objects.filter(pk=line_up.pk).update(
        status="approved", decided_at=SUNDAY, decided_by="an earlier version", effective_from=SUNDAY
    )
    for refused in (run("start_cohort", SUNDAY), run("approve_lineup", SUNDAY)):
        assert (refused.code, refused["lineup"][0]["why"]) == (1, "is a moving alias of an unnamed model")
    assert run("start_cohort", SUNDAY).stderr.splitlines() == [
        "grok-4: ~x-ai/grok-latest is a moving alias of an unnamed model; it has no successor: name a model",
        "Approve a line-up without them on the dashboard.",
    ]
    assert not Cohort.objects.exists()


@pytest.mark.parametrize("price", [FREE, {}, None, {"prompt": "-1", "completion": "-1"}])
@pytest.mark.parametrize(("name", "target"), [("~x-ai/grok-latest", None), ("x-ai/grok", "x-ai/grok-5")])
def test_alias_is_known_by_its_mark_or_its_target_whatever_its_price(name: str, target: Any, price: Any) -> None:
    catalogue = parse_catalogue([row(name, alias_target=target, pricing=price)])
    assert catalogue.aliases == {name: target or ""}


def test_last_day_after_the_decision_weeks_is_no_obstacle(checked: Venue) -> None:
    listed(checked, row(GROK, expiration_date="2026-04-12"))
    assert run("start_cohort", SUNDAY).code == 0


def test_operator_names_a_model_where_there_is_no_successor(checked: Venue, client: Any) -> None:
    gemini_vanished_and_grok_expiring(checked)
    lines = run("start_cohort", SUNDAY).stderr.splitlines()
    assert lines[1:] == [
        f"grok-4: {GROK} expires on 2026-04-11; it has no successor: name a model",
        "Approve with: uv run manage.py approve_lineup grok-4=MODEL; "
        "or each maker's flagship with: uv run manage.py approve_lineup --current",
    ]
    refused = run("approve_lineup", SUNDAY)
    assert (refused.code, [row["family"] for row in refused["lineup"]]) == (1, ["grok-4"])
    assert run("approve_lineup", SUNDAY, "grok-4=x-ai/nothing").code == 1
    assert run("approve_lineup", SUNDAY, "grok-9=x-ai/grok-4.5").code == 2
    assert run("approve_lineup", SUNDAY, "grok-4=x-ai/grok-4.5", "kimi-k2=").code == 0
    assert line_up_of(SUNDAY) == [GPT, GEMINI_NEXT, "x-ai/grok-4.5", CLAUDE, DEEPSEEK, QWEN]
    assert "x-ai/grok-4.5" in client.get("/models/x-ai-grok-4.5/").content.decode()
    assert client.get("/api/v1/families/grok-4/").json()["release"] == "x-ai/grok-4.5"


def test_successor_is_taken_and_recorded_where_the_line_up_is_automatic(checked: Venue, settings: Any) -> None:
    settings.ARENA_LINEUP = "auto"
    gemini_vanished_and_grok_expiring(checked)
    refused = run("start_cohort", SUNDAY)
    assert (refused.code, [row["successor"] for row in refused["lineup"]]) == (1, [GEMINI_NEXT, None])
    assert LineUp.objects.filter(status="approved").count() == 1
    listed(checked, row(GEMINI_NEXT, pricing=FREE), without=(GEMINI,))
    replaced = [{"family": "gemini-2.5-flash", "from": GEMINI, "to": GEMINI_NEXT}]
    for changes in (replaced, []):
        output = run("start_cohort", SUNDAY)
        assert (output.code, output["agents"], output["replaced"]) == (0, 7, changes)
    agent = Agent.objects.get(family__slug="gemini-2.5-flash")
    assert (agent.model_id, agent.price_prompt) == (GEMINI_NEXT, 0)
    line_up = LineUp.objects.filter(status="approved").latest("pk")
    assert line_up.decided_by == "ARENA_LINEUP=auto"
    assert line_up.decision_reason == f"gemini-2.5-flash: {GEMINI} is no longer listed; its successor is {GEMINI_NEXT}"
    assert run("start_cohort", SUNDAY + WEEK)["replaced"] == []


@pytest.mark.parametrize(
    ("mode", "body", "status"), [("approve", {}, 503), ("auto", {"data": []}, 200), ("approve", [1], 200)]
)
def test_without_a_catalogue_nothing_is_checked_or_started(
    checked: Venue, settings: Any, mode: str, body: Any, status: int
) -> None:
    settings.ARENA_LINEUP = mode
    serve(checked, body, status)
    ran = run("check_lineup", MONDAY)
    assert (ran.code, "gateway" in ran.stderr, Run.objects.get().status) == (1, True, "failed")
    ran = run("start_cohort", SUNDAY)
    assert (ran.code, ran.summary) == (1, {"cohort": None, "created": False, "agents": 0})
    assert "could not be checked" in ran.stderr
    assert LineUp.objects.count() == 1
    settings.ARENA_LINEUP = "unchecked"
    assert run("start_cohort", SUNDAY)["agents"] == 7


def test_newcomer_has_a_cohort_of_flagships_in_one_command(checked: Venue) -> None:
    rows = [row(model, pricing=FREE, name=f"Maker: {model}") for model in FLAGSHIPS]
    listed(checked, *rows, without=(GEMINI, GROK))
    assert run("start_cohort", SUNDAY, current=True)["agents"] == 7
    assert list(Agent.objects.order_by("pk").values_list("model_id", flat=True)) == FLAGSHIPS
    assert Agent.objects.earliest("pk").display_name == "GPT-5.6 Sol"
    assert Family.objects.get(slug="gpt-5.1").display_name == "GPT-5.6 Sol"
    listed(checked, *rows[1:], without=(GEMINI, GROK))
    assert run("approve_lineup", SUNDAY + WEEK, current=True).code == 1


@pytest.mark.parametrize("command", ["approve_lineup", "start_cohort"])
def test_flagships_that_can_not_be_used_are_not_recommended_again(checked: Venue, command: str) -> None:
    listed(checked, *(row(model, pricing=FREE) for model in FLAGSHIPS[1:]), without=(GEMINI, GROK))
    remedy = "Approve with: uv run manage.py approve_lineup gpt-5.1=MODEL --current"
    refused = run(command, SUNDAY, current=True)
    assert (refused.code, refused.stderr.splitlines()[-1]) == (1, remedy)
    assert run("approve_lineup", SUNDAY, f"gpt-5.1={GPT}", current=True).code == 0
    assert line_up_of(SUNDAY) == [GPT, *FLAGSHIPS[1:]]


def test_last_hour_of_sunday_leaves_the_cohort_and_its_decisions_to_a_person(checked: Venue) -> None:
    last_try, late = SUNDAY + timedelta(hours=23), SUNDAY + timedelta(hours=23, minutes=50)
    listed(checked, *(row(model, pricing=FREE) for model in FLAGSHIPS[1:]), without=(GEMINI, GROK))
    approval, *advice = run("start_cohort", late, current=True).stderr.splitlines()[1:]
    assert approval == "Approve with: uv run manage.py approve_lineup gpt-5.1=MODEL --current"
    assert advice == [
        "No schedule starts this week's cohort any more. Once it is approved: uv run manage.py arena --now"
    ]
    assert run("start_cohort", last_try, current=True).stderr.splitlines()[-1] == approval
    assert run("approve_lineup", late, f"gpt-5.1={GPT}", current=True).code == 0
    output = run("start_cohort", late)
    assert (output["created"], output.stderr.strip()) == (
        True,
        "No schedule asks for this week's decisions any more: uv run manage.py run_decisions",
    )
    again = run("start_cohort", late, current=True)
    assert (again.code, again["created"], again.stderr.strip()) == (
        0,
        False,
        "This week's cohort exists, with its line-up. For the next one: uv run manage.py approve_lineup --current",
    )


def test_flagship_that_ended_is_not_replaced_by_itself(checked: Venue) -> None:
    rows = [row(model, pricing=FREE) for model in FLAGSHIPS]
    listed(checked, *rows, without=(GEMINI, GROK))
    assert run("approve_lineup", SUNDAY, current=True).code == 0
    listed(checked, *rows[1:], without=(GEMINI, GROK))
    refused = run("start_cohort", SUNDAY)
    assert refused.stderr.splitlines()[-1] == "Approve with: uv run manage.py approve_lineup gpt-5.1=MODEL"


def test_what_the_catalogue_says_of_a_release_is_stored_when_a_cohort_starts(checked: Venue, client: Any) -> None:
    listed(
        checked,
        row(GPT, canonical_slug="openai/gpt-5.2-20251211", supported_parameters=["reasoning", "seed", 7],
            context_length=400000, top_provider={"max_completion_tokens": 128000}, knowledge_cutoff="2025-08-31"),
        row(QWEN, canonical_slug=None, supported_parameters=None, context_length="many", created=0, knowledge_cutoff=7),
    )  # fmt: skip
    run("start_cohort", SUNDAY)
    columns = (
        "canonical_slug", "supported_parameters", "context_length", "max_completion_tokens", "released_on",
        "knowledge_cutoff",
    )  # fmt: skip
    listed_on = datetime.fromtimestamp(CREATED, UTC).date()
    gpt, qwen = (Release.objects.values_list(*columns).get(model_id=model) for model in (GPT, QWEN))
    assert gpt == ("openai/gpt-5.2-20251211", ["reasoning", "seed"], 400000, 128000, listed_on, date(2025, 8, 31))
    assert qwen == ("qwen/qwen3-235b-a22b-07-25", None, None, None, None, None)
    for slug, support in (
        ("gpt-5.1", "supports reasoning, seed; not supported and not sent: temperature, <code>response_format</code>."),
        ("qwen-3-next", "does not state which parameters it supports: all are sent."),
    ):
        assert support in client.get(f"/models/{slug}/", follow=True).content.decode()
    assert client.get("/api/v1/releases/?family=gpt-5.1").json()["results"][0]["supported_parameters"] == gpt[1]
    released = client.get("/api/v1/releases/?family=gpt-5.1").json()["results"][0]
    assert (released["released_on"], released["knowledge_cutoff"]) == (listed_on.isoformat(), "2025-08-31")


TIER = {"min_prompt_tokens": 200000, "prompt": "0.000004", "completion": "0.00002", "input_cache_read": "0.0000006"}
HOURS = {"utc_start": 1630, "utc_end": "00:30", "prompt": "0.000001", "days": ["Mon", "\0Tue"], "share": 0.5}


def test_prices_under_conditions_are_stored_when_a_cohort_starts(checked: Venue, client: Any) -> None:
    price = {"prompt": "0.00000175", "completion": "0.000014"}
    listed(
        checked, row(GPT, pricing=price | {"overrides": [TIER, HOURS]}), row(QWEN, pricing=FREE | {"overrides": None})
    )
    assert run("start_cohort", SUNDAY)["agents"] == 7
    stored = [TIER, HOURS | {"days": '["Mon", "\\u0000Tue"]', "share": "0.5"}]
    assert client.get("/api/v1/releases/?family=gpt-5.1").json()["results"][0]["price_overrides"] == stored
    assert client.get("/api/v1/releases/?family=qwen-3-next").json()["results"][0]["price_overrides"] == []
    release = Release.objects.get(model_id=GPT)
    page = sign_in("administrator").get(f"/admin/agents/release/{release.pk}/change/").content.decode()
    assert "200000" in page
    entry_page = sign_in("administrator").get(f"/admin/agents/lineup/{LineUp.objects.get().pk}/change/")
    assert "0.00002" in entry_page.content.decode()


def test_prices_under_conditions_are_named_in_a_proposal(checked: Venue) -> None:
    listed(checked, row(GPT, pricing={"prompt": "0.000002", "completion": "0.000014", "overrides": [TIER]}))
    line_up = LineUp.objects.get(pk=run("check_lineup", MONDAY)["proposal"])
    assert [str(change) for change in preview_lineup(line_up, at=MONDAY).changes] == [
        f"gpt-5.1 stays with {GPT}: $1.75 and $14 per million tokens becomes $2 and $14 per million tokens, "
        "under conditions up to $4 and $20"
    ]
    assert Release.objects.get(model_id=GPT, price_prompt=Decimal("0.000002")).price_overrides == [TIER]


@pytest.mark.parametrize(
    ("overrides", "fault"),
    [
        ([TIER, {"prompt": "-1"}], "overrides[1].prompt: '-1' is outside [0, 1]"),
        ([{"completion": "dear"}], "overrides[0].completion: 'dear' is not a number"),
        ([TIER, 7], "overrides[1]: not an object of at most 40 fields"),
        ({"prompt": "0.1"}, "overrides: not a list of at most 50 objects"),
        ([TIER | {"pricing": {"prompt": "0.1"}}], "overrides[0].pricing: prices inside another field"),
        ([{"then": [{"completion": "0.1"}]}], "overrides[0].then: prices inside another field"),
        ([{"input": "0.0000031"}], "overrides[0].input: a price of unknown meaning"),
        ([TIER, {"output": 0}], "overrides[1].output: a price of unknown meaning"),
        ([TIER | {"prompt_batch": "0.000001"}], "overrides[0].prompt_batch: a price of unknown meaning"),
        ([TIER | {"surcharge": 2e-6}], "overrides[0].surcharge: a price of unknown meaning"),
        ([{"then": {"output": "0.1"}}], "overrides[0].then: prices inside another field"),
        ([TIER] * 51, "overrides: not a list of at most 50 objects"),
    ],
)
def test_price_under_conditions_that_can_not_be_read_is_named(overrides: Any, fault: str) -> None:
    catalogue = parse_catalogue([row(GPT, pricing=FREE | {"overrides": overrides})])
    assert catalogue.models[GPT].price_fault == fault


def test_release_with_a_price_that_can_not_be_read_starts_no_cohort(checked: Venue) -> None:
    listed(checked, row(GPT, pricing=FREE | {"overrides": [TIER, {"prompt": "-1"}]}))
    output = run("start_cohort", SUNDAY)
    (refusal,) = output["lineup"]
    assert (output.code, refusal["release"]) == (1, GPT)
    assert "has a price that can not be read: overrides[1].prompt: '-1' is outside [0, 1]" in refusal["why"]


def test_form_of_a_release_takes_no_alias_and_no_price_that_can_not_be_read() -> None:
    release = {
        "family": Family.objects.get(slug="grok-4").pk, "display_name": "Grok", "price_prompt": "0",
        "price_completion": "0", "effective_from_0": "2026-03-01", "effective_from_1": "00:00",
        "supported_parameters": "null",
    }  # fmt: skip
    administrator = sign_in("administrator")
    for model, overrides, field, words in (
        ("~x-ai/grok-latest", "[]", "model_id", "~x-ai/grok-latest is a moving alias"),
        ("x-ai/grok-5", '[{"prompt": "x"}]', "price_overrides", "overrides[0].prompt: 'x' is not a number"),
    ):
        form = release | {"model_id": model, "price_overrides": overrides}
        (error,) = administrator.post("/admin/agents/release/add/", form).context["adminform"].form.errors[field]
        assert words in error
    form = release | {"model_id": "x-ai/grok-5", "price_overrides": json.dumps([TIER])}
    assert administrator.post("/admin/agents/release/add/", form).status_code == 302
    assert Release.objects.get(model_id="x-ai/grok-5").price_overrides == [TIER]


def test_model_of_the_sandbox_ends(checked: Venue, settings: Any) -> None:
    with running() as addresses:
        settings.OPENROUTER_BASE_URL = addresses.openrouter
        ran = run("check_lineup", MONDAY)
        assert (ran.code, ran["models"], ran["proposal"]) == (0, 7, None), "it lists the line-up at its prices"
        ending = {"id": GEMINI, "ends": "2026-03-20", "successor": GEMINI_NEXT}
        httpx.post(f"{addresses.root}/sandbox/models", json=ending).raise_for_status()
        assert run("start_cohort", SUNDAY)["lineup"] == [GEMINI_ENDED | {"why": "expires on 2026-03-20"}]
        httpx.post(f"{addresses.clock}", json={"now": "2026-03-20T00:00:00Z"}).raise_for_status()
        assert run("start_cohort", SUNDAY)["lineup"] == [GEMINI_ENDED]
        question = {"model": GEMINI, "messages": [{"role": "user", "content": "?"}]}
        refusal = httpx.post(f"{addresses.openrouter}/chat/completions", json=question)
        assert (refusal.status_code, refusal.json()["error"]["message"]) == (404, f"No endpoints found for {GEMINI}.")
        assert run("approve_lineup", SUNDAY).code == 0
        assert run("start_cohort", SUNDAY)["agents"] == 7


def test_dashboard_starts_no_cohort_with_a_release_that_has_ended(checked: Venue) -> None:
    gemini_vanished_and_grok_expiring(checked, row(GROK_NEXT, pricing=FREE))
    administrator = sign_in("administrator")
    with time_machine.travel(MONDAY, tick=False):
        perform(administrator, "start_cohort")
        assert not Cohort.objects.exists()
        proposal = run("check_lineup", MONDAY)["proposal"]
        perform(administrator, "approve-line-up", line_up=proposal)
        perform(administrator, "start_cohort")
    assert list(Agent.objects.order_by("pk").values_list("model_id", flat=True))[1:3] == [GEMINI_NEXT, GROK_NEXT]


@pytest.mark.captured
def test_captured_catalogue_of_july_2026(checked: Venue) -> None:
    serve(checked, json.loads((CAPTURED / "openrouter" / "models__2026-07_trimmed.json").read_text()))
    july = datetime(2026, 7, 26, tzinfo=UTC)
    refused = run("start_cohort", july)
    grok = ended("grok-4", GROK, "is no longer listed", None)
    assert (refused.code, refused["lineup"]) == (1, [GEMINI_ENDED, grok])
    assert run("start_cohort", july, current=True)["agents"] == 7
    prices = Agent.objects.order_by("pk").values_list("price_prompt", "price_completion")
    assert [(float(prompt * 10**6), float(completion * 10**6)) for prompt, completion in prices] == [
        (5, 30), (2, 12), (2, 6), (5, 25), (0.435, 0.87), (3, 15), (1.25, 3.75),
    ]  # fmt: skip
