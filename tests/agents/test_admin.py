"""Admin of families, releases, decisions and the ledger."""

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.models import Decision, Family, Registration, Release
from agents.services.registrations import hash_token
from arena_site.models import AuditEntry
from tests.factories import (
    AgentFactory,
    DecisionFactory,
    FamilyFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    RegistrationFactory,
    ReleaseFactory,
    bet,
)
from tests.guards import guards_removed
from tests.markup import get_page, visible_text

pytestmark = pytest.mark.django_db
HOSTILE = "</pre><script>alert(1)</script>"


def decision_page(client: Client, decision: Decision) -> str:
    page = client.get(reverse("admin:agents_decision_change", args=[decision.pk]))
    assert page.status_code == 200
    return page.content.decode()


def test_a_decision_shows_its_prompt_calls_instructions_and_trades(admin_client: Client) -> None:
    trade = bet(AgentFactory(), MarketFactory(question="Will it rain on Sunday?"))
    ModelCallFactory(decision=trade.decision, result="malformed", error="no JSON object", content="I think")
    call = ModelCallFactory(decision=trade.decision, portfolio_block='{"cash": "7.77"}')
    InstructionFactory(call=call, reason="bets[0].amount: 20 is below the minimum")
    page = decision_page(admin_client, trade.decision)
    assert '<pre class="verbatim">' in page
    assert "{&quot;cash&quot;: &quot;7.77&quot;}" in page
    assert "Will it rain on Sunday?" in page
    assert "no JSON object" in page
    assert "bets[0].amount: 20 is below the minimum" in page
    assert "1250.000000" in page
    assert "$0.0050" in page


def test_text_of_models_and_venues_is_escaped(admin_client: Client) -> None:
    trade = bet(AgentFactory(), MarketFactory(question=HOSTILE, prices={HOSTILE: "0.5", "Other": "0.5"}), HOSTILE)
    decision = trade.decision
    with guards_removed(Decision):
        Decision.objects.filter(pk=decision.pk).update(reasoning=HOSTILE, error=HOSTILE)
    call = ModelCallFactory(
        decision=decision, content=HOSTILE, raw_response=HOSTILE, error=HOSTILE, portfolio_block=HOSTILE,
        retry_note=HOSTILE, provider=HOSTILE,
    )  # fmt: skip
    InstructionFactory(call=call, reason=HOSTILE, payload={"side": HOSTILE})
    pages = [decision_page(admin_client, decision)]
    pages += [
        admin_client.get(reverse(f"admin:agents_{model}_changelist")).content.decode()
        for model in ("decision", "modelcall", "instruction", "position", "trade", "journalentry")
    ]
    pages.append(admin_client.get(reverse("admin:agents_modelcall_change", args=[call.pk])).content.decode())
    assert all("<script>alert(1)" not in page for page in pages)
    assert pages[0].count("&lt;script&gt;alert(1)") >= 9


def test_decision_without_calls_says_that_nothing_was_sent(admin_client: Client) -> None:
    decision = DecisionFactory(missed=True, universe=None)
    assert "nothing was sent" in decision_page(admin_client, decision)


def test_decision_page_takes_the_same_number_of_queries_with_more_rows(admin_client: Client) -> None:
    agent = AgentFactory()

    def add_decision() -> Decision:
        trade = bet(agent, MarketFactory(), amount="100.00")
        InstructionFactory(call=ModelCallFactory(decision=trade.decision))
        return trade.decision

    def query_count(decision: Decision) -> int:
        with CaptureQueriesContext(connection) as captured:
            decision_page(admin_client, decision)
        return len(captured)

    before = query_count(add_decision())
    add_decision()
    assert query_count(add_decision()) == before


def test_a_decision_loads_no_script_or_style_inline(admin_client: Client) -> None:
    page = decision_page(admin_client, ModelCallFactory().decision)
    assert "arena/admin.css" in page
    assert ' style="' not in page


def test_an_agent_links_to_its_own_records(admin_client: Client) -> None:
    first, second = AgentFactory(), AgentFactory()
    bet(first, MarketFactory(question="The first one's?"))
    bet(second, MarketFactory(question="The second one's?"))
    page = admin_client.get(reverse("admin:agents_agent_change", args=[first.pk])).content.decode()
    link = f"{reverse('admin:agents_trade_changelist')}?agent__id__exact={first.pk}"
    assert f'href="{link}"' in page
    trades = admin_client.get(link).content.decode()
    assert "The first one&#x27;s?" in trades
    assert "The second one&#x27;s?" not in trades


