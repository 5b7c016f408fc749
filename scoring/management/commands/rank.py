"""Ranks the forecasters of a file by every metric of the suite. Needs no database and touches none."""

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from markets.commands import ArenaCommand, Result, rendered
from scoring.ranking.files import FORMATS, UnreadableFile
from scoring.ranking.reading import Reading, read
from scoring.ranking.report import rank, rank_like_pm_rank
from scoring.ranking.settings import INTERVALS, METRICS, Settings
from scoring.ranking.tables import heading, tables

NARROWEST = 120


class Command(ArenaCommand):
    help = (
        "Ranks the forecasters of FILE (CSV, Parquet or JSON Lines; one row per forecaster, question and option: "
        "forecaster, question, option, probability, outcome and optionally odds, no_odds, event, category, made_at, "
        "closed_at, weight, exclusive). No database is needed, and none is touched."
    )
    requires_system_checks = []

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        usual = Settings()
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument("--format", choices=list(FORMATS), help="of FILE (default: by its suffix)")
        parser.add_argument("--metrics", type=_words, default=METRICS, help=f"default: {','.join(METRICS)}")
        parser.add_argument("--gamma", type=_words, default=usual.gammas, help="risk aversions, default: 0,0.5,1")
        parser.add_argument("--bootstrap", type=int, default=usual.bootstrap, metavar="N", help="resamples of events")
        parser.add_argument("--seed", type=int, default=usual.seed)
        parser.add_argument("--stream", type=int, default=usual.stream, metavar="N", help="questions per step")
        parser.add_argument("--log-clip", type=float, default=usual.log_clip, metavar="P", help="least probability")
        parser.add_argument("--bins", type=int, default=usual.bins, help="of calibration")
        parser.add_argument("--interval", choices=INTERVALS, default=usual.interval, help="kind of bootstrap interval")
        parser.add_argument("--level", type=float, default=usual.level, help="of intervals and rank ranges")
        parser.add_argument("--fractional-outcomes", action="store_true", help="allow outcomes between 0 and 1")
        parser.add_argument("--strict", action="store_true", help="end at the first bad row, with exit code 2")
        parser.add_argument("--like", choices=["pm_rank"], help="the definitions of that package, by its names")
        parser.add_argument("--defects", action="store_true", help="with --like: its known defects too")
        parser.add_argument("--out", type=Path, metavar="REPORT.json", help="write the whole report there")
        parser.add_argument("--plots", type=Path, metavar="DIR", help="draw the pictures there")
        parser.add_argument("--plot-format", choices=["svg", "png"], default="svg")

    def records_run(self, options: dict[str, Any]) -> bool:
        return False

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        settings = self._settings(options)
        if options["defects"] and not options["like"]:
            self.refuse("--defects: goes with --like")
        self._check_places(options)
        try:
            reading = read(
                options["file"],
                options["format"],
                strict=options["strict"],
                fractional_outcomes=options["fractional_outcomes"],
            )
        except UnreadableFile as error:
            self.refuse(str(error))
        with self.progress("ranking") as progress:
            report = self._report_of(reading, settings, options, progress)
        if options["out"] is not None:
            options["out"].write_text(json.dumps(report, allow_nan=False) + "\n")
        if options["plots"] is not None:
            from scoring.ranking.plots import draw

            with self.progress("drawing") as progress:
                draw(report, options["plots"], options["plot_format"], progress)
        failures = [] if report["forecasters"] else [f"{options['file']}: no forecast can be ranked"]
        return Result(report, failures=failures)

    def _settings(self, options: dict[str, Any]) -> Settings:
        try:
            return Settings(
                metrics=options["metrics"],
                gammas=options["gamma"],
                **{
                    name: options[name]
                    for name in ("bootstrap", "seed", "stream", "log_clip", "bins", "interval", "level")
                },
            )
        except ValueError as error:
            self.refuse(f"--{error}")

    def _check_places(self, options: dict[str, Any]) -> None:
        """Makes sure, before any long work, that there is room for what it is for."""
        out, plots = options["out"], options["plots"]
        if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
            self.refuse(f"--out {out}: {'a directory' if out.is_dir() else 'its directory is not there'}")
        if plots is not None:
            try:
                plots.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                self.refuse(f"--plots {plots}: {error.strerror}")

    def _report_of(
        self, reading: Reading, settings: Settings, options: dict[str, Any], progress: Callable[..., None]
    ) -> dict[str, Any]:
        stated = asdict(settings) | {
            "file": str(options["file"]),
            "fractional_outcomes": options["fractional_outcomes"],
            "like": options["like"],
        }
        if options["like"]:
            stated["defects"] = options["defects"]
            report = rank_like_pm_rank(reading.panel, settings, defects=options["defects"])
        else:
            report = rank(reading.panel, settings, progress)
        report["data"] |= {
            "rows": reading.rows,
            "rejected": len(reading.rejected),
            "superseded": reading.superseded,
            "ignored_columns": reading.ignored,
        }
        return {"settings": stated, **report, "rejected": [asdict(item) for item in reading.rejected]}

    def _report(self, result: Result, *, as_json: bool) -> None:
        if not as_json:
            width = max(NARROWEST, shutil.get_terminal_size((NARROWEST, 24)).columns)
            self.stdout.write(heading(result.summary))
            for title, table in tables(result.summary):
                self.stdout.write(f"\n{title}\n{rendered(table, width)}")
            result = replace(result, summary={})
        super()._report(result, as_json=as_json)


def _words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise argparse.ArgumentTypeError("name at least one")
    return words
