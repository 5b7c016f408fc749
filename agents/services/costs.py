"""The cost of a call: its worst case from the sending on, until a response or the reconciliation tells the true one."""

import math
from decimal import Decimal

from agents.gateway.completions import Accounting
from agents.models import ModelCall

CHARACTERS_PER_TOKEN = 2.6
"""Of JSON Lines about markets: 65,831 characters of 500 captured markets are 25,496 tokens (o200k). Prose has 4."""
COST_UNIT = Decimal("0.000000000001")

Prices = tuple[Decimal, Decimal]
"""US dollars per prompt token and per completion token, as frozen with the task."""
Cost = tuple[Decimal, str]
"""US dollars, and the `ModelCall.CostSource` that they are from."""


def count_tokens(*texts: str) -> int:
    """The tokens of texts that are mostly JSON Lines; more than prose of the same length has."""
    return math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def worst_case(system: str, user: str, max_tokens: int, prices: Prices) -> Decimal:
    """The most that a request may cost: its prompt, and every token that it allows for the answer."""
    return token_cost(count_tokens(system, user), max_tokens, prices)


def response_cost(stated: Accounting, prices: Prices, *, billable: bool) -> Cost | None:
    """The cost of a response; None if it tells nothing and may be billed all the same."""
    if stated.cost_usd is not None:
        return stated.cost_usd.quantize(COST_UNIT), ModelCall.CostSource.STATED
    if billable and stated.tokens_input is None and stated.tokens_output is None:
        return None
    return token_cost(stated.tokens_input, stated.tokens_output, prices), ModelCall.CostSource.COMPUTED


def token_cost(tokens_input: int | None, tokens_output: int | None, prices: Prices) -> Decimal:
    return (tokens_input or 0) * prices[0] + (tokens_output or 0) * prices[1]
