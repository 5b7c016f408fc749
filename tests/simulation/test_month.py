"""The month in which everything breaks: a day of it keeps every rule, on PostgreSQL as the whole does."""

import subprocess
import sys

import pytest

from tests.databases import PROJECT


@pytest.mark.thorough
def test_first_day_of_the_month_keeps_every_rule_and_prints_its_figures() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.month", "--days", "1"]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures = [[cell.strip() for cell in line.split("│")[1:-1]] for line in ran.stdout.splitlines()]
    assert ["violations", "all", "0"] in [row[:3] for row in figures]
    assert ["", "verify_ledger", "1"] in [row[:3] for row in figures]
