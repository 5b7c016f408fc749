"""Brier scores of purchases."""

from collections.abc import Iterator

from forecast_rank.metrics.brier import brier_score

from scoring.exports.verification.archive_reader import Archive, mismatches


def check_bet_scores(archive: Archive) -> Iterator[str]:
    """Each purchase on a market with a winner has its Brier score, and no other trade has one."""
    scored = set()
    for score in archive.rows("brier_scores"):
        row = f"brier_scores: of trade {score['trade']}"
        if score["trade"] in scored:
            yield f"{row}: there are two"
        scored.add(score["trade"])
        trade, market = archive.trades.get(score["trade"]), archive.markets[score["market"]]
        if trade is None:
            if not archive.is_window:
                yield f"{row}: the trade is not in the archive"
            continue
        won, price = trade["outcome"] == market["winning_outcome"], float(trade["price"])
        if market["status"] != "resolved" or trade["kind"] != "BUY" or trade["market"] != score["market"]:
            yield f"{row}: a {trade['kind']} on market {trade['market']}; market {market['id']} is {market['status']}"
            continue
        confidence = trade["implied_confidence"]
        computed = {
            "agent": trade["agent"],
            "probability": confidence,
            "outcome": won,
            "score": float(brier_score(confidence, won)),
            "market_probability": price,
            "market_score": float(brier_score(price, won)),
        }
        yield from mismatches(row, score, computed)
    if archive.is_window:
        return
    for pk, trade in archive.trades.items():
        if trade["kind"] == "BUY" and archive.markets[trade["market"]]["status"] == "resolved" and pk not in scored:
            yield f"brier_scores: trade {pk} has none, although its market is resolved"
