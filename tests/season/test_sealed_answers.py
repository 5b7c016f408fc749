"""Sealed answers: until an external agent's window has closed, nobody outside reads what its competitors answered."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import resolve
from selectolax.lexbor import LexborHTMLParser

from agents.models import Decision, Elicitation, Forecast, Position, Registration, Trade
from agents.services.registrations import register_external_agent, revoke_registration
from arena_site.models import AuditEntry
from cohorts.models import Cohort
from markets.models import Market, Outcome, QuestionEntry
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.commands import run
from tests.factories import AgentFactory, MarketFactory, RunFactory, line_up
from tests.factories import bet as record_bet
from tests.markup import elements, get_page
from tests.selection import some_or_every
from tests.shared_rows import shared_rows_at_venue
from tests.venue import DECISION, GEMINI, GPT, GROK, SUNDAY, ModelAnswer, Prompt, Venue, bet, forecast, sell

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
CONTENT_OF_TRADE = (
    "position",
    "market",
    "side",
    "kind",
    "shares",
    "price",
    "amount",
    "implied_confidence",
    "cost_basis",
)
CONTENT_OF_POSITION = ("market", "side", "status", "shares", "cost_basis", "value", "opened_at")


def secretly(script: Callable[[Prompt], Any]) -> Callable[[Prompt], Any]:
    """The answer with the secret in its reasoning."""

    def answer(prompt: Prompt) -> Any:
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
    assert Trade.objects.count() == 3
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
    assert Forecast.objects.filter(rationale=SECRET).exists()
    return sealed


def crawl(client: Client, of_each: int) -> Iterator[tuple[str, str]]:
    """The address and the text of the pages, feeds, lists, chart files and embeds that the front page leads to.

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
            embed = [f"/embed{target.removesuffix('.svg')}/"] if target.endswith(".svg") else []
            for address in {target, *embed} - addresses:
                addresses.add(address)
                kind = resolve(address).view_name
                followed[kind] += 1
                if followed[kind] <= of_each:
                    waiting.append(address)


def pages_of_sealed_rows() -> list[str]:
    """The pages of the sealed decisions and forecasts, and of their agents, models, markets and questions."""
    decisions = Decision.objects.filter(reasoning=SECRET).select_related("agent__cohort", "agent__family")
    forecasts = Forecast.objects.filter(rationale=SECRET)
    pages = []
    for decision in decisions:
        slug = decision.agent.family.slug
        agent_page = f"/cohorts/{decision.agent.cohort.number}/{slug}/"
        pages += [f"/decisions/{decision.pk}/", agent_page, f"{agent_page}trades/", f"/models/{slug}/"]
        pages += [f"/markets/{trade.position.market_id}/" for trade in decision.trades.select_related("position")]
    for forecast_row in forecasts:
        pages += [f"/forecasts/{forecast_row.pk}/", f"/questions/{forecast_row.question_id}/"]
    return pages


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
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    lists = [f"{API}{name}/" for name in ("decisions", "trades", "agents", "journal", "snapshots")]
    assert list(leaks(texts(client, *lists), IN_TRADES)) == lists


@pytest.mark.slow
@some_or_every
def test_no_page_list_feed_or_file_shows_a_sealed_forecast(
    client: Client, sealed_forecasts: Venue, settings: Any, of_each: int
) -> None:
    assert leaks(crawl(client, of_each), IN_FORECASTS) == {}
    settings.ARENA_CLOCK = FORECAST_AT + 15 * MINUTE
    question = Forecast.objects.filter(rationale=SECRET).earliest("pk").question_id
    paths = [f"{API}forecasts/", f"{API}forecasts/?format=csv", f"/questions/{question}/"]
    assert list(leaks(texts(client, *paths), IN_FORECASTS)) == paths


def test_sealed_rows_are_listed_without_content_until_their_seal_ends(client: Client, sealed: Venue) -> None:
    until = "2026-03-15T00:20:00Z"
    decided = rows(client, "decisions/?week=2&status=completed")
    assert len(decided) == 3
    for row in decided:
        assert row["sealed_until"] == until
        assert [row[name] for name in CONTENT_OF_DECISION] == [None] * len(CONTENT_OF_DECISION)
    for path, content in (("trades/", CONTENT_OF_TRADE), ("positions/", CONTENT_OF_POSITION)):
        listed = [row for row in rows(client, path) if row["sealed_until"]]
        assert len(listed) == 2, path
        for row in listed:
            assert [row[name] for name in content] == [None] * len(content)
    assert [row["sealed_until"] for row in rows(client, "decisions/?week=1")] == [None] * 4
    assert [row["amount"] for row in rows(client, "trades/") if row["sealed_until"] is None] == ["500.00"]


