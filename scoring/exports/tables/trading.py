"""Tables of the trading protocol: decisions, calls, trades, positions, cash, snapshots and scores."""

from scoring.exports.dictionary import ArchiveTable, columns

TRADING_TABLES = (
    ArchiveTable("decisions", "Weekly decisions of agents.", columns("""
        id integer row - The decision.
        agent integer row agent_id - The agent.
        cohort integer cohort__number - The cohort's number.
        week integer - Decision week, from 1.
        universe integer row universe_id - The universe of its prompt.
        status text - claimed, answered (under seal), completed, failed or missed.
        action text - BET, SELL or HOLD.
        fallback boolean - A HOLD because no answer was usable?
        refusals integer - Well-formed answers without a valid instruction.
        reasoning text - The model's reasoning.
        error text - The last error.
        decided_at time - When the answer was recorded.
        nonce text - 32 random bytes in hex, part of its record in the chain.
    """), "agents.Decision", batch_size=200,
        recomputed="cohort",
        chained="agent week universe status action fallback refusals reasoning error decided_at nonce",
    ),
    ArchiveTable("calls", "Requests to models, of both protocols. The user message is its template filled with these "
        "blocks and the market or question block of `prompts`, then the retry note.", columns("""
        id integer row - The call.
        decision integer row decision_id - Its decision.
        elicitation integer row elicitation_id - The elicitation, of a forecast call.
        sequence integer - Its place among the calls of its decision or elicitation.
        attempt integer - Number of the attempt; transport retries share one.
        model text - The requested model.
        returned_model text - The model that answered.
        provider text - The provider that served it.
        quantization text - Of the model's weights, if stated.
        portfolio_block text - The PORTFOLIO block.
        positions_block text - The POSITIONS block.
        awaiting text - The block of positions awaiting resolution.
        retry_note text - The note added after an unusable answer.
        questions_block text - The QUESTIONS block, if only questions without an answer were asked again.
        parameters json - The request's parameters as sent; what the release ignores is not sent.
        prompt_sha256 text sha - Hash of the system message, a NUL and the user message.
        result text - The outcome of the call.
        late boolean - Answered after its claim had expired?
        raw_response text - The gateway's answer, byte for byte.
        finish_reason text - The model's reason for stopping.
        http_status integer - HTTP status of the answer.
        error text - The error.
        tokens_input integer - Prompt tokens.
        tokens_output integer - Completion tokens.
        tokens_reasoning integer - Reasoning tokens.
        cost_usd decimal usd - Cost.
        cost_source text - stated by the gateway, computed from tokens and price, or booked as the worst case.
        booked_usd decimal usd - Worst case that counted from the sending until the cost was known.
        reconciled_at time - When the gateway told the cost of a call that had stayed booked.
        searches integer - Searches that the gateway made for it; null where it had no search tool.
        results json - What searches showed the model: url, title and content of each result.
        search_cost_usd decimal usd - The part of the cost that is of searches; null where it is not stated apart.
        excluded text - Why its forecasts count on no board; empty if they do.
        latency_ms integer - Latency in milliseconds.
        sent_at time - Time of sending, by the real clock.
    """), "agents.ModelCall", batch_size=20,
        recomputed=(
            "portfolio_block positions_block awaiting retry_note questions_block prompt_sha256 searches results "
            "search_cost_usd excluded"
        ),
        chained=(
            "sequence attempt model returned_model provider quantization result raw_response "
            "finish_reason error"
        ),
    ),
    ArchiveTable("instructions", "Bets and sales that answers asked for, and whether they were executed.", columns("""
        call integer row call_id - The call.
        sequence integer - Its place in the answer.
        kind text - BET or SELL.
        payload json - The instruction as parsed.
        executed boolean - Was it executed?
        reason text - The reason for its rejection.
    """), "agents.Instruction",
        chained="call sequence kind payload executed reason",
    ),
    ArchiveTable("trades", "Purchases and sales.", columns("""
        id integer row - The trade.
        decision integer row decision_id - The decision.
        sequence integer - Its place in the decision.
        agent integer row agent_id - The agent.
        position integer row position_id - The position.
        market integer row market_id - The market.
        outcome integer row outcome_id - The outcome.
        side text outcome__side - Its side.
        kind text - BUY or SELL.
        shares decimal share - Number of shares.
        price decimal price - The universe's price.
        amount decimal usd - Amount paid or received.
        cost_basis decimal usd - Cost basis added or given up.
        realized_pnl decimal usd - Proceeds less cost basis.
        implied_confidence number - The amount as a share of the largest legal bet, at most 1.
        executed_at time - When the answer was recorded, at the prices of its universe.
    """), "agents.Trade",
        recomputed="agent market outcome side position price executed_at implied_confidence",
        chained="decision sequence kind shares amount cost_basis realized_pnl",
    ),
    ArchiveTable("positions", "Shares of one side of a market.", columns("""
        id integer row - The position.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        outcome integer row outcome_id - The outcome.
        status text - open, closed, settled or cancelled.
        shares decimal share - Shares held.
        cost_basis decimal usd - Cost basis of the shares held.
        realized_pnl decimal usd - Realized profit so far.
        opened_at time - Time of the first purchase.
        closed_at time - Time of the sale of the last share, or of settlement.
    """), "agents.Position",
        recomputed="all",
    ),
    ArchiveTable("settlements", "Payouts of positions in resolved or cancelled markets.", columns("""
        id integer row - The settlement.
        position integer row position_id - The position.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        kind text - won, lost or refunded.
        shares decimal share - Settled shares.
        cost_basis decimal usd - Cost basis of the settled shares.
        payout decimal usd - Amount paid out.
        realized_pnl decimal usd - Payout less cost basis.
        settled_at time - Time of settlement.
    """), "agents.Settlement",
        recomputed="all",
    ),
    ArchiveTable("reversals", "Corrections of wrong settlements.", columns("""
        id integer row - The reversal.
        position integer row position_id - The position.
        sequence integer - Its place among the position's reversals.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        kind text - won, lost or refunded: the corrected result.
        previous_payout decimal usd - The payout that was taken back.
        payout decimal usd - The corrected payout.
        journal_sequence integer entry__sequence - Place of its entry in the agent's journal.
        reason text - The reason.
        reversed_at time - Time of the correction.
    """), "agents.Reversal",
        recomputed="all but id reason",
    ),
    ArchiveTable("journal", "Changes of cash, one entry for each.", columns("""
        agent integer row agent_id - The agent.
        sequence integer - Its place in the agent's journal.
        kind text - deposit, buy, sell, payout, refund or reversal.
        amount decimal usd - Signed amount.
        balance decimal usd - Cash after the entry.
        trade integer row trade_id - Its trade.
        settlement integer row settlement_id - The settlement that moved the cash.
        occurred_at time - Time of the change.
    """), "agents.JournalEntry", ("agent_id", "sequence"),
        recomputed="all",
    ),
    ArchiveTable("snapshots", "Portfolio values on the ten-minute grid, thinned out with age.", columns("""
        agent integer row agent_id - The agent.
        taken_at time - Time on the grid.
        cash decimal usd - Cash.
        positions_value decimal usd - Open positions at the prices known by then.
        total_value decimal usd - Cash and positions.
        pnl decimal usd - Total less the starting balance.
        pnl_percent decimal percent - Profit as a percentage of the starting balance.
        brier number - Mean bet-sizing score so far.
        resolved_bets integer - Resolved purchases so far.
        open_positions integer - Number of open positions.
        stale_positions integer - Open positions valued at a stale price.
    """), "scoring.Snapshot",
        recomputed="all but agent taken_at",
    ),
    ArchiveTable("brier_scores", "The bet-sizing score of each purchase on a market with a winner.", columns("""
        trade integer row trade_id - The purchase.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        probability number - The implied confidence.
        outcome boolean - Did the side win?
        score number - Squared error of the implied confidence.
        market_probability number - The side's price at the trade.
        market_score number - Squared error of that price.
        resolved_at time - Time of the market's resolution.
        scored_at time - Time of scoring.
    """), "scoring.BrierScore",
        recomputed="all but scored_at",
    ),
)  # fmt: skip
