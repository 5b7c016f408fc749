"""The price rule as a table: which price is believed, where it came from, and whether it is stale."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.pricing import PriceRule, decide_polymarket_price, decide_quoted_price

RULE = PriceRule(Decimal("0.10"), Decimal("0.10"), Decimal("0.25"))
PRICES = st.none() | st.decimals("0", "1", places=4)


def d(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


@pytest.mark.parametrize(
    ("midpoint", "gamma", "spread", "last", "price", "source", "stale"),
    [
        # the midpoint agrees with Gamma, up to exactly 0.10
        ("0.43", "0.40", None, "0.40", "0.43", "midpoint", False),
        ("0.50", "0.40", None, "0.40", "0.50", "midpoint", False),
        ("0.30", "0.40", None, "0.40", "0.30", "midpoint", False),
        ("0.5000000001", "0.40", None, "0.40", "0.40", "gamma", False),
        # far from Gamma, a book with both sides and a spread of at most 0.10 speaks for itself
        ("0.90", "0.40", "0.10", "0.40", "0.90", "midpoint", False),
        ("0.90", "0.40", "0.1000000001", "0.40", "0.40", "gamma", False),
        ("0.90", "0.40", "-0.05", "0.40", "0.40", "gamma", False),
        ("0.43", None, "0.02", "0.40", "0.43", "midpoint", False),
        # an absurd jump with a one-sided book (no spread) is not believed
        ("0.0005", "0.40", None, "0.40", "0.40", "gamma", False),
        ("0.0005", None, None, "0.40", "0.40", "retained", True),
        # Gamma alone, up to exactly 0.25 from the last accepted price
        (None, "0.65", None, "0.40", "0.65", "gamma", False),
        (None, "0.15", None, "0.40", "0.15", "gamma", False),
        (None, "0.6500000001", None, "0.40", "0.40", "retained", True),
        (None, "0.02", None, "0.40", "0.40", "retained", True),
        # vanished, or 0: the last accepted price stays, flagged
        (None, None, None, "0.40", "0.40", "retained", True),
        ("0", "0", None, "0.40", "0.40", "retained", True),
        ("0", "0", "0.01", "0.40", "0.40", "retained", True),
        ("1", "1", None, "0.40", "0.40", "retained", True),
        # a first price has nothing to be compared with
        (None, "0.02", None, None, "0.02", "gamma", False),
        ("0.97", "0.40", None, None, "0.40", "gamma", False),
        ("0.97", None, "0.03", None, "0.97", "midpoint", False),
        (None, None, None, None, None, "", True),
    ],
)
def test_believed_price(
    midpoint: str | None,
    gamma: str | None,
    spread: str | None,
    last: str | None,
    price: str | None,
    source: str,
    stale: bool,
) -> None:
    bid = ask = None
    if spread is not None and midpoint is not None:
        bid = max(d(midpoint) - d(spread) / 2, Decimal(0))
        ask = bid + d(spread)
    verdict = decide_polymarket_price(RULE, midpoint=d(midpoint), gamma=d(gamma), bid=bid, ask=ask, last=d(last))
    assert (verdict.price, verdict.source, verdict.stale) == (d(price), source, stale)
    assert verdict.reason


def test_gamma_price_not_seen_since_the_last_accepted_one_confirms_but_replaces_nothing() -> None:
    def believed(midpoint: str | None) -> tuple[Decimal | None, str, bool]:
        verdict = decide_polymarket_price(
            RULE, midpoint=d(midpoint), gamma=d("0.42"), bid=None, ask=None, last=d("0.40"), gamma_is_new=False
        )
        return verdict.price, verdict.source, verdict.stale

    assert believed("0.50") == (Decimal("0.50"), "midpoint", False)
    assert believed(None) == (Decimal("0.40"), "retained", True)


@pytest.mark.parametrize(
    ("midpoint", "bid", "ask", "price", "source"),
    [
        ("0.70", "0.48", "0.52", "0.50", "gamma"),  # above a tight book
        ("0.30", "0.48", "0.52", "0.50", "gamma"),  # below it
        ("0.55", "0.48", "0.52", "0.50", "gamma"),  # near Gamma does not help
        ("0.55", None, "0.52", "0.50", "gamma"),  # one side is enough to refuse
        ("0.45", "0.48", None, "0.50", "gamma"),
        ("0.52", "0.48", "0.52", "0.52", "midpoint"),  # the bounds are inside
        ("0.48", "0.48", "0.52", "0.48", "midpoint"),
        ("0.45", None, "0.52", "0.45", "midpoint"),  # an empty side says nothing of the other
        ("0.55", None, None, "0.55", "midpoint"),
    ],
)
def test_midpoint_counts_inside_its_own_book_alone_and_so_does_that_of_no(
    midpoint: str, bid: str | None, ask: str | None, price: str, source: str
) -> None:
    def mirrored(text: str | None) -> Decimal | None:
        return None if text is None else 1 - Decimal(text)

    yes = decide_polymarket_price(RULE, midpoint=d(midpoint), gamma=d("0.50"), bid=d(bid), ask=d(ask), last=d("0.49"))
    no = decide_polymarket_price(
        RULE, midpoint=mirrored(midpoint), gamma=d("0.50"), bid=mirrored(ask), ask=mirrored(bid), last=d("0.51")
    )
    assert (yes.price, yes.source) == (d(price), source)
    assert (no.price, no.source, no.reason) == (mirrored(price), source, yes.reason)


@given(midpoint=PRICES, gamma=PRICES, spread=PRICES, last=PRICES)
def test_verdict_is_one_of_the_prices_on_offer_and_stale_exactly_where_nothing_new_was_believed(
    midpoint: Decimal | None, gamma: Decimal | None, spread: Decimal | None, last: Decimal | None
) -> None:
    verdict = decide_polymarket_price(RULE, midpoint=midpoint, gamma=gamma, bid=Decimal(0), ask=spread, last=last)
    assert verdict.price == {"midpoint": midpoint, "gamma": gamma, "retained": last, "": None}[verdict.source]
    assert verdict.stale == (verdict.source in ("retained", ""))
    assert len(verdict.reason) <= 300
    if last is not None:
        assert verdict.price is not None
        if 0 < last < 1:
            assert 0 < verdict.price < 1


QUOTED = [
    # last trade, bid, ask, last accepted: price, source, stale
    (("0.43", "0.42", "0.44", None), ("0.43", "midpoint", False)),
    (("0.94", "0.93", "0.95", "0.40"), ("0.94", "midpoint", False)),
    ((None, "0.1000000000", "0.1000000003", None), ("0.1000000002", "midpoint", False)),
    (("0.45", "0.40", "0.50", "0.40"), ("0.45", "midpoint", False)),
    (("0.455", "0.40", "0.51", "0.40"), ("0.455", "trade", False)),
    (("0.39", "0.10", "0.60", None), ("0.39", "trade", False)),
    (("0.39", None, "0.01", "0.60"), ("0.39", "trade", False)),
    (("0.90", None, "0.01", "0.60"), ("0.60", "retained", True)),
    ((None, None, None, "0.60"), ("0.60", "retained", True)),
    ((None, None, None, None), (None, "", True)),
    (("0", None, None, "0.60"), ("0.60", "retained", True)),
]


@pytest.mark.parametrize(("quote", "expected"), QUOTED)
def test_venue_with_its_own_book_is_believed_for_a_tight_one_and_for_a_trade_that_is_near(
    quote: tuple[str | None, ...], expected: tuple[str | None, str, bool]
) -> None:
    trade, bid, ask, last = map(d, quote)
    verdict = decide_quoted_price(RULE, trade=trade, bid=bid, ask=ask, last=last)
    assert (verdict.price, verdict.source, verdict.stale) == (d(expected[0]), *expected[1:])
    assert verdict.reason


def test_quote_not_seen_since_the_last_accepted_price_replaces_nothing() -> None:
    verdict = decide_quoted_price(RULE, trade=d("0.43"), bid=d("0.42"), ask=d("0.44"), last=d("0.40"), is_new=False)
    assert (verdict.price, verdict.stale) == (Decimal("0.40"), True)
