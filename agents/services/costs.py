"""The cost of a call: its worst case from the sending on, until a response or the reconciliation tells the true one."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from agents.gateway.completions import Accounting
from agents.models import ModelCall
from agents.prices import COST_UNIT, Prices, TokenPrices

if TYPE_CHECKING:
    from markets.selection_rule import SearchTool

CHARACTERS_PER_TOKEN = 2.6
"""Of JSON Lines about markets: 65,831 characters of 500 captured markets are 25,496 tokens (o200k). Prose has 4."""

RESULT_CHARACTERS = 4_000
"""The most of a search result that the gateway shows a model; it cuts most to some 2,000."""
SEARCH_PRICES = {"exa": (Decimal("0.007"), Decimal("0.015")), "parallel": (Decimal("0.005"), Decimal("0.005"))}
"""US dollars for a search of ten results by an engine: in its usual mode, and in its dearest."""
INCLUDED_RESULTS, RESULT_PRICE = 10, Decimal("0.001")
"""The results that a search's price includes, and the price of each further one."""

Cost = tuple[Decimal, str]
"""US dollars, and the `ModelCall.CostSource` that they are from."""


def count_tokens(*texts: str) -> int:
    """The tokens of texts that are mostly JSON Lines; more than prose of the same length has."""
    return math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def worst_case(system: str, user: str, max_tokens: int, prices: TokenPrices, tool: SearchTool | None = None) -> Decimal:
    """The most that a request may cost: its prompt, every token that it allows for the answer, and every search."""
    prompt = count_tokens(system, user)
    if tool is None:
        return dearest_cost(prompt, max_tokens, prices)
    rounds = tool.max_uses + 1
    result_tokens = math.ceil(RESULT_CHARACTERS / CHARACTERS_PER_TOKEN)
    length = prompt + tool.max_uses * tool.max_results * result_tokens
    tokens_input = searched_tokens(prompt, tool.max_uses, tool.max_results * result_tokens)
    tokens = token_cost(tokens_input, rounds * max_tokens, prices.dearest(length))
    return tokens + tool.max_uses * search_price(tool, dearest=True)


def searched_tokens(prompt: int, searches: int, tokens_of_results: int) -> int:
    """The prompt tokens of an answer with searches, each of which asks the model anew, with what was shown so far."""
    return (searches + 1) * prompt + searches * (searches + 1) // 2 * tokens_of_results


def search_price(tool: SearchTool, *, dearest: bool) -> Decimal:
    """US dollars for one search of a tool, in its engine's usual mode or in its dearest."""
    further_results = max(0, tool.max_results - INCLUDED_RESULTS)
    return SEARCH_PRICES[tool.engine][dearest] + further_results * RESULT_PRICE


def dearest_cost(tokens_input: int, tokens_output: int, prices: TokenPrices) -> Decimal:
    """The cost of so many tokens at the highest prices that can apply to them."""
    return token_cost(tokens_input, tokens_output, prices.dearest(tokens_input))


def response_cost(
    accounting: Accounting, prices: TokenPrices, *, billable: bool, searches_usd: Decimal = Decimal(0)
) -> Cost | None:
    """The cost of a response; None if it tells nothing and may be billed all the same.

    Without a stated cost it is computed at the prices of a prompt of the stated length, and that of its searches
    added. A condition that can not be known counts with its highest price.
    """
    if accounting.cost_usd is not None:
        return accounting.cost_usd.quantize(COST_UNIT), ModelCall.CostSource.STATED
    if billable and accounting.tokens_input is None and accounting.tokens_output is None:
        return None
    length = accounting.tokens_input
    applied = prices.dearest(None) if length is None else prices.of_prompt(length)
    tokens_usd = token_cost(accounting.tokens_input, accounting.tokens_output, applied)
    return tokens_usd + searches_usd, ModelCall.CostSource.COMPUTED


def token_cost(tokens_input: int | None, tokens_output: int | None, prices: Prices) -> Decimal:
    return (tokens_input or 0) * prices[0] + (tokens_output or 0) * prices[1]
