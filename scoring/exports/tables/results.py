"""Tables of what both protocols share: the chain, texts of prompts, the leaderboards."""

from scoring.exports.dictionary import Table, columns

CHAIN = Table("chain", "Links of the hash chains over completed decisions and elicitations, all of them.", columns("""
        protocol text - trading or forecast.
        sequence integer - Its place.
        decision integer row decision_id - The decision.
        elicitation integer row elicitation_id - Or the elicitation.
        call integer row call_id - Whose prompt and answer the record holds.
        record_sha256 text sha - Of the canonical record.
        previous text sha - The link before it; 64 zeros before the first.
        sha256 text sha - Of `previous`, a line feed and `record_sha256`.
    """), "agents.ChainLink", ("protocol", "sequence"))  # fmt: skip
PROMPTS = Table("prompts", "Blocks and templates of prompts, each text once.", columns("""
        sha256 text sha - Of the text.
        kind text - system, user, markets or questions.
        of text - Which methodology (with its protocol), universe or sheet used it first.
        text text - The text.
    """), chunk=2)  # fmt: skip
BLOCKS = Table("blocks", "Which text of `prompts` a universe or a sheet of questions put into prompts.", columns("""
        kind text - markets (of a universe) or questions (of a sheet).
        id integer row - The universe or the sheet.
        sha256 text sha - The text.
    """), chunk=10)  # fmt: skip
TRADING_BOARD = Table("leaderboard_trading", "The trading board, over all methodologies and of each.", columns("""
        methodology text - The version; empty over all.
        family text - The family's slug.
        rank integer - By mean return; external agents have none.
        rank_low integer - Lowest rank it may hold.
        rank_high integer - Highest.
        cohorts integer - Played.
        total_value decimal usd - Mean over cohorts.
        pnl decimal usd - Sum over cohorts.
        return_percent number - Mean over cohorts, per cent.
        return_se number - Standard error.
        return_ci json - Student's t interval, 95 %.
        brier number - Bet-implied, pooled. Confidence is a share of cash: no proper score.
        brier_ci json - Drawn over events, 95 %.
        bss_random number - Skill against 0.25.
        bss_market number - Skill against the side's price.
        win_rate number - Share of resolved purchases that won.
        resolved_bets integer - Purchases on markets with a winner.
        cost_usd decimal usd - Of all calls.
    """))  # fmt: skip
FORECAST_BOARD = Table("leaderboard_forecast", "The boards of the forecast protocol.", columns("""
        arm text - priced or blind.
        methodology text - The version; empty over all.
        category text - Empty over all.
        forecaster text - Family's slug or reference.
        reference boolean - Is it a reference?
        external boolean - Is it somebody else's agent, ranked apart?
        rank integer - By Brier score; external agents have none.
        rank_low integer - Lowest rank it may hold.
        rank_high integer - Highest.
        n integer - Questions answered.
        forecasts integer - Forecasts scored.
        coverage number - Share of what was asked.
        brier number - Mean form.
        brier_se number - Standard error.
        brier_ci json - Drawn over events, 95 %.
        log number - Natural, clipped at 1e-6.
        spherical number - Spherical score.
        accuracy number - Of the top option.
        alpha number - The market's Brier score less its own.
        average_return json - Risk aversion to gross return per dollar.
        figures json - The whole entry as published.
    """))  # fmt: skip
