"""Rounds of random kills: `uv run python -m tests.benchmarks.kills [--rounds 200] [--postgres] [--seed 0]`.

Each round plays a Sunday by the real commands, killing about half of all tries at a random moment, and compares the
ledger with that of an undisturbed Sunday. Prints how many rounds ended in the undisturbed state; exit 1 if not all.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server instead of SQLite")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    if options.postgres:
        os.environ["ARENA_TESTS_ON"] = "postgres"
    import django

    django.setup()
    from rich.progress import track

    from tests.databases import DatabaseCopies, postgres_url
    from tests.faults.ledger_state import differences
    from tests.faults.processes import LINE_UP, CommandRunner, random_kills, sandbox

    dice = random.Random(options.seed)
    url = postgres_url() if options.postgres else "sqlite"
    with (
        sandbox() as addresses,
        tempfile.TemporaryDirectory() as folder,
        DatabaseCopies(url, Path(folder)) as database,
    ):
        arena = CommandRunner(addresses, database)
        prepared = arena.prepare(LINE_UP)
        undisturbed = arena.run_sunday(arena.database.fresh(prepared), lambda index, attempt: None)
        equal = 0
        for number in track(range(options.rounds), description="killing", disable=not sys.stderr.isatty()):
            name = arena.database.fresh(prepared)
            differ = differences(undisturbed, arena.run_sunday(name, random_kills(dice, longest_s=0.6)))
            arena.database.drop(name)
            equal += not differ
            if differ:
                print(f"round {number}: {', '.join(differ)} differ")
        arena.database.drop(prepared)
    server = "PostgreSQL" if options.postgres else "SQLite"
    print(f"{server}: {equal} of {options.rounds} rounds equal an undisturbed Sunday; {arena.kills} processes killed")
    return int(equal < options.rounds)


if __name__ == "__main__":
    raise SystemExit(main())
