"""Methodologies and cohorts, for the operator."""

import pytest
from django.forms import model_to_dict
from django.test import Client
from django.urls import reverse

from cohorts.models import Methodology
from tests.factories import AgentFactory, CohortFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft() -> Methodology:
    """A version that nothing uses yet."""
    methodology = Methodology.objects.current()
    methodology.pk, methodology.version, methodology.published_at = None, "v2", None
    methodology.save()
    return methodology


def change(client: Client, methodology: Methodology) -> int:
    path = reverse("admin:cohorts_methodology_change", args=[methodology.pk])
    form = client.get(path).context["adminform"].form
    posted = {name: form[name].value() for name in form.fields} if form.fields else model_to_dict(methodology)
    posted = {name: "" if value is None else value for name, value in posted.items()}
    posted |= {"title": "Reworded", "published_at_0": "", "published_at_1": ""}
    return client.post(path, posted).status_code


def test_a_version_that_no_cohort_uses_can_be_written(admin_client: Client, draft: Methodology) -> None:
    assert change(admin_client, draft) == 302
    draft.refresh_from_db()
    assert draft.title == "Reworded"


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
