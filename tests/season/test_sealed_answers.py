"""Sealed answers: until an external agent's window has closed, nobody outside reads what its competitors answered."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client
from django.urls import resolve
from selectolax.lexbor import LexborHTMLParser

from agents.models import (
    Agent,
    ChainLink,
    Decision,
    Elicitation,
    Envelope,
    Forecast,
    ModelCall,
    Position,
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
from markets.models import Market, QuestionEntry, Universe
from tests.answers import GEMINI, GPT, GROK, bet, forecast, sell
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.factories import AgentFactory, RunFactory, line_up
from tests.markup import elements, get_page
from tests.sandbox import Venue
from tests.selection import some_or_every
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import ModelAnswer

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


def crawl(client: Client, of_each: int) -> Iterator[tuple[str, str]]:
    """The address and the text of the pages, feeds, lists and chart files that the front page leads to.

    Of each kind so many are followed, besides the pages of all that is sealed.
    """
    waiting = ["/", "/search/?q=zanzi", "/metrics", "/decisions/?q=zanzi", "/sitemap.xml", *pages_of_sealed_rows()]
    lists = client.get(API).json()
    for address in lists.values():
        path = urlsplit(address).path
        waiting += [path, f"{path}?page_size=500", f"{path}?format=csv"]
    waiting += [f"{API}decisions/?search={SECRET[:5]}", f"{API}forecasts/?search={SECRET[:5]}"]
    waiting += [f"{API}decisions/{pk}/" for pk in Decision.objects.values_list("pk", flat=True)]
    waiting += [f"{API}forecasts/{pk}/" for pk in Forecast.objects.values_list("pk", flat=True)]
    addresses = set(waiting)
    followed = Counter[str]()
    while waiting:
        path = waiting.pop()
        answer = client.get(path, follow=True)
        contents = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        text = contents.decode(errors="replace")
        yield path, text
        if "text/html" not in answer["Content-Type"]:
            continue
        for link in LexborHTMLParser(text).css("a[href]"):
            target = urljoin(path, link.attributes["href"] or "").partition("#")[0]
            if (
                not target.startswith("/")
                or "?" in target
                or target.startswith(("/static/", "/admin/", "/data/", "/og/"))
                or target.endswith(".png")  # the picture of an SVG file that is read
            ):
                continue
            if target not in addresses:
                addresses.add(target)
                kind = resolve(target).view_name
                followed[kind] += 1
                if followed[kind] <= of_each:
                    waiting.append(target)


def pages_of_sealed_rows() -> list[str]:
    """The pages of the sealed decisions, of their agents and models, and of all markets and questions."""
    decisions = sealed_decisions().select_related("agent__cohort", "agent__family")
    pages = []
    for decision in decisions:
        slug = decision.agent.family.slug
        agent_page = f"/cohorts/{decision.agent.cohort.number}/{slug}/"
        pages += [f"/decisions/{decision.pk}/", agent_page, f"{agent_page}trades/", f"/models/{slug}/"]
    pages += [f"/markets/{pk}/" for pk in Market.objects.values_list("pk", flat=True)]
    return pages + [f"/questions/{pk}/" for pk in QuestionEntry.objects.values_list("question", flat=True)]


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


@pytest.mark.slow
@some_or_every
def test_no_page_list_feed_or_file_shows_a_sealed_decision(
    client: Client, sealed: Venue, settings: Any, of_each: int
) -> None:
    assert leaks(crawl(client, of_each), IN_TRADES) == {}
    end_seal(settings, DECIDED + 15 * MINUTE)
    lists = [f"{API}{name}/" for name in ("decisions", "trades", "agents", "journal")]
    assert list(leaks(texts(client, *lists), IN_TRADES)) == lists


@pytest.mark.slow
@some_or_every
def test_no_page_list_feed_or_file_shows_a_sealed_forecast(
    client: Client, sealed_forecasts: Venue, settings: Any, of_each: int
) -> None:
    assert leaks(crawl(client, of_each), IN_FORECASTS) == {}
    end_seal(settings, FORECAST_AT + 15 * MINUTE)
    question = Forecast.objects.filter(rationale=SECRET).earliest("pk").question_id
    paths = [f"{API}forecasts/", f"{API}forecasts/?format=csv", f"/questions/{question}/"]
    assert list(leaks(texts(client, *paths), IN_FORECASTS)) == paths


def test_sealed_rows_are_listed_without_content_until_their_seal_ends(client: Client, sealed: Venue) -> None:
    until = "2026-03-15T00:20:00Z"
    decided = rows(client, "decisions/?week=2&status=answered")
    assert len(decided) == 3
    for row in decided:
        assert row["sealed_until"] == until
        assert [row[name] for name in CONTENT_OF_DECISION] == [None] * len(CONTENT_OF_DECISION)
    assert [row["sealed_until"] for row in rows(client, "decisions/?week=1")] == [None] * 4
    assert [row["amount"] for row in rows(client, "trades/")] == ["500.00"]
    assert [(row["shares"], row["status"]) for row in rows(client, "positions/")] == [("1250.000000", "open")]


def test_filter_by_content_finds_no_sealed_row(client: Client, sealed: Venue) -> None:
    market = Market.objects.get(question=SNOW).pk
    for path in (
        "decisions/?action=BET", "decisions/?action=SELL", f"decisions/?search={SECRET}", "decisions/?fallback=false",
        f"trades/?market={market}", "trades/?kind=SELL",
        "trades/?ordering=-amount&executed_at__gte=2026-03-15",
        f"positions/?market={market}", f"positions/?status=open&agent={trader()}",
    ):  # fmt: skip
        found = rows(client, path)
        assert [row for row in found if row.get("sealed_until") or row.get("opened_at")] == [], path
        assert {row["id"] for row in found if "decision" in row} <= {Trade.objects.earliest("pk").pk}, path


def test_choice_of_fields_opens_no_seal(client: Client, sealed: Venue) -> None:
    assert [row["amount"] for row in rows(client, "trades/?fields=amount,shares")] == ["500.00"]
    answered = rows(client, "decisions/?status=answered&fields=action,cost_usd")
    assert answered == [{"action": None, "cost_usd": None, "sealed_until": "2026-03-15T00:20:00Z"}] * 3


def test_agent_has_the_value_of_before_the_freeze(client: Client, sealed: Venue, settings: Any) -> None:
    gemini = trader()
    for path in (f"agents/{gemini}/", f"agents/{gemini}/?fields=cash"):
        assert client.get(f"{API}{path}").json()["cash"] == "10000.00"
    assert rows(client, f"snapshots/?agent={gemini}")[0]["cash"] == "10000.00"
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert client.get(f"{API}agents/{gemini}/").json()["cash"] == CASH


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


def test_run_tells_nothing_of_sealed_answers(client: Client, sealed: Venue, settings: Any) -> None:
    path = "runs/?kind=run_decisions"
    assert rows(client, path)[0]["summary"] == {}
    assert rows(client, f"{path}&fields=summary")[0]["summary"] == {}
    assert rows(client, path)[-1]["summary"]["completed"] == 3
    late = RunFactory(kind="run_decisions", at=DECIDED + timedelta(milliseconds=1), summary={"trades": 9})
    assert {row["id"]: row["summary"] for row in rows(client, path)}[late.pk] == {}
    late.delete()
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert rows(client, "runs/?kind=open_envelopes")[0]["summary"]["trades"] == 2


def test_run_of_snapshots_tells_nothing_of_what_is_held(client: Client, sealed: Venue) -> None:
    snapshots = rows(client, "runs/?kind=take_snapshots")
    assert [row["summary"].get("priced") for row in snapshots] == [None, 1]
    assert rows(client, "runs/?kind=sync_markets")[0]["summary"]


def positions_of(client: Client, position: Position) -> str:
    """The positions on the page of a position's agent."""
    html = LexborHTMLParser(client.get(f"/cohorts/1/{position.agent.family.slug}/", follow=True).text)
    section = html.css_first("section[aria-labelledby=positions]")
    assert section is not None
    return section.text()


