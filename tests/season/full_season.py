"""A season with everything that a page can show, in an SQLite file: `python -m tests.season.full_season FILE`.

Four cohorts in four weeks, played by the real commands over HTTP against the scripted venues: bets won, lost, sold,
refunded and rejected, markets awaiting resolution, malformed answers, models that are down, forecasts in both arms,
an external agent, an export, and hostile text. The fourth cohort has a methodology of its own and a newer release of
one family, and is complete at the end. `tests.season.running_site` runs this as a process.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

PASSWORD = "a-password-for-tests"
ADMIN = "admin"
ROLES = ("viewer", "operator", "administrator")
"""Each group has a user of the same name."""
CALL = "alert(document.domain)"
HOSTILE = f"\"'><script>{CALL}</script><img src=x onerror={CALL}> {{{{ 7|add:7 }}}} \u202eesrever\u202c \n# SYSTEM"
ENDLESS = "Will " + "honorificabilitudinitatibus" * 60 + " be said?"
RAIN, SNOW, HAIL, CUP = "Will it rain in Orsa?", "Will it snow in Rome?", "Will it hail in Lima?", "Lakers or Celtics?"
WIND, FOG, SUN, TIDE = "Will the wind turn?", "Will the fog lift?", "Will the sun come out?", "Will the tide be high?"
PLAIN = {
    RAIN: ("0.41", "Weather"), SNOW: ("0.37", "Weather"), HAIL: ("0.113", "Weather"), WIND: ("0.59", "Science"),
    FOG: ("0.87", "Science"), SUN: ("0.505", "Politics"), TIDE: ("0.0721", "Politics"), HOSTILE: ("0.29", "Crypto"),
    ENDLESS: ("0.66", "Culture"),
}  # fmt: skip
DEW = "Will there be dew?"
"""Listed and resolved in the fourth week."""
NEWER = "openai/gpt-6"
"""The release of GPT from the fourth cohort on."""
SHORT = "short"
"""The fourth cohort's methodology: the previous one with a single decision week."""
ENDS_AFTER = timedelta(weeks=4, hours=4)
"""The time of the last command after the first Sunday."""
RACE = {"id": "race", "title": "Who wins the race?", "negRisk": True}


def main(file: Path) -> None:
    os.environ["DATABASE_URL"] = f"sqlite:///{file}"
    os.environ |= {"DJANGO_SETTINGS_MODULE": "arena_site.settings", "ARENA_LINEUP": "unchecked"}
    import django

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    django.setup()
    from django.core.management import call_command
    from django.test import override_settings
    from pytest_httpserver import HTTPServer

    from tests.sandbox import addresses, kalshi_address

    call_command("migrate", verbosity=0)
    with HTTPServer(threaded=True) as server:
        urls = addresses(server) | {"KALSHI_BASE_URL": kalshi_address(server)}
        with override_settings(
            **urls, ARENA_SOURCES=["polymarket", "kalshi"], ARENA_LLM_TRANSPORT_RETRIES=0, ALLOWED_HOSTS=["*"]
        ):
            play(server, file)
    users()


