"""Every figure of the rules and of what the arena says of itself is that of a methodology's row, as the API has it."""

import re
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from agents.models.family import EXTERNAL_WINDOW
from arena_site.jobs import JOBS
from arena_site.pages.views.methodologies import PLAINER
from tests.markup import element, elements, section, visible_text
from tests.season import formats
from tests.season.page_figures import Page, one_line
from tests.season.season_api import SeasonApi, instant_of

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PROMPTS = ("system_prompt", "user_prompt", "malformed_note", "refused_note")
WINDOW = f"{EXTERNAL_WINDOW // timedelta(minutes=1)} minutes after the freeze"
"""How long external agents may take, as prose says it."""


@pytest.mark.parametrize("version", ["v1", "v2", "short"])
def test_a_methodology(season: SeasonApi, version: str) -> None:
    page, answer = season.page(f"/methodology/{version}/"), season.one(f"methodologies/{version}/")
    rules = answer["forecast"]
    trading(page, answer)
    if rules:
        forecasts(page, rules)
    frozen_words(page, answer)
    pitfalls(page)
    chains(page, season, "")
    cohorts = [str(row["number"]) for row in season.rows(f"cohorts/?methodology={version}&ordering=-number")]
    played = f"Cohorts under this version: {' '.join(cohorts)}" if cohorts else "No cohort uses it yet."
    words = page.text
    for text in (
        f"{answer['title']}. Published {formats.day(answer['published_at'])} .",
        f"SHA-256 of this version: {answer['sha256']} . {played}",
        f"a bet of {formats.dollars(largest(answer))} is {formats.count(largest(answer) / Decimal('0.0005'))} shares",
        WINDOW,
    ):
        assert text in words, text
        page.compared += 1
    page.skip("coverage")  # of simulated worlds: compared with the documentation
    page.skip(*[name for name in page.tables if not name.partition(",")[0]])  # how the sources read scores
    page.assert_compared(at_least=36 if rules else 26)


def trading(page: Page, answer: dict[str, Any]) -> None:
    share = float(answer["maximum_bet_fraction"])
    page.fact("Starting balance", f"{formats.money(answer['starting_balance'])}, never refilled")
    page.fact("Actions", ", ".join(answer["actions"]))
    bet = f"from {formats.money(answer['minimum_bet'])} to {formats.percent(share * 100, 0)} of the cash at that moment"
    page.fact("Bet", bet)
    bankrupt = Decimal(answer["minimum_bet"]) / Decimal(answer["maximum_bet_fraction"])
    page.fact("Bankrupt", f"below {formats.money(bankrupt)} of cash with no open position")
    page.fact("Decision weeks", f"{answer['decision_weeks']} for each cohort")
    retries = f"{answer['malformed_retries']} after a malformed answer, {answer['refused_retries']} after one with no "
    window = f"all within {formats.count(answer['retry_window_hours'])} hours after prices are frozen"
    page.fact("Retries", f"{retries}executable instruction, {window}")
    page.fact(
        "Universe",
        f"{formats.count(answer['universe_size'])} markets. Which ones {with_plainer_words(answer['universe_rule'])}",
    )
    page.fact("Temperature", str(answer["temperature"]))
    page.fact("Maximum tokens", formats.count(answer["max_tokens"]))
    for name, key in (("Reasoning", "reasoning"), ("Provider routing", "provider_routing")):
        page.fact(name, ", ".join(f"{key}: {str(value).lower()}" for key, value in answer[key].items()))
    tolerances = [
        f"{100 * float(answer[name]):.1f}" for name in ("midpoint_tolerance", "maximum_spread", "jump_tolerance")
    ]
    page.fact(
        "Price tolerances",
        f"midpoint inside its own book, and within {tolerances[0]} percentage points of Gamma’s price, "
        f"spread at most {tolerances[1]}, Gamma’s price within {tolerances[2]} of the last accepted one",
    )


def with_plainer_words(rule: str) -> str:
    """A rule as the page says it, and as it was published."""
    plain = rule
    for sentence, plainer in PLAINER.items():
        plain = plain.replace(sentence, plainer)
    return f"{plain} As published: {rule}"