def test_positions_are_shown_as_of_before_the_freeze(client: Client, sealed: Venue, settings: Any) -> None:
    """GPT sells a part of RAIN, and Gemini buys SNOW, which nobody holds before the opening."""
    position = Position.objects.get()
    assert position.market.question == RAIN
    assert "1,250" in positions_of(client, position)
    for played in ("held", "bet"):
        text = client.get(f"/markets/?played={played}").text
        assert (RAIN in text, SNOW in text) == (True, False), played
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert "787.5" in positions_of(client, position)
    for played in ("held", "bet"):
        assert SNOW in client.get(f"/markets/?played={played}").text


def test_prices_and_look_ups_tell_not_which_markets_are_held(venue: Venue) -> None:
    """Under the seal they are of RAIN alone, which was held before the freeze; SNOW follows at the opening."""
    play(venue)
    at = DECIDED + 9 * MINUTE
    assert run("take_snapshots", at).code == 0
    assert run("check_resolutions", at).code == 0
    assert set(Market.objects.filter(refreshed_at=at).values_list("question", flat=True)) == {RAIN}
    later = DECIDED + 15 * MINUTE
    assert run("check_resolutions", later).code == 0
    assert set(Market.objects.filter(refreshed_at=later).values_list("question", flat=True)) == {RAIN, SNOW}


