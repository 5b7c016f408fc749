"""Worlds on the command line: `python -m tests.simulation.worlds 0-999 --workers 2` prints the steps of each red seed.

Each world is a fork of this small process, so that one that hangs or dies stops no other. With ARENA_TESTS_ON=postgres
they are played on PostgreSQL.
"""

import argparse
import gc
import logging
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

PATIENCE_S = 1200
"""How long a world may take until it counts as hanging."""


@dataclass(frozen=True)
class Played:
    """A world that was played: whether every rule held, what it printed, and its seconds of processor time."""

    seed: int
    is_sound: bool
    output: str
    seconds: float


def play_all(seeds: Sequence[int], workers: int, folder: Path, template: str | None) -> Iterator[Played]:
    """Each world as it ends."""
    waiting, running = list(reversed(seeds)), dict[int, int]()
    while waiting or running:
        while waiting and len(running) < workers:
            seed = waiting.pop()
            running[_fork(seed, folder, template)] = seed
        pid, status, usage = os.wait4(-1, 0)
        seed = running.pop(pid)
        output, modules = folder / f"{seed}.txt", folder / "modules"
        if modules.exists():  # so that later worlds start with them
            for module in modules.read_text().split():
                import_module(module)
            modules.unlink()
        yield Played(seed, status == 0, output.read_text(), usage.ru_utime + usage.ru_stime)


def _fork(seed: int, folder: Path, template: str | None) -> int:
    """The process in which a world is played."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    try:
        with (folder / f"{seed}.txt").open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        signal.alarm(PATIENCE_S)
        play(seed, folder, template)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def play(seed: int, folder: Path, template: str | None) -> None:
    """Plays a world in this process and prints its steps."""
    from pytest_httpserver import HTTPServer

    from tests.databases import database_copies
    from tests.faults.processes import NO_SANDBOX, CommandRunner, loaded_modules
    from tests.sandbox import Venue
    from tests.simulation.world import World
    from venue_sandbox.server import Addresses

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with HTTPServer(threaded=True) as server, database_copies(folder) as database:
        running = asdict(Addresses.at(server.port))
        addresses = NO_SANDBOX | {name: running[name] for name in ("gamma", "clob", "openrouter")}
        world = World(seed, CommandRunner(addresses, database, lambda: None, template), Venue(server))
        try:
            world.play(folder / f"archive-{seed}" if seed % 5 == 0 else None)
        finally:
            print(f"seed {seed}:", *world.steps, sep="\n")
            (folder / "modules").write_text("\n".join(loaded_modules()))


def seeds_of(text: str) -> range:
    """The seeds of `17` or `0-999`."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=seeds_of)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--template", help="the name of a migrated database")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    from tests.databases import database_copies
    from tests.faults.processes import NO_SANDBOX, CommandRunner

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(database_copies(folder))
        template = options.template or CommandRunner(NO_SANDBOX, database, lambda: None).migrated()
        gc.collect()
        gc.freeze()  # which a fork would copy at its first collection
        red = 0
        for played in play_all(options.seeds, options.workers, folder, template):
            print(f"seed {played.seed}: {'sound' if played.is_sound else 'RED'}, {played.seconds:.1f} s", flush=True)
            if not played.is_sound:
                red += 1
                print(played.output, flush=True)
    return int(red > 0)


if __name__ == "__main__":
    sys.exit(main())
