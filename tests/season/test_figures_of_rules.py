"""Every figure of the rules and of what the arena says of itself is that of a methodology's row, as the API has it."""

import html
import re
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from agents.models.agent import EXTERNAL_WINDOW
from arena_site.jobs import JOBS
from scoring.templatetags import arena
from tests.figures import Page, text
from tests.told import Arena, closed, instant_of, many, text_of

PROMPTS = ("system_prompt", "user_prompt", "malformed_note", "refused_note")
WINDOW = f"{EXTERNAL_WINDOW // timedelta(minutes=1)} minutes after the freeze"
"""How long external agents may take, as prose says it."""


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_a_methodology(shown: Arena, version: str) -> None:
    page, told = shown.page(f"/methodology/{version}/"), shown.one(f"methodologies/{version}/")
    rules = told["forecast"]
    trading(page, told)
    if rules:
        forecasts(page, rules)
    frozen_words(page, told)
    chains(page, shown, "")
    cohorts = [str(row["number"]) for row in shown.rows(f"cohorts/?methodology={version}&ordering=-number")]
    played = f"Cohorts that play by it: {' '.join(cohorts)}" if cohorts else "No cohort plays by it yet."
    words = text(page.markup)
    for said in (
        f"{told['title']}. Published {text_of(arena.day(instant_of(told['published_at'])))} .",
        f"SHA-256 of all of this: {told['sha256']} . {played}",
        f"a bet of {arena.dollars(largest(told))} is {arena.count(largest(told) / Decimal('0.0005'))} shares",
        WINDOW,
    ):
        assert said in words, said
        page.compared += 1
    page.words(*[name for name in page.tables if not name.partition(",")[0]])  # how the sources read scores
    closed(page, 36 if rules else 26)


def trading(page: Page, told: dict[str, Any]) -> None:
    share = float(told["maximum_bet_fraction"])
    page.fact("Starting balance", f"{arena.money(told['starting_balance'])}, never refilled")
    page.fact("Actions", ", ".join(told["actions"]))
    bet = f"from {arena.money(told['minimum_bet'])} to {arena.percent(share * 100, 0)} of the cash at that moment"
    page.fact("Bet", bet)
    bankrupt = Decimal(told["minimum_bet"]) / Decimal(told["maximum_bet_fraction"])
    page.fact("Bankrupt", f"below {arena.money(bankrupt)} of cash with no open position")
    page.fact("Decision weeks", f"{told['decision_weeks']} for each cohort")
    retries = f"{told['malformed_retries']} after a malformed answer, {told['refused_retries']} after one of which "
    window = f"all within {arena.count(told['retry_window_hours'])} hours of the freeze"
    page.fact("Retries", f"{retries}nothing could be carried out, {window}")
    page.fact("Universe", f"{arena.count(told['universe_size'])} markets. {told['universe_rule']}")
    page.fact("Temperature", str(told["temperature"]))
    page.fact("Most tokens", arena.count(told["max_tokens"]))
    for name, key in (("Reasoning", "reasoning"), ("Provider routing", "provider_routing")):
        page.fact(name, ", ".join(f"{key}: {str(value).lower()}" for key, value in told[key].items()))
    tolerances = [arena.price(told[f"{name}"]) for name in ("midpoint_tolerance", "maximum_spread", "gamma_tolerance")]
    page.fact(
        "Price tolerances",
        f"midpoint within {tolerances[0]} of Gamma’s price, spread at most {tolerances[1]}, "
        f"Gamma’s price within {tolerances[2]} of the last accepted one",
    )


