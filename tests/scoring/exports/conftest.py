"""Archives of a season that fills every table, played once."""

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from markets.models import Market
from tests.answers import CLAUDE, GEMINI, GPT, GROK, KIMI, QWEN, bet, forecast, sell
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue
from tests.shared_files import made_once
from tests.shared_rows import scripted_venue
from venue_sandbox.script import Failure, ModelAnswer

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
RAIN, CUP, SNOW = "Will it rain?", "=SUM(A1)+Lakers", "Will it snow?"
END = SUNDAY + WEEK + 3 * DAY


def run_step(command: str, at: datetime) -> None:
    """Runs a command of the season, which may fail for models that are down and for nothing else."""
    ran = run(command, at)
    assert not ran.stderr or "503" in ran.stderr or ran.code == 0, ran.stderr


def play_season(venue: Venue) -> None:
    """Two cohorts with bets of every outcome, a fallback, a failure, and forecasts in both arms."""
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    venue.market(SNOW)
    venue.market("Will it hail?", {"Yes": "0.20", "No": "0.80"})
    hostile = "-1+1|cmd\n'quoted', \"twice\"\r\tend"
    venue.says(
        GPT, lambda p: {**bet(RAIN, "YES", 2500, (SNOW, "YES", 60), (SNOW, "YES", 9000))(p), "reasoning": hostile}
    )
    venue.says(GEMINI, bet(RAIN, "NO", "333.33", (CUP, "Celtics", 100)))
    venue.says(GROK, "no JSON at all", bet(CUP, "Lakers", "77.77"))
    venue.says(KIMI, *["gibberish"] * 3)
    venue.says(QWEN, Failure(503))
    venue.says(CLAUDE, ModelAnswer("", refusal="I would rather not"))
    run_step("sync_markets", SUNDAY)
    run_step("start_cohort", SUNDAY)
    run_step("run_decisions", DECISION)
    venue.says(KIMI, forecast({SNOW: {"YES": 1.5, "NO": 0.2}}))
    run_step("run_forecasts", SUNDAY + timedelta(hours=2))
    run_step("take_snapshots", SUNDAY + timedelta(hours=3))
    run_step("run_forecasts", SUNDAY + DAY + timedelta(hours=2))
    venue.resolve(SNOW, "No")
    run_step("check_resolutions", SUNDAY + 2 * DAY)
    run_step("sync_markets", SUNDAY + WEEK)
    run_step("start_cohort", SUNDAY + WEEK)
    venue.says(GEMINI, sell(RAIN, 50), bet(RAIN, "NO", 50))
    run_step("run_decisions", DECISION + WEEK)
    venue.resolve(RAIN, "Yes")
    venue.cancel(CUP)
    run_step("check_resolutions", SUNDAY + WEEK + 2 * DAY)
    run_step("take_snapshots", END)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """Read-only archives of the season: `whole` (both formats and a zip), `cohort` and `day` (CSV)."""

    def export(folder: Path) -> None:
        with django_db_blocker.unblock(), transaction.atomic():
            with scripted_venue() as venue:
                play_season(venue)
                assert Market.objects.filter(status="resolved").count() == 2
                assert run("verify_ledger", END).code == 0
                formats = ("csv", "parquet")
                for name, options in (
                    ("whole", {"format": formats, "zip": True}),
                    ("cohort", {"cohort": 1}),
                    ("day", {"day": SUNDAY + WEEK}),
                ):
                    ran = run("export_dataset", END, out=folder / name, **options)
                    assert ran.code == 0, ran.stderr
            transaction.set_rollback(True)

    return made_once(tmp_path_factory, "exported", export)


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies an archive, so that a test may change it."""

    def make(name: str) -> Path:
        return Path(shutil.copytree(exported / name, tmp_path / name))

    return make