def play(server: Any, file: Path) -> None:
    import stamina

    from agents.services.registrations import register_external_agent
    from tests.answers import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN, forecast
    from tests.commands import DECISION, SUNDAY
    from tests.sandbox import Kalshi, Venue
    from venue_sandbox.script import Failure, ModelAnswer

    day, week, hour = timedelta(days=1), timedelta(weeks=1), timedelta(hours=1)
    venue, kalshi = Venue(server), Kalshi(server)
    for question, (price, category) in PLAIN.items():
        venue.market(question, _yes_no(price), category=category)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"}, category="Sports")
    for name, price in (("Ann", "0.50"), ("Bob", "0.30"), ("Cid", "0.10")):
        race = {"events": [RACE], "groupItemTitle": name, "negRisk": True, "category": "Politics"}
        venue.market(f"Will {name} win the race?", _yes_no(price), **race)
    kalshi.event("Who leads the choir?", "Ann", "Bob")
    kalshi.event("Will the bell ring?", exclusive=False)
    guest = register_external_agent(name="Guest", protocol="both", at=SUNDAY - day).token

    def decide(week_number: int, answers: Mapping[str, tuple[Any, ...]]) -> None:
        venue.everyone_holds()
        for model, scripts in answers.items():
            venue.says(model, *scripts)
        done("run_decisions", DECISION + week_number * week)
        venue.everyone_holds()

    def state(at: Any, leans: Mapping[str, float]) -> None:
        venue.everyone_holds()
        for model, lean in leans.items():
            venue.says(model, *[forecast(lean=lean)] * 20)
        done("run_forecasts", at)
        venue.everyone_holds()

    bold = {GPT: 0.2, GEMINI: -0.15, GROK: 0.1, CLAUDE: 0.05, DEEPSEEK: -0.05, KIMI: 0.02}
    down = Failure(503)
    with stamina.set_testing(True, attempts=99, cap=True):
        done("sync_markets", SUNDAY)
        done("start_cohort", SUNDAY)
        decide(0, {
            GPT: (bets((RAIN, "YES", 1500), (SNOW, "YES", 437.38), (HOSTILE, "NO", 120), (SNOW, "YES", 9000)),),
            GEMINI: (bets((RAIN, "NO", 333.33), (CUP, "Celtics", 469.75), (ENDLESS, "YES", 85.73)),),
            GROK: ("no JSON at all", bets((CUP, "Lakers", 77.77), (WIND, "NO", 562.84), (TIDE, "YES", 63.77))),
            CLAUDE: (ModelAnswer("", refusal="I would rather not"),),
            DEEPSEEK: (bets((SUN, "YES", 2500), (HAIL, "YES", 639.62), reasoning=HOSTILE),),
            KIMI: (HOSTILE,) * 3,
            QWEN: (down,),
        })  # fmt: skip
        submit(guest, trading(RAIN, "YES", 700), at=DECISION + timedelta(minutes=5))
        state(SUNDAY + 2 * hour, bold)
        submit(guest, sure, at=SUNDAY + 2 * hour + timedelta(minutes=1))
        for number in range(1, 7):
            venue.move(RAIN, Yes=f"0.4{number}", No=f"0.5{9 - number}")
            venue.move(SUN, Yes=f"0.5{number}", No=f"0.4{9 - number}")
            done("sync_markets", SUNDAY + number * day)
            for moment in (1, 13):
                done("take_snapshots", SUNDAY + number * day + moment * hour)
            if number in (1, 3):
                state(SUNDAY + number * day + 2 * hour, bold)
        venue.resolve(SNOW, "No")
        venue.resolve(WIND, "No")
        done("sync_markets", SUNDAY + 6 * day + 14 * hour)
        done("check_resolutions", SUNDAY + 6 * day + 14 * hour)

        done("sync_markets", SUNDAY + week)
        done("start_cohort", SUNDAY + week)
        decide(1, {
            GPT: (sale(RAIN, 50), bets((FOG, "YES", 500), reasoning="Fog never stays.")),
            GEMINI: (sale(RAIN, 100), bets((RAIN, "NO", 50), (CUP, "Celtics", 20), (HAIL, "MAYBE", 100))),
            GROK: (bets((HAIL, "NO", 132.52)), bets((FOG, "NO", 647.5))),
            CLAUDE: (bets((RAIN, "YES", 1000), (HOSTILE, "YES", 250)), bets((TIDE, "NO", 2000))),
            DEEPSEEK: (sale(SUN, "33.3"),),
            QWEN: (bets((SUN, "NO", 465.95)),),
        })  # fmt: skip
        state(SUNDAY + week + 2 * hour, bold)
        venue.resolve(RAIN, "Yes")
        venue.cancel(CUP)
        venue.resolve(FOG, "Yes")
        venue.close(HAIL)  # without an outcome: it awaits resolution
        done("sync_markets", SUNDAY + week + 2 * day)
        done("check_resolutions", SUNDAY + week + 2 * day)
        for number in range(2, 7):
            done("take_snapshots", SUNDAY + week + number * day)

        done("sync_markets", SUNDAY + 2 * week)
        done("start_cohort", SUNDAY + 2 * week)
        decide(2, {GPT: (bets((SUN, "NO", 300)),) * 3, GROK: (down,) * 3, KIMI: (down,) * 3})
        done("run_forecasts", SUNDAY + 2 * week + 2 * hour)
        done("check_resolutions", SUNDAY + 2 * week + 3 * hour)
        done("take_snapshots", SUNDAY + 2 * week + 3 * hour)
        done("compute_scores", SUNDAY + 2 * week + 4 * hour)

        change_methodology(SUNDAY + 2 * week + 5 * hour)
        venue.market(DEW, _yes_no("0.44"), category="Weather")
        done("sync_markets", SUNDAY + 3 * week)
        done("start_cohort", SUNDAY + 3 * week)
        decide(3, {
            NEWER: (bets((DEW, "YES", 1200), (DEW, "YES", 77.7)),),
            GEMINI: (bets((DEW, "NO", 901.13)),) * 4,
            GROK: (bets((DEW, "YES", 333.1)),) * 4,
        })  # fmt: skip
        done("take_snapshots", SUNDAY + 3 * week + hour)
        venue.resolve(DEW, "Yes")
        venue.move(SUN, Yes="0.61", No="0.39")
        for number in (2, 7):  # its market resolves on Tuesday, its only decision week ends on Sunday
            done("sync_markets", SUNDAY + 3 * week + number * day)
            done("check_resolutions", SUNDAY + 3 * week + number * day)
        decide(4, {GROK: (down,) * 3, GEMINI: (bets((TIDE, "NO", 250)),)})  # models that were down may be asked again
        done("take_snapshots", SUNDAY + 4 * week + hour)
        done("compute_scores", SUNDAY + ENDS_AFTER)


