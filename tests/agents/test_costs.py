"""The bill: what a call counts as until the gateway tells its cost, and what it tells later."""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from croniter import croniter
from django.utils import timezone

from agents.gateway.completions import Accounting, parse_accounting
from agents.models import Decision, Family, ModelCall, Release
from agents.prices import TokenPrices, parse_overrides
from agents.services.call_usage import decision_costs, usage_of_family
from agents.services.costs import response_cost
from agents.services.reconciliation import SETTLED
from arena_site import jobs
from foundation.models import Run
from tests.answers import CLAUDE, GEMINI, GPT, GROK, HOLD
from tests.arena_site.dashboard.accounts import action_path, perform, sign_in
from tests.commands import DECISION, SUNDAY, CommandOutput, run
from tests.factories import ModelCallFactory, QuestionFactory, ask
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Failure, ModelAnswer

ONE = {"family": "gpt-5.1"}
HELD = '{"action": "HOLD", "reasoning": "-"}'
UNKNOWN = ModelAnswer(HELD, usage={})
"""An answer whose body names no usage."""


def open_season(venue: Venue) -> None:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)


season = shared_rows_at_venue(open_season)


@pytest.fixture
def venue(season: tuple[Venue, None], venue: Venue) -> Venue:
    """The venue of an open season."""
    return venue.as_left(season[0])


def booked_call(venue: Venue) -> ModelCall:
    venue.says(GPT, UNKNOWN)
    assert run("run_decisions", DECISION, **ONE).code == 0
    return ModelCall.objects.get()


def costs() -> tuple[Decimal, Decimal, str]:
    """The cost of the only call as the call itself, the sums of its family and its run have it."""
    call = ModelCall.objects.get()
    family = Family.objects.get(slug="gpt-5.1")
    (usage,) = usage_of_family(family).values()
    assert (usage.requests, usage.cost_usd, decision_costs()) == (1, call.cost_usd, {family.pk: call.cost_usd})
    is_stated, is_booked = call.cost_source == "stated", call.cost_source == "booked"
    assert (usage.stated_costs, usage.unconfirmed_usd) == (is_stated, call.cost_usd if is_booked else 0)
    return call.cost_usd, Decimal(Run.objects.get(kind="run_decisions").summary["cost_usd"]), call.cost_source


BYOK = {"prompt_tokens": 9, "completion_tokens": 9, "cost": 0.0005, "is_byok": True}
USAGES = {
    # what the body says of the usage: (cost, source)
    "a cost": ({"prompt_tokens": 9, "completion_tokens": 9, "cost": 0.25}, "0.25", "stated"),
    "no cost to us": ({"prompt_tokens": 9, "completion_tokens": 9, "cost": 0}, "0", "stated"),
    "tokens alone": ({"prompt_tokens": 1000, "completion_tokens": 100}, "0.00315", "computed"),
    "the provider's cost too": (BYOK | {"cost_details": {"upstream_inference_cost": 0.02}}, "0.0205", "stated"),
    "the fee alone": (BYOK | {"cost_details": {}}, "0.00014175", "computed"),
    "the provider's cost, not billed apart": (
        BYOK | {"is_byok": False, "cost_details": {"upstream_inference_cost": 0.0005}}, "0.0005", "stated",
    ),
}  # fmt: skip


def gpt_prices(overrides: list[dict[str, Any]]) -> TokenPrices:
    return TokenPrices(Decimal("0.00000175"), Decimal("0.000014"), parse_overrides(overrides))


@pytest.mark.parametrize("name", USAGES)
def test_cost_of_a_response(name: str) -> None:
    usage, cost, source = USAGES[name]
    accounting = parse_accounting({"usage": usage}, {})
    assert response_cost(accounting, gpt_prices([]), billable=True) == (Decimal(cost), source)