def test_family_page_counts_no_sealed_call(client: Client, sealed: Venue, settings: Any) -> None:
    def requests() -> str:
        page = LexborHTMLParser(client.get("/models/gpt-5.2/").text)
        return page.css("table[aria-labelledby=cost] td")[1].text(strip=True)

    before = requests()
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert before != requests()


def test_questions_name_no_market_of_a_sealed_bet(venue: Venue) -> None:
    """The rule chooses one question; a bet's is added once everybody may know of the bet."""
    register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK)
    for question in (RAIN, SNOW):
        venue.market(question)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    for model in (GPT, GEMINI):
        venue.says(model, bet(RAIN, "YES", 500, (SNOW, "YES", 300)))
    run("run_decisions", DECISION)
    assert run("run_forecasts", DECISION + 10 * MINUTE, questions=1)["questions"] == 1
    assert set(QuestionEntry.objects.values_list("reason", flat=True)) == {"selected"}
    assert run("run_forecasts", DECISION + 15 * MINUTE)["questions"] == 2
    assert QuestionEntry.objects.get(reason="traded").question_set.part == 1


def test_page_of_a_sealed_answer_says_until_when(client: Client, sealed: Venue) -> None:
    decision = sealed_decisions()[0]
    page = client.get(f"/decisions/{decision.pk}/").text
    assert "sealed until" in page
    assert "00:20" in page


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


def test_market_tells_of_a_sealed_bet_by_no_mark(client: Client, sealed: Venue, settings: Any) -> None:
    """SNOW was bet on, by the sealed answer alone: its row, its time of change, lists and feeds say nothing of it."""
    assert set(Market.objects.filter(traded=True).values_list("question", flat=True)) == {RAIN}
    assert f"/markets/{Market.objects.get(question=SNOW).pk}/" not in client.get("/sitemap-markets.xml").text
    assert run("take_snapshots", DECIDED + 12 * MINUTE).code == 0
    assert not Market.objects.get(question=SNOW).traded
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert run("take_snapshots", DECIDED + 15 * MINUTE).code == 0
    assert Market.objects.get(question=SNOW).traded


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


