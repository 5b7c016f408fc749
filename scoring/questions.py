"""Questions as readers see them: their options' prices now, and what came of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, OuterRef, QuerySet, Subquery

from markets.models import Outcome, Question, QuestionOption

ONE, NOTHING = Decimal(1), Decimal(0)


@dataclass(frozen=True, slots=True)
class PricedOption:
    """An option with the last accepted price of what stands for it, and of what stands against it."""

    option: QuestionOption
    price: Decimal | None
    no_price: Decimal | None


def _against() -> Subquery:
    """The price of the other side of an option's market, where there is one other."""
    others = Outcome.objects.filter(market=OuterRef("outcome__market")).exclude(pk=OuterRef("outcome")).order_by()
    only = others.values("market").annotate(number=Count("pk"), only=Max("price")).filter(number=1).values("only")
    return Subquery(only)


PRICED = QuestionOption.objects.select_related("outcome").annotate(against=_against())
"""Built once: to put it together takes longer than to ask it."""


def priced_options(*columns: str) -> QuerySet[QuestionOption]:
    """Options with the outcome that stands for each, and the price of its market's other side as `against`.

    One by one: whole markets with their sides would be most of a page's time. `columns` are what else is shown.
    """
    return PRICED.only("question", "name", "index", "happened", "outcome__market", "outcome__price", *columns)


def option_prices(question: Question) -> list[PricedOption]:
    """The options, prefetched as `priced_options`, at the last accepted prices.

    An option without a market has what the others leave of 1.
    """
    options: Any = list(question.options.all())
    known = [option.outcome.price or NOTHING for option in options if option.outcome is not None]
    rest = max(NOTHING, ONE - sum(known, NOTHING))
    return [_priced(option, rest) for option in options]


def _priced(option: Any, rest: Decimal) -> PricedOption:
    if option.outcome is None:
        return PricedOption(option, rest, ONE - rest)
    price, against = option.outcome.price, option.against
    return PricedOption(option, price, ONE - price if against is None and price is not None else against)


def outcome_of(question: Question, happened: Sequence[str] | None = None) -> str | list[str] | None:
    """The option that happened, all that did where they are not exclusive; None while it is not resolved.

    `happened` names the options that did, of a question whose options are not loaded.
    """
    if question.status != Question.Status.RESOLVED:
        return None
    if happened is None:
        happened = [option.name for option in question.options.all() if option.happened]
    return happened[0] if question.exclusive and happened else list(happened)


def outcome_text(question: Question, happened: Sequence[str] | None = None) -> str:
    """What happened, in words; nothing while it is not resolved."""
    outcome = outcome_of(question, happened)
    if outcome is None:
        return ""
    return outcome if isinstance(outcome, str) else ", ".join(outcome) or "none"
