"""Verifies an archive of Forecaster Arena: python verify_arena.py DIR [--key PUBLIC_KEY]

Needs Python 3.11 and nothing else; its rules are those that the arena itself goes by. It reads the CSV files and checks

- the SHA-256 of every file, the hash chains over decisions, forecasts, boards and archives, and their signature;
- that answers under seal were opened once, with the effects that were judged and hashed when they came;
- the receipts of external agents: their chain and signatures, and that each answer is here as it was received;
- that prompts, universes and question sets are those whose hashes the chains hold;
- decisions, instructions, forecasts and their samples, and the searches behind them, against the raw answers;
- the ledger: trades, journals, positions, settlements, and the cash and value of every agent, now and in snapshots;
- the outcomes of questions, which follow from their markets;
- the returns after costs, by the captured order books;
- the Brier score of every bet and forecast, both leaderboards and the boards of external agents: ranks, means and
  standard errors, and of trading all intervals and rank ranges; the mean differences between conditions;
- every published board, by its hash in the chain, and the newest ones by these leaderboards.

docs/data.md of the arena describes each rule. Exit codes: 0 sound, 1 violations, 2 no archive or beyond a limit,
3 sound as far as it goes, but only a part (a cohort, or a window of time).
"""

import argparse
import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

from arena_verifier.agents_boards import check_agents_boards
from arena_verifier.answers import check_decision_answers, check_forecast_answers
from arena_verifier.chains import WEEKLY, check_chains, check_record
from arena_verifier.condition_differences import check_condition_differences
from arena_verifier.envelopes import check_envelopes
from arena_verifier.files import MAX_CELL, ArchiveTables, CsvArchive, UnreadableArchive, check_files
from arena_verifier.forecast_leaderboards import check_forecast_leaderboards
from arena_verifier.ledger import check_journals, check_positions, check_trades
from arena_verifier.order_books import check_after_costs, check_books
from arena_verifier.portfolios import check_agents, check_snapshots
from arena_verifier.published_boards import check_published_boards
from arena_verifier.receipts import check_receipts
from arena_verifier.rows import Violations
from arena_verifier.scores import check_bet_scores, check_forecast_scores, check_outcomes, check_prices
from arena_verifier.searches import check_searches
from arena_verifier.signatures import check_signature
from arena_verifier.texts import check_evidence, check_hashes_of_lists, check_prompts, check_shown_texts
from arena_verifier.trading_leaderboard import check_trading_leaderboard

LEFT = {
    "leaderboard_agents": "of forecasts rank_low, rank_high, score_ci, brier_ci, alpha_ci",
    "leaderboard_forecast": "rank_low, rank_high, brier_se, brier_ci, average_return, figures",
    "condition_differences": "interval, p, p_adjusted",
    "published_boards": "the tests in the report of the newest boards",
}
"""Columns that `verify_export` recomputes, and this program checks by the hash of their table alone."""
MAX_SHOWN = 20
OF_A_COHORT = ("decisions", "journal", "positions", "settlements", "snapshots", "trades", "brier_scores")


def check_selection(archive: ArchiveTables, violations: Violations) -> None:
    """A part holds no leaderboard, a window no row of another time, a cohort none of another cohort."""
    if archive.is_whole:
        return
    for table in ("leaderboard_trading", "leaderboard_forecast", "leaderboard_agents", "condition_differences",
                  "after_costs", "published_boards"):  # fmt: skip
        if next(archive.rows(table), None) is not None:
            violations.append(f"{table}: it has rows, and only an archive of everything has leaderboards")
    start, end, cohort = archive.selection["from"] or "", archive.selection["to"] or "~", archive.selection["cohort"]
    for table, column in WEEKLY.items():
        if table != "forecasts":  # those that were scored in the window are part of it
            for row in archive.rows(table):
                if row[column] and not start <= row[column] < end:
                    violations.append(f"{table}: a row of {row[column]} is outside the window")
    if cohort is None:
        return
    for table, column in (("agents", "cohort"), ("decisions", "cohort"), ("cohorts", "number")):
        if any(row[column] != cohort for row in archive.rows(table)):
            violations.append(f"{table}: a row is not of cohort {cohort}")
    for table in OF_A_COHORT:
        for row in archive.rows(table):
            if row["agent"] not in archive.by("agents"):
                violations.append(f"{table}: a row of agent {row['agent']} is not of cohort {cohort}")


