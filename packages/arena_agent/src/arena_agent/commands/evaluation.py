"""`evaluate` scores an agent on tasks of the past, and prints a table for people."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arena_agent.commands import OK, REFUSED, CommandFailed

WIDTH = 116
"""Characters of the widest table: a narrower terminal wraps its lines, and no figure is cut."""


def evaluate_agent(options: argparse.Namespace) -> int:
    import tempfile

    from arena_agent.dataset import InvalidDataset
    from arena_agent.loading import UnusableAgent

    try:
        import forecast_rank  # noqa: F401 - the extra is named before any work is done
    except ImportError:
        raise CommandFailed("evaluate needs the extra: pip install 'arena-agent[evaluate]'", REFUSED) from None
    from arena_agent.download import DownloadFailed, open_dataset
    from arena_agent.evaluation import REPORT, NothingToScore, evaluate

    try:
        dataset = open_dataset(options.data)
        with tempfile.TemporaryDirectory(prefix="arena-agent-") as scratch, _progress("tasks") as progress:
            report = evaluate(
                options.file,
                dataset,
                options.out or Path(scratch),
                condition=options.condition,
                workers=options.workers,
                seconds=options.timeout,
                progress=progress,
            )
            if options.out is None:
                Path(REPORT).write_bytes(Path(scratch, REPORT).read_bytes())
    except (InvalidDataset, UnusableAgent) as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (NothingToScore, DownloadFailed, OSError) as error:
        raise CommandFailed(str(error)) from None
    if options.json:
        print(json.dumps(report, allow_nan=False))
    else:
        _print_report(report)
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


def _print_report(report: dict[str, Any]) -> None:
    """The figures of the agent and of the others as tables."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    names = report["names"] | {name: f"({name})" for name in report["references"]}
    condition = f", prompt condition {report['condition']}" if report["condition"] else ""
    everyone = {report["agent"]: report} | report["forecasters"] | report["references"]
    table = Table(
        Column("forecaster", no_wrap=True),
        "n",
        "coverage",
        "Brier",
        "95 % interval",
        "alpha",
        "95 % interval",
        "adjusted Brier",
        title=f"{report['agent']} beside the models on the same questions{condition}",
        caption="Brier: lower is better. Alpha, the market's Brier score less the forecaster's: higher is better.",
    )
    ranked = sorted(everyone, key=lambda name: (everyone[name]["brier"] is None, everyone[name]["brier"]))
    for name in ranked:
        row = everyone[name]
        style = "bold" if name == report["agent"] else None
        figures = [
            _figure(row[key]) for key in ("coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier")
        ]
        table.add_row(escape(names.get(name, name)), f"{row['n']:g}", *figures, style=style)
    console.print(table)
    for pair in report["pairs"]:
        first = pair["first"] == report["agent"]
        difference = pair["difference"] if first else -pair["difference"]
        rival = pair["second" if first else "first"]
        console.print(
            f"{report['agent']} against {names.get(rival, rival)}: {difference:+.4f} "
            f"on {pair['n']:g} common forecasts, p {_probability(pair['p_holm'])} (Holm)",
            markup=False,
        )
    for fault in report["faults"]["first"]:
        console.print(f"fault: {fault}", markup=False)
    console.print(f"{report['faults']['count']} faults. {report['caution']}")
    console.print(f"digest {report['digest']}")


def _probability(value: float | None) -> str:
    return "< 0.0001" if value is not None and value < 0.0001 else f"= {_figure(value)}"


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(_figure, value))
    return "–" if value is None else f"{value:.4f}"
