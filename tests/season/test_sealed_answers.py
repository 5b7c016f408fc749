"""Sealed answers: until an external agent's window has closed, nobody outside reads what its competitors answered."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client

from agents.models import (
    Agent,
    ChainLink,
    Decision,
    Envelope,
    Forecast,
    Receipt,
    Registration,
    SigningKey,
    Submission,
    Trade,
)
from agents.records import canonical, link_sha256, record_sha256, sha256
from agents.services.registrations import register_external_agent, revoke_registration
from agents.services.task_records import envelope_record
from arena_site.models import AuditEntry
from cohorts.models import Cohort
from markets.models import QuestionEntry, Universe
from tests.answers import GEMINI, GPT, GROK, bet, forecast, sell
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.factories import AgentFactory, RunFactory, line_up
from tests.markup import elements, get_page
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest

pytestmark = pytest.mark.slow

RAIN, SNOW, HAIL = "Will it rain?", "Will it snow?", "Will it hail?"
WEEK, HOUR, MINUTE = timedelta(weeks=1), timedelta(hours=1), timedelta(minutes=1)
SECRET = "zanzibar"
"""A word of every sealed answer, and of nothing else."""
STAKE, CASH = "1234.56", "8765.44"
PROBABILITY = 0.8437
IN_TRADES = (SECRET, STAKE, f"{float(STAKE):,}", CASH, f"{float(CASH):,}")
IN_FORECASTS = (str(PROBABILITY), "0.844", "84.4\N{NARROW NO-BREAK SPACE}%", "84 %")
"""The secrets as they would stand in prose, in amounts and in probabilities."""
DECIDED = DECISION + WEEK
FORECAST_AT = SUNDAY + WEEK + timedelta(hours=2)
API = "/api/v1/"
CONTENT_OF_DECISION = ("action", "fallback", "reasoning", "error", "tokens_output", "cost_usd")


def secretly(script: Callable[[ModelRequest], Any]) -> Callable[[ModelRequest], Any]:
    """The answer with the secret in its reasoning."""

    def answer(prompt: ModelRequest) -> Any:
        answer_body = script(prompt)
        if "forecasts" in answer_body:
            return {"forecasts": [row | {"rationale": SECRET} for row in answer_body["forecasts"]]}
        return answer_body | {"reasoning": SECRET}

    return answer


def play(venue: Venue) -> str:
    """Two weeks with a visitor: GPT buys and then sells a part, Gemini buys in the second week. Returns the token."""
    token = register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK).token
    line_up(GPT, GEMINI, GROK)
    venue.market(RAIN)
    venue.market(SNOW)
    venue.says(GPT, bet(RAIN, "YES", 500))
    for at in (SUNDAY, SUNDAY + WEEK):
        assert run("sync_markets", at).code == 0
        if at == SUNDAY + WEEK:
            assert run("take_snapshots", at).code == 0
            venue.says(GPT, secretly(sell(RAIN, 37)))
            venue.says(GEMINI, secretly(bet(SNOW, "YES", STAKE)))
        else:
            assert run("start_cohort", at).code == 0
        assert run("run_decisions", at + timedelta(minutes=5)).code == 0
    assert run("take_snapshots", DECIDED + 6 * MINUTE).code == 0
    assert Trade.objects.count() == 1, "the answers of the second week wait in their envelopes"
    return token


played = shared_rows_at_venue(play)


@pytest.fixture
def sealed(played: tuple[Venue, str], venue: Venue, settings: Any) -> Venue:
    """The venue ten minutes after the second week's freeze."""
    settings.ARENA_CLOCK = DECIDED + 10 * MINUTE
    return venue.as_left(played[0])


@pytest.fixture
def sealed_forecasts(sealed: Venue, settings: Any) -> Venue:
    """The venue five minutes after a day's questions were frozen and answered."""
    vectors = {RAIN: {"YES": PROBABILITY, "NO": 1 - PROBABILITY}}
    for _ in range(4):
        sealed.says(GPT, secretly(forecast(vectors)))
    assert run("run_forecasts", FORECAST_AT).code == 0
    settings.ARENA_CLOCK = FORECAST_AT + 5 * MINUTE
    assert not Forecast.objects.exists()
    return sealed


