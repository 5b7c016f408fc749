"""Tables of the trading protocol: decisions, calls, trades, positions, cash, snapshots and scores."""

from agents.models import Decision, Instruction, JournalEntry, ModelCall, Position, Reversal, Settlement, Trade
from scoring.exports.dictionary import record_table
from scoring.models import BrierScore, Snapshot

TRADING_TABLES = (
    record_table(Decision, "decisions", "Weekly decisions of agents.", """
        id agent cohort=cohort__number week universe status action fallback refusals reasoning error decided_at nonce
    """, batch_size=200,
        recomputed="cohort",
        chained="agent week universe status action fallback refusals reasoning error decided_at nonce",
    ),
    record_table(ModelCall, "calls",
        "Requests to models, of both protocols. The user message is its template filled with these "
        "blocks and the market or question block of `prompts`, then the retry note.", """
        id decision elicitation sequence attempt model returned_model provider quantization portfolio_block
        positions_block awaiting retry_note questions_block parameters prompt_sha256 result late raw_response
        finish_reason http_status error tokens_input tokens_output tokens_reasoning cost_usd cost_source booked_usd
        reconciled_at searches results search_cost_usd excluded latency_ms sent_at
    """, batch_size=20,
        recomputed=(
            "portfolio_block positions_block awaiting retry_note questions_block prompt_sha256 searches results "
            "search_cost_usd excluded"
        ),
        chained=(
            "sequence attempt model returned_model provider quantization result raw_response "
            "finish_reason error"
        ),
    ),
    record_table(Instruction, "instructions",
        "Bets and sales that answers asked for, and whether they were executed.", """
        call sequence kind payload executed reason
    """,
        chained="call sequence kind payload executed reason",
    ),
    record_table(Trade, "trades", "Purchases and sales.", """
        id decision sequence agent position market outcome side=outcome__side kind shares price amount cost_basis
        realized_pnl implied_confidence executed_at
    """,
        recomputed="agent market outcome side position price executed_at implied_confidence",
        chained="decision sequence kind shares amount cost_basis realized_pnl",
    ),
    record_table(Position, "positions", "Shares of one side of a market.", """
        id agent market outcome status shares cost_basis realized_pnl opened_at closed_at
    """,
        recomputed="all",
    ),
    record_table(Settlement, "settlements", "Payouts of positions in resolved or cancelled markets.", """
        id position agent market kind shares cost_basis payout realized_pnl settled_at
    """,
        recomputed="all",
    ),
    record_table(Reversal, "reversals", "Corrections of wrong settlements.", """
        id position sequence agent market kind previous_payout payout
        journal_sequence integer entry__sequence - Place of its entry in the agent's journal.
        reason reversed_at
    """,
        recomputed="all but id reason",
    ),
    record_table(JournalEntry, "journal", "Changes of cash, one entry for each.", """
        agent sequence kind amount balance trade settlement occurred_at
    """, order=("agent_id", "sequence"),
        recomputed="all",
    ),
    record_table(Snapshot, "snapshots", "Portfolio values on the ten-minute grid, thinned out with age.", """
        agent taken_at cash positions_value total_value pnl
        pnl_percent decimal percent - Profit as a percentage of the starting balance.
        brier resolved_bets open_positions stale_positions
    """,
        recomputed="all but agent taken_at",
    ),
    record_table(BrierScore, "brier_scores", "The bet-sizing score of each purchase on a market with a winner.", """
        trade agent market probability outcome score market_probability market_score resolved_at scored_at
    """,
        recomputed="all but scored_at",
    ),
)  # fmt: skip
