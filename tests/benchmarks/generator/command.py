"""`tests.benchmarks.generate`: an arena of any size, to measure on."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from agents.models import Agent, Decision, Family, Forecast, Position, Trade
from cohorts.models import Cohort
from cohorts.weeks import grid_instant
from foundation.commands import ArenaCommand, CommandResult
from markets.models import Market
from scoring.models import BrierScore, ForecastScore, Leaderboard, Snapshot
from tests.benchmarks.generator.plan import END, SMALL, Plan, Size
from tests.benchmarks.generator.season import season_make

NAMES = {field.name: field.name.replace("_", " ") for field in fields(Size)}
LEAST = {"cohorts": 1, "markets": 20, "decisions": 1}
COUNTED = {
    "cohorts": Cohort,
    "agents": Agent,
    "markets": Market,
    "decisions": Decision,
    "trades": Trade,
    "positions": Position,
    "snapshots": Snapshot,
    "forecasts": Forecast,
    "brier_rows": BrierScore,
    "forecasts_scored": ForecastScore,
    "leaderboards": Leaderboard,
}


class Command(ArenaCommand):
    help = (
        "Fills an arena that holds no season yet with a made one, to see what size costs. Its books balance and its "
        "scores follow from its rows, but nothing in it happened. The same seed gives the same rows. --at is its end."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--small", action="store_true", help="a size for tests; other sizes given besides count")
        for name, help_text in NAMES.items():
            description = f"{help_text} (default {getattr(Size(), name):,})"
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=description)

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options | {"at": options["at"] or END})

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        size = replace(
            SMALL if options["small"] else Size(), **{n: options[n] for n in NAMES if options[n] is not None}
        )
        for name in NAMES:
            if getattr(size, name) < LEAST.get(name, 0):
                self.refuse(f"--{name.replace('_', '-')} must be at least {LEAST.get(name, 0)}")
        families = Family.objects.active().count()
        if not families:
            self.refuse("no active family: nobody could play")
        if Cohort.objects.exists() or Market.objects.exists():
            self.refuse("this database holds a season already: name an empty one in DATABASE_URL")
        with self.progress("making") as progress:
            season_make(Plan(size, options["seed"], grid_instant(at), families), progress)
        return CommandResult({name: model._default_manager.count() for name, model in COUNTED.items()})