def end_seal(settings: Any, at: datetime) -> None:
    """Sets the clock to the end of a seal and opens what is due."""
    settings.ARENA_CLOCK = at
    assert run("open_envelopes", at).code == 0


def sealed_decisions() -> QuerySet[Decision]:
    """The decisions whose answer holds the secret, in an envelope or opened."""
    return Decision.objects.filter(envelopes__verdict__reasoning=SECRET)


def trader(model: str = GEMINI) -> int:
    """The agent of a model: GPT sells and Gemini buys in the sealed week."""
    return Agent.objects.get(model_id=model).pk


def leaks(pages: Iterable[tuple[str, str]], secrets: Sequence[str]) -> dict[str, list[str]]:
    """The secrets that each address gives away."""
    leaked_secrets = {}
    for path, text in pages:
        if secrets_in_text := [
            secret for secret in secrets if re.search(rf"(?<![0-9]){re.escape(secret)}(?![0-9])", text)
        ]:
            leaked_secrets[path] = secrets_in_text
    return leaked_secrets


def texts(client: Client, *paths: str) -> Iterator[tuple[str, str]]:
    for path in paths:
        yield path, client.get(path).content.decode()


def rows(client: Client, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"{API}{path}")
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def test_sealed_rows_are_listed_without_content_until_their_seal_ends(client: Client, sealed: Venue) -> None:
    until = "2026-03-15T00:20:00Z"
    decided = rows(client, "decisions/?week=2&status=answered")
    assert len(decided) == 3
    for row in decided:
        assert row["sealed_until"] == until
        assert [row[name] for name in CONTENT_OF_DECISION] == [None] * len(CONTENT_OF_DECISION)
        page = client.get(f"/decisions/{row['id']}/").text
        assert "sealed until" in page
        assert "00:20" in page
    assert [row["sealed_until"] for row in rows(client, "decisions/?week=1")] == [None] * 4
    assert [row["amount"] for row in rows(client, "trades/")] == ["500.00"]
    assert [(row["shares"], row["status"]) for row in rows(client, "positions/")] == [("1250.000000", "open")]


def test_of_a_sealed_forecast_there_is_its_hash_alone(client: Client, sealed_forecasts: Venue, settings: Any) -> None:
    assert rows(client, "forecasts/?page_size=500") == []
    envelope = Envelope.objects.filter(elicitation__isnull=False)[0]
    question = QuestionEntry.objects.get(batch=envelope.elicitation.batch.number, position=1).question_id
    assert client.get(f"{API}questions/{question}/").json()["forecasts"] == []
    elicitation = client.get(f"{API}elicitations/{envelope.elicitation_id}/").json()
    assert (elicitation["status"], elicitation["sealed_until"]) == ("answered", "2026-03-15T02:15:00Z")
    assert elicitation["calls"] == []
    (public,) = rows(client, f"envelopes/?elicitation={elicitation['id']}")
    assert (public["sha256"], public["sealed_until"]) == (envelope.sha256, "2026-03-15T02:15:00Z")
    assert {public[name] for name in ("nonce", "verdict", "received_at", "opened_at")} == {None}
    end_seal(settings, FORECAST_AT + 15 * MINUTE)
    (public,) = rows(client, f"envelopes/?elicitation={elicitation['id']}")
    assert (public["state"], public["nonce"]) == ("opened", envelope.nonce)


def test_run_within_the_seal_tells_nothing(client: Client, sealed: Venue) -> None:
    late = RunFactory(kind="run_decisions", at=DECIDED + timedelta(milliseconds=1), summary={"trades": 9})
    assert {row["id"]: row["summary"] for row in rows(client, "runs/?kind=run_decisions")}[late.pk] == {}


