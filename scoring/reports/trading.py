"""The reports of the trading protocol."""

from scoring.reports.columns import Column

TRADING_COLUMNS = (
    Column("family", "text", "The family's slug.", null=False),
    Column("display_name", "text", "Its name on pages.", null=False),
    Column("external", "boolean", "An external agent, which submits by itself and is ranked apart.", null=False),
    Column("rank", "integer", "By mean return; equal returns share a rank. Null for external agents."),
    Column("rank_low", "integer", "1 plus the number of families that are significantly better."),
    Column("rank_high", "integer", "Number of families less those that are significantly worse."),
    Column("cohorts", "integer", "Cohorts played.", null=False),
    Column("total_value", "dollars", "Mean total value over cohorts, in dollars.", null=False),
    Column("pnl", "dollars", "Profit, summed over cohorts, in dollars.", null=False),
    Column("return_percent", "number", "Mean return over cohorts, in per cent.", "percent", null=False),
    Column(
        "return_se", "number", "Standard error of the mean return, with calendar weeks as clusters (CR3).", "percent"
    ),
    Column(
        "return_se_cohorts",
        "number",
        "s / √n over cohorts, as the sources have it: too small, since cohorts share weeks and markets.",
        "percent",
    ),
    Column(
        "return_ci",
        "interval",
        "95 % interval of the mean return over calendar weeks. With fewer than about twelve cohorts one rare shared "
        "win can still fall outside.",
        "percent",
    ),
    Column("brier", "number", "Bet-sizing score over all bets. Confidence is a share of cash: not a proper score."),
    Column("brier_ci", "interval", "95 % interval over events; never leaves 0 to 1; allows for one unseen event."),
    Column("bss_random", "number", "1 − bet-sizing score / 0.25."),
    Column("bss_market", "number", "1 − bet-sizing score / that of the prices paid."),
    Column("win_rate", "number", "Share of resolved purchases that won."),
    Column(
        "win_rate_ci",
        "interval",
        "95 % interval over events; never leaves 0 to 1; allows for one unseen event. Null below four events.",
    ),
    Column("resolved_bets", "integer", "Purchases on markets that resolved with a winner.", null=False),
    Column("resolved_events", "integer", "Events of these bets; fewer than four give no interval."),
    Column("cost_usd", "dollars", "Cost of all its calls in dollars.", null=False),
    Column(
        "return_before_costs",
        "number",
        "Mean return at midpoints over the cohorts of which no order book is missing. Null at a past time.",
        "percent",
    ),
    Column(
        "return_after_costs",
        "number",
        "Mean return of the same trades after spreads, the depth of the captured books and the venue's fee.",
        "percent",
    ),
    Column(
        "return_after_costs_ci",
        "interval",
        "95 % interval of the mean return after costs over calendar weeks, as that of the return.",
        "percent",
    ),
    Column(
        "vanished_share",
        "number",
        "Share of the profit at midpoints over these cohorts that costs take; null without a profit.",
    ),
    Column(
        "liquidation_value", "dollars", "Mean cash with the holdings sold to the bids of the last books, in dollars."
    ),
    Column("cohorts_with_books", "integer", "Cohorts of which no book is missing."),
    Column(
        "trades_without_book",
        "integer",
        "Trades without a book or a known fee; the other figures leave their cohorts out.",
    ),
)
"""The trading leaderboard."""

RISK_COLUMNS = (
    Column("family", "text", "The family's slug.", null=False),
    Column("rank", "integer", "By mean return. Null for external agents."),
    Column("return_percent", "number", "Mean return over cohorts.", "percent", null=False),
    Column("weeks", "integer", "Calendar weeks in which it had a portfolio.", null=False),
    Column(
        "worst_drawdown",
        "number",
        "Largest fall of one of its portfolios from its highest value before, in per cent, by Sunday values.",
        "percent",
        null=False,
    ),
    Column("weekly_volatility", "number", "Standard deviation of the weekly returns, in percentage points.", "percent"),
    Column("resolved_stakes", "integer", "Purchases on markets that resolved with a winner.", null=False),
    Column("held_profit", "dollars", "What they made, held to the end, in dollars."),
    Column(
        "odds_bettor_share",
        "number",
        "Share of 10,000 simulations in which a bettor with these stakes makes as much, if each side wins as often as "
        "its price says.",
    ),
    Column(
        "luckiest_bettor_share",
        "number",
        "Share of them in which the luckiest of such bettors, one for each ranked family, makes as much.",
    ),
)
"""Luck and risk of the traders."""