def forecasts(page: Page, rules: dict[str, Any]) -> None:
    daily = f"{rules['questions_per_day']} a day, up to {rules['questions_per_call']} to a request."
    page.fact("Questions", f"{daily} {rules['choice_rule']}")
    horizon = f"{rules['soonest_days']} to {rules['latest_days']} days come first"
    page.fact("Horizon", f"questions that close in {horizon}")
    page.fact("Volume", f"at least {arena.count(rules['minimum_volume'])}")
    page.fact("Options", f"at most {rules['most_options']}")
    share = arena.percent(float(rules["category_share"]) * 100, 0)
    page.fact("Category", f"at most {share} of a day before every other had its turn")
    page.fact("Arms", f"{', '.join(rules['arms'])}: the same questions with the market’s prices and without")
    tolerance = f"a sum within {rules['sum_tolerance']} of 1"
    page.fact("Vector", f"{tolerance} is normalised and marked so, any other is refused")
    page.fact("Retries, 2", f"as for decisions, within {rules['retry_window_hours']} hours of the freeze")


def frozen_words(page: Page, told: dict[str, Any]) -> None:
    """Prompts, rulings and formulas: word for word, and the constants in the formulas."""
    prompts = [told[name] for name in PROMPTS] + [told["forecast"][name] for name in PROMPTS if told["forecast"]]
    assert [html.unescape(block) for block in re.findall(r"<pre[^>]*>\n(.*?)</pre>", page.markup, re.S)] == prompts
    rulings = page.markup.partition('id="rulings"')[2].partition("</section>")[0]
    assert [html.unescape(each) for each in re.findall(r"<li>(.*?)</li>", rulings, re.S)] == told["rulings"]
    page.compared += len(prompts) + len(told["rulings"])
    for name, words in told["scoring"].items():
        (formula,) = re.findall(rf'<div id="score-{name}">(.*?)</div>', page.markup, re.S)
        constants = {Decimal(number) for number in re.findall(r"<mn>([\d.]+)</mn>", formula)}
        for place, key in CONSTANTS.items():
            if name == place:
                assert Decimal(told[key]) in constants, formula
        assert text(re.findall(r"<p>(.*?)</p>", formula, re.S)[0]) == text(words)
        page.compared += 1
        page.words(name)
    # The letters, and what stands beside the ranking, are no part of what is frozen.
    rest = page.markup.partition("What the letters stand for")[2].partition('id="bands"')[0]
    page.words(*map(text, re.findall(r"<dt>(.*?)</dt>", rest, re.S)))


CONSTANTS = {"implied_confidence": "maximum_bet_fraction", "return_percent": "starting_balance"}
"""Formulas with a constant of the version's own."""


def chains(page: Page, shown: Arena, word: str) -> None:
    for chain in shown.rows("chain/"):
        said = f"{arena.count(chain['length'])} links, head {chain['head']}"
        page.fact(f"{chain['protocol'].capitalize()}{word}", said)


def largest(told: dict[str, Any]) -> Decimal:
    """The largest bet that an agent can begin with."""
    return Decimal(told["starting_balance"]) * Decimal(told["maximum_bet_fraction"])


def test_about(shown: Arena) -> None:
    """The numbers in the prose are the newest rules' and the chains'; any other number is counted."""
    told = max(shown.rows("methodologies/"), key=lambda row: instant_of(row["published_at"]))
    page = shown.page("/about/")
    chains(page, shown, " chain")
    (snapshots,) = [job.cron for job in JOBS if job.function == "snapshots"]
    assert snapshots == "*/10 * * * *"
    words = text(
        re.sub(
            r"<(pre|dl).*?</\1>",
            "",
            page.markup.partition('<div class="prose">')[2].partition("</main>")[0],
            flags=re.S,
        )
    )
    (cited, _) = re.findall(r"<pre[^>]*>(.*?)</pre>", page.markup, re.S)
    for said in (
        f"each with {arena.money(told['starting_balance'])} of paper money",
        f"Once a week, {many(told['decision_weeks'], 'week')} long, each agent",
        "marked every ten minutes",
        f"Their deadline is {WINDOW}",
    ):
        assert said in words, said
        page.compared += 1
    assert f"Forecaster Arena, methodology {told['version']}. " in text(cited)
    numbers = [arena.money(told["starting_balance"])[1:], str(told["decision_weeks"]), WINDOW.split()[0], "4.0"]
    assert Counter(re.findall(r"\d(?:[\d.,]*\d)?", words)) == Counter(numbers), "a number that nobody compares"
    closed(page, 6)
