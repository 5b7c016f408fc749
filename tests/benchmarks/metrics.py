"""How fast the scoring suite is beside pm_rank 0.3.1: `uv run python -m tests.benchmarks.metrics`.

Makes 50 forecasters' 850,000 forecasts of 20,000 questions (2.4 million rows) from a seed, gives both the same data,
one after the other on the same machine, and prints seconds and ratios; then the `rank` command on a file of it, with
all metrics and 1,000 resamples, at three sizes. The package is installed for the purpose into a virtual environment
that is thrown away (`--venv DIR` keeps one). `--irt` times its variational IRT too, which installs PyTorch. Its
bootstrap and IRT are run in part and scaled, as both are linear in resamples and steps.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from forecast_rank.metrics.panel import Panel
from tests.forecast_rank.panels import synthetic

PACKAGE = ("pm-rank==0.3.1", "pydantic==2.14.3")
FOR_IRT = ("torch==2.13.0", "pyro-ppl==1.9.2")
SIDE = Path(__file__).with_name("pm_rank_side.py")
ROOT = Path(__file__).resolve().parents[2]
TIMES = 3
BARS = {
    "loading": 15,
    "brier": 15,
    "log": 15,
    "spherical": 15,
    "weighted brier": 15,
    "average return 0": 20,
    "average return 0.5": 20,
    "return stream": 20,
    "calibration": 10,
    "calibration by count": 4,
    "bradley_terry": 30,
    "bootstrap": 150,
    "irt": 5,
}
"""How many times as fast as the package the suite should be."""


def rounded_panel(forecasters: int, questions: int, seed: int) -> Panel:
    """Forecasts as people write them: probabilities of four digits that sum to 1, prices in whole cents."""
    panel = synthetic(forecasters, questions, seed).panel
    probabilities = np.round(panel.probability, 4)
    top = np.flatnonzero(probabilities == panel.spread(panel.max_cells(probabilities)))
    owner = panel.cell_forecast[top]
    lead = top[np.diff(owner, prepend=-1) > 0]
    probabilities[lead] = np.round(probabilities[lead] + 1 - panel.sum_cells(probabilities), 4)
    panel.probability[:] = probabilities
    panel.odds[:] = np.clip(np.round(panel.odds, 2), 0.01, 0.99)
    panel.no_odds[:] = np.clip(np.round(panel.no_odds, 2), 0.01, 0.99)
    return panel


def write_long_form(panel: Panel, path: Path) -> None:
    """The panel in long form, as CSV or Parquet by the suffix."""
    import polars as pl

    questions, of_cell = panel.questions, panel.cell_forecast
    question = panel.question[of_cell]
    closed = pl.Series((questions.closed_at[question] * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    rows = pl.DataFrame(
        {
            "forecaster": pl.Series(panel.forecasters).gather(panel.forecaster[of_cell]),
            "question": pl.Series(questions.names).gather(question),
            "option": pl.Series(questions.option_names).gather(panel.cell_option),
            "probability": panel.probability,
            "outcome": panel.outcome.astype(np.int8),
            "odds": panel.odds,
            "no_odds": panel.no_odds,
            "category": pl.Series(questions.category_names).gather(questions.category[question]),
            "closed_at": closed.dt.to_string("%Y-%m-%dT%H:%M:%SZ"),
        }
    )
    {".csv": rows.write_csv, ".parquet": rows.write_parquet}[path.suffix](path)


NOWHERE = "postgres://nobody@127.0.0.1:1/nowhere"
"""A database that is not there: `rank` needs none."""


def suite_seconds(panel: Panel, metrics: list[str]) -> Iterator[tuple[str, float]]:
    """Seconds of each of the suite's `wanted` metrics on a panel, the median of three; of IRT one."""
    from forecast_rank.metrics.bradley_terry import pool_weights
    from forecast_rank.metrics.calibration import ece
    from forecast_rank.metrics.irt import fit_irt
    from forecast_rank.metrics.proper_scores import brier, log_score, spherical
    from forecast_rank.metrics.returns import average_return, return_stream
    from forecast_rank.metrics.uncertainty import bootstrap_means, event_sums, percentile_interval, resample_counts

    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(panel.questions))
    scores = brier(panel)

    def bootstrap() -> object:
        sums = event_sums(panel, scores)
        return percentile_interval(bootstrap_means(sums, resample_counts(sums.sums.shape[1])))

    def returns(gamma: float) -> object:
        return panel.forecaster_means(average_return(panel, gamma))

    def calibration(kind: Literal["width", "count"]) -> object:
        panel._shared.clear()  # else only the first of three would bin the pairs
        return ece(panel, kind=kind)

    parts: dict[str, Callable[[], object]] = {
        "brier": lambda: panel.forecaster_means(brier(panel)),
        "log": lambda: panel.forecaster_means(log_score(panel, 0.01)),
        "spherical": lambda: panel.forecaster_means(spherical(panel)),
        "weighted brier": lambda: panel.forecaster_means(brier(panel), panel.weight * weights[panel.question]),
        "average return 0": lambda: returns(0),
        "average return 0.5": lambda: returns(0.5),
        "return stream": lambda: return_stream(panel, average_return(panel, 0), max(1, len(panel.questions) // 200)),
        "calibration": lambda: calibration("width"),
        "calibration by count": lambda: calibration("count"),
        "bradley_terry": lambda: pool_weights(panel),
        "bootstrap": bootstrap,
        "irt": lambda: fit_irt(panel),
    }
    for name in [name for name in parts if name in metrics]:
        spent = []
        for _ in range(1 if name == "irt" else TIMES):
            began = time.perf_counter()
            parts[name]()
            spent.append(time.perf_counter() - began)
        yield name, median(spent)


def loading_cost(path: Path) -> dict[str, float]:
    """Seconds and peak MiB of reading a file in a process of its own."""
    code = (
        "import json, sys, time; from forecast_rank.ranking.forecasts import read_forecasts;"
        "began = time.perf_counter();"
        "reading = read_forecasts(sys.argv[1]); spent = time.perf_counter() - began; assert not reading.rejected;"
        "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0];"  # ru_maxrss begins at the parent's
        "print(json.dumps({'seconds': spent, 'mib': int(peak) / 1024}))"
    )
    run = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=True, capture_output=True, text=True)
    return dict(json.loads(run.stdout))


def rank_cost(path: Path) -> tuple[float, float, float, dict[str, Any]]:
    """Seconds, processor seconds, peak MiB and report of `rank` with all metrics and 1,000 resamples on a file."""
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        command = [sys.executable, "manage.py", "rank", str(path), "--json"]
        with subprocess.Popen(command, cwd=ROOT, stdout=out, env=os.environ | {"DATABASE_URL": NOWHERE}) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        spent = time.perf_counter() - began
        out.seek(0)
        assert child.returncode == 0, child.returncode
        return spent, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, json.loads(out.read())


@contextmanager
def package_interpreter(folder: Path | None, *, irt: bool) -> Iterator[Path]:
    """The interpreter of a virtual environment with the package; a temporary one unless a folder is named."""
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch) / "venv"
        python = place / "bin" / "python"
        if not python.exists():
            subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, place], check=True)
        requirements = [*PACKAGE, *(FOR_IRT if irt else ())]
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *requirements], check=True)
        yield python