def release_form(release: Release, **changed: Any) -> dict[str, Any]:
    return {
        "family": release.family_id,
        "model_id": release.model_id,
        "display_name": release.display_name,
        "price_prompt": str(release.price_prompt),
        "price_completion": str(release.price_completion),
        "effective_from_0": f"{release.effective_from:%Y-%m-%d}",
        "effective_from_1": f"{release.effective_from:%H:%M:%S}",
        **changed,
    }


def test_unused_release_can_be_changed(admin_client: Client) -> None:
    release = ReleaseFactory()
    path = reverse("admin:agents_release_change", args=[release.pk])
    answer = admin_client.post(path, release_form(release, price_prompt="0.000000071"))
    assert answer.status_code == 302, answer.context["errors"]
    release.refresh_from_db()
    assert release.price_prompt == Decimal("0.000000071")


def test_prices_are_shown_for_a_million_tokens(admin_client: Client) -> None:
    agent = AgentFactory()
    unused = ReleaseFactory(price_prompt=Decimal("0.00000031"), price_completion=Decimal("0.0000027"))

    def page_of(row: Any, page: str = "change") -> str:
        path = reverse(f"admin:agents_{row._meta.model_name}_{page}", args=[row.pk] if page == "change" else [])
        return visible_text(get_page(admin_client, path))

    listed = page_of(unused, "changelist")
    assert "$ per million prompt tokens" in listed
    for text, prices in (
        (listed, ("0.31", "2.7")),
        (page_of(agent), ("1.75", "14")),
        (page_of(agent.release), ("14",)),
    ):
        assert [price for price in prices if price not in text.split()] == []
        assert "0.0000" not in text, "no price for one token"
    form = page_of(unused)
    assert "$1.75 per million is 0.00000175" in form
    assert {"0.31", "2.7"} <= set(form.split())


def test_release_of_an_agent_can_not_be_deleted_and_only_its_declared_cutoff_be_changed(admin_client: Client) -> None:
    release = AgentFactory().release
    change, delete = (reverse(f"admin:agents_release_{page}", args=[release.pk]) for page in ("change", "delete"))
    form = release_form(release, model_id="acme/other", released_on="2020-01-01", declared_cutoff="2025-08-31")
    assert admin_client.post(change, form).status_code == 302
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    release.refresh_from_db()
    assert (release.model_id, release.released_on) == ("openai/gpt-5.2", None)
    assert release.declared_cutoff == date(2025, 8, 31)


def test_a_new_release_is_registered_for_a_family(admin_client: Client) -> None:
    family = Family.objects.get(slug="grok-4")
    release = Release(
        family=family, model_id="x-ai/grok-5", display_name="Grok 5", price_prompt="0.000001",
        price_completion="0.000002", effective_from=timezone.now() - timedelta(hours=1),
    )  # fmt: skip
    answer = admin_client.post(reverse("admin:agents_release_add"), release_form(release))
    assert answer.status_code == 302, answer.context["errors"]
    assert "x-ai/grok-5" in admin_client.get(reverse("admin:agents_release_changelist")).content.decode()
    assert "x-ai/grok-5" not in admin_client.get(reverse("admin:agents_family_changelist")).content.decode()


def test_a_family_can_be_renamed_but_keeps_its_slug(admin_client: Client) -> None:
    family = FamilyFactory()
    path = reverse("admin:agents_family_change", args=[family.pk])
    posted = {"slug": "other", "display_name": "New name", "provider": "Acme", "color": "#abcdef"}
    assert admin_client.post(path, posted).status_code == 302
    slug = family.slug
    family.refresh_from_db()
    assert (family.slug, family.display_name, family.active) == (slug, "New name", False)


# ── audit log ─────────────────────────────────────────────────────────────────────────────────────


