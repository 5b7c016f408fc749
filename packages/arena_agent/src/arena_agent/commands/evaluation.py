"""`evaluate` scores an agent on tasks of the past, and prints a table for people."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from arena_agent.commands import OK, REFUSED, CommandFailed


def evaluate_agent(options: argparse.Namespace) -> int:
    from arena_agent.dataset import InvalidDataset
    from arena_agent.loading import UnusableAgent

    try:
        import forecast_rank  # noqa: F401 - the extra is named before any work is done
    except ImportError:
        raise CommandFailed("evaluate needs the extra: pip install 'arena-agent[evaluate]'", REFUSED) from None
    from arena_agent.api import evaluate
    from arena_agent.arena_api import AccessDenied
    from arena_agent.download import DownloadFailed
    from arena_agent.evaluation import REPORT, NothingToScore, report_text

    try:
        with _progress("tasks") as progress:
            report = evaluate(
                options.file,
                options.data,
                url=options.url,
                condition=options.condition,
                workers=options.workers,
                timeout=options.timeout,
                out=options.out,
                progress=progress,
            )
        if options.out is None:
            Path(REPORT).write_text(report_text(report), encoding="utf-8")
    except (InvalidDataset, UnusableAgent) as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (NothingToScore, DownloadFailed, AccessDenied, OSError) as error:
        raise CommandFailed(str(error)) from None
    if options.json:
        print(json.dumps(report, allow_nan=False))
    else:
        print(report)
        print(f"the report is in {Path(options.out or '.', REPORT)}")
    return OK


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int], None]]:
    """A count on standard error, invisible unless that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.completed} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda count: bar.update(task, completed=count)