CHECKS: dict[str, Callable[..., None]] = {
    "selection": check_selection, "chains": check_chains, "record": check_record, "anchor": check_signature,
    "receipts": check_receipts, "envelopes": check_envelopes,
    "prompts": check_prompts, "universes": check_hashes_of_lists, "shown texts": check_shown_texts,
    "evidence": check_evidence, "searches": check_searches,
    "decisions": check_decision_answers, "forecasts": check_forecast_answers,
    "prices": check_prices, "outcomes": check_outcomes, "trades": check_trades, "journals": check_journals,
    "positions": check_positions, "agents": check_agents, "snapshots": check_snapshots,
    "bet scores": check_bet_scores, "forecast scores": check_forecast_scores,
    "trading leaderboard": check_trading_leaderboard, "forecast leaderboards": check_forecast_leaderboards,
    "boards of agents": check_agents_boards, "conditions": check_condition_differences,
    "books": check_books, "after costs": check_after_costs, "published boards": check_published_boards,
}  # fmt: skip
OF_WHOLE_ACCOUNTS = ("journals", "positions", "agents")
"""Checks that need every row of an agent, which a window does not have."""
OF_EVERYTHING = ("trading leaderboard", "forecast leaderboards", "boards of agents", "conditions",
                 "after costs", "published boards")  # fmt: skip
MALFORMED = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, AssertionError, OSError,
             RecursionError, MemoryError, StopIteration, csv.Error)  # fmt: skip
"""Errors that forged files may lead to."""


def is_left_out(archive: ArchiveTables, check: str) -> bool:
    """Whether the rows that a check is about follow from rows that a part of the arena's data does not have."""
    return not archive.is_whole and (check in OF_EVERYTHING or (archive.is_window and check in OF_WHOLE_ACCOUNTS))


def verify(folder: Path, key: str | None = None) -> tuple[dict[str, Violations], list[str], bool]:
    """The violations of an archive by check, the checks that a part of one leaves out, and whether it is a part.

    Raises UnreadableArchive.
    """
    csv.field_size_limit(MAX_CELL)
    violations, left_out = {}, []
    try:
        archive = CsvArchive(folder)
        for name, check in {"files": check_files, **CHECKS}.items():
            if is_left_out(archive, name):
                left_out.append(name)
                continue
            violations[name] = Violations()
            options = {"key": key} if name == "anchor" else {}
            try:
                check(archive, violations[name], **options)
            except (*MALFORMED, UnreadableArchive) as error:
                violations[name].append(f"{name}: can not be checked: {str(error) or type(error).__name__}")
    except MALFORMED as error:
        raise UnreadableArchive(f"no archive that can be read: {type(error).__name__} {error}") from error
    return violations, left_out, not archive.is_whole


def main() -> int:
    parser = argparse.ArgumentParser(description="Verifies an archive of Forecaster Arena.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--key", help="the arena's public key, as published; else any key may have signed")
    arguments = parser.parse_args()
    try:
        violations, left_out, partial = verify(arguments.folder, arguments.key)
    except UnreadableArchive as refusal:
        print(refusal, file=sys.stderr)
        return 2
    for lines in violations.values():
        for line in lines[:MAX_SHOWN]:
            print(line)
        if len(lines) > MAX_SHOWN:
            print(f"… and {len(lines) - MAX_SHOWN} more of this check")
    for name in left_out:
        print(f"not proven: {name}: the rows that they follow from are not in this part of the arena's data")
    for table, columns in LEFT.items():
        print(f"left to verify_export: {table}: {columns} (checked here by the hash of the table alone)")
    total = sum(map(len, violations.values()))
    print(json.dumps({"checks": len(violations), "left_out": len(left_out), "violations": total}))
    return 1 if total else 3 if partial else 0


if __name__ == "__main__":
    sys.exit(main())