def test_filter_by_content_finds_no_sealed_row(client: Client, sealed: Venue) -> None:
    position = Position.objects.get(market__question=SNOW)
    for path in (
        "decisions/?action=BET", "decisions/?action=SELL", f"decisions/?search={SECRET}", "decisions/?fallback=false",
        f"trades/?market={position.market_id}", "trades/?kind=SELL",
        "trades/?ordering=-amount&executed_at__gte=2026-03-15",
        f"positions/?market={position.market_id}", "positions/?status=open&agent=" + str(position.agent_id),
    ):  # fmt: skip
        assert [row for row in rows(client, path) if row["sealed_until"]] == [], path


def test_choice_of_fields_opens_no_seal(client: Client, sealed: Venue) -> None:
    listed = rows(client, "trades/?fields=amount,shares")
    assert sorted(row["amount"] or "" for row in listed) == ["", "", "500.00"]


def test_agent_has_the_value_of_before_the_freeze(client: Client, sealed: Venue, settings: Any) -> None:
    gemini = Position.objects.get(market__question=SNOW).agent_id
    for path in (f"agents/{gemini}/", f"agents/{gemini}/?fields=cash"):
        assert client.get(f"{API}{path}").json()["cash"] == "10000.00"
    assert rows(client, f"snapshots/?agent={gemini}")[0]["cash"] == "10000.00"
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert client.get(f"{API}agents/{gemini}/").json()["cash"] == CASH


def test_sealed_forecast_is_listed_with_its_hash_alone(client: Client, sealed_forecasts: Venue) -> None:
    listed = rows(client, "forecasts/?page_size=500")
    assert listed
    assert {row["sealed_until"] for row in listed} == {"2026-03-15T02:15:00Z"}
    assert {json.dumps(row["probabilities"]) for row in listed} == {"null"}
    assert {row["rationale"] for row in listed} == {None}
    question = client.get(f"{API}questions/{listed[0]['question']}/").json()
    assert question["forecasts"] == []
    elicitation = listed[0]["elicitation"]
    assert rows(client, f"chain-links/?elicitation={elicitation}")[0]["sha256"]
    assert client.get(f"{API}elicitations/{elicitation}/").json()["calls"] == []


def test_run_tells_nothing_of_sealed_answers(client: Client, sealed: Venue, settings: Any) -> None:
    path = "runs/?kind=run_decisions"
    assert rows(client, path)[0]["summary"] == {}
    assert rows(client, f"{path}&fields=summary")[0]["summary"] == {}
    assert rows(client, path)[-1]["summary"]["trades"] == 1
    late = RunFactory(kind="run_decisions", at=DECIDED + timedelta(milliseconds=1), summary={"trades": 9})
    assert {row["id"]: row["summary"] for row in rows(client, path)}[late.pk] == {}
    late.delete()
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert rows(client, path)[0]["summary"]["trades"] == 2


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


def test_gap_in_a_list_tells_no_sale_and_no_purchase(client: Client, sealed: Venue, settings: Any) -> None:
    """GPT sold a part of RAIN, Gemini bought SNOW, and in the same weeks nobody touched what else is held."""
    position = Position.objects.get(market__question=RAIN)
    other_position = record_bet(position.agent, MarketFactory(question=HAIL)).position
    positions = positions_of(client, position)
    assert "Positions of agents that are deciding now are sealed until" in positions
    assert HAIL not in positions
    assert {row["id"]: row["shares"] for row in rows(client, "positions/")}[other_position.pk] is None
    assert HAIL not in client.get("/markets/?played=held").text
    traded = client.get("/markets/?played=bet").text
    assert (RAIN in traded, SNOW in traded) == (True, False)
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert HAIL in positions_of(client, position)
    assert SNOW in client.get("/markets/?played=bet").text


def test_prices_tell_not_which_markets_are_held(venue: Venue) -> None:
    """While decisions are sealed, a snapshot prices the whole universe: nobody holds HAIL."""
    venue.market(HAIL)
    play(venue)
    priced = Outcome.objects.filter(price_at=DECIDED + 5 * MINUTE)
    assert set(priced.values_list("market__question", flat=True)) == {RAIN, SNOW, HAIL}