def test_end_of_a_seal_is_stored_at_the_freeze_and_changed_by_no_registration(
    client: Client, sealed_forecasts: Venue
) -> None:
    until = {row["sealed_until"] for row in rows(client, "elicitations/?status=answered")}
    assert until == {"2026-03-15T02:15:00Z"}
    revoke_registration(Registration.objects.get(), at=SUNDAY + WEEK)
    register_external_agent(name="Scout", protocol="both", track="open", at=SUNDAY - WEEK)
    assert {row["sealed_until"] for row in rows(client, "elicitations/?status=answered")} == until
    universe = Universe.objects.latest("pk")
    assert universe.sealed_until == DECIDED + 15 * MINUTE
    with pytest.raises(IntegrityError), transaction.atomic():
        Universe.objects.filter(pk=universe.pk).update(sealed_until=None)


def test_nothing_is_sealed_without_an_external_agent_in_the_protocol(
    client: Client, venue: Venue, settings: Any
) -> None:
    register_external_agent(name="Visitor", protocol="forecast", at=SUNDAY - WEEK)
    line_up(GPT)
    venue.market(RAIN)
    venue.start_first_cohort()
    assert run("run_decisions", DECISION).code == 0
    settings.ARENA_CLOCK = DECISION + MINUTE
    assert [row["sealed_until"] for row in rows(client, "decisions/")] == [None]
    assert Universe.objects.get().sealed_until is None


def test_open_track_seals_for_twelve_hours_where_it_takes_part(client: Client, sealed: Venue, settings: Any) -> None:
    register_external_agent(name="Scout", protocol="forecast", track="open", at=SUNDAY - WEEK)
    assert run("run_forecasts", FORECAST_AT).code == 0
    settings.ARENA_CLOCK = FORECAST_AT + 12 * HOUR - MINUTE
    assert {row["sealed_until"] for row in rows(client, "elicitations/?status=answered")} == {"2026-03-15T14:00:00Z"}
    assert {row["sealed_until"] for row in rows(client, "decisions/")} == {None}
    end_seal(settings, FORECAST_AT + 12 * HOUR)
    assert {row["sealed_until"] for row in rows(client, "elicitations/?status=completed")} == {None}
    late = register_external_agent(name="Sleeper", protocol="trading", track="open", at=SUNDAY - WEEK).family
    AgentFactory(family=late, release=late.releases.get(), cohort=Cohort.objects.get())
    assert run("sync_markets", SUNDAY + 2 * WEEK).code == 0
    assert run("run_decisions", DECIDED + WEEK).code == 0
    settings.ARENA_CLOCK = DECIDED + WEEK + 12 * HOUR - MINUTE
    assert {row["sealed_until"] for row in rows(client, "decisions/?week=3&status=answered")} == {
        "2026-03-22T12:05:00Z"
    }
    end_seal(settings, DECIDED + WEEK + 12 * HOUR)
    assert {row["sealed_until"] for row in rows(client, "decisions/?week=3&status=completed")} == {None}


def test_order_and_changes_of_agents_tell_no_sealed_trade(client: Client, sealed: Venue, settings: Any) -> None:
    """Gemini's purchase, which leaves it less cash than all others, changes its row at the opening."""
    buyer, frozen_at = trader(), Universe.objects.latest("pk").frozen_at
    assert {row["cash"] for row in rows(client, "agents/")} == {"9500.00", "10000.00"}
    assert rows(client, "agents/?ordering=cash")[0]["id"] == trader(GPT)
    Agent.objects.update(updated_at=frozen_at)
    changed = f"agents/?updated_since={(frozen_at + MINUTE).strftime('%Y-%m-%dT%H:%M:%SZ')}"
    assert buyer not in {row["id"] for row in rows(client, changed)}
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert rows(client, "agents/?ordering=cash")[0]["id"] == buyer
    assert buyer in {row["id"] for row in rows(client, changed)}


