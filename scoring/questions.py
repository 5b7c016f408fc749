"""Questions as readers see them: their options' prices now, and what came of them."""

from dataclasses import dataclass
from decimal import Decimal

from markets.models import Question, QuestionOption

ONE, NOTHING = Decimal(1), Decimal(0)


@dataclass(frozen=True, slots=True)
class PricedOption:
    """An option with the last accepted price of what stands for it, and of what stands against it."""

    option: QuestionOption
    price: Decimal | None
    no_price: Decimal | None


def option_prices(question: Question) -> list[PricedOption]:
    """The options (with their outcomes' markets and these' outcomes) at the last accepted prices.

    An option without a market has what the others leave of 1.
    """
    options = list(question.options.all())
    known = [option.outcome.price or NOTHING for option in options if option.outcome is not None]
    rest = max(NOTHING, ONE - sum(known, NOTHING))
    return [_priced(option, rest) for option in options]


def _priced(option: QuestionOption, rest: Decimal) -> PricedOption:
    if option.outcome is None:
        return PricedOption(option, rest, ONE - rest)
    price = option.outcome.price
    others = [other for other in option.outcome.market.outcomes.all() if other.pk != option.outcome_id]
    against = others[0].price if len(others) == 1 else None
    return PricedOption(option, price, ONE - price if against is None and price is not None else against)


def outcome_of(question: Question) -> str | list[str] | None:
    """The option that happened, all that did where they are not exclusive; None while it is not resolved."""
    if question.status != Question.Status.RESOLVED:
        return None
    happened = [option.name for option in question.options.all() if option.happened]
    return happened[0] if question.exclusive and happened else happened


def outcome_text(question: Question) -> str:
    """What happened, in words; nothing while it is not resolved."""
    outcome = outcome_of(question)
    if outcome is None:
        return ""
    return outcome if isinstance(outcome, str) else ", ".join(outcome) or "none"
