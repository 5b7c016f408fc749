"""Current prices of a question's options, and the question's outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, OuterRef, QuerySet, Subquery

from markets.models import Market, Outcome, Question, QuestionOption

ONE, NOTHING = Decimal(1), Decimal(0)


@dataclass(frozen=True, slots=True)
class OptionPrice:
    """An option with the last accepted price of its side of a market, and of the other side."""

    option: QuestionOption
    price: Decimal | None
    no_price: Decimal | None


def shown_price(market: Market, outcome: Outcome) -> Decimal | None:
    """The price of a side: the final one, 1 or 0, once its market has resolved; else the last accepted one or quote."""
    if market.status == Market.Status.RESOLVED:
        return ONE if outcome.pk == market.winning_outcome_id else NOTHING
    return outcome.quote if outcome.price is None else outcome.price


def _other_side_price() -> Subquery:
    """The price of the other side of an option's market, if there is exactly one other."""
    siblings = Outcome.objects.filter(market=OuterRef("outcome__market")).exclude(pk=OuterRef("outcome")).order_by()
    only = siblings.values("market").annotate(number=Count("pk"), only=Max("price")).filter(number=1).values("only")
    return Subquery(only)


PRICED = QuestionOption.objects.select_related("outcome").annotate(other_side_price=_other_side_price())
"""Built once, because building the query takes longer than running it."""


def priced_options(*columns: str) -> QuerySet[QuestionOption]:
    """Options with their outcomes' prices, the price of each market's other side, and further `columns`.

    Loading whole markets with their sides instead would be most of a page's time.
    """
    return PRICED.only("question", "name", "index", "happened", "outcome__market", "outcome__price", *columns)


def option_prices(question: Question) -> list[OptionPrice]:
    """The options (prefetched as `priced_options`) at the last accepted prices; without a market, 1 less the others."""
    options: Any = list(question.options.all())
    remainder = ONE
    for option in options:
        if option.outcome is not None:
            remainder -= option.outcome.price or NOTHING
    return [_priced(option, max(NOTHING, remainder)) for option in options]


def shown_option_prices(question: Question) -> list[OptionPrice]:
    """The options at their final prices once the question has resolved; else as `option_prices`.

    These are 1 or 0, and none where the option's market was cancelled.
    """
    if question.status != Question.Status.RESOLVED:
        return option_prices(question)
    final = {True: (ONE, NOTHING), False: (NOTHING, ONE), None: (None, None)}
    return [OptionPrice(option, *final[option.happened]) for option in question.options.all()]


def leading_option(question: Question) -> OptionPrice | None:
    """The first of two options, whose price is the question's; of more the one with the highest price.

    An option without a price leads only where no other has one.
    """
    options = shown_option_prices(question)
    priced = [option for option in options if option.price is not None] or options
    if len(options) == 2:
        return priced[0]
    return max(priced, key=lambda option: option.price or NOTHING, default=None)


def _priced(option: Any, remainder: Decimal) -> OptionPrice:
    if option.outcome is None:
        return OptionPrice(option, remainder, ONE - remainder)
    price, no_price = option.outcome.price, option.other_side_price
    return OptionPrice(option, price, ONE - price if no_price is None and price is not None else no_price)


def question_outcome(question: Question, happened: Sequence[str] | None = None) -> str | list[str] | None:
    """The option that happened, or a list where options are not exclusive; None until the question is resolved.

    `happened` are the names of the options that happened, for a question whose options are not loaded.
    """
    if question.status != Question.Status.RESOLVED:
        return None
    if happened is None:
        happened = [option.name for option in question.options.all() if option.happened]
    return happened[0] if question.exclusive and happened else list(happened)


def question_outcome_text(question: Question, happened: Sequence[str] | None = None) -> str:
    """The outcome as text; empty until the question is resolved."""
    outcome = question_outcome(question, happened)
    if outcome is None:
        return ""
    return outcome if isinstance(outcome, str) else ", ".join(outcome) or "none"