def test_admin_shows_no_sealed_submission(client: Client, sealed: Venue, played: tuple[Venue, str]) -> None:
    agent, universe = Agent.objects.get(family__slug="visitor"), Universe.objects.latest("pk")
    answer = client.post(
        f"{API}submissions/?agent={agent.pk}&universe={universe.pk}",
        json.dumps({"action": "HOLD", "reasoning": SECRET}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {played[1]}", "Idempotency-Key": "1"},
    )
    assert answer.status_code == 201, answer.content
    assert not {"trades", "id"} & answer.json().keys()
    staff, submission = sign_in("operator"), Submission.objects.get()
    assert SECRET not in staff.get("/admin/agents/submission/").text
    assert staff.get(f"/admin/agents/submission/{submission.pk}/change/").status_code == 302


def test_answer_stays_sealed_until_it_is_opened_however_late(client: Client, sealed: Venue, settings: Any) -> None:
    settings.ARENA_CLOCK = DECIDED + 20 * MINUTE
    decision = sealed_decisions()[0]
    page = f"/decisions/{decision.pk}/"
    paths = [f"{API}decisions/", f"{API}decisions/{decision.pk}/", f"{API}envelopes/", page, "/models/gpt-5.2/"]
    assert leaks(texts(client, *paths), IN_TRADES) == {}
    assert [row["tokens_output"] for row in rows(client, "decisions/?week=2")][:3] == [None] * 3
    assert rows(client, "runs/?kind=run_decisions")[0]["summary"] == {}
    run("open_envelopes", settings.ARENA_CLOCK)
    assert page in leaks(texts(client, *paths), IN_TRADES)


def test_answer_can_not_be_guessed_from_the_public_hashes(client: Client, sealed: Venue, settings: Any) -> None:
    """Everything of the records but their nonces is known: a HOLD among them is still not told from a SELL."""
    links = {row["envelope"]: row["record_sha256"] for row in rows(client, "chain-links/?protocol=trading")}
    envelopes = list(Envelope.objects.filter(decision__week=2))
    assert len(envelopes) == 3
    for envelope in envelopes:
        assert client.get(f"{API}decisions/{envelope.decision_id}/").json()["nonce"] is None
        assert links[envelope.pk] == envelope.sha256 == record_sha256(envelope_record(envelope))
        envelope.nonce = ""
        assert links[envelope.pk] != record_sha256(envelope_record(envelope))
    end_seal(settings, DECIDED + 15 * MINUTE)
    nonces = {row["nonce"] for path in ("envelopes/", "decisions/?status=completed") for row in rows(client, path)}
    assert len(nonces) == 12, "the envelope and the record of each of six decisions have their own"
    assert all(re.fullmatch("[0-9a-f]{64}", nonce) for nonce in nonces)


HEX = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{128}|[0-9a-f]{64})(?![0-9a-f])")


def guesses(envelope: Envelope, receipt: Receipt, known: Iterable[str]) -> tuple[set[str], list[bytes]]:
    """Hashes and signed texts of a right guess: all of it, with every nonce that is left out, empty or known."""
    answer, prompt = envelope.call.raw_response, envelope.call.prompt_sha256
    records: list[Any] = [envelope.verdict, answer, {"answer": sha256(answer), "prompt": prompt}]
    for record in (envelope_record(envelope), receipt.body):
        records.append({name: value for name, value in record.items() if name != "nonce"})
        records += [record | {"nonce": nonce} for nonce in ("", "0" * 64, *known)]
    texts = [answer, *map(canonical, records)]
    hashes = set(map(sha256, texts))
    for link in ChainLink.objects.all():
        hashes |= {link_sha256(link.previous, record) for record in list(hashes)[:50]}
    return hashes, [text.encode() for text in texts]


