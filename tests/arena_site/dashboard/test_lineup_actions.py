"""Actions on line-ups: proposal, preview, approval and rejection by administrators alone."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.urls import reverse
from pytest_httpserver import HTTPServer

from agents.models import LineUp, Release
from agents.services.lineups import propose_lineup
from arena_site.models import AuditEntry
from tests.arena_site.dashboard.accounts import action_path, perform, sign_in
from tests.commands import run
from tests.factories import WEEK, FamilyFactory, ReleaseFactory

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(days=1)


@pytest.fixture
def proposal() -> LineUp:
    newcomer = FamilyFactory(slug="newcomer").releases.get()
    return propose_lineup(releases=[*Release.objects.filter(pk__lte=6), newcomer], by="ann", reason="a try", at=NOW)


def test_administrator_proposes_previews_and_approves_once() -> None:
    administrator = sign_in("administrator")
    release_choice = administrator.get(action_path("propose-line-up")).context["form"].fields["release"].initial
    assert len(release_choice) == 7
    newcomer = FamilyFactory(slug="newcomer").releases.get()
    releases = [*release_choice[1:], newcomer.pk]
    for _ in range(2):
        assert perform(administrator, "propose-line-up", release=releases).status_code == 302
    line_up = LineUp.objects.get(status="proposed")
    assert line_up.proposed_by == "administrator"
    address = reverse("admin:agents_lineup_change", args=[line_up.pk])
    page = administrator.get(address).content.decode()
    assert f'href="{action_path("approve-line-up")}?line_up={line_up.pk}"' in page
    assert "newcomer comes in" in page

    preview = administrator.get(action_path("approve-line-up"), {"line_up": line_up.pk}).context["preview"]
    assert preview.summary == "Cohorts that start on 2026-03-08 or later use it."
    assert [line.partition(":")[0] for line in preview.details] == ["newcomer comes in", "gpt-5.1 leaves"]
    for _ in range(2):
        assert perform(administrator, "approve-line-up", line_up=line_up.pk).status_code == 302
    perform(administrator, "reject-line-up", line_up=line_up.pk)
    line_up.refresh_from_db()
    assert (line_up.status, line_up.effective_from) == ("approved", WEEK)
    entries = list(AuditEntry.objects.order_by("pk").values_list("action", "result"))
    assert entries == [
        ("propose-line-up", "done"), ("propose-line-up", "unchanged"), ("approve-line-up", "done"),
        ("approve-line-up", "unchanged"), ("reject-line-up", "unchanged"),
    ]  # fmt: skip
    assert f"{action_path('approve-line-up')}?line_up=" not in administrator.get(address).content.decode()


def test_rejected_proposal_never_takes_effect(proposal: LineUp) -> None:
    perform(sign_in("administrator"), "reject-line-up", line_up=proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.status, proposal.decided_by, proposal.effective_from) == ("rejected", "administrator", None)


@pytest.mark.parametrize("name", ["approve-line-up", "reject-line-up"])
def test_operator_neither_approves_nor_rejects(proposal: LineUp, name: str) -> None:
    operator = sign_in("operator")
    assert operator.get(action_path(name), {"line_up": proposal.pk}).status_code == 403
    assert perform(operator, name, line_up=proposal.pk).status_code == 403
    assert list(LineUp.objects.order_by("pk").values_list("status", flat=True)) == ["approved", "proposed"]
    assert AuditEntry.objects.get().result == "refused"


ALIAS = "openai/gpt-latest"
ROW = {"id": ALIAS, "pricing": {}, "alias_target": {"slug": "openai/gpt-5.6-sol", "name": "OpenAI: GPT-5.6 Sol"}}
OTHER = {"id": "openai/gpt-5.6-sol", "pricing": {"prompt": "0", "completion": "0"}}
FAULT = f"{ALIAS} is a moving alias of openai/gpt-5.6-sol"


@pytest.mark.parametrize(("status", "fault"), [(200, FAULT), (503, "the releases could not be looked up")])
def test_moving_alias_is_neither_proposed_nor_approved(
    httpserver: HTTPServer, settings: Any, status: int, fault: str
) -> None:
    alias = ReleaseFactory(model_id=ALIAS)
    earlier = propose_lineup(releases=[alias], by="ann", reason="unchecked", at=NOW)
    settings.ARENA_LINEUP, settings.OPENROUTER_BASE_URL = "approve", httpserver.url_for("")
    httpserver.expect_request("/models").respond_with_json({"data": [ROW, OTHER]}, status=status)
    administrator = sign_in("administrator")
    for name, field, value in (("propose-line-up", "release", [alias.pk]), ("approve-line-up", "line_up", earlier.pk)):
        for response in (
            administrator.get(action_path(name), {field: value}),
            perform(administrator, name, **{field: value}),
        ):
            (error,) = response.context["form"].errors[field]
            assert fault in error
        assert response.status_code == 400
    assert list(LineUp.objects.order_by("pk").values_list("status", flat=True)) == ["approved", "proposed"]
    assert perform(administrator, "reject-line-up", line_up=earlier.pk).status_code == 302
    earlier.refresh_from_db()
    assert earlier.status == "rejected"


def test_marked_alias_is_refused_where_the_line_up_is_unchecked() -> None:
    alias = ReleaseFactory(model_id="~openai/gpt-latest")
    response = perform(sign_in("administrator"), "propose-line-up", release=[alias.pk])
    (error,) = response.context["form"].errors["release"]
    assert "~openai/gpt-latest is a moving alias" in error
    assert LineUp.objects.count() == 1


def test_two_releases_of_one_family_are_an_error_of_the_form() -> None:
    gpt = Release.objects.get(model_id="openai/gpt-5.2")
    second = Release.objects.create(
        family=gpt.family, model_id="openai/gpt-6", display_name="GPT-6", price_prompt=0, price_completion=0,
        effective_from=WEEK,
    )  # fmt: skip
    response = perform(sign_in("administrator"), "propose-line-up", release=[gpt.pk, second.pk])
    assert response.status_code == 400
    assert response.context["form"].errors["release"] == ["GPT-5.2 has two releases in it"]
    assert LineUp.objects.count() == 1


CATALOGUE = [
    {
        "id": "acme/anvil-2", "name": "Acme: Anvil 2", "pricing": {"prompt": "0.000001", "completion": "0.000002"},
        "supported_parameters": ["temperature"], "context_length": 200_000,
    },
    {"id": "acme/sold-out", "expiration_date": "2026-03-09", "pricing": {"prompt": "0", "completion": "0"}},
    {"id": "~acme/anvil-latest", "pricing": {"prompt": "0", "completion": "0"}, "canonical_slug": "acme/anvil-2"},
]  # fmt: skip


@pytest.fixture
def catalogue(httpserver: HTTPServer, settings: Any) -> None:
    settings.ARENA_LINEUP, settings.OPENROUTER_BASE_URL = "approve", httpserver.url_for("")
    httpserver.expect_request("/models").respond_with_json({"data": CATALOGUE})


@pytest.mark.usefixtures("catalogue")
def test_model_of_the_catalogue_joins_with_price_and_cost_before_it_is_confirmed() -> None:
    administrator = sign_in("administrator")
    page = administrator.get(action_path("add-model"), {"model": "acme/anvil-2", "preview": 1})
    newcomer, alone, together = page.context["preview"].details
    assert newcomer == "anvil-2 comes in: acme/anvil-2 at $1 and $2 per million tokens"
    assert alone == (
        "It alone costs about $0.03 for the decisions of a cohort, $0.15 once 5 overlap; $0.29 for a week's forecasts; "
        "a week $0.44, a season of 5 weeks $2.20 (1 model without an answer on record: 8,000 tokens assumed of one "
        "that thinks, 2,000 of another)."
    )
    assert not Release.objects.filter(model_id="acme/anvil-2").exists()

    assert perform(administrator, "add-model", model="acme/anvil-2").status_code == 302
    line_up = LineUp.objects.get(status="proposed")
    release = line_up.entries.get(position=8).release
    assert (release.family.slug, release.family.display_name, release.family.provider) == ("anvil-2", "Anvil 2", "Acme")
    assert (release.supported_parameters, release.context_length) == (["temperature"], 200_000)
    assert line_up.entries.count() == 8
    perform(administrator, "approve-line-up", line_up=line_up.pk)
    with time_machine.travel(WEEK + timedelta(weeks=1)):
        costs = next(item["detail"] for item in run("doctor", NOW)["items"] if item["name"] == "a week's cost")
    assert together.removeprefix("The line-up with it costs ").removesuffix(".") in costs


@pytest.mark.usefixtures("catalogue")
def test_model_takes_the_place_of_a_familys_release() -> None:
    perform(sign_in("administrator"), "add-model", model="acme/anvil-2", family="grok-4")
    entries = LineUp.objects.get(status="proposed").entries
    assert entries.count() == 7
    assert entries.get(family__slug="grok-4").release.model_id == "acme/anvil-2"


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("~acme/anvil-latest", "is a moving alias of an unnamed model"),
        ("acme/sold-out", "expires on 2026-03-09"),
        ("acme/unheard-of", "is no longer listed"),
    ],
)
def test_model_that_no_cohort_could_use_is_not_added(model: str, fault: str) -> None:
    response = perform(sign_in("administrator"), "add-model", model=model)
    assert response.status_code == 400
    assert response.context["form"].errors["model"] == [f"{model} {fault}"]
    assert LineUp.objects.count() == 1