def test_letters_of_a_failed_attempt_are_sealed_until_the_seal_ends(
    client: Client, venue: Venue, settings: Any
) -> None:
    """GPT stakes less than the least bet and names no probability that can be read: both tasks fail under the seal."""
    register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK)
    line_up(GPT)
    venue.market(RAIN)
    venue.says(GPT, secretly(bet(RAIN, "YES", "43.21")))
    venue.start_first_cohort()
    run("run_decisions", DECISION)
    venue.says(GPT, *[secretly(forecast({RAIN: {"YES": 7.0, "NO": PROBABILITY}}))] * 4)
    asked_at = DECISION + 5 * MINUTE
    run("run_forecasts", asked_at)
    decision, elicitation = Decision.objects.get(agent__model_id=GPT), Elicitation.objects.earliest("pk")
    assert {decision.status, elicitation.status} == {"failed"}
    assert "43.21" in decision.error
    refused_call = ModelCall.objects.filter(decision=decision).latest("pk")
    question, pages = QuestionEntry.objects.first(), ["/models/gpt-5.2/", "/cohorts/1/gpt-5.2/", "/metrics"]
    assert question is not None
    paths = [f"{API}decisions/", f"{API}elicitations/"]
    paths += [f"{API}decisions/{decision.pk}/", f"{API}elicitations/{elicitation.pk}/", f"/decisions/{decision.pk}/"]
    paths += [f"/questions/{question.question_id}/", f"{API}runs/?kind=run_decisions", *pages]
    staff, admin = sign_in("operator"), "/admin/agents/"
    lists = [f"{admin}{name}/" for name in ("decision", "elicitation", "modelcall", "instruction", "refusedforecast")]
    private = [*lists, f"{lists[0]}{decision.pk}/change/", f"{lists[1]}{elicitation.pk}/change/"]
    private.append(f"/admin/actions/retry/?decision={decision.pk}")
    secrets = (SECRET, "43.21", str(PROBABILITY), "is given 7.0")

    def found() -> dict[str, list[str]]:
        return leaks(texts(client, *paths), secrets) | leaks(texts(staff, *private), secrets)

    for settings.ARENA_CLOCK in (asked_at + MINUTE, DECISION + 15 * MINUTE - timedelta(seconds=1)):
        assert found() == {}
        assert staff.get(f"{lists[2]}{refused_call.pk}/change/").status_code == 302
        assert rows(client, f"decisions/?search={SECRET}") == []
        assert rows(client, "decisions/")[-1]["cost_usd"] is None
    settings.ARENA_CLOCK = asked_at + 15 * MINUTE
    assert {
        f"/decisions/{decision.pk}/",
        f"{API}elicitations/{elicitation.pk}/",
        private[-1],
        paths[5],
    } <= found().keys()


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


def listed(client: Client, path: str) -> list[str]:
    """The paths of the rows that an admin list shows."""
    links = elements(get_page(client, path), "#result_list tbody th a")
    return [str(link.attributes["href"]).partition("?")[0] for link in links]


DECISIONS, ELICITATIONS, AGENTS = (f"/admin/agents/{name}/" for name in ("decision", "elicitation", "agent"))


@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_admin_shows_the_cash_of_before_the_freeze(sealed: Venue, settings: Any, role: str) -> None:
    staff, agent = sign_in(role), trader()
    paths = [AGENTS, f"{AGENTS}{agent}/change/", f"{AGENTS}csv/"]

    def told() -> list[tuple[bool, bool]]:
        pages = [
            b"".join(staff.get(path)).decode().replace(",", "").replace("\N{NARROW NO-BREAK SPACE}", "")
            for path in paths
        ]
        return [(CASH in page, "10000.00" in page) for page in pages]

    assert told() == [(False, True)] * 3
    poor, changed = (f"{AGENTS}?{lookup}" for lookup in ("cash__lt=9000", "journal_length__gt=1"))
    assert listed(staff, f"{AGENTS}?o=5")[0] == f"{AGENTS}{trader(GPT)}/change/", "the order tells no purchase"
    assert listed(staff, poor) == []
    assert paths[1] not in listed(staff, changed)
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert [has_cash for has_cash, _ in told()] == [True] * 3
    assert listed(staff, poor) == listed(staff, f"{AGENTS}?o=5")[:1] == [paths[1]]
    assert paths[1] in listed(staff, changed)


