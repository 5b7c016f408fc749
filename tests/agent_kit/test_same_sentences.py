"""What the arena would refuse is refused by the kit in the same words, and what it takes is scored as it is there."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.answers.decisions import parse_answer
from agents.answers.forecasts import PromptQuestion, check_forecasts, parse_forecasts
from agents.answers.texts import Malformed
from agents.models import Agent
from agents.services.registrations import register_external_agent
from arena_agent import Bet, Market, Portfolio, Question, Sell
from arena_agent.blocks import read_markets, read_portfolio
from arena_agent.checks import FaultyAnswer, Refusal, check_decision
from markets.models import Market as StoredMarket
from markets.models import Universe
from tests.agent_kit.cases import FORECASTS, INSTRUCTIONS, STRUCTURE, TAKEN, decision_text, forecast_text, kit_forecast
from tests.commands import run
from tests.shared_rows import shared_rows_at_venue
from tests.venue import DECISION, SUNDAY, Venue

RICH = Decimal("10000.00")


def arena_sentence(question: Question, text: str) -> str:
    """The arena's fault of an answer to one question; empty if it takes it."""
    try:
        answer = parse_forecasts(text)
    except Malformed as fault:
        return fault.reason
    prompt_question = PromptQuestion(question.id, question.options, question.exclusive)
    return check_forecasts(answer, [prompt_question])[0].reason


@pytest.mark.parametrize("name", FORECASTS)
def test_refused_forecast_has_the_same_sentence_here_and_there(name: str) -> None:
    question, answer, sentence = FORECASTS[name]
    with pytest.raises((FaultyAnswer, Refusal)) as refused:
        kit_forecast(question, answer)
    assert str(refused.value) == sentence
    assert arena_sentence(question, forecast_text(question, answer)) == sentence


@pytest.mark.parametrize("name", TAKEN)
def test_taken_forecast_is_scored_as_the_arena_scores_it(name: str) -> None:
    question, answer, probabilities = TAKEN[name]
    checked = kit_forecast(question, answer)
    assert checked.probabilities == probabilities
    answer_text = json.dumps({"forecasts": [checked.body]})
    prompt_question = PromptQuestion(question.id, question.options, question.exclusive)
    for text in (answer_text, forecast_text(question, answer)):
        (arena_answer,) = check_forecasts(parse_forecasts(text), [prompt_question])
        assert arena_answer.probabilities == checked.probabilities


@pytest.mark.parametrize("name", STRUCTURE)
def test_unreadable_decision_has_the_same_sentence_here_and_there(name: str) -> None:
    instructions, sentence = STRUCTURE[name]
    portfolio = Portfolio(RICH, Decimal(2500), (), Decimal(0), RICH, Decimal(0), 1, "2026-03-08")
    with pytest.raises(FaultyAnswer) as refused:
        check_decision(instructions, portfolio, [Market("1", "?", "", {"YES": 0.4, "NO": 0.6})])
    assert str(refused.value) == sentence
    with pytest.raises(Malformed) as malformed:
        parse_answer(decision_text(instructions), bet_reasons=True)
    assert malformed.value.reason == sentence


def freeze(venue: Venue) -> str:
    """A week with one market and a visitor. Returns the visitor's token."""
    token = register_external_agent(name="Visitor", protocol="trading", at=SUNDAY - timedelta(days=1)).token
    venue.market("Will it rain?")
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY)["agents"] == 8
    assert run("run_decisions", DECISION).code == 0
    return token


frozen = shared_rows_at_venue(freeze)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_rejected_instruction_has_the_same_sentence_here_and_there(
    client: Client, frozen: tuple[Venue, str], venue: Venue, settings: Any, name: str
) -> None:
    settings.ARENA_CLOCK = DECISION + timedelta(minutes=5)
    market = str(StoredMarket.objects.get().pk)
    instructions, sentence = INSTRUCTIONS[name]
    sentence = sentence.replace("RAIN", market)
    headers = {"Authorization": f"Bearer {frozen[1]}", "Idempotency-Key": "1"}
    (task,) = client.get("/api/v1/submissions/open/", headers=headers).json()["trading"]
    kit_sentences = [
        Bet(market if instruction.market == "RAIN" else instruction.market, instruction.side, instruction.amount)
        if isinstance(instruction, Bet)
        else instruction
        for instruction in instructions
    ]
    with pytest.raises(Refusal) as refused:
        check_decision(kit_sentences, read_portfolio(task["blocks"]), read_markets(task["blocks"]))
    assert str(refused.value) == sentence
    agent = Agent.objects.get(family__slug="visitor").pk
    path = f"/api/v1/submissions/?agent={agent}&universe={Universe.objects.get().pk}"
    body = decision_text(instructions, {"RAIN": market})
    answer = client.post(path, body, content_type="application/json", headers=headers)
    assert answer.status_code == 422
    assert f"{sentence} (2 more tries)" in answer.json()["detail"]


def test_second_bet_is_measured_by_the_cash_that_the_first_leaves() -> None:
    portfolio = Portfolio(RICH, Decimal(2500), (), Decimal(0), RICH, Decimal(0), 1, "2026-03-08")
    market = Market("1", "?", "", {"YES": 0.4, "NO": 0.6})
    decision, reasons = check_decision([Bet(market, "yes", 2500), Bet(market, "NO", 1876)], portfolio, [market])
    assert [bet["amount"] for bet in decision["bets"]] == ["2500"]
    assert reasons == [
        "bets[1].amount: 1876 is above the maximum of 1875.00 (25 % of the cash of 7500.00 at that moment)"
    ]
    assert check_decision([], portfolio, [market]) == ({"action": "HOLD"}, [])
    with pytest.raises(Refusal, match="none of your open positions"):
        check_decision([Sell("1")], portfolio, [market])
