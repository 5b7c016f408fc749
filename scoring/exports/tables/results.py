"""Tables of the hash chains, prompt texts, leaderboards, boards of external agents and published boards."""

from agents.models import ChainLink, Envelope
from scoring.exports.dictionary import ArchiveTable, columns, record_table, report_columns
from scoring.models import PublishedBoard
from scoring.reports.agents import AGENTS_COLUMNS
from scoring.reports.forecasts import CONDITION_COLUMNS, FORECAST_COLUMNS
from scoring.reports.trading import TRADING_COLUMNS

CHAIN = record_table(ChainLink, "chain",
        "Links of the hash chains over all completed decisions and elicitations, over answers "
        "under seal, over published boards, and over archives up to this one.", """
        protocol sequence decision elicitation envelope call record record_sha256 previous sha256
    """, order=("protocol", "sequence"),
        chained="protocol sequence decision elicitation envelope call record record_sha256 previous "
        "sha256")  # fmt: skip
ENVELOPES = record_table(Envelope, "envelopes",
        "Answers that came while an external agent could still answer the same task: "
        "judged then, hashed into the chain, and opened when the seal had ended.", """
        id decision elicitation number call verdict nonce received_at sealed_until state opened_at sha256
    """, batch_size=200,
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
    """) + report_columns(TRADING_COLUMNS, """
        family rank rank_low rank_high cohorts total_value pnl return_percent return_se return_se_cohorts return_ci
        brier brier_ci bss_random bss_market win_rate win_rate_ci resolved_bets resolved_events cost_usd
        return_before_costs return_after_costs return_after_costs_ci vanished_share liquidation_value
        cohorts_with_books trades_without_book
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
    """) + report_columns(FORECAST_COLUMNS, """
        forecaster reference external rank rank_low rank_high ranked_by n forecasts coverage brier brier_se brier_ci log
        spherical accuracy alpha adjusted_brier average_return
    """) + columns("""
        figures json - The whole entry as published.
    """), recomputed="all but figures")  # fmt: skip
CONDITION_DIFFERENCES = ArchiveTable("condition_differences", "Paired differences between the conditions of one model "
        "on common questions.", report_columns(CONDITION_COLUMNS, """
        family condition_a condition_b n forecasts events difference interval p p_adjusted
    """), recomputed="all")  # fmt: skip
AGENTS_BOARD = ArchiveTable("leaderboard_agents", "The boards of external agents by track and protocol, models and "
        "baselines beside them on the same questions or cohorts.", columns("""
        track text - closed or open.
        protocol text - forecast or trading.
    """) + report_columns(AGENTS_COLUMNS, """
        forecaster external reference rank rank_low rank_high score score_ci ranked_by price_distance repeats_price
        answered asked coverage failed missed refused late brier brier_ci alpha alpha_ci cohorts total_value pnl
        win_rate resolved_bets
    """), recomputed="all")  # fmt: skip
PUBLISHED_BOARDS = record_table(PublishedBoard, "published_boards",
        "Every board that was published, as it stood at its instant: "
        "leaderboards of both protocols and boards of external agents.", """
        protocol track methodology arm category at
        link integer link__sequence - The link of the chain board in which it is recorded.
        entries report sha256
    """, order=("link__sequence", "pk"), batch_size=20, recomputed="all")  # fmt: skip
