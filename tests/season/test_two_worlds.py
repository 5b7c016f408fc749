"""Two seasons that differ in sealed answers alone give every reader the same bytes until the opening.

Readers are visitors, programs and operators; they ask for pages, lists, feeds, files, and by the sealed content.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
import time_machine
from django.contrib import admin
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone
from selectolax.lexbor import LexborHTMLParser

from agents.models import Agent, Decision, Elicitation, Envelope, Forecast, ModelCall
from agents.services.registrations import register_external_agent
from foundation.models import Alert, Run
from markets.models import Market, QuestionEntry, VenueTraffic
from tests.answers import GEMINI, GPT, GROK, KIMI, bet, forecast, sell
from tests.arena_site.dashboard.accounts import sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.sandbox import Venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import ModelAnswer

API, ADMIN = "/api/v1/", "/admin/agents/"
RAIN, SNOW, HAIL = "Will it rain?", "Will it snow?", "Will it hail?"
WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)
DECIDED = DECISION + WEEK
SECRET = "zanzibar"
"""A word of the answers of one world."""
CHEAP, DEAR = ({"prompt_tokens": 1000, "completion_tokens": n, "cost": cost} for n, cost in ((10, 0.001), (9000, 0.9)))
MASKED = re.compile(
    r"[0-9a-f]{128}|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}"  # hashes, signatures, and what covers them
    r"|20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ](?!00:)[0-9:.]+(Z|\+00:00)?|nonce-[\w+/=-]+"  # the real clock
    r"|(?<=csrfmiddlewaretoken\" value=\")\w+"
    # which the operator's monitor reads
    r"|(?m:^arena_(run_\w+_seconds|venue_latency_seconds|database_bytes|table_rows\{table=\"agents_modelcall\").*$)"
)
QUOTED = re.compile(r"43\.21|12\.34|[78]\.0 ?(?:is|,|for)|bets\[0\]")
"""What refusals of sealed answers quote of them."""
BY_CONTENT = (
    "/search/?q=zanzi", "/decisions/?q=zanzi", "/markets/?played=held", "/markets/?played=bet", "/sitemap-markets.xml",
    f"{API}decisions/?action=BET", f"{API}decisions/?action=SELL", f"{API}decisions/?fallback=false",
    f"{API}decisions/?search={SECRET}", f"{API}trades/?market=SNOW",
    f"{API}trades/?kind=SELL", f"{API}trades/?ordering=-amount&executed_at__gte=2026-03-15",
    f"{API}positions/?market=SNOW", f"{API}positions/?status=open&ordering=-shares",
    f"{API}agents/?ordering=cash", f"{API}forecasts/?search={SECRET}",
)  # fmt: skip
"""A visitor's questions about sealed content, which list no sealed row. Names stand for keys."""
CHOICES = tuple(f"{API}{name}" for name in (
    "decisions/?fields=action,cost_usd", "trades/?fields=amount,shares", "agents/?fields=cash", "runs/?fields=summary",
))  # fmt: skip
BY_CONTENT_FOR_STAFF = (
    *(f"decision/?{query}" for query in (
        "q=zanzibar", "q=zanzibar&week=2", "action__exact=SELL", "action=BET", "action__in=BET,SELL", "o=5", "o=-6.1",
        "reasoning__icontains=zanzibar", "fallback__exact=0", "preset=refused", "preset=expensive", "preset=fallback",
        "updated_at__gte=2026-03-15T00:00:00Z", "refusals=0", "trades__isnull=0",
    )),
    *(f"elicitation/?{query}" for query in ("declined__exact=0", "preset=expensive", "q=gpt", "error=", "o=6")),
    *(f"agent/?{query}" for query in ("o=5", "cash__lt=9000", "journal_length__gt=1")),
)  # fmt: skip
STATES = ("decision/?preset=week", "decision/?week=2", "decision/csv/?week=2&status__in=answered,completed")
OPENED = (
    *(f"{API}{name}/" for name in ("decisions", "trades", "agents", "journal", "positions", "elicitations")),
    *(f"{API}{name}" for name in ("decisions/?search=zanzibar", "decisions/?action=SELL", "agents/?ordering=cash")),
    *(f"{API}{name}" for name in ("forecasts/", "forecasts/?format=csv", "runs/?kind=open_envelopes")),
    f"{API}agents/GEMINI/", "/markets/?played=held", "/markets/?played=bet", "/models/gpt-5.2/", "/cohorts/1/gpt-5.2/",
)  # fmt: skip
"""Addresses that differ after the opening."""
OPENED_TO_STAFF = (
    "agent/", "agent/csv/", "agent/?cash__lt=9000", "agent/?journal_length__gt=1", "decision/", "decision/?q=zanzibar",
    "decision/?action__exact=SELL", "decision/csv/?week=2&status__in=answered,completed", "elicitation/",
    "elicitation/csv/", "modelcall/", "trade/", "position/",
)  # fmt: skip


