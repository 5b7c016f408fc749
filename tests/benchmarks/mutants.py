"""Twenty hand-made faults in the ledger, claims, settlement, scores, answers and filters: each must turn tests red.

    uv run --group test python -m tests.benchmarks.mutants [PART OF A NAME…]

Each fault is put into a copy of the project, where the tests named beside it run. Prints a line for each; exits 1 if
one survives. What "must die" means is kept here, so that tests can be made fewer without becoming weaker.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.databases import PROJECT

LEDGER, CLAIMS = "agents/services/ledger.py", "agents/services/claims.py"
RESOLUTIONS, SETTLEMENT = "agents/services/resolutions.py", "agents/services/settlement.py"
VERIFIER, RANK = "packages/arena_verifier/src/arena_verifier", "packages/forecast_rank/src/forecast_rank"


@dataclass(frozen=True)
class Mutant:
    """A fault: `old`, which stands once in a file, becomes `new`. `tests` are files under tests/."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "ledger: a sale takes the whole cost basis", LEDGER,
        "cost_basis = min(to_cents(position.cost_basis * fraction), position.cost_basis)",
        "cost_basis = position.cost_basis", ("agents/test_ledger.py",),
    ),
    Mutant(
        "ledger: a refund pays a dollar a share", LEDGER,
        "Settlement.Kind.REFUNDED: cost_basis,", "Settlement.Kind.REFUNDED: to_cents(shares),",
        ("season/test_settlement.py",),
    ),
    Mutant(
        "ledger: an effect is dated by the run's start", LEDGER,
        "return recorded + RESOLUTION", "return at", ("season/test_slow_models.py",),
    ),
    Mutant(
        "ledger: the least cash is bankrupt too", LEDGER,
        "agent.cash >= methodology.bankruptcy_cash", "agent.cash > methodology.bankruptcy_cash",
        ("agents/test_ledger.py",),
    ),
    Mutant(
        "claims: a lost lease still writes", CLAIMS,
        "filter(pk=self.task.pk, lease_id=self.lease_id, status=", "filter(pk=self.task.pk, status=",
        ("agents/test_claims.py",),
    ),
    Mutant(
        "claims: refusals are not counted", CLAIMS,
        ".filter(pk=task.pk, refusals__lte=refused_retries)", ".filter(pk=task.pk)",
        ("agents/test_claims.py", "season/test_decisions.py"),
    ),
    Mutant(
        "claims: calls of a dead worker stay open", CLAIMS,
        "        task.refresh_from_db()\n        _mark_unanswered_calls_lost(task)", "        task.refresh_from_db()",
        ("agents/test_claims.py",),
    ),
    Mutant(
        "settlement: the losers win", RESOLUTIONS,
        "if outcome_id == self.winner.pk else", "if outcome_id != self.winner.pk else", ("season/test_settlement.py",),
    ),
    Mutant(
        "settlement: a cohort ends while answers are sealed", SETTLEMENT,
        "~Exists(positions), ~Exists(claims), unanswered_cohorts()", "~Exists(positions), ~Exists(claims)",
        ("agents/test_envelopes.py",),
    ),
    Mutant(
        "settlement: a market is settled while answers are sealed", "agents/services/envelopes.py",
        "    if not answered.exists():\n        return set()", "    return set()", ("agents/test_envelopes.py",),
    ),
    Mutant(
        "scores: the sum in place of the mean", f"{RANK}/metrics/proper_scores.py",
        "return panel.sum_cells(brier_score(panel.probability, panel.outcome)) / panel.sizes",
        "return panel.sum_cells(brier_score(panel.probability, panel.outcome))",
        ("forecast_rank/metrics/test_proper_scores.py",),
    ),
    Mutant(
        "scores: a bet that lost counts as won", f"{VERIFIER}/scores.py",
        '"score": (confidence - won) ** 2', '"score": (confidence - 1) ** 2',
        ("scoring/exports/test_standalone_verifier.py",),
    ),
    Mutant(
        "answers: an instruction more", f"{VERIFIER}/decisions.py",
        "MAX_INSTRUCTIONS = 200", "MAX_INSTRUCTIONS = 201", ("arena_verifier/test_decisions.py",),
    ),
    Mutant(
        "answers: the least bet is refused", f"{VERIFIER}/instructions.py",
        "if amount < minimum:", "if amount <= minimum:", ("agents/test_ledger.py",),
    ),
    Mutant(
        "answers: a whole percent is a tenth", f"{VERIFIER}/forecasts.py",
        "return Decimal(number[1]).scaleb(-2)", "return Decimal(number[1]).scaleb(-1)",
        ("arena_verifier/test_forecasts.py",),
    ),
    Mutant(
        "answers: sums from .97 are made 1", f"{VERIFIER}/forecasts.py",
        'SUM_TOLERANCE = Decimal("0.02")', 'SUM_TOLERANCE = Decimal("0.03")', ("arena_verifier/test_forecasts.py",),
    ),
    Mutant(
        "filters: an answered task is public", "agents/letters.py",
        "return Q(status=Task.Status.ANSWERED) | (under_seal", "return (under_seal",
        ("agents/test_envelopes.py", "season/test_sealed_answers.py"),
    ),
    Mutant(
        "filters: no seal by the freeze", "agents/letters.py",
        "sealed_until__gt=now())", "sealed_until__lt=now())", ("season/test_two_worlds.py",),
    ),
    Mutant(
        "filters: any of several values is not heeded", "foundation/rest/filters.py",
        "return self.single.filter_any(qs, list(value)) if value else qs", "return qs",
        ("arena_site/test_api_matrix.py",),
    ),
    Mutant(
        "filters: a page repeats the last row", "foundation/rest/cursors.py",
        'lookup = "lt" if down != backwards else "gt"', 'lookup = "lte" if down != backwards else "gte"',
        ("arena_site/test_api_matrix.py",),
    ),
)  # fmt: skip
"""Ledger 4, claims 3, settlement 3, scores 2, answers 4, filters 4."""


def main(parts: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not parts or any(part in mutant.name for part in parts)]
    survivors = 0
    with TemporaryDirectory() as folder:
        project = _copy(Path(folder) / "project")
        sound = _run(project, {test for mutant in chosen for test in mutant.tests})
        if sound.returncode:
            raise RuntimeError(f"tests are red without any fault: {sound.stdout[-4000:]}")
        for mutant in chosen:
            begun_s = time.monotonic()
            with _faulty(project, mutant):
                is_dead = _run(project, mutant.tests).returncode == 1
            survivors += not is_dead
            word = "dies" if is_dead else "SURVIVES"
            print(f"{word:8} {time.monotonic() - begun_s:4.0f} s  {mutant.name}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} die")
    return 1 if survivors else 0


def _copy(folder: Path) -> Path:
    """The files under version control, as they are now, in a folder of their own."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (PROJECT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, folder / name, follow_symlinks=False)
    return folder


@contextmanager
def _faulty(project: Path, mutant: Mutant) -> Iterator[None]:
    """The project with a fault while the block runs. Raises ValueError unless what it replaces stands there once."""
    file = project / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} has {mutant.old!r} {text.count(mutant.old)} times, not once")
    file.write_text(text.replace(mutant.old, mutant.new))
    try:
        yield
    finally:
        file.write_text(text)


def _run(project: Path, tests: Collection[str]) -> subprocess.CompletedProcess[str]:
    """These tests, run in a project until one fails. Raises RuntimeError where none could run."""
    sources = os.pathsep.join(str(source) for source in project.glob("packages/*/src"))
    environment = os.environ | {"ARENA_TESTS": "all", "PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-x", *(f"tests/{test}" for test in tests)]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
