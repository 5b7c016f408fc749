"""Verification of the ledger: the rules of archives, applied to the rows of the database."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agents.models import Agent, Forecast, JournalEntry
from agents.services.fact_audit import submissions_without_receipt
from arena_verifier.answers import check_forecast_answers
from arena_verifier.chains import check_chains
from arena_verifier.envelopes import check_envelopes
from arena_verifier.ledger import check_journals, check_positions, check_trade_figures
from arena_verifier.portfolios import snapshot_sums
from arena_verifier.receipts import check_receipts
from arena_verifier.rows import Row, Tables, Violations, row_name, same, shortened
from arena_verifier.scores import check_origin, check_outcomes
from arena_verifier.searches import check_searches
from arena_verifier.texts import check_evidence, check_hashes_of_lists, check_shown_questions
from scoring.exports.verification.database_rows import DatabaseRows

ROW_NAMES = {
    "agents": "", "journal": "journal row {id} (no. {sequence}) ", "positions": "position {id} ({status}) ",
    "question_batches": "question batch {id}: ", "question_options": "question {id}: ",
    "reversals": "reversal {id} (no. {sequence}) ", "settlements": "settlement {id} ({kind}) ",
    "snapshots": "snapshot at {taken_at} ", "trades": "trade {id} ({kind}) ",
}  # fmt: skip
"""How lines name a row, by its table; else as in an archive."""
WORDS = {
    "is not that of its markets": "its options' ends are not those of its markets",
    "its block is not what its questions make": "its block is not what its entries make",
}


@dataclass(slots=True)
class Audit:
    agents: int = 0
    journal_rows: int = 0
    violations: list[str] = field(default_factory=list)


class LedgerViolations(Violations):
    """Violations that name the account or the task that a row is of."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self.tables = tables

    def note(self, table: str, row: Row, words: str) -> None:
        name = ROW_NAMES[table].format(**row) if table in ROW_NAMES else f"{row_name(table, row)} "
        self.append(f"{self._owner(table, row)}{name}{WORDS.get(words, words)}")

    def differ(self, table: str, row: Row, figures: Row) -> None:
        if figures.items() <= row.items():
            return
        for name, value in figures.items():
            if same(row[name], value):
                continue
            if (table, name) == ("journal", "amount"):
                self.note(table, row, f"moves {row[name]}, its {row['kind']} says {value}")
            elif (table, name) == ("settlements", "kind"):
                self.note(table, row, f"over {row['payout']} should be {value}")
            else:
                stored, computed = shortened(row[name]), shortened(value)
                self.note(table, row, f"has {name} {stored}, the rows that it follows from make {computed}")

    def _owner(self, table: str, row: Row) -> str:
        """The account of a row of the ledger, or of the decision that a link is of; the task of a forecast's."""
        agent = row["id"] if table == "agents" else row.get("agent")
        if table in ("calls", "chain") and row["decision"] is not None:
            agent = self.tables.by("decisions").get(row["decision"], {}).get("agent")
        task = row["id"] if table == "elicitations" else row.get("elicitation")
        if task is not None and table in ("calls", "chain", "elicitations", "forecasts"):
            return f"{self.tables.by('elicitations').get(task, {}).get('family')} (elicitation {task}): "
        if table == "decisions" or agent not in self.tables.by("agents"):
            return ""
        account = self.tables.by("agents")[agent]
        return f"{account['family']} in cohort {account['cohort']} (agent {agent}): "


def verify_ledger(progress: Callable[[int, int], None] = lambda index, of: None, tables: Tables | None = None) -> Audit:
    """Checks every account. Each violation is one line that names the agent, the row and the amounts."""
    tables = tables or DatabaseRows()
    audit = Audit(agents=Agent.objects.count(), journal_rows=JournalEntry.objects.count())
    checks = (check_trade_figures, check_journals, check_positions)
    for index, check in enumerate(checks):
        progress(index, len(checks))
        audit.violations += _lines(check, tables)
    return audit


def verify_forecasts(tables: Tables | None = None) -> tuple[int, list[str]]:
    """How many forecasts there are, and a line for each violation of question sets, outcomes and answers."""
    tables = tables or DatabaseRows()
    violations = []
    for check in (
        check_hashes_of_lists, check_shown_questions, check_evidence, check_outcomes, _check_origins,
        check_searches, check_forecast_answers,
    ):  # fmt: skip
        violations += _lines(check, tables)
    return Forecast.objects.count(), violations


def verify_chain(tables: Tables | None = None) -> tuple[int, list[str]]:
    """How many links the chains have, and a line for each violation that names its row."""
    tables = tables or DatabaseRows()
    violations = [*_lines(check_chains, tables), *_lines(check_envelopes, tables)]
    return sum(length for length, _ in tables.heads().values()), violations


def verify_snapshots(tables: Tables | None = None) -> list[str]:
    """A line for each snapshot whose cash the agent did not have then, or whose profit is not what its total makes."""
    return _lines(_check_snapshot_sums, tables or DatabaseRows())


def _check_snapshot_sums(tables: Tables, violations: Violations) -> None:
    """The cash of each snapshot is that of a moment of its account, and its profit what its total makes."""
    times: dict[int, list[str]] = defaultdict(list)
    balances: dict[int, list[Decimal]] = defaultdict(list)
    for entry in tables.rows("journal"):
        times[entry["agent"]].append(entry["occurred_at"])
        balances[entry["agent"]].append(entry["balance"])
    for snapshot in tables.rows("snapshots"):
        violations.differ("snapshots", snapshot, snapshot_sums(tables, snapshot))
        at, agent = snapshot["taken_at"], snapshot["agent"]
        first, end = max(bisect_left(times[agent], at) - 1, 0), bisect_right(times[agent], at)
        if snapshot["cash"] not in balances[agent][first:end]:
            violations.note("snapshots", snapshot, f"has cash {snapshot['cash']}, its journal another")


def _check_origins(tables: Tables, violations: Violations) -> None:
    """Each forecast agrees with its elicitation, and with the question of its entry."""
    for forecast in tables.rows("forecasts"):
        check_origin(tables, forecast, violations)


def verify_receipts(tables: Tables | None = None) -> list[str]:
    """A line for each violation of the register of receipts, and each accepted answer that is not in it."""
    return [*_lines(check_receipts, tables or DatabaseRows()), *submissions_without_receipt()]


def _lines(check: Callable[[Any, Any], None], tables: Tables) -> list[str]:
    violations = LedgerViolations(tables)
    check(tables, violations)
    return violations
