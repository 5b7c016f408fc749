"""The seven simulated models: how each bets, sells or holds on what its prompt shows.

A persona sees nothing but its prompt. Its random numbers are seeded by the season's seed, its name and the prompt:
the same prompt gets the same answer, and a retry with a complaint another one.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any

from venue_sandbox import answer_formats
from venue_sandbox.answer_formats import AnswerFormat
from venue_sandbox.prompt import Holding, Offer, Prompt

CATALOGUE = Path(__file__).parent / "fixtures" / "models.json"
SMALLEST_BET = 50
LARGEST_SHARE = Decimal("0.25")  # of the cash at that moment
NORMAL = NormalDist()

Answer = dict[str, Any]
"""A decision in the format that the arena asks for."""


@dataclass(frozen=True)
class DecisionContext:
    """The inputs of a persona's decision: its prompt, its random numbers and its knowledge."""

    prompt: Prompt
    rng: Random
    estimate: Callable[[str, str], float | None]
    """A well-informed forecaster's probability of a side of a question, None where it has none."""

    def fresh(self, low: str, high: str) -> list[Offer]:
        """Sides on offer within a price range, of markets not held yet, the busiest first."""
        sides = [
            offer
            for offer in self.prompt.offers
            if Decimal(low) <= offer.price <= Decimal(high) and offer.market_id not in self.prompt.held_markets
        ]
        return sorted(sides, key=lambda offer: (-offer.volume, offer.question, offer.side))

    def pick(self, offers: list[Offer], count: int) -> list[Offer]:
        """A random sample of the offers, no market twice."""
        picked: dict[str, Offer] = {}
        for offer in self.rng.sample(offers, len(offers)):
            if len(picked) < count:
                picked.setdefault(offer.market_id, offer)
        return list(picked.values())

    def stakes(self, offers: Iterable[Offer], least: float, most: float) -> list[tuple[Offer, float]]:
        """Each offer with a random share of the cash to stake on it."""
        return [(offer, self.rng.uniform(least, most)) for offer in offers]

    def noisy_estimate(self, side: Offer | Holding, noise: float) -> float:
        """The informed probability with noise in probits added; the price where there is none."""
        chance = self.estimate(side.question, side.side)
        if chance is None:
            return float(side.price)
        probit = NORMAL.inv_cdf(min(max(chance, 0.001), 0.999))
        return NORMAL.cdf(probit + self.rng.gauss(0, noise))


Strategy = Callable[[DecisionContext], Answer]


@dataclass(frozen=True)
class Persona:
    """A model as the gateway offers it."""

    id: str
    provider: str
    decide: Strategy
    answer_format: AnswerFormat
    outages: Mapping[int, int] = field(default_factory=dict)
    """The status with which it answers in the first hours of a week of the season, where it is down then."""
    follows: str = ""
    """The model whose successor it is, on the same terms."""

    @cached_property
    def listing(self) -> dict[str, Any]:
        """Its entry in the catalogue; prices are text, in dollars per token."""
        model = self.follows or self.id
        entry: dict[str, Any] = next(entry for entry in catalogue()["data"] if entry["id"] == model)
        return entry | dict.fromkeys(("id", "canonical_slug", "name"), self.id) if self.follows else entry

    @property
    def prices(self) -> tuple[Decimal, Decimal]:
        """US dollars per token of a prompt, and of an answer."""
        return Decimal(self.listing["pricing"]["prompt"]), Decimal(self.listing["pricing"]["completion"])


@cache
def catalogue() -> dict[str, Any]:
    """The models as the gateway lists them."""
    catalogue: dict[str, Any] = json.loads(CATALOGUE.read_text())
    return catalogue


def hold(why: str) -> Answer:
    return {"action": "HOLD", "reasoning": why}


def bet(prompt: Prompt, stakes: Iterable[tuple[Offer, float]], why: str) -> Answer:
    """Bets in whole dollars of about these shares of cash, each legal when its turn comes."""
    cash, bets = prompt.cash, []
    for offer, share in stakes:
        most = int(cash * LARGEST_SHARE)
        if most >= SMALLEST_BET:
            amount = min(max(int(cash * Decimal(repr(share))), SMALLEST_BET), most)
            cash -= amount
            bets.append({"market_id": offer.market_id, "side": offer.side, "amount": amount})
    return {"action": "BET", "bets": bets, "reasoning": why} if bets else hold("Nothing fits my limits this week.")


def sell(sales: list[tuple[Holding, int]], why: str) -> Answer:
    """Sales of so many percent of each position."""
    parts = [{"position_id": holding.position_id, "percentage": percent} for holding, percent in sales]
    return {"action": "SELL", "sells": parts, "reasoning": why}


