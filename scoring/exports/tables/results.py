"""Tables of the hash chains, prompt texts, leaderboards, boards of external agents and published boards."""

from scoring.exports.dictionary import ArchiveTable, columns

CHAIN = ArchiveTable("chain", "Links of the hash chains over all completed decisions and elicitations, over answers "
        "under seal, over published boards, and over archives up to this one.", columns("""
        protocol text - trading, forecast, board or archive.
        sequence integer - Its place in its chain, from 1.
        decision integer row decision_id - The decision.
        elicitation integer row elicitation_id - Or the elicitation.
        envelope integer row envelope_id - Or the envelope of an answer under seal; its task has a link of its own.
        call integer row call_id - The call whose prompt and answer are in the record.
        record json - The record of an archive, or of boards published together; others follow from their rows.
        record_sha256 text sha - Hash of the canonical record.
        previous text sha - Hash of the link before it; 64 zeros for the first.
        sha256 text sha - Hash of `previous`, a line feed and `record_sha256`.
    """), "agents.ChainLink", ("protocol", "sequence"),
        chained="protocol sequence decision elicitation envelope call record record_sha256 previous "
        "sha256")  # fmt: skip
ENVELOPES = ArchiveTable("envelopes", "Answers that came while an external agent could still answer the same task: "
        "judged then, hashed into the chain, and opened when the seal had ended.", columns("""
        id integer row - The envelope.
        decision integer row decision_id - The decision.
        elicitation integer row elicitation_id - Or the elicitation.
        number integer - Its place among the envelopes of its task, from 1.
        call integer row call_id - The call that holds the answer.
        verdict json - Columns of the task, and each instruction or forecast with its figures or reason, as judged.
        nonce text - 32 random bytes in hex, part of its record.
        received_at time - When the answer came; `decided_at` or `made_at` of its task if it counts.
        sealed_until time - The end of the seal.
        state text - sealed, opened or replaced (by a later answer of the agent).
        opened_at time - When it took effect.
        sha256 text sha - Hash of its canonical record.
    """), "agents.Envelope", batch_size=200,
        recomputed="verdict",
        chained="decision elicitation number call nonce received_at sealed_until sha256")  # fmt: skip
PROMPTS = ArchiveTable("prompts", "Templates and blocks of prompts, each text once.", columns("""
        sha256 text sha - Hash of the text.
        kind text - system, user, markets, questions or evidence.
        first_use text - The first methodology (with its protocol), universe or batch that uses it.
        text text - The text.
    """), batch_size=2, recomputed="sha256 text")  # fmt: skip
PROMPT_BLOCKS = ArchiveTable("blocks", "The text of `prompts` for each universe and question batch.", columns("""
        kind text - markets (of a universe), questions or evidence (of a batch).
        id integer row - The universe or the batch.
        sha256 text sha - Hash of the text.
    """), batch_size=10, recomputed="all")  # fmt: skip
TRADING_LEADERBOARD = ArchiveTable("leaderboard_trading", "The trading leaderboard by methodology.", columns("""
        methodology text - The version; empty over all.
        family text - The family's slug.
        rank integer - By mean return; null for external agents.
        rank_low integer - 1 plus the number of families that are significantly better.
        rank_high integer - Number of families less those that are significantly worse.
        cohorts integer - Cohorts played.
        total_value decimal usd - Mean total value over cohorts.
        pnl decimal usd - Profit, summed over cohorts.
        return_percent number percent - Mean return over cohorts, per cent.
        return_se number percent - Standard error of the mean return, with calendar weeks as clusters (CR3).
        return_se_cohorts number percent - s / √n over cohorts, as the sources have it.
        return_ci json percent - 95 % interval of the mean return over calendar weeks.
        brier number - Bet-sizing score, pooled over bets. Confidence is a share of cash: no proper score.
        brier_ci json - 95 % interval over events; never leaves 0 to 1; allows for one unseen event.
        bss_random number - 1 - brier / 0.25.
        bss_market number - 1 - brier / that of the prices paid.
        win_rate number - Share of resolved purchases that won.
        win_rate_ci json - 95 % interval over events; never leaves 0 to 1; allows for one unseen event.
        resolved_bets integer - Purchases on markets with a winner.
        resolved_events integer - Events of these; fewer than four give no interval.
        cost_usd decimal usd - Cost of all calls.
        return_before_costs number percent - Mean return at midpoints over the cohorts of which no book is missing.
        return_after_costs number percent - Mean return after costs over these cohorts.
        return_after_costs_ci json percent - 95 % interval of it over calendar weeks, as that of the return.
        vanished_share number - Share of the profit at midpoints over these cohorts that costs take; null without one.
        liquidation_value decimal usd - Mean cash with the holdings sold to the bids of the last books.
        cohorts_with_books integer - Cohorts of which no book is missing.
        trades_without_book integer - Trades of which no book was captured, or whose fee is unknown.
    """), recomputed="all")  # fmt: skip