def test_look_ups_tell_not_which_markets_are_held(venue: Venue) -> None:
    """While decisions are sealed, resolutions are looked up for the whole universe: nobody holds HAIL."""
    venue.market(HAIL)
    play(venue)
    at = DECIDED + 9 * MINUTE
    assert run("check_resolutions", at).code == 0
    assert set(Market.objects.filter(refreshed_at=at).values_list("question", flat=True)) == {RAIN, SNOW, HAIL}
    assert run("check_resolutions", later := DECIDED + 15 * MINUTE).code == 0
    assert set(Market.objects.filter(refreshed_at=later).values_list("question", flat=True)) == {RAIN, SNOW}


def test_family_page_counts_no_sealed_call(client: Client, sealed: Venue, settings: Any) -> None:
    def requests() -> str:
        page = LexborHTMLParser(client.get("/models/gpt-5.2/").text)
        return page.css("table[aria-labelledby=cost] td")[1].text(strip=True)

    before = requests()
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
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
    decision = Decision.objects.filter(reasoning=SECRET)[0]
    page = client.get(f"/decisions/{decision.pk}/").text
    assert "sealed until" in page
    assert "00:20" in page


def test_nothing_is_sealed_without_an_external_agent_in_the_protocol(
    client: Client, sealed_forecasts: Venue, settings: Any
) -> None:
    settings.ARENA_CLOCK = DECIDED + 10 * MINUTE

    revoke_registration(Registration.objects.get(), at=SUNDAY + WEEK)
    assert {row["sealed_until"] for row in rows(client, "decisions/")} == {None}
    settings.ARENA_CLOCK = FORECAST_AT + 5 * MINUTE
    assert {row["sealed_until"] for row in rows(client, "forecasts/")} == {None}


def test_open_track_seals_for_twelve_hours_where_it_takes_part(
    client: Client, sealed_forecasts: Venue, settings: Any
) -> None:
    register_external_agent(name="Scout", protocol="forecast", track="open", at=SUNDAY - WEEK)
    settings.ARENA_CLOCK = FORECAST_AT + 12 * HOUR - MINUTE
    assert {row["sealed_until"] for row in rows(client, "forecasts/")} == {"2026-03-15T14:00:00Z"}
    assert {row["sealed_until"] for row in rows(client, "decisions/")} == {None}
    settings.ARENA_CLOCK = FORECAST_AT + 12 * HOUR
    assert {row["sealed_until"] for row in rows(client, "forecasts/")} == {None}
    late = register_external_agent(name="Sleeper", protocol="trading", track="open", at=SUNDAY - WEEK).family
    AgentFactory(family=late, release=late.releases.get(), cohort=Cohort.objects.get())
    settings.ARENA_CLOCK = DECIDED + 12 * HOUR - MINUTE
    assert {row["sealed_until"] for row in rows(client, "decisions/?week=2")} == {"2026-03-15T12:05:00Z"}
    settings.ARENA_CLOCK = DECIDED + 12 * HOUR
    assert {row["sealed_until"] for row in rows(client, "decisions/?week=2")} == {None}


def test_archive_ends_where_the_first_seal_begins(sealed: Venue, tmp_path: Path, settings: Any) -> None:
    folder = tmp_path / "archive"
    assert run("export_dataset", DECIDED + 10 * MINUTE, out=folder).code == 0
    contents = {path.name: path.read_text() for path in (folder / "csv").iterdir()}
    assert [name for name, text in contents.items() if SECRET in text or STAKE in text] == []
    assert json.loads((folder / "manifest.json").read_text())["selection"]["to"] == "2026-03-15T00:05:00.000000Z"
    (position,) = contents["positions.csv"].splitlines()[1:]
    assert "1250.000000" in position
    checked = run("verify_export", None, folder)
    assert (checked.code, checked["violations"]) == (3, 0)
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert run("export_dataset", DECIDED + 15 * MINUTE, out=folder).code == 0
    assert SECRET in (folder / "csv" / "decisions.csv").read_text()


