"""The cost of a call: its worst case from the sending on, until a response or the reconciliation tells the true one."""

import math
from decimal import Decimal

from agents.gateway.completions import Accounting
from agents.models import ModelCall
from agents.prices import COST_UNIT, Prices, TokenPrices

CHARACTERS_PER_TOKEN = 2.6
"""Of JSON Lines about markets: 65,831 characters of 500 captured markets are 25,496 tokens (o200k). Prose has 4."""

Cost = tuple[Decimal, str]
"""US dollars, and the `ModelCall.CostSource` that they are from."""


def count_tokens(*texts: str) -> int:
    """The tokens of texts that are mostly JSON Lines; more than prose of the same length has."""
    return math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def worst_case(system: str, user: str, max_tokens: int, prices: TokenPrices) -> Decimal:
    """The most that a request may cost: its prompt, and every token that it allows for the answer."""
    return dearest_cost(count_tokens(system, user), max_tokens, prices)


def dearest_cost(tokens_input: int, tokens_output: int, prices: TokenPrices) -> Decimal:
    """The cost of so many tokens at the highest prices that can apply to them."""
    return token_cost(tokens_input, tokens_output, prices.dearest(tokens_input))


def response_cost(accounting: Accounting, prices: TokenPrices, *, billable: bool) -> Cost | None:
    """The cost of a response; None if it tells nothing and may be billed all the same.

    Without a stated cost it is computed at the prices of a prompt of the stated length. A condition that can not be
    known counts with its highest price.
    """
    if accounting.cost_usd is not None:
        return accounting.cost_usd.quantize(COST_UNIT), ModelCall.CostSource.STATED
    if billable and accounting.tokens_input is None and accounting.tokens_output is None:
        return None
    length = accounting.tokens_input
    applied = prices.dearest(None) if length is None else prices.of_prompt(length)
    return token_cost(accounting.tokens_input, accounting.tokens_output, applied), ModelCall.CostSource.COMPUTED


def token_cost(tokens_input: int | None, tokens_output: int | None, prices: Prices) -> Decimal:
    return (tokens_input or 0) * prices[0] + (tokens_output or 0) * prices[1]