def test_changes_of_a_family_are_in_the_audit_log(admin_client: Client) -> None:
    family = FamilyFactory(display_name="Old name")
    path = reverse("admin:agents_family_change", args=[family.pk])
    posted = {"display_name": "New name", "provider": "Acme", "color": "#abcdef"}
    for _ in range(2):
        assert admin_client.post(path, posted).status_code == 302
    again, first = AuditEntry.objects.all()
    assert (first.action, first.by, first.result, first.target) == ("change-family", "admin", "done", "New name")
    assert (first.before["display_name"], first.after["display_name"]) == ("Old name", "New name")
    assert first.path == path
    assert (again.result, again.before) == ("unchanged", again.after)
    assert timezone.now() - first.at < timedelta(minutes=1)


def test_adding_changing_and_deleting_a_release_is_in_the_audit_log(admin_client: Client) -> None:
    release = ReleaseFactory.build(family=FamilyFactory(), model_id="acme/newer", effective_from=timezone.now())
    assert admin_client.post(reverse("admin:agents_release_add"), release_form(release)).status_code == 302
    newer = Release.objects.get(model_id="acme/newer")
    for page, posted in (("change", release_form(release, price_prompt="0.000000071")), ("delete", {"post": "yes"})):
        assert admin_client.post(reverse(f"admin:agents_release_{page}", args=[newer.pk]), posted).status_code == 302
    added, changed, deleted = AuditEntry.objects.order_by("pk")
    assert [entry.action for entry in (added, changed, deleted)] == ["add-release", "change-release", "delete-release"]
    assert (added.before, deleted.after) == ({}, {})
    assert added.after == changed.before
    assert (changed.after, Decimal(changed.after["price_prompt"])) == (deleted.before, Decimal("0.000000071"))


def test_invalid_form_changes_nothing_and_adds_no_audit_entry(admin_client: Client) -> None:
    family = FamilyFactory()
    path = reverse("admin:agents_family_change", args=[family.pk])
    assert admin_client.post(path, {"display_name": "", "provider": "Acme", "color": "red"}).status_code == 200
    assert not AuditEntry.objects.exists()


# --- Admin of external agents: registration, lists, revocation

LIST = reverse("admin:agents_registration_changelist")
ADD = reverse("admin:agents_registration_add")


def test_registering_shows_the_token_once_and_is_in_the_audit_log(admin_client: Client) -> None:
    page = admin_client.post(ADD, {"name": "Deep Thought", "protocol": "trading"})
    assert page.status_code == 200
    (token,) = re.findall(r"arena_[\w-]{43}", page.content.decode())
    registration = Registration.objects.get()
    assert registration.family.track == "closed"
    assert (registration.token_sha256, registration.family.slug) == (hash_token(token), "deep-thought")
    assert "no-store" in page["Cache-Control"]
    assert LogEntry.objects.filter(object_id=str(registration.pk)).count() == 1
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.before, entry.after["protocol"]) == (
        "add-registration",
        "admin",
        {},
        "trading",
    )
    assert registration.token_sha256 not in str(entry.after)
    addresses = [LIST, reverse("admin:agents_registration_change", args=[registration.pk])]
    assert all(token not in admin_client.get(url).content.decode() for url in addresses)
    assert all(registration.token_sha256 not in admin_client.get(url).content.decode() for url in addresses)


def test_name_in_use_is_a_form_error(admin_client: Client) -> None:
    page = admin_client.post(ADD, {"name": "GPT-5.1", "protocol": "both"})
    assert "gpt-5.1 is the name of another forecaster" in page.content.decode()
    assert not Registration.objects.exists()


def test_revoking_needs_confirmation_and_is_in_the_audit_log(admin_client: Client) -> None:
    registration = RegistrationFactory()
    form_data = {"action": "revoke", "_selected_action": [registration.pk]}
    confirmation = admin_client.post(LIST, form_data)
    assert "Yes, revoke" in confirmation.content.decode()
    registration.refresh_from_db()
    assert registration.revoked_at is None
    admin_client.get(LIST, form_data | {"confirmed": "yes"})
    registration.refresh_from_db()
    assert registration.revoked_at is None
    admin_client.post(LIST, form_data | {"confirmed": "yes"})
    registration.refresh_from_db()
    assert registration.revoked_at is not None
    assert LogEntry.objects.get().change_message == "Revoked."
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.result) == ("change-registration", "admin", "done")
    assert (entry.before["revoked_at"], entry.after["revoked_at"]) == (None, registration.revoked_at.isoformat())