def package_seconds(
    python: Path, panel: Panel, folder: Path, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Seconds of each of the package's models on the same forecasts."""
    questions = panel.questions
    arrays = folder / "panel.npz"
    np.savez(
        arrays,
        forecasters=np.array(panel.forecasters),
        questions=np.array(questions.names),
        option_offsets=questions.offsets,
        outcome=questions.outcome,
        **{
            name: getattr(panel, name)
            for name in ("forecaster", "question", "offsets", "probability", "odds", "no_odds")
        },
    )
    fast = [name for name in BARS if name in options.parts and name not in ("loading", "irt")]
    timings: dict[str, dict[str, float]] = {}
    for metrics_of_run in (fast, *((["irt"],) if options.irt else ())):
        run = [python, SIDE, arrays, ",".join(metrics_of_run), str(options.resamples), str(options.steps)]
        with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            for line in child.stdout or ():
                if line.startswith("{"):
                    timing = json.loads(line)
                    say(f"pm_rank: {timing['name']} {timing['seconds']:.2f} s")
                    timings.setdefault(timing["name"], timing)
    return timings


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Prints the table of ratios."""
    panel = rounded_panel(options.forecasters, options.questions, options.seed)
    rows, csv_file = folder / "forecasts.parquet", folder / "forecasts.csv"
    write_long_form(panel, rows)
    write_long_form(panel, csv_file)
    print(
        f"{len(panel.forecasters)} forecasters, {len(panel.questions):,} questions, {len(panel):,} forecasts,", end=" "
    )
    print(f"{len(panel.probability):,} rows; load average {os.getloadavg()[0]:.1f}")
    with package_interpreter(options.venv, irt=options.irt) as python:
        package = package_seconds(python, panel, folder, options)
    quick = min((loading_cost(rows) for _ in range(TIMES)), key=lambda run: run["seconds"])
    suite_seconds_by_part = {"loading": quick["seconds"]}
    began = time.perf_counter()
    fresh = replace(panel)
    _ = fresh.outcome, fresh.exclusive, fresh.priced
    first = time.perf_counter() - began
    for name, seconds in suite_seconds(panel, options.parts):
        say(f"ours: {name} {seconds:.3f} s")
        suite_seconds_by_part[name] = seconds
    print(f"{'':28}{'pm_rank s':>12}{'ours s':>10}{'ratio':>8}{'goal':>10}")
    for name, bar in BARS.items():
        if name in package and name in suite_seconds_by_part:
            scaled = f" (x {package[name]['scaled']:g})" if package[name].get("scaled", 1) != 1 else ""
            ratio = package[name]["seconds"] / suite_seconds_by_part[name]
            mark = "" if ratio >= bar else "  below"
            label = name + scaled
            print(
                f"{label:28}{package[name]['seconds']:12.2f}{suite_seconds_by_part[name]:10.3f}{ratio:8.0f}{bar:10}{mark}"
            )
    print(f"what all metrics share (the outcome of each cell, …) is worked out once per panel: {first:.3f} s")
    slow = loading_cost(csv_file)
    print(f"memory of loading: pm_rank {package['loading']['mib']:,.0f} MiB,", end=" ")
    print(f"ours {quick['mib']:,.0f} MiB (Parquet), {slow['mib']:,.0f} MiB (CSV, {slow['seconds']:.2f} s)")


def sizes(options: argparse.Namespace, folder: Path) -> None:
    """Prints what `rank` takes at three sizes, all metrics and 1,000 resamples, reading included."""
    heads = ("rows", "s", "CPU s", "MiB", "CPU s per million rows")
    print(f"{'rank, all metrics':20}{heads[0]:>12}{heads[1]:>8}{heads[2]:>8}{heads[3]:>8}{heads[4]:>25}")
    for share in (4, 2, 1):
        panel = rounded_panel(options.forecasters, options.questions // share, options.seed)
        path = folder / f"size_{share}.csv"
        write_long_form(panel, path)
        seconds, busy, mib, report = rank_cost(path)
        count = report["data"]["rows"]
        question_text = f"{len(panel.questions):,} questions"
        nanoseconds_each = busy / count * 1e6
        print(f"{question_text:20}{count:12,}{seconds:8.1f}{busy:8.1f}{mib:8,.0f}{nanoseconds_each:25.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forecasters", type=int, default=50)
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=50, help="of the package's bootstrap, scaled to 1,000")
    parser.add_argument("--steps", type=int, default=50, help="of the package's IRT, scaled to 1,000")
    parser.add_argument("--irt", action="store_true", help="the package's IRT too: installs PyTorch")
    parser.add_argument("--venv", type=Path, help="a virtual environment to use, or to make, and keep")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(BARS), help="of " + ", ".join(BARS))
    parser.add_argument("--only", choices=["compare", "sizes"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for part, act in (("sizes", sizes), ("compare", compare)):
            if options.only in (None, part):
                act(options, Path(name))


if __name__ == "__main__":
    main()