def answered(script: Any, usage: dict[str, Any], reasoning: str) -> Any:
    def answer(prompt: ModelRequest) -> Any:
        return ModelAnswer(json.dumps(script(prompt) | {"reasoning": reasoning}), usage=usage)

    return answer


def hold(prompt: ModelRequest) -> Any:
    return {"action": "HOLD"}


def certain(probability: float) -> Any:
    """A forecast that is refused for its probability."""
    return forecast(lean=probability)


def one_world() -> dict[str, list[Any]]:
    """A sale, a purchase of what nobody holds, a HOLD, and cheap answers; one is refused for its size."""
    return {
        GPT: [answered(sell(RAIN, 37), CHEAP, SECRET), forecast(lean=0.2), forecast(lean=0.2)],
        GEMINI: [answered(bet(SNOW, "YES", "1234.56"), CHEAP, SECRET), forecast(lean=-0.1), forecast(lean=-0.1)],
        GROK: [answered(hold, CHEAP, "no"), forecast(lean=0.3), forecast(lean=0.3)],
        KIMI: [answered(bet(RAIN, "YES", "43.21"), CHEAP, SECRET), certain(7.0), certain(7.0)],
    }


def other_world() -> dict[str, list[Any]]:
    """A HOLD at the second try, other purchases of other sizes, and dear answers; one is refused for another size."""
    nothing = ModelAnswer("", usage=DEAR)
    return {
        GPT: [nothing, answered(hold, DEAR, "nothing"), nothing, forecast(lean=-0.2), forecast(lean=-0.2)],
        GEMINI: [answered(bet(HAIL, "NO", 77, (RAIN, "NO", 500)), DEAR, "no"), forecast(lean=0.1), forecast(lean=0.1)],
        GROK: [answered(bet(SNOW, "NO", "2500"), DEAR, "so"), forecast(), forecast()],
        KIMI: [answered(bet(RAIN, "YES", "12.34"), DEAR, "no"), certain(8.0), certain(8.0)],
    }


def play_first_week(venue: Venue) -> None:
    """A visitor is registered, GPT holds RAIN, and the second week's markets are read."""
    register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK)
    line_up(GPT, GEMINI, GROK, KIMI)
    for question in (RAIN, SNOW, HAIL):
        venue.market(question)
    venue.says(GPT, bet(RAIN, "YES", 500))
    venue.start_first_cohort()
    assert run("run_decisions", DECISION).code == 0
    for at in (DECISION + 15 * MINUTE, SUNDAY + WEEK):
        assert run("sync_markets", at).code == 0
        assert run("take_snapshots", at).code == 0


def play_second_week(venue: Venue, answers: dict[str, list[Any]], settings: Any) -> None:
    """Its answers wait in envelopes, while the jobs of the day go on. The rule chooses one question."""
    for model, scripted in answers.items():
        venue.says(model, *scripted)
    options = {"run_forecasts": {"questions": 1}}
    for minute, job in ((0, "run_decisions"), (2, "run_forecasts"), (10, "take_snapshots"), (11, "check_resolutions")):
        settings.ARENA_CLOCK = DECIDED + minute * MINUTE
        run(job, settings.ARENA_CLOCK, **options.get(job, {}))