def test_admin_finds_no_sealed_decision_by_its_content(sealed: Venue, settings: Any) -> None:
    staff = sign_in("operator")
    universe = sealed_decisions()[0].universe_id
    of_week = {f"{DECISIONS}{pk}/change/" for pk in Decision.objects.filter(week=2).values_list("pk", flat=True)}
    secret = {f"{DECISIONS}{decision.pk}/change/" for decision in sealed_decisions()}
    queries = (
        f"q={SECRET}", f"q={SECRET}&week=2", "action__exact=SELL", "action__exact=BET", "action=BET",
        f"reasoning__icontains={SECRET}", "fallback__exact=0", "preset=refused", "preset=expensive", "preset=fallback",
        "action__in=BET,SELL", "o=5", "o=-6.1", "updated_at__gte=2026-03-15T00:00:00Z", "refusals=0",
    )  # fmt: skip
    for query in queries:
        assert not of_week & set(listed(staff, f"{DECISIONS}?{query}")), query
        assert not of_week & set(listed(staff, f"{DECISIONS}?{query}&universe__id__in={universe}")), query
    suggested = "/admin/autocomplete/?app_label=agents&model_name=trade&field_name=decision&term="
    assert staff.get(f"{suggested}{SECRET}").json()["results"] == []
    assert staff.get(f"{DECISIONS}?trades__isnull=0").status_code == 400
    for query in (
        "",
        "status__exact=answered",
        "preset=week",
        f"universe__id__in={universe}",
    ):
        assert of_week & set(listed(staff, f"{DECISIONS}?{query}")) >= secret, query
    sold = Decision.objects.get(agent=trader(GPT), week=2).pk
    assert listed(staff, f"{DECISIONS}?q={sold}") == [f"{DECISIONS}{sold}/change/"]
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert set(listed(staff, f"{DECISIONS}?q={SECRET}")) == secret
    assert listed(staff, f"{DECISIONS}?action__exact=SELL") == [f"{DECISIONS}{sold}/change/"]


def test_admin_finds_no_sealed_elicitation_by_its_content(sealed_forecasts: Venue) -> None:
    staff = sign_in("operator")
    assert listed(staff, ELICITATIONS)
    assert listed(staff, f"{ELICITATIONS}?status__exact=answered") == listed(staff, ELICITATIONS)
    for query in ("declined__exact=0", "preset=expensive", "q=gpt", "error=", "o=6"):
        assert listed(staff, f"{ELICITATIONS}?{query}") == [], query


def test_admin_list_is_sealed_whatever_the_method(sealed: Venue) -> None:
    staff = sign_in("viewer")
    for name in ("decision", "trade", "position", "modelcall", "agent", "journalentry"):
        for path in (f"/admin/agents/{name}/", f"/admin/agents/{name}/csv/"):
            text = b"".join(staff.post(path)).decode()
            assert not {secret for secret in IN_TRADES if secret in text}, path


def test_file_of_an_admin_list_has_sealed_decisions_without_content(sealed: Venue, settings: Any) -> None:
    staff = sign_in("operator")

    def actions() -> set[str]:
        lines = b"".join(staff.get(f"{DECISIONS}csv/?week=2&status__in=answered,completed")).decode().splitlines()
        return {row["action"] for row in csv.DictReader(lines)}

    assert actions() == {""}
    end_seal(settings, DECIDED + 15 * MINUTE)
    assert actions() == {"BET", "SELL", "HOLD"}


def test_admin_tells_not_whether_a_sealed_elicitation_was_declined(sealed: Venue, settings: Any) -> None:
    sealed.says(GPT, ModelAnswer("", usage={"prompt_tokens": 1000, "completion_tokens": 0, "cost": 0.001}))
    assert run("run_forecasts", FORECAST_AT)["declined"] == 0
    staff, envelope = sign_in("operator"), Envelope.objects.get(verdict__declined=True)
    paths = [ELICITATIONS, f"{ELICITATIONS}csv/", f"{ELICITATIONS}{envelope.elicitation_id}/change/"]
    error = envelope.verdict["error"]
    assert error

    def texts_of_pages() -> list[str]:
        return [b"".join(staff.get(path)).decode() for path in paths]

    settings.ARENA_CLOCK = FORECAST_AT + 5 * MINUTE
    assert [error in text for text in texts_of_pages()] == [False] * 3
    assert "True" not in texts_of_pages()[0]
    assert "True" not in texts_of_pages()[1]
    end_seal(settings, FORECAST_AT + 15 * MINUTE)
    assert [error in text for text in texts_of_pages()] == [True] * 3