def test_operator_sees_the_state_and_reads_the_answer_by_an_act_on_record(sealed: Venue) -> None:
    decision = Decision.objects.filter(reasoning=SECRET)[0]
    page, lists = f"/admin/agents/decision/{decision.pk}/change/", "/admin/agents/decision/"
    operator, viewer = sign_in("operator"), sign_in("viewer")
    for path in (page, lists, "/admin/agents/trade/", "/admin/agents/modelcall/", "/admin/agents/position/", "/admin/"):
        page_text = operator.get(path).text
        assert not {secret for secret in IN_TRADES if secret in page_text}, path
    assert "completed" in operator.get(page).text.lower()
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
    staff, agent = sign_in(role), Position.objects.get(market__question=SNOW).agent_id
    paths = [AGENTS, f"{AGENTS}{agent}/change/", f"{AGENTS}csv/"]

    def told() -> list[tuple[bool, bool]]:
        pages = [
            b"".join(staff.get(path)).decode().replace(",", "").replace("\N{NARROW NO-BREAK SPACE}", "")
            for path in paths
        ]
        return [(CASH in page, "10000.00" in page) for page in pages]

    assert told() == [(False, True)] * 3
    ordered = [listed(staff, f"{AGENTS}?o={sign}6.3") for sign in ("", "-")]
    assert all(rows[0] != paths[1] for rows in ordered), "the order tells no purchase"
    for lookup in ("cash__lt=9999", "journal_length__gt=1", "updated_at__gte=2026-03-15", "positions__isnull=0"):
        assert staff.get(f"{AGENTS}?{lookup}").status_code == 400, lookup
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert [has_cash for has_cash, _ in told()] == [True] * 3
    assert staff.get(f"{AGENTS}?cash__lt=9999").status_code == 200


def test_admin_finds_no_sealed_decision_by_its_content(sealed: Venue, settings: Any) -> None:
    staff = sign_in("operator")
    universe = Decision.objects.filter(reasoning=SECRET)[0].universe_id
    of_week = {f"{DECISIONS}{pk}/change/" for pk in Decision.objects.filter(week=2).values_list("pk", flat=True)}
    secret = {
        f"{DECISIONS}{pk}/change/" for pk in Decision.objects.filter(reasoning=SECRET).values_list("pk", flat=True)
    }
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
        "status__exact=completed",
        "preset=week",
        f"universe__id__in={universe}",
        "decided_at__year=2026",
    ):
        assert of_week & set(listed(staff, f"{DECISIONS}?{query}")) >= secret, query
    sold = Decision.objects.get(action="SELL").pk
    assert listed(staff, f"{DECISIONS}?q={sold}") == [f"{DECISIONS}{sold}/change/"]
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert set(listed(staff, f"{DECISIONS}?q={SECRET}")) == secret
    assert listed(staff, f"{DECISIONS}?action__exact=SELL") == [f"{DECISIONS}{sold}/change/"]


def test_admin_finds_no_sealed_elicitation_by_its_content(sealed_forecasts: Venue) -> None:
    staff = sign_in("operator")
    assert listed(staff, ELICITATIONS)
    assert listed(staff, f"{ELICITATIONS}?status__exact=completed") == listed(staff, ELICITATIONS)
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
        lines = b"".join(staff.get(f"{DECISIONS}csv/?week=2&status=completed")).decode().splitlines()
        return {row["action"] for row in csv.DictReader(lines)}

    assert actions() == {""}
    settings.ARENA_CLOCK = DECIDED + 15 * MINUTE
    assert actions() == {"BET", "SELL", "HOLD"}


def test_admin_tells_not_whether_a_sealed_elicitation_was_declined(sealed: Venue, settings: Any) -> None:
    sealed.says(GPT, ModelAnswer(""))
    assert run("run_forecasts", FORECAST_AT)["declined"] == 1
    staff, declined = sign_in("operator"), Elicitation.objects.get(declined=True)
    paths = [ELICITATIONS, f"{ELICITATIONS}csv/", f"{ELICITATIONS}{declined.pk}/change/"]
    assert declined.error

    def texts_of_pages() -> list[str]:
        return [b"".join(staff.get(path)).decode() for path in paths]

    settings.ARENA_CLOCK = FORECAST_AT + 5 * MINUTE
    assert [declined.error in text for text in texts_of_pages()] == [False] * 3
    assert "True" not in texts_of_pages()[0]
    assert "True" not in texts_of_pages()[1]
    settings.ARENA_CLOCK = FORECAST_AT + 15 * MINUTE
    assert [declined.error in text for text in texts_of_pages()] == [True] * 3
