"""Tables of who competes, and of the markets and prices they saw."""

from scoring.exports.dictionary import Table, columns

COMPETITORS = (
    Table("families", "Competitors: stable slots, whatever model is behind them.", columns("""
        id integer row - The family.
        slug text - Its name for ever.
        display_name text - Its name as shown.
        provider text - Who makes the model.
        active boolean - Does it play from the next cohort on?
        external boolean - Is it somebody else's agent, ranked apart?
    """), "agents.Family"),
    Table("releases", "The exact models behind families.", columns("""
        id integer row - The release.
        family text family__slug - The family's slug.
        model_id text - As the gateway names it.
        display_name text - Its name as shown.
        price_prompt decimal usd - A prompt token.
        price_completion decimal usd - A completion token.
        effective_from time - From when on it stands behind the family.
    """), "agents.Release"),
    Table("cohorts", "Weekly competitions.", columns("""
        number integer - Its number.
        week_start time - Sunday 00:00 UTC of its first week.
        methodology text methodology__version - The rules it plays by.
        status text - active or completed.
        started_at time - When its agents got their balance.
        completed_at time - When its last position had settled.
    """), "cohorts.Cohort", ("number",)),
    Table("agents", "One family's release in one cohort, at its worth when the archive was made.", columns("""
        id integer row - The agent.
        cohort integer cohort__number - The cohort's number.
        family text family__slug - The family's slug.
        release integer row release_id - The release frozen into it.
        model_id text - The model asked.
        status text - active or bankrupt.
        starting_balance decimal usd cohort__methodology__starting_balance - What it began with.
        cash decimal usd - Cash now.
        positions_value decimal usd - Open positions at the last accepted prices.
        total_value decimal usd - Cash and positions.
        pnl decimal usd - Total less the starting balance.
        return_percent number - Profit as a percentage of the starting balance.
        brier number - Mean bet-implied Brier score; no proper score, since confidence is a share of cash.
        resolved_bets integer - Purchases on markets that resolved with a winner.
        win_rate number - The share of them whose side won.
    """), "agents.Agent", ("cohort__number", "pk")),
)  # fmt: skip

MARKETS = (
    Table("markets", "Questions on which shares are traded. Texts belong to their venues.", columns("""
        id integer row - The market.
        source text - Its venue.
        external_id text - The venue's id.
        slug text - The venue's short name.
        question text - What is asked.
        category text - The venue's category.
        event_id text - What markets of one event share.
        kind text - binary or multi.
        status text - active, closed, resolved or cancelled.
        closes_at time - Nominal end.
        closed_at time - When it was first seen closed.
        resolved_at time - When it was resolved or cancelled.
        winning_outcome integer row winning_outcome_id - The outcome that won.
    """), "markets.Market"),
    Table("outcomes", "Sides of markets.", columns("""
        id integer row - The outcome.
        market integer row market_id - Its market.
        index integer - Its place in the venue's list.
        side text - What a bet calls it.
        name text - What the venue calls it.
        token_id text - The venue's token.
        price decimal price - The last accepted price.
        price_at time - When it was accepted.
        price_source text - Where it came from.
        price_stale boolean - Is it an older one, for want of a better?
    """), "markets.Outcome"),
    Table("prices", "Every price that was looked at, and why it was accepted or not.", columns("""
        outcome integer row outcome_id - The outcome.
        observed_at time - When.
        price decimal price - What the rule arrived at.
        source text - Where that came from.
        stale boolean - Is it an older one?
        reason text - Why.
        midpoint decimal price - Middle of the book.
        gamma decimal price - The catalogue's price.
        bid decimal price - Best bid.
        ask decimal price - Best ask.
    """), "markets.PriceObservation"),
    Table("universes", "Frozen lists of markets and prices that all agents of a run saw.", columns("""
        id integer row - The universe.
        week_start time - Its week.
        methodology text - The methodology's version.
        frozen_at time - When.
        sha256 text sha - Of its entries.
    """), "markets.Universe"),
    Table("universe_entries", "Markets of universes, with their frozen prices.", columns("""
        universe integer row universe_id - The universe.
        position integer - Its place.
        market integer row market_id - The market.
        bettable boolean - May it be bet on, or is it only held?
        open boolean - Was it open at the freeze?
        prices json - Side to price, US dollars a share.
        sources json - Side to where its price came from.
    """), "markets.UniverseEntry", ("universe_id", "position")),
)  # fmt: skip
