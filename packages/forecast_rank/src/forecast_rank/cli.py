"""The command `forecast-rank`: a file of forecasts in, tables, JSON and pictures out."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from forecast_rank.api import rank
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.reading import FORMATS
from forecast_rank.ranking.rejections import TooFewForecasts
from forecast_rank.ranking.scores import METRICS
from forecast_rank.ranking.settings import INTERVALS, LIKE, InvalidSetting, Settings
from forecast_rank.readers.formats import PUBLISHED_FORMATS
from forecast_rank.reports import Progress, Report
from forecast_rank.sources import read

DESCRIPTION = (
    "Ranks the forecasters of FILE (CSV, Excel, Parquet or JSON Lines; one row per forecaster, question and option: "
    "forecaster, question, option, probability, outcome and optionally odds, no_odds, quote, event, category, made_at, "
    "closed_at, weight, exclusive; or question, outcome and a column for each forecaster)."
)
FAILED, BAD_USAGE = 1, 2
NARROWEST = 120
_READING = ("format", "strict", "fractional_outcomes", "normalise", "order", "columns")
_OPTIONS = (
    "metrics", "gamma", "bootstrap", "seed", "stream", "log_clip", "bins", "interval", "level", "min_questions",
    "pairs", "format", "strict", "fractional_outcomes", "normalise", "order", "columns",
    "allow_rejected", "like",
)  # fmt: skip

ProgressBar = Callable[[str], AbstractContextManager[Progress]]
"""Makes a progress bar of a title."""


class UsageError(ValueError):
    """The command cannot run as it was called; the message says why. The exit code is 2."""


def add_arguments(parser: Any) -> None:
    """Adds FILE and all options but `--json` to an argument parser."""
    usual = Settings()
    parser.add_argument(
        "files",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="- for standard input; may be compressed (.gz, .zst); several for formats that consist of several",
    )
    parser.add_argument(
        "--format",
        choices=[*FORMATS, *PUBLISHED_FORMATS],
        help="of FILE (default: by its content and suffix)",
    )
    parser.add_argument("--explain", action="store_true", help="print how FILE was understood, before the ranking")
    parser.add_argument(
        "--metrics",
        type=_names,
        default=usual.metrics,
        help=f"some of {','.join(METRICS)} (default: {','.join(usual.metrics)})",
    )
    parser.add_argument("--gamma", type=_names, default=usual.gammas, help="risk aversions, default: 0,0.5,1")
    parser.add_argument("--bootstrap", type=int, default=usual.bootstrap, metavar="N", help="resamples of events")
    parser.add_argument("--seed", type=int, default=usual.seed, help="of the resamples")
    parser.add_argument("--stream", type=int, default=usual.stream, metavar="N", help="questions per step of a curve")
    parser.add_argument(
        "--log-clip", type=float, default=usual.log_clip, metavar="P", help="lowest probability that is charged"
    )
    parser.add_argument("--bins", type=int, default=usual.bins, help="of the calibration")
    parser.add_argument("--interval", choices=INTERVALS, default=usual.interval, help="kind of bootstrap interval")
    parser.add_argument("--level", type=float, default=usual.level, help="of intervals and rank ranges")
    parser.add_argument(
        "--min-questions", type=int, default=usual.min_questions, metavar="N", help="that a forecaster needs for a rank"
    )
    parser.add_argument(
        "--pairs", type=int, default=usual.pairs, metavar="N", help="compare the first N forecasters in pairs"
    )
    parser.add_argument("--fractional-outcomes", action="store_true", help="allow outcomes between 0 and 1")
    parser.add_argument(
        "--normalise", action="store_true", help="divide probabilities by their sum where that is within 0.02 of 1"
    )
    parser.add_argument(
        "--order", type=_names, default=(), metavar="OPTIONS", help="all options in order, for ranked_probability"
    )
    parser.add_argument(
        "--columns",
        type=_names,
        default=(),
        metavar="COLUMN=HEADING",
        help="headings of columns that are not named after what they hold, such as question=date,forecaster=model",
    )
    parser.add_argument("--strict", action="store_true", help="exit with code 2 at the first row that is rejected")
    parser.add_argument("--allow-rejected", action="store_true", help="rank even if most rows are rejected")
    parser.add_argument("--like", choices=LIKE, help="use the definitions of that package, under its names")
    parser.add_argument("--out", type=Path, metavar="REPORT.json", help="write the whole report there")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="draw the pictures there")
    parser.add_argument("--plot-format", choices=["svg", "png"], default="svg")


def rank_files(options: Mapping[str, Any], progress_bar: ProgressBar, show: Callable[[str], object]) -> Report:
    """The report that the parsed `options` ask for; writes `--out` and `--plots`, and shows what `--explain` says.

    Raises
    ------
    UsageError
        For a setting out of range, an output path that cannot be written, or a file that cannot be read.
    TooFewForecasts
        If most rows are rejected without `--allow-rejected`, or none is left; nothing is written.
    """
    _check_outputs(options["out"], options["plots"])
    try:
        with progress_bar("ranking") as progress:
            source: Any = _source(options["files"])
            if options["explain"]:
                reading = {name: options[name] for name in _READING}
                source = read(source, **reading)
                show(source.explanation() + "\n")
            report = rank(source, progress=progress, **{name: options[name] for name in _OPTIONS})
    except UnreadableFile as error:
        raise UsageError(str(error)) from error
    except InvalidSetting as error:
        name, sign, why = str(error).partition(":")
        raise UsageError(f"--{name.replace('_', '-')}{sign}{why}") from error
    if options["out"] is not None:
        report.save(options["out"])
    if options["plots"] is not None:
        os.environ.setdefault("MPLBACKEND", "Agg")  # files need no display
        with progress_bar("drawing") as progress:
            report.plot(options["plots"], options["plot_format"], progress)
    return report


def terminal_text(report: Report) -> str:
    """The tables of the report at the width of the terminal, at least 120 characters."""
    return report.to_text(max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `forecast-rank`; returns the exit code: 0, 1 (too few usable rows) or 2 (bad usage)."""
    parser = argparse.ArgumentParser("forecast-rank", description=DESCRIPTION)
    add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the whole report as one line of JSON")
    options = vars(parser.parse_args(arguments))
    with quiet_end_of_pipe():
        return _rank_and_print(options)
    return 0


