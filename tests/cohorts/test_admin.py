"""Methodologies and cohorts, for the operator."""

import html
import json
import re
from typing import Any

import pytest
from django.forms import model_to_dict
from django.test import Client
from django.urls import reverse

from cohorts.forms import MethodologyForm, methodology_errors
from cohorts.methodologies.v3 import V3
from cohorts.models import Methodology
from tests.factories import AgentFactory, CohortFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft() -> Methodology:
    """A version that nothing uses yet."""
    methodology = Methodology.objects.current()
    methodology.pk, methodology.version, methodology.published_at = None, "v9", None
    methodology.save()
    return methodology


def filled_in(client: Client, path: str, methodology: Methodology | None = None, **changed: Any) -> dict[str, Any]:
    """The form of a page as a browser would send it, changed."""
    form = client.get(path).context["adminform"].form
    posted = {name: form[name].value() for name in form.fields} if form.fields else model_to_dict(methodology)
    posted = {name: "" if value is None else value for name, value in posted.items()}
    return posted | {"published_at_0": "", "published_at_1": ""} | changed


def confirmed(answer: Any) -> dict[str, str]:
    """What the page of differences sends on."""
    form_fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.content.decode())
    return {html.unescape(name): html.unescape(value) for name, value in form_fields}


def change(client: Client, methodology: Methodology) -> int:
    path = reverse("admin:cohorts_methodology_change", args=[methodology.pk])
    answer = client.post(path, filled_in(client, path, methodology, title="Reworded"))
    if answer.status_code == 200:
        assert "+Reworded" in answer.content.decode()
        answer = client.post(path, confirmed(answer))
    return answer.status_code


def test_a_version_that_no_cohort_uses_can_be_written(admin_client: Client, draft: Methodology) -> None:
    assert change(admin_client, draft) == 302
    draft.refresh_from_db()
    assert draft.title == "Reworded"


def test_a_new_version_is_a_copy_whose_differences_are_seen_before_it_is_saved(admin_client: Client) -> None:
    v1 = Methodology.objects.get(version="v1")
    page = admin_client.get(reverse("admin:cohorts_methodology_change", args=[v1.pk])).content.decode()
    path = f"{reverse('admin:cohorts_methodology_add')}?copy={v1.pk}"
    assert f'href="{path}"' in page
    preview = admin_client.post(path, filled_in(admin_client, path, version="v9", universe_size="400"))
    assert [field for field, _ in preview.context["differences"]] == ["version", "published_at", "universe_size"]
    assert "-500\n+400" in preview.content.decode()
    assert not Methodology.objects.filter(version="v9").exists()
    form_fields = {name: value.replace("\n", "\r\n") for name, value in confirmed(preview).items()}  # as browsers do
    assert admin_client.post(path, form_fields).status_code == 302
    v9 = Methodology.objects.get(version="v9")
    assert (v9.universe_size, v9.published_at) == (400, None)
    assert (v9.user_prompt, v9.malformed_note) == (v1.user_prompt, v1.malformed_note)


@pytest.mark.parametrize(
    ("field", "nonsense", "message"),
    [
        ("minimum_bet", "0", "greater than 0"),
        ("minimum_bet", "2500.01", "no first bet would be legal"),
        ("maximum_bet_fraction", "1.5", "less than or equal to 1"),
        ("universe_size", "0", "greater than or equal to 1"),
        ("actions", '["BET", "PRAY"]', "should be"),
        ("decision_weeks", "0", "greater than or equal to 1"),
        ("retry_window", "0", "greater than 0"),
        ("temperature", "9", "less than or equal to 2"),
        ("reasoning", "[1]", "dictionary"),
        ("provider_routing", '{"order": []}', "allow_fallbacks must be false"),
        ("user_prompt", "Say something.", "lacks the placeholders {awaiting}, {markets}, {portfolio}, {positions}"),
        ("malformed_note", "Wrong: {reason} {news}", "has unknown placeholders {news}"),
        ("refused_note", "{reasons", "can not be filled in"),
        ("midpoint_tolerance", "1", "less than 1"),
        ("forecast", '{"arms": ["priced"]}', "questions_per_day: Field required"),
        ("forecast", json.dumps(V3["forecast"] | {"user_prompt": "{date}"}), "user_prompt: lacks the placeholders"),
        ("forecast", json.dumps(V3["forecast"] | {"evidence_prompt": "x"}), "lacks the placeholders {evidence}"),
        ("forecast", json.dumps(V3["forecast"] | {"refused_note": "{news}"}), "has unknown placeholders {news}"),
        ("forecast", json.dumps(V3["forecast"] | {"board_condition": "x"}), "board_condition: 'x' is no condition"),
        ("trading", '{"replicates": 2}', "replicates: Input should be 1"),
        ("provider_pins", '{"a/b": {"order": []}}', "a/b.order: "),
        ("scoring", "[1]", "dictionary"),
    ],
)
def test_nonsense_is_refused_with_the_field_that_holds_it(field: str, nonsense: str, message: str) -> None:
    form = MethodologyForm(initial=model_to_dict(Methodology.objects.current()))
    posted = {name: form[name].value() for name in form.fields} | {"version": "v9", "published_at": ""}
    assert MethodologyForm(posted).is_valid()
    errors = MethodologyForm(posted | {field: nonsense}).errors
    assert set(errors) == {field}
    assert message in " ".join(errors[field])


def test_page_saves_no_nonsense(admin_client: Client) -> None:
    path = reverse("admin:cohorts_methodology_add")
    posted = filled_in(admin_client, path, version="v9", universe_size="0")
    for extra in ({}, {"_differences_seen": "1"}):
        assert set(admin_client.post(path, posted | extra).context["adminform"].form.errors) == {"universe_size"}
    assert not Methodology.objects.filter(version="v9").exists()


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_what_was_published_is_no_nonsense(version: str) -> None:
    methodology = Methodology.objects.get(version=version)
    values = {field.name: getattr(methodology, field.name) for field in Methodology._meta.concrete_fields}
    assert methodology_errors(values) == {}


def test_errors_of_one_field_are_told_together_and_missing_fields_too() -> None:
    values = model_to_dict(Methodology.objects.get(version="v3"))
    values |= {"user_prompt": "{portfolio} {news}", "rulings": ["", ""]}
    del values["universe_rule"]
    short = "String should have at least 1 character"
    assert methodology_errors(values) == {
        "universe_rule": "Field required",
        "user_prompt": "lacks the placeholders {awaiting}, {markets}, {positions}; has unknown placeholders {news}",
        "rulings": f"0: {short}; 1: {short}",
    }


def test_a_version_that_a_cohort_uses_can_only_be_read(admin_client: Client, draft: Methodology) -> None:
    CohortFactory(methodology=draft)
    assert change(admin_client, draft) == 403
    path = reverse("admin:cohorts_methodology_delete", args=[draft.pk])
    assert admin_client.post(path, {"post": "yes"}).status_code == 403
    draft.refresh_from_db()
    assert draft.title != "Reworded"


def test_a_version_shows_its_fingerprint(admin_client: Client) -> None:
    current = Methodology.objects.current()
    page = admin_client.get(reverse("admin:cohorts_methodology_change", args=[current.pk]))
    assert current.sha256 in page.content.decode()


def test_a_cohort_shows_how_many_agents_it_has(admin_client: Client) -> None:
    AgentFactory(cohort=(cohort := CohortFactory()))
    AgentFactory(cohort=cohort)
    page = admin_client.get(reverse("admin:cohorts_cohort_changelist")).content.decode()
    assert '<td class="field-agents">2</td>' in page