def test_right_guess_of_a_short_answer_is_confirmed_by_nothing_public(
    client: Client, sealed: Venue, settings: Any, played: tuple[Venue, str]
) -> None:
    """The visitor holds. All but the nonces is known: no hash and no signature tells that the guess is right."""
    agent, universe = Agent.objects.get(family__slug="visitor"), Universe.objects.latest("pk")
    settings.ARENA_SIGNING_KEY = bytes(range(32))
    answer = client.post(
        f"{API}submissions/?agent={agent.pk}&universe={universe.pk}",
        json.dumps({"action": "HOLD", "reasoning": "no"}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {played[1]}", "Idempotency-Key": "1"},
    )
    assert answer.status_code == 201, answer.content
    receipt = Receipt.objects.get()
    envelope = Envelope.objects.get(call=receipt.submission.call)
    addresses = ["/.well-known/arena-chain.json", f"/decisions/{envelope.decision_id}/"]
    for address in client.get(API).json().values():
        addresses += [urlsplit(address).path, f"{urlsplit(address).path}?page_size=500"]
    for row in (envelope.decision, receipt, envelope):
        addresses.append(f"{API}{row._meta.model_name}s/{row.pk}/")

    def public() -> set[str]:
        return {text for _, page in texts(client, *addresses) for text in HEX.findall(page)}

    before = public()
    hashes, contents = guesses(envelope, receipt, sorted(before))
    assert {envelope.sha256, receipt.sha256} <= before
    assert not hashes & before
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(SigningKey.objects.get().public_key))
    for signature, content in product([text for text in before if len(text) == 128], contents):
        with pytest.raises(InvalidSignature):
            key.verify(bytes.fromhex(signature), content)
    end_seal(settings, DECIDED + 15 * MINUTE)
    opened = public()
    assert {envelope.nonce, receipt.nonce, receipt.signature} <= opened
    confirmed, signed = guesses(envelope, receipt, [envelope.nonce, receipt.nonce])
    assert {envelope.sha256, receipt.sha256} <= confirmed & opened
    assert canonical(receipt.body).encode() in signed
    key.verify(bytes.fromhex(receipt.signature), canonical(receipt.body).encode())


def test_archive_ends_where_the_first_seal_begins(sealed: Venue, tmp_path: Path, settings: Any) -> None:
    folder = tmp_path / "archive"
    assert run("export_dataset", DECIDED + 10 * MINUTE, out=folder).code == 0
    contents = {path.name: path.read_text() for path in (folder / "csv").iterdir()}
    assert [name for name, text in contents.items() if SECRET in text or STAKE in text] == []
    assert json.loads((folder / "manifest.json").read_text())["selection"]["to"] == "2026-03-15T00:05:00.000000Z"
    (position,) = contents["positions.csv"].splitlines()[1:]
    assert "1250.000000" in position
    checked = run("verify_export", None, folder)
    assert (checked.code, checked["violations"]) == (3, 0), checked.stdout + checked.stderr
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert run("export_dataset", DECIDED + 15 * MINUTE, out=folder).code == 0
    assert SECRET in (folder / "csv" / "decisions.csv").read_text()


def test_operator_sees_the_state_and_reads_the_answer_by_an_act_on_record(sealed: Venue) -> None:
    decision = sealed_decisions()[0]
    page, lists = f"/admin/agents/decision/{decision.pk}/change/", "/admin/agents/decision/"
    operator, viewer = sign_in("operator"), sign_in("viewer")
    for path in (page, lists, "/admin/agents/trade/", "/admin/agents/modelcall/", "/admin/agents/position/", "/admin/"):
        page_text = operator.get(path).text
        assert not {secret for secret in IN_TRADES if secret in page_text}, path
    assert "answered" in operator.get(page).text.lower()
    address = f"/admin/actions/read-sealed/?decision={decision.pk}"
    assert address in operator.get(page).text.replace("&amp;", "&")
    offered = elements(get_page(operator, "/admin/actions/read-sealed/"), "select[name=decision] option")
    assert str(decision.pk) in [option.attributes["value"] for option in offered]
    perform(operator, "read-sealed", "a report of a fault", decision=decision.pk)
    assert SECRET in operator.get(page).text
    seen_by_other = viewer.get(page)
    assert (seen_by_other.status_code, SECRET in seen_by_other.text) == (200, False)
    (entry,) = AuditEntry.objects.filter(action="read-sealed")
    assert (entry.reason, entry.target) == ("a report of a fault", str(decision))
    assert SECRET not in json.dumps([entry.before, entry.after, entry.message])
