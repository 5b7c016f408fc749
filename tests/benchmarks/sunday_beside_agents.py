"""A Sunday of the models without and with external agents: `python -m tests.benchmarks.sunday_beside_agents`.

With `--postgres` on PostgreSQL; `--agents 20` says how many there are, each of which bets under the seal. Prints the
seconds of each command, whether the ledgers of the models end alike, and how many questions the models are asked, to
which a bet of an agent may add one. Exits 1 where the ledgers differ.
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

from tests.benchmarks.environment import scratch_database
from tests.databases import PROJECT

MARKETS = 100
WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)
LEDGER = ("agent__family__slug", "sequence", "kind", "amount", "balance")


def play(agents: int) -> dict[str, Any]:
    """The Sunday on the database that is set up: the seconds of each step, and what the models ended with."""
    from django.conf import settings
    from django.test import Client
    from pytest_httpserver import HTTPServer

    from agents.models import Agent, Forecast, JournalEntry, Trade
    from agents.services.registrations import register_external_agent
    from markets.models import Market, Universe
    from tests.answers import GEMINI, GPT, GROK, bet, forecast
    from tests.commands import DECISION, SUNDAY, run
    from tests.factories import line_up
    from tests.sandbox import Venue, addresses

    seconds: dict[str, float] = {}

    def timed(name: str, at: Any) -> None:
        settings.ARENA_CLOCK, began = at, time.perf_counter()
        ran = run(name, at)
        seconds[name] = round(seconds.get(name, 0) + time.perf_counter() - began, 2)
        if ran.code:
            sys.exit(f"{name}: {ran.stderr}")

    def submit(agent: Agent, token: str) -> None:
        market = Market.objects.order_by("pk").first()
        assert market is not None
        bets = [{"market_id": str(market.pk), "side": "YES", "amount": "700"}]
        answer = Client().post(
            f"/api/v1/submissions/?agent={agent.pk}&universe={Universe.objects.latest('pk').pk}",
            json.dumps({"action": "BET", "bets": bets, "reasoning": "so"}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}", "Idempotency-Key": "1"},
        )
        assert answer.status_code == 201, answer.content

    with HTTPServer(threaded=True) as server:
        for name, url in addresses(server).items():
            setattr(settings, name, url)
        settings.ALLOWED_HOSTS = ["testserver"]
        settings.ARENA_LLM_TRANSPORT_RETRIES = 0
        venue, tokens = Venue(server), {}
        for number in range(agents):
            name = f"Agent {number}"
            tokens[name] = register_external_agent(name=name, protocol="both", at=SUNDAY - WEEK).token
        line_up(GPT, GEMINI, GROK)
        for number in range(MARKETS):
            venue.market(f"Will market {number} resolve?")
        for place, model in enumerate((GPT, GEMINI, GROK)):
            more = [(f"Will market {number} resolve?", "NO", "200") for number in range(place + 1, place + 8)]
            venue.says(model, bet(f"Will market {place} resolve?", "YES", "500", *more))
        timed("sync_markets", SUNDAY)
        timed("start_cohort", SUNDAY)
        timed("run_decisions", DECISION)
        for model in (GPT, GEMINI, GROK):
            venue.says(model, *[forecast(lean=0.1)] * MARKETS)
        settings.ARENA_CLOCK = DECISION + 5 * MINUTE
        for agent in Agent.objects.filter(family__external=True).select_related("family"):
            submit(agent, tokens[agent.family.display_name])
        timed("open_envelopes", DECISION + 15 * MINUTE)
        timed("run_forecasts", DECISION + 20 * MINUTE)
        timed("open_envelopes", DECISION + 35 * MINUTE)
        timed("take_snapshots", DECISION + 35 * MINUTE)
        timed("verify_ledger", DECISION + 36 * MINUTE)
    ledger = sorted(JournalEntry.objects.filter(agent__family__external=False).values_list(*LEDGER))
    questions = Forecast.objects.filter(family__external=False).values("question").distinct().count()
    return {
        "seconds": seconds,
        "trades_of_models": Trade.objects.filter(agent__family__external=False).count(),
        "trades_of_agents": Trade.objects.filter(agent__family__external=True).count(),
        "ledger": ledger,
        "questions": questions,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--play", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    kind = ["--postgres"] if options.postgres else []
    if options.play is not None:
        with scratch_database(postgres=options.postgres):
            print(json.dumps(play(options.play), default=str))
        return 0
    sundays = []
    for agents in (0, options.agents):
        # A process each, so that neither begins with what the other has loaded or cached.
        command = [sys.executable, "-m", "tests.benchmarks.sunday_beside_agents", *kind, "--play", str(agents)]
        played = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
        if played.returncode:
            sys.exit(played.stderr)
        sundays.append(json.loads(played.stdout.splitlines()[-1]))
    alone, beside = sundays
    print(f"{'seconds of':16}{'alone':>8}{f'beside {options.agents}':>12}")
    for name, duration in alone["seconds"].items():
        print(f"{name:16}{duration:>8}{beside['seconds'][name]:>12}")
    print(f"trades of models: {alone['trades_of_models']}; of agents: {beside['trades_of_agents']}")
    print(f"questions to models: {alone['questions']} alone, {beside['questions']} beside agents")
    alike = alone["ledger"] == beside["ledger"]
    print(f"{len(alone['ledger'])} journal entries of models end {'alike' if alike else 'differently'}")
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