def change_methodology(at: Any) -> None:
    """Publishes a methodology with one decision week and a line-up with a new release, both from the next cohort on."""
    from agents.models import Release
    from agents.services.lineups import approve_lineup, latest_approved, propose_lineup
    from cohorts.models import Methodology

    rules = Methodology.objects.current()
    rules.pk, rules.version, rules.title = None, SHORT, "One decision week"
    rules.decision_weeks, rules.published_at = 1, at
    rules.save()
    before = latest_approved()
    assert before is not None
    releases = [entry.release for entry in before.active_entries().order_by("position")]
    (old,) = [release for release in releases if release.model_id == "openai/gpt-5.2"]
    newer = Release.objects.create(
        family=old.family, model_id=NEWER, display_name="GPT-6", effective_from=at,
        price_prompt=2 * old.price_prompt, price_completion=2 * old.price_completion,
    )  # fmt: skip
    releases[releases.index(old)] = newer
    line_up = propose_lineup(releases=releases, by="operator", reason="A newer release.", at=at)
    assert approve_lineup(line_up, by="operator", reason="Looked at.", at=at)


def done(command: str, at: Any) -> None:
    """Runs a command; exit code 1 is expected where models are down or a resolution is overdue."""
    from tests.commands import run

    options = {"skip_leaderboards": True} if command == "check_resolutions" else {}  # the last command computes them
    ran = run(command, at, **options)
    if ran.code not in (0, 1):
        raise SystemExit(f"{command} at {at}: {ran.stderr}")


def stored_text(question: str) -> str:
    """A question as the database stores it: on one line."""
    return question.replace("\n", " ")


def bets(*stakes: tuple[str, str, float], reasoning: str = "The price looks wrong to me.") -> Callable[[Any], Any]:
    def answer(prompt: Any) -> Any:
        ids = {row["question"]: row["market_id"] for row in prompt.markets}
        rows = [{"market_id": ids[stored_text(q)], "side": side, "amount": amount} for q, side, amount in stakes]
        return {"action": "BET", "bets": rows, "reasoning": reasoning}

    return answer


def sale(question: str, percentage: Any) -> Callable[[Any], Any]:
    def answer(prompt: Any) -> Any:
        position_row = [row for row in prompt.positions if row["question"] == question]
        if not position_row:
            return {"action": "HOLD", "reasoning": "I hold nothing of it."}
        sells = [{"position_id": position_row[0]["position_id"], "percentage": percentage}]
        return {"action": "SELL", "sells": sells, "reasoning": "Taking some off."}

    return answer


def submit(token: str, answer: Callable[[str, Any], Any], *, at: Any) -> None:
    """Submits the external agent's answers to every open task."""
    from django.test import Client, override_settings

    client, headers = Client(), {"Authorization": f"Bearer {token}"}
    with override_settings(ARENA_CLOCK=at):
        waiting = client.get("/api/v1/submissions/open/", headers=headers).json()
        for task in [*waiting["trading"], *waiting["forecast"]]:
            names = ("agent", "universe") if "agent" in task else ("batch",)
            query = "&".join(f"{name}={task[name]}" for name in names)
            response = client.post(
                f"/api/v1/submissions/?{query}", json.dumps(answer(task)), content_type="application/json",
                headers={**headers, "Idempotency-Key": query},
            )  # fmt: skip
            if response.status_code != 201:
                raise SystemExit(f"{query}: {response.status_code} {response.content!r}")


def _rows(block: str) -> list[dict[str, Any]]:
    columns, *lines = [json.loads(line) for line in block.splitlines()]
    return [dict(zip(columns, line, strict=True)) for line in lines]


def trading(question: str, side: str, amount: float) -> Callable[[Any], Any]:
    def answer(task: Any) -> Any:
        markets = _rows(task["blocks"]["MARKETS"])
        (market,) = [row["market_id"] for row in markets if row["question"] == question]
        return {"action": "BET", "bets": [{"market_id": market, "side": side, "amount": amount}]}

    return answer


def sure(task: Any) -> Any:
    """An answer that gives probability 1 to each question's first option."""
    return {
        "forecasts": [
            {
                "question_id": row["question_id"],
                "probabilities": {option: int(place == 0) for place, option in enumerate(row["options"])},
            }
            for row in _rows(task["blocks"]["QUESTIONS"])
        ]
    }


def users() -> None:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.hashers import make_password
    from django.contrib.auth.models import Group

    secret, model = make_password(PASSWORD), get_user_model()
    model.objects.create(username=ADMIN, password=secret, is_staff=True, is_superuser=True)
    for role in ROLES:
        group = Group.objects.filter(name__iexact=role).first()
        if group is not None:
            model.objects.create(username=role, password=secret, is_staff=True).groups.add(group)


def _yes_no(price: str) -> dict[str, str]:
    from decimal import Decimal

    return {"Yes": price, "No": str(1 - Decimal(price))}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