@contextmanager
def sequences_restored() -> Iterator[None]:
    """Sets the sequences back after the block: on PostgreSQL a transaction that is undone leaves them."""
    if connection.vendor == "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT sequencename, COALESCE(last_value, 1), last_value IS NOT NULL FROM pg_sequences")
        before = cursor.fetchall()
    yield
    with connection.cursor() as cursor:
        for sequence in before:
            cursor.execute("SELECT setval(quote_ident(%s)::regclass, %s, %s)", sequence)


def differing(text: str, other_text: str) -> list[tuple[str, str]]:
    """The first lines in which two texts differ."""
    lines = zip_longest(text.splitlines(), other_text.splitlines(), fillvalue="")
    return [(line[:300], other[:300]) for line, other in lines if line != other][:3]


def with_keys(paths: Iterable[str]) -> list[str]:
    """The addresses with the keys of the market that nobody holds before the freeze, and of the agent that buys it."""
    keys = {"SNOW": Market.objects.get(question=SNOW).pk, "GEMINI": Agent.objects.get(release__model_id=GEMINI).pk}
    return [re.sub("SNOW|GEMINI", lambda name: str(keys[name[0]]), path) for path in paths]


def addresses_of_rows() -> Iterator[str]:
    """The addresses of the tasks, of their agents and models, and of all markets and questions."""
    for decision in Decision.objects.select_related("agent__cohort", "agent__family"):
        slug = decision.agent.family.slug
        agent_page = f"/cohorts/{decision.agent.cohort.number}/{slug}/"
        yield from (f"{API}decisions/{decision.pk}/", f"/decisions/{decision.pk}/", f"{API}agents/{decision.agent_id}/")
        yield from (agent_page, f"{agent_page}trades/", f"/models/{slug}/")
    yield from (f"{API}elicitations/{pk}/" for pk in Elicitation.objects.values_list("pk", flat=True))
    yield from (f"/markets/{pk}/" for pk in Market.objects.values_list("pk", flat=True))
    yield from (f"/questions/{pk}/" for pk in QuestionEntry.objects.values_list("question", flat=True))


def text_of(response: Any) -> str:
    content: bytes = b"".join(response.streaming_content) if response.streaming else response.content
    return content.decode(errors="replace")


def crawl(client: Client) -> Iterator[tuple[str, str]]:
    """The address and the text of the pages, feeds, lists and chart files that the front page leads to.

    Of each kind two are followed, besides the pages of all that is sealed.
    """
    lists = [urlsplit(address).path for address in client.get(API).json().values()]
    waiting = ["/", "/metrics", "/sitemap.xml", *lists, *(f"{path}?format=csv" for path in lists)]
    waiting = list(dict.fromkeys([*waiting, *with_keys(BY_CONTENT), *CHOICES, *addresses_of_rows()]))
    addresses = set(waiting)
    followed = Counter[str]()
    while waiting:
        path = waiting.pop()
        response = client.get(path, follow=True)
        text = text_of(response)
        yield path, text
        if "text/html" not in response["Content-Type"]:
            continue
        for link in LexborHTMLParser(text).css("a[href]"):
            target = urljoin(path, link.attributes["href"] or "").partition("#")[0]
            is_other = target.startswith(("/static/", "/admin/", "/data/", "/og/")) or "?" in target
            if is_other or not target.startswith("/") or target in addresses or target.endswith(".png"):
                continue  # the picture of an SVG file that is read
            addresses.add(target)
            kind = resolve(target).view_name
            followed[kind] += 1
            if followed[kind] <= 2:
                waiting.append(target)


def staff_pages() -> Iterator[str]:
    """The admin's lists and their files, the pages of tasks and their letters, and questions about sealed content."""
    for model in admin.site._registry:
        if model._meta.app_label in ("agents", "markets", "scoring") and model is not VenueTraffic:
            path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            yield from (path, f"{path}csv/")
    for rows in (Decision.objects.filter(week=2), Elicitation.objects, ModelCall.objects, Agent.objects):
        for pk in rows.order_by("pk").values_list("pk", flat=True)[:10]:
            yield f"{ADMIN}{rows.model._meta.model_name}/{pk}/change/"
    yield from (f"{ADMIN}{query}" for query in (*BY_CONTENT_FOR_STAFF, *STATES))
    yield from (f"/admin/actions/retry/?decision={pk}" for pk in Decision.objects.values_list("pk", flat=True))
    yield f"/admin/autocomplete/?app_label=agents&model_name=trade&field_name=decision&term={SECRET}"


