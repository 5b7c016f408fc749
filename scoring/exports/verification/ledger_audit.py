"""Verification of the ledger: the rules of archives, applied to the rows of the database."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial

from django.db import connection

from agents.models import Agent, Forecast, JournalEntry
from agents.services.fact_audit import verify_facts
from arena_verifier.answers import check_decision_answers, check_forecast_answers
from arena_verifier.chains import check_chains
from arena_verifier.envelopes import check_envelopes
from arena_verifier.ledger import check_journals, check_positions, check_trade_figures
from arena_verifier.portfolios import snapshot_sums
from arena_verifier.receipts import check_receipts
from arena_verifier.rows import Row, Tables, Violations, row_name, same, shortened
from arena_verifier.scores import check_origin, check_outcomes
from arena_verifier.searches import check_searches
from arena_verifier.texts import check_evidence, check_hashes_of_lists, check_shown_questions
from foundation.guards import unguarded
from foundation.row_hashes import rewritten_rows
from scoring.exports.verification.database_rows import DatabaseRows
from scoring.services.derived import comparisons
from scoring.services.published_boards import rewritten_boards

Check = Callable[[Tables, Violations], None]

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
    """Counts of what was verified, and one line per violation."""

    agents: int
    journal_rows: int
    forecasts: int
    chain_links: int
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


def verify_ledger(*, at: datetime, progress: Callable[[int, int], None] = lambda index, of: None) -> Audit:
    """Recomputes every balance, position, payout, forecast, chain link and derived row of the database.

    Each violation is one line that names the row, the account or task that it is of, and what it should hold.
    """
    tables = DatabaseRows()
    audit = Audit(
        agents=Agent.objects.count(),
        journal_rows=JournalEntry.objects.count(),
        forecasts=Forecast.objects.count(),
        chain_links=sum(length for length, _ in tables.heads().values()),
    )
    checks = ledger_checks(at, tables)
    for index, (name, check) in enumerate(checks.items()):
        progress(index, len(checks))
        with _unreadable_rows(audit.violations, name):
            audit.violations += check()
    return audit


def ledger_checks(at: datetime, tables: Tables | None = None) -> dict[str, Callable[[], Iterable[str]]]:
    """The checks of `verify_ledger` by what they are about; each returns a line for each violation."""
    tables = tables or DatabaseRows()
    return {
        **{subject: partial(violations_about, subject, tables) for subject in CHECKS},
        "facts": verify_facts,
        "hashes of rows": rewritten_rows,
        "published boards": rewritten_boards,
        **{str(model._meta.verbose_name_plural): compare for model, compare in comparisons(at).items()},
        "guards": _missing_guards,
    }


def violations_about(subject: str, tables: Tables | None = None) -> list[str]:
    """A line for each violation of the rules about one subject of `CHECKS`."""
    tables = tables or DatabaseRows()
    violations = LedgerViolations(tables)
    for check in CHECKS[subject]:
        check(tables, violations)
    return violations


def _missing_guards() -> Iterator[str]:
    for table in unguarded(connection):
        yield f"the database does not guard: {table}"


@contextmanager
def _unreadable_rows(violations: list[str], name: str) -> Iterator[None]:
    """Adds a line where a rewritten row can not even be read; the other checks go on."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        violations.append(f"{name}: a row holds what it never could: {type(error).__name__}: {error}")


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


CHECKS: dict[str, tuple[Check, ...]] = {
    "accounts": (check_trade_figures, check_journals, check_positions),
    "decisions": (check_decision_answers,),
    "forecasts": (
        check_hashes_of_lists, check_shown_questions, check_evidence, check_outcomes, _check_origins,
        check_searches, check_forecast_answers,
    ),
    "chains": (check_chains, check_envelopes),
    "receipts": (check_receipts,),
    "snapshots": (_check_snapshot_sums,),
}  # fmt: skip
"""The rules of the arena's verifier that hold for the database, by what they are about."""