def test_cost_of_an_answer_is_that_of_its_call_family_and_run(venue: Venue) -> None:
    usage, cost, source = USAGES["the provider's cost too"]
    venue.says(GPT, ModelAnswer(HELD, usage=usage))
    ran = run("run_decisions", DECISION, **ONE)
    assert costs() == (Decimal(cost), Decimal(ran["cost_usd"]), source)
    assert Decimal(ran["cost_usd"]) == round(Decimal(cost), 6)


def test_answer_without_usage_is_booked_at_its_worst_case(venue: Venue) -> None:
    """2.6 characters to a token of the prompt, and all of max_tokens, at 1.75 and 14 dollars a million."""
    call = booked_call(venue)
    prompt = sum(len(message["content"]) for message in venue.asked[0].body["messages"])
    tokens = -(-prompt * 10 // 26)
    worst_case = tokens * Decimal("0.00000175") + venue.asked[0].body["max_tokens"] * Decimal("0.000014")
    assert (call.cost_usd, call.booked_usd, call.cost_source) == (worst_case, worst_case, "booked")
    assert costs() == (worst_case, round(worst_case, 6), "booked")


HOURS = {"utc_start": "16:30", "utc_end": "00:30"}
CONDITIONS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    # the overrides of a model at 1.75 and 14 dollars a million: (overrides, dearest prompt, dearest completion)
    "a tier within reach": ([{"min_prompt_tokens": 100, "prompt": "0.0000035", "completion": "0.00002"}], "3.5", "20"),
    "a tier out of reach": ([{"min_prompt_tokens": 200_000, "prompt": "0.0000035"}], "1.75", "14"),
    "hours": ([HOURS | {"prompt": "0.0000035"}], "3.5", "14"),
    "cheaper hours": ([HOURS | {"prompt": "0.000001", "completion": "0.000001"}], "1.75", "14"),
    "hours of a tier out of reach": ([HOURS | {"min_prompt_tokens": 200_000, "prompt": "0.0000035"}], "1.75", "14"),
    "a condition that nobody knows": ([{"moon": {"phase": "full"}, "completion": "0.00003"}], "1.75", "30"),
    "a length that can not be read": ([{"min_prompt_tokens": "many", "prompt": "0.000004"}], "4", "14"),
}


def price_under(overrides: list[dict[str, Any]]) -> None:
    Release.objects.filter(model_id=GPT).update(price_overrides=overrides)


@pytest.mark.parametrize("name", CONDITIONS)
def test_dearest_price_that_can_apply(name: str) -> None:
    overrides, *prices = CONDITIONS[name]
    assert gpt_prices(overrides).dearest(26_923) == tuple(Decimal(price) / 10**6 for price in prices)