@contextmanager
def quiet_end_of_pipe() -> Iterator[None]:
    """A context that ends without an error when the reader of standard output has closed its pipe (`| head`)."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Without this the interpreter reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _rank_and_print(options: Mapping[str, Any]) -> int:
    try:
        report = rank_files(options, _progress_bar, partial(print, file=sys.stderr if options["json"] else None))
    except UsageError as error:
        print(f"forecast-rank: {error}", file=sys.stderr)
        return BAD_USAGE
    except TooFewForecasts as error:
        print(f"{file_names(options)}: {error}", file=sys.stderr)
        return FAILED
    print(json.dumps(report.to_dict(), allow_nan=False) if options["json"] else terminal_text(report))
    return 0


def file_names(options: Mapping[str, Any]) -> str:
    """The files as they were named on the command line."""
    return " ".join(map(str, options["files"]))


def _source(files: list[Path]) -> Path | list[Path]:
    return files[0] if len(files) == 1 else files


def _check_outputs(out: Path | None, plots: Path | None) -> None:
    """Raises UsageError if an output path cannot be written, before any long work."""
    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise UsageError(f"--out {out}: {'is a directory' if out.is_dir() else 'its directory does not exist'}")
    if plots is not None:
        try:
            plots.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--plots {plots}: {error.strerror}") from error


def _progress_bar(title: str) -> AbstractContextManager[Progress]:
    """A progress bar on standard error, invisible unless that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    @contextmanager
    def shown() -> Any:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(title, total=None)
            yield lambda count, total, caption: bar.update(
                task, completed=count, total=total, description=f"{title} {caption}"
            )

    return shown()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("name at least one")
    return names