def forecasts(page: Page, rules: dict[str, Any]) -> None:
    daily = f"{rules['questions_per_day']} a day, up to {rules['questions_per_call']} per API call."
    page.fact("Questions", f"{daily} Which ones {with_plainer_words(rules['choice_rule'])}")
    horizon = f"{rules['soonest_days']} to {rules['latest_days']} days come first"
    page.fact("Horizon", f"questions that close in {horizon}")
    page.fact("Volume", f"at least {formats.count(rules['minimum_volume'])}")
    page.fact("Options", f"at most {rules['most_options']}")
    share = formats.percent(float(rules["category_share"]) * 100, 0)
    page.fact("Category", f"at most {share} of a day’s questions while other categories have questions left")
    page.fact("Prompt conditions", "the same questions with the market’s prices and without prices")
    tolerance = f"if within {rules['sum_tolerance']} of 1"
    page.fact("Sum of probabilities", f"normalised and marked {tolerance}, otherwise refused")
    page.fact("Retries, 2", f"as for decisions, within {rules['retry_window_hours']} hours after prices are frozen")


def frozen_words(page: Page, answer: dict[str, Any]) -> None:
    """Prompts, rulings and formulas: word for word, and the constants in the formulas."""
    prompts = [answer[name] for name in PROMPTS] + [answer["forecast"][name] for name in PROMPTS if answer["forecast"]]
    assert [block.text() for block in elements(page.html, "pre")] == prompts
    assert [ruling.text() for ruling in elements(section(page.html, "rulings"), "li")] == answer["rulings"]
    page.compared += len(prompts) + len(answer["rulings"])
    for name, words in answer["scoring"].items():
        formula = element(page.html, f"div#score-{name}")
        constants = {Decimal(number.text()) for number in elements(formula, "mn")}
        for place, key in CONSTANTS.items():
            if name == place:
                assert Decimal(answer[key]) in constants, formula.text()
        assert visible_text(formula, "p:not([class])") == one_line(words)
        page.compared += 1
        page.skip(visible_text(formula, "dt"))
    # The letters, and what stands beside the ranking, are no part of what is frozen.
    page.skip(*map(visible_text, elements(section(page.html, "scores"), "dt")))


def pitfalls(page: Page) -> None:
    """Each says how far the arena guards against it, and states no figure."""
    part = section(page.html, "pitfalls")
    terms, answers = elements(part, "dt"), [visible_text(words) for words in elements(part, "dd")]
    assert len(terms) == len(answers) == 9
    for words in answers:
        assert re.match(r"(Guarded|Partly guarded|Not guarded)\. ", words), words
        assert not re.search(r"\d", words), f"a number without an expectation: {words}"
    page.skip(*map(visible_text, terms))


CONSTANTS = {"implied_confidence": "maximum_bet_fraction", "return_percent": "starting_balance"}
"""Formulas with a constant of the version's own."""


def chains(page: Page, season: SeasonApi, word: str) -> None:
    for chain in season.rows("chain/"):
        text = f"{formats.count(chain['length'])} links, head {chain['head']}"
        page.fact(f"{chain['protocol'].capitalize()}{word}", text)


def largest(answer: dict[str, Any]) -> Decimal:
    """The largest bet that an agent can begin with."""
    return Decimal(answer["starting_balance"]) * Decimal(answer["maximum_bet_fraction"])


def test_about(season: SeasonApi) -> None:
    """The numbers in the prose are the newest rules' and the chains'; any other number is counted."""
    published = [row for row in season.rows("methodologies/") if row["published_at"]]
    answer = max(published, key=lambda row: instant_of(row["published_at"]))
    page = season.page("/about/")
    chains(page, season, " chain")
    (snapshots,) = [job.cron for job in JOBS if job.function == "snapshots"]
    assert snapshots == "*/10 * * * *"
    prose = element(page.html, "div.prose").clone()
    cited, *_ = (visible_text(block) for block in elements(page.html, "pre"))
    for part in prose.css("pre, dl"):
        part.decompose()
    words = visible_text(prose)
    for text in (
        f"each with {formats.money(answer['starting_balance'])} of paper money",
        f"Once a week, {formats.plural(answer['decision_weeks'], 'week')} long, each agent",
        "marked every ten minutes",
        f"Their deadline is {WINDOW}",
        "12 hours",
    ):
        assert text in words, text
        page.compared += 1
    assert f"Forecaster Arena, methodology {answer['version']}. " in cited
    numbers = [
        formats.money(answer["starting_balance"])[1:],
        str(answer["decision_weeks"]),
        WINDOW.split()[0],
        "12",
        "4.0",
    ]
    assert Counter(re.findall(r"\d(?:[\d.,]*\d)?", words)) == Counter(numbers), "a number without an expectation"
    page.assert_compared(at_least=6)