def test_estimate_and_worst_case_take_the_dearest_price_that_can_apply(venue: Venue) -> None:
    overrides, prompt_price, completion_price = CONDITIONS["a tier within reach"]
    price_under(overrides)
    dry = run("run_decisions", DECISION, dry_run=True, **ONE)
    expected = 26_923 * Decimal(prompt_price) + 2_000 * Decimal(completion_price)
    assert Decimal(dry["cost_usd"]) == round(expected / 10**6, 6)
    call = booked_call(venue)
    prompt = sum(len(message["content"]) for message in venue.asked[0].body["messages"])
    tokens, token_limit = -(-prompt * 10 // 26), venue.asked[0].body["max_tokens"]
    assert call.booked_usd == (tokens * Decimal(prompt_price) + token_limit * Decimal(completion_price)) / 10**6


TIERS = [
    {"min_prompt_tokens": 1000, "prompt": "0.0000035", "completion": "0.00002", "input_cache_read": "0.0000007"},
    {"min_prompt_tokens": 5000, "prompt": "0.000007", "completion": "0.00004"},
]
COMPUTED = {
    # the overrides, the prompt's tokens, and the prices of a prompt and a completion token, a million of each
    "below the first tier": (TIERS, 999, "1.75", "14"),
    "the first tier": (TIERS, 1000, "3.5", "20"),
    "the last tier": (TIERS, 5000, "7", "40"),
    "a tier that is cheaper": ([{"min_prompt_tokens": 1000, "prompt": "0.000001"}], 1000, "1", "14"),
    "hours besides": ([*TIERS, HOURS | {"prompt": "0.000005"}], 1000, "5", "20"),
    "cheaper hours besides": ([*TIERS, HOURS | {"prompt": "0.0000005"}], 1000, "3.5", "20"),
    "no tokens of the prompt": (TIERS, None, "0", "40"),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_cost_takes_the_tier_of_the_prompt_and_the_dearest_of_other_conditions(name: str) -> None:
    overrides, tokens, prompt_price, completion_price = COMPUTED[name]
    cost = ((tokens or 0) * Decimal(prompt_price) + 100 * Decimal(completion_price)) / 10**6
    accounting = Accounting(tokens_input=tokens, tokens_output=100)
    assert response_cost(accounting, gpt_prices(overrides), billable=True) == (cost, "computed")


def test_answer_without_a_cost_is_computed_at_its_tier(venue: Venue) -> None:
    price_under(TIERS)
    venue.says(GPT, ModelAnswer(HELD, usage={"prompt_tokens": 1000, "completion_tokens": 100}))
    assert run("run_decisions", DECISION, **ONE).code == 0
    assert costs() == (Decimal("0.0055"), Decimal("0.0055"), "computed")


def test_spend_limit_counts_what_is_booked(venue: Venue, settings: Any) -> None:
    settings.ARENA_SPEND_LIMIT_USD = Decimal("0.5")
    price_under([{"min_prompt_tokens": 100, "completion": "0.0005"}])
    assert booked_call(venue).cost_usd > Decimal("0.5")
    ran = run("run_decisions", DECISION)
    assert (ran.code, ran["failed"], len(venue.asked)) == (1, 6, 1)
    assert "spend cap reached" in ran.stderr


def test_generation_tells_the_cost_of_a_booked_call(venue: Venue) -> None:
    booked = booked_call(venue).cost_usd
    assert run("reconcile_costs").summary == {"checked": 1, "corrected": 0}
    assert costs() == (booked, round(booked, 6), "booked")
    bill = {"total_cost": 0.5, "is_byok": True, "upstream_inference_cost": 0.25, "native_tokens_prompt": 900}
    venue.bills["gen-1"] = bill | {"native_tokens_completion": 40}
    assert run("reconcile_costs").summary == {"checked": 1, "corrected": 1}
    assert costs() == (Decimal("0.75"), Decimal("0.750000"), "stated")
    call = ModelCall.objects.get()
    assert (call.booked_usd, call.tokens_input, call.tokens_output) == (booked, 900, 40)
    assert call.reconciled_at is not None
    assert run("reconcile_costs").summary == {"checked": 0, "corrected": 0}


CREDITS = {
    # used by the key before and after a booked call, in dollars: what the call counts as then, or stays booked
    "nothing was billed": ("5", "5", "0"),
    "a part of the worst case": ("5", "5.0625", "0.0625"),
    "more than the worst case: others use the key": ("5", "7", None),
    "the usage was reset": ("5", "1", None),
}


@pytest.mark.parametrize("name", CREDITS)
def test_credits_tell_the_cost_of_a_call_that_no_generation_is_known_of(venue: Venue, name: str) -> None:
    before, after, cost = CREDITS[name]
    venue.bills["key"] = {"label": "sk-or-v1-0e6...1c9", "usage": float(before), "byok_usage": 0}
    with time_machine.travel(timezone.now() - timedelta(hours=2)):
        assert run("reconcile_costs").summary == {"checked": 0, "corrected": 0}
        booked = booked_call(venue).cost_usd
        venue.bills["key"]["usage"] = float(after)
        assert run("reconcile_costs").summary == {"checked": 1, "corrected": 0}, "the gateway may count late"
    assert run("reconcile_costs").summary == {"checked": 1, "corrected": int(cost is not None)}
    expected = booked if cost is None else Decimal(cost)
    assert costs() == (expected, round(expected, 6), "booked" if cost is None else "stated")


KEY = {"label": "sk-or-v1-0e6...1c9", "byok_usage": 0}
SUNDAY_RUN = DECISION + timedelta(seconds=10)


def at_clock(at: datetime, command: str, **options: Any) -> CommandOutput:
    """The output of a command at an instant that the machine's clock shows, too."""
    with time_machine.travel(at, tick=False):
        return run(command, at, **options)


def time_out(venue: Venue, settings: Any, at: datetime) -> CommandOutput:
    """A run that reaches the cap by a call that a proxy gave up: no generation id, and maybe a bill."""
    settings.ARENA_SPEND_LIMIT_USD, settings.ARENA_LLM_TRANSPORT_RETRIES = Decimal("0.01"), 0
    settings.OPENROUTER_API_KEY = "sk-or-v1-0123456789abcdef"
    venue.says(GPT, Failure(504, body="<html>timed out</html>"))
    return at_clock(at, "run_decisions", **ONE)


def test_timed_out_call_is_released_before_the_next_retry_of_its_sunday(venue: Venue, settings: Any) -> None:
    venue.bills["key"] = KEY | {"usage": 5}
    assert time_out(venue, settings, SUNDAY_RUN).code == 1
    assert ModelCall.objects.get().cost_usd > Decimal("0.01")
    assert at_clock(SUNDAY_RUN + timedelta(minutes=20), "reconcile_costs").summary == {"checked": 1, "corrected": 0}
    assert at_clock(SUNDAY_RUN + timedelta(minutes=50), "reconcile_costs").summary == {"checked": 1, "corrected": 1}
    assert costs() == (0, 0, "stated")
    assert at_clock(SUNDAY_RUN + timedelta(hours=1), "run_decisions", **ONE).code == 0
    cost_jobs = [job for job in jobs.JOBS if job.command == "reconcile_costs"]
    (next_run,) = (croniter(job.cron, SUNDAY_RUN + SETTLED).get_next(datetime) for job in cost_jobs)
    assert next_run < SUNDAY_RUN + timedelta(hours=1)


def test_run_at_the_cap_first_releases_what_was_not_billed(venue: Venue, settings: Any) -> None:
    """Nobody ran `reconcile_costs`: the run read the credits itself, before its first call."""
    venue.bills["key"] = KEY | {"usage": 5}
    time_out(venue, settings, SUNDAY_RUN)
    at_cap = at_clock(SUNDAY_RUN + timedelta(minutes=20), "run_decisions", **ONE)
    booked = ModelCall.objects.get().cost_usd
    message = f"spend cap reached: ${booked:.2f} of $0.01 for the week, ${booked:.2f} of it booked and not billed yet"
    assert (at_cap.code, message in at_cap.stderr) == (1, True)
    assert at_clock(SUNDAY_RUN + timedelta(hours=1), "run_decisions", **ONE).code == 0


def test_run_at_an_operators_cap_first_releases_what_was_not_billed(venue: Venue, settings: Any) -> None:
    venue.bills["key"] = KEY | {"usage": 5}
    time_out(venue, settings, SUNDAY_RUN)
    settings.ARENA_SPEND_LIMIT_USD = Decimal(25)
    perform(sign_in("operator"), "set-cap", protocol="trading", limit="0.01")
    assert at_clock(SUNDAY_RUN + timedelta(hours=1), "run_decisions", **ONE).code == 0


def test_retries_that_go_on_keep_no_earlier_call_booked(venue: Venue, settings: Any) -> None:
    """Each hour's retry sends calls, and their bills tell nothing of those before them."""
    venue.bills["key"] = KEY | {"usage": 5}
    time_out(venue, settings, SUNDAY_RUN)
    settings.ARENA_SPEND_LIMIT_USD = Decimal(25)
    for hour in (1, 2):
        venue.says(GPT, Failure(504, body="<html>timed out</html>"))
        at_clock(SUNDAY_RUN + timedelta(hours=hour), "run_decisions", **ONE)
        ran = at_clock(SUNDAY_RUN + timedelta(hours=hour, minutes=5), "reconcile_costs")
        assert ran.summary == {"checked": 2, "corrected": 1}
    sources = ModelCall.objects.order_by("pk").values_list("cost_source", flat=True)
    assert list(sources) == ["stated", "stated", "booked"]


def test_first_reading_after_an_outage_counts_from_the_keys_creation(venue: Venue, settings: Any) -> None:
    time_out(venue, settings, SUNDAY_RUN)
    venue.bills["key"] = KEY | {"usage": 0}
    at_clock(SUNDAY_RUN + timedelta(hours=1), "reconcile_costs")
    assert costs() == (0, 0, "stated")


@pytest.mark.parametrize(("usage", "label"), [(7, KEY["label"]), (5, "another key")])
def test_call_stays_booked_where_the_key_tells_nothing_of_it(
    venue: Venue, settings: Any, usage: int, label: str
) -> None:
    venue.bills["key"] = KEY | {"usage": 5}
    time_out(venue, settings, SUNDAY_RUN)
    venue.bills["key"] = KEY | {"usage": usage, "label": label}
    assert at_clock(SUNDAY_RUN + timedelta(hours=1), "reconcile_costs")["corrected"] == 0


OLD_KEY, NEW_KEY = "sk-or-v1-0123456789abcdef", "sk-or-v1-fedcba9876543210"


def test_gateways_key_is_rotated_without_a_lost_decision(venue: Venue, settings: Any) -> None:
    accepted = {OLD_KEY, NEW_KEY}

    def answer(prompt: ModelRequest) -> Any:
        return HOLD if prompt.headers["Authorization"].removeprefix("Bearer ") in accepted else Failure(401)

    for model in (GPT, CLAUDE, GEMINI, GROK):
        venue.says(model, answer, answer)
    venue.bills["key"] = KEY | {"usage": 5}
    venue.server.expect_request(re.compile("/openrouter/api/v1/credits|/gamma/")).respond_with_json({})
    settings.OPENROUTER_API_KEY = OLD_KEY
    assert run("run_decisions", DECISION, **ONE)["completed"] == 1
    settings.OPENROUTER_API_KEY = NEW_KEY  # beside the old one, which is valid still
    (detail,) = [item["detail"] for item in run("doctor", DECISION)["items"] if item["name"] == "gateway key"]
    assert detail == "accepted"
    accepted.remove(OLD_KEY)
    assert run("run_decisions", DECISION, family="claude-opus-4.5")["completed"] == 1
    settings.OPENROUTER_API_KEY = OLD_KEY  # a worker that was not started again
    stopped = run("run_decisions", DECISION, family="gemini-2.5-flash")
    assert (stopped.code, stopped["failed"]) == (1, 1)
    settings.OPENROUTER_API_KEY = NEW_KEY
    assert run("run_decisions", DECISION)["completed"] == 5
    assert ModelCall.objects.filter(error__contains=OLD_KEY).count() == 0


def shown_spending(client: Any) -> tuple[str, str, str]:
    """Billed and booked of the trading protocol in the metrics, and the dashboard's words."""
    lines = client.get("/metrics").content.decode().splitlines()
    name = 'arena_spend_usd{kind="%s",protocol="trading"} '
    billed, booked = (
        next(line.removeprefix(name % kind) for line in lines if line.startswith(name % kind))
        for kind in ("billed", "booked")
    )
    page = " ".join(sign_in("viewer").get("/admin/").content.decode().split())
    return billed, booked, re.findall(r"<small>([^<]* billed · [^<]* booked)</small>", page)[0]


def test_booked_and_billed_stand_apart_on_dashboard_metrics_and_api(venue: Venue, settings: Any, client: Any) -> None:
    with time_machine.travel(SUNDAY_RUN, tick=False):
        assert shown_spending(client) == ("0.0", "0.0", "$0.0000 billed · $0.0000 booked")
        venue.says(GPT, ModelAnswer(HELD, usage={"prompt_tokens": 9, "completion_tokens": 9, "cost": 0.25}))
        venue.says(CLAUDE, UNKNOWN)
        run("run_decisions", DECISION, family="claude-opus-4.5")
        run("run_decisions", DECISION, **ONE)
        booked = ModelCall.objects.get(cost_source="booked").cost_usd
        billed, metric, words = shown_spending(client)
        assert (Decimal(billed), Decimal(metric)) == (Decimal("0.25"), pytest.approx(booked))
        assert words.startswith("$0.2500 billed · $0.")
        summaries = [row["summary"] for row in client.get("/api/v1/runs/?kind=run_decisions").json()["results"]]
        assert [row["booked_usd"] for row in summaries] == ["0.000000", f"{booked:.6f}"]
        settings.ARENA_SPEND_LIMIT_USD = Decimal("0.5")
        concerns = sign_in("operator").get("/admin/").context["concerns"]
        (concern,) = [problem for problem in concerns if "trading" in problem.message]
        spent, part = booked + Decimal("0.25"), f"${booked:.2f} of it booked and not billed yet"
        assert concern.message == f"trading: ${spent:.2f} of this week's $0.50 are spent, {part}"
        assert (concern.urgent, concern.button) == (True, "Reconcile")
        warning = sign_in("operator").get(action_path("run_decisions"), {"confirm": ""}).context["preview"].warning
        assert warning.startswith(f"spend cap reached: ${spent:.2f} of $0.50 for the week, {part}: no model is asked.")


@pytest.mark.forged_record
def test_dry_run_takes_the_mean_of_what_a_releases_calls_cost(venue: Venue) -> None:
    """Neither calls that are only booked count, nor those that failed, nor those of another protocol."""
    dry = run("run_decisions", DECISION, dry_run=True)
    claude = "Claude Opus 4.5 (anthropic/claude-opus-4.5), cohort 1: $0.1846 a call (assumed)"
    assert f"would ask {claude}" in dry.stderr.splitlines()
    nowhere = '{"action": "BET", "bets": [{"market_id": "0", "side": "YES", "amount": 100}]}'
    venue.says(GPT, ModelAnswer(nowhere, usage={"cost": 0.5}))
    run("run_decisions", DECISION, **ONE)
    decision = Decision.objects.get()
    ModelCallFactory(decision=decision, cost_usd=Decimal("0.25"))
    ModelCallFactory(decision=decision, result="failed", cost_usd=0)
    ModelCallFactory(decision=decision, cost_usd=8, booked_usd=8, cost_source="booked")
    ask(QuestionFactory(), {"gpt-5.1": (0.5, 0.5)}, day=SUNDAY, cost="9")
    (gpt,) = run("run_decisions", DECISION + timedelta(hours=1), dry_run=True, **ONE).stderr.splitlines()
    assert gpt.endswith("$0.3750 a call (the mean of 2 on record)")


def test_pages_and_api_say_what_is_booked(venue: Venue, client: Any) -> None:
    call = booked_call(venue)
    (row,) = client.get(f"/api/v1/decisions/{call.decision_id}/").json()["calls"]
    assert (row["cost_source"], row["booked_usd"]) == ("booked", row["cost_usd"])
    for page in (f"/decisions/{call.decision_id}/", "/models/gpt-5.2/"):
        assert b"reserved, not yet confirmed" in client.get(page).content, page