def reads(client: Client, folder: Path) -> Iterator[tuple[str, str]]:
    """Every address and file of an archive, with its text without hashes and without the real clock."""
    for path, text in crawl(client):
        yield path, MASKED.sub("·", text)
    staff = sign_in("operator")
    for path in staff_pages():
        yield path, MASKED.sub("·", text_of(staff.get(path)))
    for name in ("decision", "trade", "position", "modelcall", "agent", "journalentry"):
        yield f"POST {name}", MASKED.sub("·", text_of(staff.post(f"{ADMIN}{name}/csv/")))
    assert run("export_dataset", DECIDED + 12 * MINUTE, out=folder, format=["csv"]).code == 0
    for file in sorted((folder / "csv").iterdir()):
        yield file.name, MASKED.sub("·", file.read_text())


def found_by_content(pages: dict[str, str]) -> dict[str, list[str]]:
    """The sealed rows that questions about sealed content list."""
    rows = ['"sealed_until":"20']
    for tasks in (Decision.objects.filter(status="answered"), Elicitation.objects.filter(status="answered")):
        for pk in tasks.values_list("pk", flat=True):
            rows += [f"/{tasks.model._meta.model_name}/{pk}/change/", f"/{tasks.model._meta.model_name}s/{pk}/"]
    paths = [*with_keys(BY_CONTENT), *(f"{ADMIN}{query}" for query in BY_CONTENT_FOR_STAFF)]
    return {path: found for path in paths if (found := [row for row in rows if row in pages[path]])}


def notices_to_operators() -> list[str]:
    """The lines of run logs and alerts, and the text of the dashboard."""
    lines = [*Alert.objects.values_list("message", flat=True), text_of(sign_in("operator").get("/admin/"))]
    for job in Run.objects.all():
        lines += [job.error, *job.log_texts]
    return lines


def reads_after_the_opening(client: Client) -> Iterator[tuple[str, str]]:
    staff = sign_in("operator")
    for reader, paths in ((client, with_keys(OPENED)), (staff, [f"{ADMIN}{path}" for path in OPENED_TO_STAFF])):
        for path in paths:
            yield path, MASKED.sub("·", text_of(reader.get(path)))


@pytest.mark.slow
def test_worlds_that_differ_in_sealed_answers_look_alike_until_the_opening(
    client: Client, venue: Venue, settings: Any, tmp_path: Path
) -> None:
    play_first_week(venue)
    sealed_worlds, opened_worlds = [], []
    now = timezone.now()
    for number, answers in enumerate((one_world(), other_world())):
        cache.clear()
        with time_machine.travel(now, tick=False), sequences_restored(), transaction.atomic():
            point = transaction.savepoint()
            play_second_week(venue, answers, settings)
            assert (Envelope.objects.filter(state="sealed").count(), Forecast.objects.count()) == (9, 0)
            settings.ARENA_CLOCK = DECIDED + 12 * MINUTE
            sealed_worlds.append(dict(reads(client, tmp_path / str(number))))
            assert found_by_content(sealed_worlds[-1]) == {}
            assert [line for line in notices_to_operators() if QUOTED.search(line)] == []
            settings.ARENA_CLOCK = DECIDED + 30 * MINUTE
            assert run("open_envelopes", DECIDED + 30 * MINUTE).code == 0
            opened_worlds.append(dict(reads_after_the_opening(client)))
            transaction.savepoint_rollback(point)
        settings.ARENA_CLOCK = None
    one, other = sealed_worlds
    assert one.keys() == other.keys()
    assert {path: lines for path, text in one.items() if (lines := differing(text, other[path]))} == {}
    one, other = opened_worlds
    assert [path for path, text in one.items() if text == other[path]] == []
