"""Two seasons that differ in sealed answers alone give every reader the same bytes until the opening."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client

from agents.models import Envelope, Forecast, Trade
from agents.services.registrations import register_external_agent
from tests.answers import GEMINI, GPT, GROK, bet, forecast, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.sandbox import Venue
from tests.season.test_sealed_answers import crawl
from tests.selection import some_or_every
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import ModelAnswer

RAIN, SNOW, HAIL = "Will it rain?", "Will it snow?", "Will it hail?"
WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)
DECIDED, FORECASTS = DECISION + WEEK, SUNDAY + WEEK + timedelta(minutes=7)
CHEAP, DEAR = ({"prompt_tokens": 1000, "completion_tokens": n, "cost": cost} for n, cost in ((10, 0.001), (9000, 0.9)))
MASKED = re.compile(
    r"[0-9a-f]{128}|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}"  # hashes, signatures, and what covers them
    r"|20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ](?!00:)[0-9:.]+(Z|\+00:00)?|nonce-[\w+/=-]+"  # the real clock
    r"|(?m:^arena_(run_\w+_seconds|venue_latency_seconds|database_bytes).*$)"  # which the operator's monitor reads
)


def holding(reasoning: str, usage: dict[str, Any]) -> Any:
    return ModelAnswer(json.dumps({"action": "HOLD", "reasoning": reasoning}), usage=usage)


def answered(script: Any, usage: dict[str, Any]) -> Any:
    def answer(prompt: ModelRequest) -> Any:
        return ModelAnswer(json.dumps(script(prompt) | {"reasoning": "x" * usage["completion_tokens"]}), usage=usage)

    return answer


def one_world() -> dict[str, list[Any]]:
    """A sale, a purchase of what nobody holds, a HOLD, and cheap answers."""
    return {
        GPT: [answered(sell(RAIN, 37), CHEAP), forecast(lean=0.2), forecast(lean=0.2)],
        GEMINI: [answered(bet(SNOW, "YES", "1234.56"), CHEAP), forecast(lean=-0.1), forecast(lean=-0.1)],
        GROK: [lambda prompt: holding("no", CHEAP), forecast(lean=0.3), forecast(lean=0.3)],
    }


def other_world() -> dict[str, list[Any]]:
    """A HOLD, other purchases of other sizes, a sale of everything, and dear answers."""
    return {
        GPT: [lambda prompt: holding("nothing", DEAR), forecast(lean=-0.2), forecast(lean=-0.2)],
        GEMINI: [answered(bet(HAIL, "NO", 77, (RAIN, "NO", 500)), DEAR), forecast(lean=0.1), forecast(lean=0.1)],
        GROK: [answered(bet(SNOW, "NO", "2500"), DEAR), forecast(), forecast()],
    }


@pytest.fixture
def first_week(venue: Venue) -> Venue:
    """A visitor is registered, GPT holds RAIN, and the second week's markets are read."""
    register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK)
    line_up(GPT, GEMINI, GROK)
    for question in (RAIN, SNOW, HAIL):
        venue.market(question)
    venue.says(GPT, bet(RAIN, "YES", 500))
    venue.start_first_cohort()
    assert run("run_decisions", DECISION).code == 0
    for at in (DECISION + 15 * MINUTE, SUNDAY + WEEK):
        assert run("sync_markets", at).code == 0
        assert run("take_snapshots", at).code == 0
    return venue


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


def reads(client: Client, of_each: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Every public address and file of an archive, with its text without hashes and without the real clock."""
    for path, text in crawl(client, of_each):
        yield path, MASKED.sub("·", text)
    assert run("export_dataset", DECIDED + 12 * MINUTE, out=folder, format=["csv"]).code == 0
    for file in sorted((folder / "csv").iterdir()):
        yield file.name, MASKED.sub("·", file.read_text())


@pytest.mark.slow
@some_or_every
def test_worlds_that_differ_in_sealed_answers_look_alike(
    client: Client, first_week: Venue, settings: Any, tmp_path: Path, of_each: int
) -> None:
    worlds, trades = [], []
    for number, scripts in enumerate((one_world(), other_world())):
        cache.clear()
        with sequences_restored(), transaction.atomic():
            point = transaction.savepoint()
            for model, answers in scripts.items():
                first_week.says(model, *answers)
            assert run("run_decisions", DECIDED)["completed"] == 3
            assert run("run_forecasts", FORECASTS)["completed"] > 0
            assert run("take_snapshots", DECIDED + 10 * MINUTE).code == 0
            assert run("check_resolutions", DECIDED + 11 * MINUTE).code == 0
            assert (Envelope.objects.filter(state="sealed").count(), Forecast.objects.count()) == (9, 0)
            settings.ARENA_CLOCK = DECIDED + 12 * MINUTE
            worlds.append(dict(reads(client, of_each, tmp_path / str(number))))
            assert run("open_envelopes", DECIDED + 30 * MINUTE).code == 0
            trades.append(sorted(Trade.objects.values_list("market__question", "amount")))
            transaction.savepoint_rollback(point)
        settings.ARENA_CLOCK = None
    assert trades[0] != trades[1]
    assert worlds[0].keys() == worlds[1].keys()
    assert {path: lines for path, text in worlds[0].items() if (lines := differing(text, worlds[1][path]))} == {}