AFTER_COSTS = ArchiveTable("after_costs", "Each agent's portfolio if its trades had walked the captured order books "
        "and paid the venue's fee.", columns("""
        agent integer row agent_id - The agent.
        return_after_costs number percent - Return after costs; null where a trade has no captured book or known fee.
        liquidation_value decimal usd - Cash with the holdings sold to the bids of the last books; null likewise.
        trades_without_book integer - Trades of which no book was captured, or whose fee is unknown.
    """), recomputed="all")  # fmt: skip
FORECAST_LEADERBOARD = ArchiveTable("leaderboard_forecast", "The leaderboards of the forecast protocol.", columns("""
        arm text - The prompt condition's name in the methodology.
        methodology text - The version; empty over all.
        category text - The category; empty over all.
        forecaster text - A family's slug, or the name of a reference.
        reference boolean - Is it a reference forecaster?
        external boolean - Is it an external agent, ranked apart?
        rank integer - By the score that `ranked_by` names; null for external agents.
        rank_low integer - Best rank within the 95 % range.
        rank_high integer - Worst rank within the 95 % range.
        ranked_by text - brier, or adjusted_brier where the models answered different questions.
        n integer - Questions answered.
        forecasts integer - Forecasts scored.
        coverage number - Share of resolved questions that were answered, each counted once.
        brier number - Brier score: mean over options, lower is better.
        brier_se number - Standard error of the Brier score.
        brier_ci json - Bootstrap interval of the Brier score over events, 95 %.
        log number - Mean natural logarithm of the probability of the outcome, clipped at 1e-6.
        spherical number - Spherical score.
        accuracy number - Share of questions whose most probable option happened.
        alpha number - The market's Brier score less the forecaster's.
        adjusted_brier number - Brier score adjusted for which questions were answered.
        average_return json - Gross return per dollar, by risk aversion.
        figures json - The whole entry as published.
    """), recomputed="all but figures")  # fmt: skip
CONDITION_DIFFERENCES = ArchiveTable("condition_differences", "Paired differences between the conditions of one model "
        "on common questions.", columns("""
        family text - The family's slug.
        condition_a text - The name of the one condition.
        condition_b text - The name of the other.
        n integer - Common questions; one asked on several days counts once.
        forecasts integer - Common forecasts, on the same question on the same day.
        events integer - Events of these questions.
        difference number - The Brier score under A less that under B.
        interval json - 95 % interval of the difference, corrected as p_adjusted is.
        p number - Two-sided p of no difference, events as clusters; null of fewer than two events.
        p_adjusted number - p corrected by Holm for all rows.
    """), recomputed="all")  # fmt: skip
AGENTS_BOARD = ArchiveTable("leaderboard_agents", "The boards of external agents by track and protocol, models and "
        "baselines beside them on the same questions or cohorts.", columns("""
        track text - closed or open.
        protocol text - forecast or trading.
        forecaster text - A family's slug, market or uniform.
        external boolean - Is it an agent of the track?
        reference boolean - Is it market or uniform?
        rank integer - By the figure of ranked_by, among the agents with enough answers; null for others.
        rank_low integer - Best rank within the 95 % range.
        rank_high integer - Worst rank within the 95 % range.
        score number - Forecasts: the adjusted Brier score. Trading: the mean return in per cent.
        score_ci json - 95 % interval of the score.
        ranked_by text - Forecasts: adjusted_brier, or alpha where the ranked agents answered different questions.
        price_distance number - Mean distance of the probabilities to the market's, over options and forecasts.
        repeats_price boolean - Is alpha surely within 0.005 of 0, and price_distance below 0.02?
        answered integer - Resolved questions answered, or completed decisions.
        asked integer - Those asked since the agent's first answer.
        coverage number - Share of these that was answered.
        failed integer - Tasks answered with nothing that could be carried out.
        missed integer - Tasks without an answer in time.
        refused integer - Refused answers.
        late integer - Tasks to which an answer came after the deadline.
        brier number - Brier score: mean over options, lower is better.
        brier_ci json - 95 % interval over events.
        alpha number - The market's Brier score less the forecaster's.
        alpha_ci json - 95 % interval over events.
        cohorts integer - Cohorts played.
        total_value decimal usd - Mean total value over cohorts.
        pnl decimal usd - Profit, summed over cohorts.
        win_rate number - Share of resolved purchases that won.
        resolved_bets integer - Purchases on markets with a winner.
    """), recomputed="all")  # fmt: skip
PUBLISHED_BOARDS = ArchiveTable("published_boards", "Every board that was published, as it stood at its instant: "
        "leaderboards of both protocols and boards of external agents.", columns("""
        protocol text - trading or forecast.
        track text - Of a board of external agents: closed or open; empty for leaderboards.
        methodology text - The version; empty over all.
        arm text - The prompt condition's name; empty for trading and for agents.
        category text - The category; empty over all.
        at time - The instant at which it was published.
        link integer link__sequence - The link of the chain board in which it is recorded.
        entries json - The rows of the board.
        report json - The tests of its pairs, of each forecaster against the market, and the numbers behind them.
        sha256 text sha - Hash of the canonical JSON of entries and report.
    """), "scoring.PublishedBoard", ("link__sequence", "pk"), batch_size=20, recomputed="all")  # fmt: skip
