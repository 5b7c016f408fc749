"""Tables of decisions, and of the money they moved."""

from scoring.exports.dictionary import Table, columns

DECISIONS = (
    Table("decisions", "What agents decided, week by week.", columns("""
        id integer row - The decision.
        agent integer row agent_id - The agent.
        cohort integer cohort__number - The cohort's number.
        week integer - Decision week, from 1.
        universe integer row universe_id - What it saw.
        status text - claimed, completed, failed or missed.
        action text - BET, SELL or HOLD.
        fallback boolean - A HOLD because no answer could be used?
        refusals integer - Well-formed answers of which nothing could be carried out.
        reasoning text - What the model said.
        error text - What went wrong.
        decided_at time - The instant of the run.
    """), "agents.Decision", chunk=200),
    Table("calls", "Every request to a model, of both protocols. The user message is its template filled with these "
        "blocks, the market or question block of `prompts`, and the retry note at its end.", columns("""
        id integer row - The call.
        decision integer row decision_id - The decision it asked for.
        elicitation integer row elicitation_id - Or the elicitation.
        sequence integer - Its place among the task's calls.
        attempt integer - Transport retries share one.
        model text - The model asked.
        returned_model text - The model that answered.
        provider text - Who served it.
        portfolio_block text - The PORTFOLIO block.
        positions_block text - The POSITIONS block.
        awaiting text - Positions awaiting resolution.
        retry_note text - What was added after a bad answer.
        prompt_sha256 text sha - Of the system message, a NUL and the user message.
        result text - What became of it.
        late boolean - Answered after its claim was lost?
        raw_response text - The gateway's answer, byte for byte.
        finish_reason text - Why the model stopped.
        http_status integer - Of the answer.
        error text - What was wrong.
        tokens_input integer - Prompt tokens.
        tokens_output integer - Completion tokens.
        tokens_reasoning integer - Reasoning tokens.
        cost_usd decimal usd - What it cost.
        cost_stated boolean - Did the gateway name the cost?
        latency_ms integer - Milliseconds.
        sent_at time - On the real clock.
    """), "agents.ModelCall", chunk=20),
    Table("instructions", "Bets and sales that answers asked for, and their fate.", columns("""
        call integer row call_id - The call.
        sequence integer - Its place in the answer.
        kind text - BET or SELL.
        payload json - As it was read.
        executed boolean - Was it carried out?
        reason text - Why not.
    """), "agents.Instruction"),
    Table("trades", "Purchases and sales.", columns("""
        id integer row - The trade.
        decision integer row decision_id - The decision.
        sequence integer - Its place in the decision.
        agent integer row agent_id - The agent.
        position integer row position_id - The position.
        market integer row market_id - The market.
        outcome integer row outcome_id - The outcome.
        side text outcome__side - Its side.
        kind text - BUY or SELL.
        shares decimal share - How many.
        price decimal price - The frozen price.
        amount decimal usd - Paid or received.
        cost_basis decimal usd - Added or given up.
        realized_pnl decimal usd - Proceeds less cost basis.
        implied_confidence number - The amount as a share of the largest legal bet, at most 1.
        executed_at time - The instant of the run.
    """), "agents.Trade"),
    Table("positions", "Shares of one side of a market.", columns("""
        id integer row - The position.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        outcome integer row outcome_id - The outcome.
        status text - open, closed, settled or cancelled.
        shares decimal share - Held now.
        cost_basis decimal usd - Of these.
        realized_pnl decimal usd - So far.
        opened_at time - First purchase.
        closed_at time - Sold out or settled.
    """), "agents.Position"),
    Table("settlements", "Ends of positions whose market ended.", columns("""
        id integer row - The settlement.
        position integer row position_id - The position.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        kind text - won, lost or refunded.
        shares decimal share - That ended.
        cost_basis decimal usd - Of these.
        payout decimal usd - Paid.
        realized_pnl decimal usd - Payout less cost basis.
        settled_at time - When.
    """), "agents.Settlement"),
    Table("reversals", "Settlements that proved wrong, made good.", columns("""
        id integer row - The reversal.
        position integer row position_id - The position.
        sequence integer - Its place among the position's reversals.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        kind text - won, lost or refunded: the end it should have had.
        taken_back decimal usd - What had been paid.
        payout decimal usd - What should have been.
        journal_sequence integer entry__sequence - Its entry's place in the agent's journal.
        reason text - Why.
        reversed_at time - When.
    """), "agents.Reversal"),
    Table("journal", "Every change of cash.", columns("""
        agent integer row agent_id - The agent.
        sequence integer - Its place in the agent's journal.
        kind text - deposit, buy, sell, payout, refund or reversal.
        amount decimal usd - Signed.
        balance decimal usd - Cash after it.
        trade integer row trade_id - The trade behind it.
        settlement integer row settlement_id - Or the settlement.
        occurred_at time - When.
    """), "agents.JournalEntry", ("agent_id", "sequence")),
    Table("snapshots", "Portfolios on the ten-minute grid; old ones are rolled up.", columns("""
        agent integer row agent_id - The agent.
        taken_at time - When.
        cash decimal usd - Cash.
        positions_value decimal usd - At prices known by then.
        total_value decimal usd - Both.
        pnl decimal usd - Total less the starting balance.
        pnl_percent decimal - Of the starting balance.
        brier number - Mean bet-implied Brier score so far.
        resolved_bets integer - So far.
        open_positions integer - Held.
        stale_positions integer - Of these, at an old price.
    """), "scoring.Snapshot"),
    Table("brier_scores", "The bet-implied Brier score of each purchase on a market with a winner.", columns("""
        trade integer row trade_id - The purchase.
        agent integer row agent_id - The agent.
        market integer row market_id - The market.
        probability number - The implied confidence.
        outcome boolean - Did the side win?
        score number - Squared error.
        market_probability number - The side's price at the trade.
        market_score number - Its squared error.
        resolved_at time - When the market resolved.
        scored_at time - When this was scored.
    """), "scoring.BrierScore"),
)  # fmt: skip
