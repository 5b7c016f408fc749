"""Tables of the competition (families, releases, cohorts, agents), and of markets and their prices."""

from agents.models import Agent, AgentVersion, Family, Release
from cohorts.models import Cohort
from markets.models import Market, OrderBook, Outcome, PriceObservation, Universe, UniverseEntry
from scoring.exports.dictionary import record_table

COMPETITION_TABLES = (
    record_table(Family, "families", "Competitors. A family stays the same when its model is replaced.", """
        id slug display_name provider active external track
    """),
    record_table(AgentVersion, "agent_versions", "Versions that the makers of external agents declared.", """
        id family=family__slug number began_at note
    """),
    record_table(Release, "releases", "The exact models behind families.", """
        id family=family__slug model_id display_name price_prompt price_completion effective_from supported_parameters
        released_on knowledge_cutoff declared_cutoff
    """),
    record_table(Cohort, "cohorts", "Weekly competitions.", """
        number week_start methodology=methodology__version status started_at completed_at voided_at void_reason
    """, order=("number",),
        recomputed="started_at",
    ),
    record_table(Agent, "agents", "One family's release in one cohort, valued when the archive was made.", """
        id cohort=cohort__number family=family__slug release model_id status
        starting_balance decimal usd cohort__methodology__starting_balance - First deposit.
        cash
        positions_value decimal usd - Open positions at the last accepted prices.
        total_value decimal usd - Cash and positions.
        pnl decimal usd - Total less the starting balance.
        return_percent number percent - Profit as a percentage of the starting balance.
        brier number - Mean bet-sizing score; no proper score, since confidence is a share of cash.
        resolved_bets integer - Purchases on markets that resolved with a winner.
        win_rate number - The share of them whose side won.
    """, order=("cohort__number", "pk"),
        recomputed=(
            "family model_id starting_balance cash positions_value total_value pnl return_percent "
            "brier resolved_bets win_rate"
        ),
    ),
)  # fmt: skip

MARKET_TABLES = (
    record_table(Market, "markets", "Markets of the venues. Texts belong to their venues.", """
        id source external_id slug question category event_id event_title event_exclusive option kind status created_at
        closes_at over_since closed_at resolved_at winning_outcome
    """),
    record_table(Outcome, "outcomes", "Sides of markets.", """
        id market index side name token_id price price_at price_source price_stale
    """,
        recomputed="price price_source price_stale",
    ),
    record_table(PriceObservation, "prices",
        "Price observations: the accepted price, its candidates, and the reason.", """
        outcome market=outcome__market side=outcome__side observed_at price source stale reason midpoint gamma bid ask
    """,
        recomputed="market side",
    ),
    record_table(Universe, "universes", "Frozen lists of markets and prices, the same for all agents of a run.", """
        id week_start methodology frozen_at sha256
    """,
        recomputed="sha256",
    ),
    record_table(UniverseEntry, "universe_entries", "Markets of universes, with their frozen prices.", """
        universe position market bettable open prices sources
    """, order=("universe_id", "position"),
        chained="universe position market bettable open prices sources",
    ),
    record_table(OrderBook, "books",
        "Order books at the freezes, of the sides that were traded, with the venue's fee for takers: "
        "shares × rate × (p(1 − p))^exponent.", """
        universe market=outcome__market outcome side=outcome__side captured_at bids asks fee_rate fee_exponent
        fee_unknown
    """, order=("universe_id", "outcome_id"), batch_size=500,
        recomputed="market side",
    ),
)  # fmt: skip