def follow(context: DecisionContext) -> Answer:
    """Goes with the market in many small bets, one to a category where it can, and takes profits."""
    ripe = [
        holding
        for holding in context.prompt.holdings
        if holding.gain > Decimal("0.25") or holding.price > Decimal("0.95")
    ]
    if ripe and context.rng.random() < 0.5:
        return sell(
            [(holding, context.rng.choice((50, 100))) for holding in ripe[:3]],
            "Taking profits where the crowd came round.",
        )
    by_category: dict[str, Offer] = {}
    for offer in context.pick(context.fresh("0.52", "0.85")[:60], 20):
        by_category.setdefault(offer.category, offer)
    options = list(by_category.values())[:6]
    return bet(context.prompt, context.stakes(options, 0.03, 0.07), "Broad, modest, with the crowd.")


def back_favourites(context: DecisionContext) -> Answer:
    """Bets big on the clear favourites, and cuts what has gone badly wrong."""
    broken = [holding for holding in context.prompt.holdings if holding.gain < Decimal("-0.5")]
    if broken and context.rng.random() < 0.4:
        return sell([(holding, 100) for holding in broken[:2]], "The favourite has lost its lead; cutting the loss.")
    options = context.pick(context.fresh("0.72", "0.94")[:40], 3)
    return bet(context.prompt, context.stakes(options, 0.15, 0.25), "Favourites are favourites.")


def back_longshots(context: DecisionContext) -> Answer:
    """Buys what hardly anyone believes in, and sells some of it when it has doubled."""
    doubled = [holding for holding in context.prompt.holdings if holding.gain > 1]
    if doubled and context.rng.random() < 0.6:
        return sell(
            [(holding, 60) for holding in doubled[:3]], "Doubled: selling enough to play with the house's money."
        )
    options = context.pick(context.fresh("0.05", "0.28"), context.rng.randint(4, 7))
    return bet(context.prompt, context.stakes(options, 0.02, 0.06), "The crowd is too sure of itself.")


def weigh(context: DecisionContext) -> Answer:
    """Bets part of Kelly's stake where its own estimate beats the price, sells where it no longer does."""
    faded = [
        holding
        for holding in context.prompt.holdings
        if context.noisy_estimate(holding, 0.2) < float(holding.price) - 0.08
    ]
    if faded and context.rng.random() < 0.5:
        return sell([(holding, 100) for holding in faded[:4]], "The price is now above my estimate.")
    edges = []
    for offer in context.fresh("0.06", "0.90"):
        price = float(offer.price)
        edge = context.noisy_estimate(offer, 0.6) - price
        if edge > 0.06:
            edges.append((edge / (1 - price), offer))
    best: dict[str, tuple[Offer, float]] = {}
    for kelly, offer in sorted(edges, key=lambda pair: (-pair[0], pair[1].question)):
        best.setdefault(offer.market_id, (offer, min(0.25 * kelly, 0.12)))
    return bet(context.prompt, list(best.values())[:6], "Estimate above price; stakes a quarter of Kelly.")


def scatter(context: DecisionContext) -> Answer:
    """Bets by whim, on sides it likes the sound of."""
    if context.prompt.holdings and context.rng.random() < 0.15:
        unlucky = context.rng.choice(context.prompt.holdings)
        return sell([(unlucky, context.rng.randint(20, 100))], "I no longer like this one.")
    options = context.pick(context.fresh("0.15", "0.85"), context.rng.randint(2, 5))
    return bet(context.prompt, context.stakes(options, 0.02, 0.20), "These look mispriced to me.")


def ponder(context: DecisionContext) -> Answer:
    """Mostly waits; now and then one or two bets on something likely that it has thought through."""
    if context.rng.random() < 0.6:
        return hold("After reflection no price is far enough from what I believe.")
    likely = [option for option in context.fresh("0.50", "0.80") if context.noisy_estimate(option, 0.5) > option.price]
    options = context.pick(likely, context.rng.randint(1, 2))
    return bet(context.prompt, context.stakes(options, 0.05, 0.12), "A considered exception to patience.")


PERSONAS = {
    persona.id: persona
    for persona in (
        Persona("openai/gpt-5.2", "OpenAI", follow, answer_formats.terse),
        Persona("google/gemini-3-pro-preview", "Google", back_favourites, answer_formats.tidy),
        Persona("x-ai/grok-4.1-fast", "xAI", back_longshots, answer_formats.terse),
        Persona("anthropic/claude-opus-4.5", "Anthropic", weigh, answer_formats.tidy),
        Persona("deepseek/deepseek-v3.2", "DeepSeek", scatter, answer_formats.chatty),
        Persona("moonshotai/kimi-k2-thinking", "Moonshot AI", ponder, answer_formats.thinking),
        Persona("qwen/qwen3-235b-a22b-2507", "Alibaba", scatter, answer_formats.garbled, outages={2: 503, 4: 503}),
    )
}
