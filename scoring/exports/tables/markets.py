"""Tables of the competition (families, releases, cohorts, agents), and of markets and their prices."""

from scoring.exports.dictionary import ArchiveTable, columns

COMPETITION_TABLES = (
    ArchiveTable("families", "Competitors. A family stays the same when its model is replaced.", columns("""
        id integer row - The family.
        slug text - Its permanent name.
        display_name text - Its name on pages.
        provider text - The maker of the model.
        active boolean - True if it plays in the next cohort.
        external boolean - Is it an external agent, ranked apart?
        track text - What an external agent may use: closed (what the task shows) or open; empty for models.
    """), "agents.Family"),
    ArchiveTable("agent_versions", "Versions that the makers of external agents declared.", columns("""
        id integer row - The version.
        family text family__slug - The family's slug.
        number integer - Its number, from 1 on.
        began_at time - Time from which it is the agent's version.
        note text - What changed, in the maker's words.
    """), "agents.AgentVersion"),
    ArchiveTable("releases", "The exact models behind families.", columns("""
        id integer row - The release.
        family text family__slug - The family's slug.
        model_id text - The gateway's id of the model.
        display_name text - Its name on pages.
        price_prompt decimal usd - Price of a prompt token.
        price_completion decimal usd - Price of a completion token.
        effective_from time - Time from which it is the family's release.
        supported_parameters json - The request parameters that it honours by the gateway's catalogue; null if unknown.
        released_on text - The day on which the gateway listed it (YYYY-MM-DD); empty if unknown.
        knowledge_cutoff text - The end of what it knows, by the gateway's catalogue (YYYY-MM-DD); empty if unknown.
        declared_cutoff text - The end of what it knows, as its maker declares it (YYYY-MM-DD); empty if not declared.
    """), "agents.Release"),
    ArchiveTable("cohorts", "Weekly competitions.", columns("""
        number integer - Its number.
        week_start time - Sunday 00:00 UTC of its first week.
        methodology text methodology__version - The methodology's version.
        status text - active or completed.
        started_at time - Time of its agents' deposits.
        completed_at time - Time of its last settlement.
        voided_at time - Since when it counts on no leaderboard; empty for all but voided ones.
        void_reason text - Why.
    """), "cohorts.Cohort", ("number",),
        recomputed="started_at",
    ),
    ArchiveTable("agents", "One family's release in one cohort, valued when the archive was made.", columns("""
        id integer row - The agent.
        cohort integer cohort__number - The cohort's number.
        family text family__slug - The family's slug.
        release integer row release_id - The release frozen into it.
        model_id text - The requested model.
        status text - active or bankrupt.
        starting_balance decimal usd cohort__methodology__starting_balance - First deposit.
        cash decimal usd - Cash now.
        positions_value decimal usd - Open positions at the last accepted prices.
        total_value decimal usd - Cash and positions.
        pnl decimal usd - Total less the starting balance.
        return_percent number percent - Profit as a percentage of the starting balance.
        brier number - Mean bet-sizing score; no proper score, since confidence is a share of cash.
        resolved_bets integer - Purchases on markets that resolved with a winner.
        win_rate number - The share of them whose side won.
    """), "agents.Agent", ("cohort__number", "pk"),
        recomputed=(
            "family model_id starting_balance cash positions_value total_value pnl return_percent "
            "brier resolved_bets win_rate"
        ),
    ),
)  # fmt: skip

MARKET_TABLES = (
    ArchiveTable("markets", "Markets of the venues. Texts belong to their venues.", columns("""
        id integer row - The market.
        source text - Its venue.
        external_id text - The venue's id.
        slug text - The venue's short name.
        question text - The question.
        category text - The venue's category.
        event_id text - Shared by the markets of one event.
        event_title text - The event's title.
        event_exclusive boolean - True if its venue states that at most one market of the event resolves to Yes.
        option text - Its name within the event.
        kind text - binary or multi.
        status text - active, closed, resolved or cancelled.
        created_at time - When its venue created it, as the venue states; null if it does not.
        closes_at time - Nominal closing time.
        over_since time - Since when it was over at its venue, or had a result proposed or disputed; null if neither.
        closed_at time - First time seen closed.
        resolved_at time - Time of resolution or cancellation.
        winning_outcome integer row winning_outcome_id - The outcome that won.
    """), "markets.Market"),
    ArchiveTable("outcomes", "Sides of markets.", columns("""
        id integer row - The outcome.
        market integer row market_id - Its market.
        index integer - Its place in the venue's list.
        side text - Its name in bets (YES, NO, …).
        name text - The venue's name for it.
        token_id text - The venue's token id.
        price decimal price - The last accepted price.
        price_at time - Time of that price.
        price_source text - Its source.
        price_stale boolean - True if it is an earlier price, because no new one could be accepted.
    """), "markets.Outcome",
        recomputed="price price_source price_stale",
    ),
    ArchiveTable("prices", "Price observations: the accepted price, its candidates, and the reason.", columns("""
        outcome integer row outcome_id - The outcome.
        market integer row outcome__market_id - Its market.
        side text outcome__side - Its side.
        observed_at time - Time of observation.
        price decimal price - The accepted price.
        source text - Its source.
        stale boolean - True if it is an earlier price.
        reason text - The reason for the choice.
        midpoint decimal price - Midpoint of the order book.
        gamma decimal price - Price of the venue's catalogue.
        bid decimal price - Best bid.
        ask decimal price - Best ask.
    """), "markets.PriceObservation",
        recomputed="market side",
    ),
    ArchiveTable("universes", "Frozen lists of markets and prices, the same for all agents of a run.", columns("""
        id integer row - The universe.
        week_start time - Sunday 00:00 UTC of its week.
        methodology text - The methodology's version.
        frozen_at time - Time of the freeze.
        sha256 text sha - Hash of its entries.
    """), "markets.Universe",
        recomputed="sha256",
    ),
    ArchiveTable("universe_entries", "Markets of universes, with their frozen prices.", columns("""
        universe integer row universe_id - The universe.
        position integer - Its place in the universe.
        market integer row market_id - The market.
        bettable boolean - Open to bets, or listed only because agents hold it?
        open boolean - Was it open at the freeze?
        prices json - Price by side, US dollars a share.
        sources json - Source of the price by side.
    """), "markets.UniverseEntry", ("universe_id", "position"),
        chained="universe position market bettable open prices sources",
    ),
    ArchiveTable("books", "Order books at the freezes, of the sides that were traded, with the venue's fee for takers: "
        "shares × rate × (p(1 − p))^exponent.", columns("""
        universe integer row universe_id - The universe at whose freeze the book was captured.
        market integer row outcome__market_id - The market.
        outcome integer row outcome_id - The outcome.
        side text outcome__side - Its side.
        captured_at time - When it was captured, by the real clock.
        bids json - Levels from the highest price down, each a price and a number of shares.
        asks json - Levels from the lowest price up, as deep as the largest account of the run could reach.
        fee_rate decimal - Rate of the fee; empty where the venue states none.
        fee_exponent decimal - Exponent of the fee.
        fee_unknown boolean - Does the venue take a fee whose terms could not be read? Its trades have no figures.
    """), "markets.OrderBook", ("universe_id", "outcome_id"), batch_size=500,
        recomputed="market side",
    ),
)  # fmt: skip
