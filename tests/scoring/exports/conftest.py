"""A season with everything in it that an archive can hold, played once; and archives of it, which need no database."""

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from markets.models import Market
from tests.seasons import a_venue
from tests.venue import CLAUDE, DECISION, GEMINI, GPT, GROK, KIMI, QWEN, SUNDAY, Failure, Said, Venue, bet, run, sell

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
RAIN, CUP, SNOW = "Will it rain?", "=SUM(A1)+Lakers", "Will it snow?"
END = SUNDAY + WEEK + 3 * DAY


def done(command: str, at: datetime) -> None:
    """Runs a command of the season, which may report models that are down, and nothing else."""
    ran = run(command, at)
    assert not ran.complaint or "503" in ran.complaint or ran.code == 0, ran.complaint


def play(venue: Venue) -> None:
    """Two cohorts: bets that won, lost, were sold, refunded, refused; a fallback, a failure, forecasts in both arms."""
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
    venue.says(CLAUDE, Said("", refusal="I would rather not"))
    done("sync_markets", SUNDAY)
    done("start_cohort", SUNDAY)
    done("run_decisions", DECISION)
    done("run_forecasts", SUNDAY + timedelta(hours=2))
    done("take_snapshots", SUNDAY + timedelta(hours=3))
    done("run_forecasts", SUNDAY + DAY + timedelta(hours=2))
    venue.resolve(SNOW, "No")
    done("check_resolutions", SUNDAY + 2 * DAY)
    done("sync_markets", SUNDAY + WEEK)
    done("start_cohort", SUNDAY + WEEK)
    venue.says(GEMINI, sell(RAIN, 50), bet(RAIN, "NO", 50))
    done("run_decisions", DECISION + WEEK)
    venue.resolve(RAIN, "Yes")
    venue.cancel(CUP)
    done("check_resolutions", SUNDAY + WEEK + 2 * DAY)
    done("take_snapshots", END)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """The archives of the season: `whole` (both formats, zipped too), `cohort` and `day`, in CSV; not to be bent."""
    folder = tmp_path_factory.mktemp("exported")
    with django_db_blocker.unblock(), transaction.atomic():
        with a_venue() as venue:
            play(venue)
            assert Market.objects.filter(status="resolved").count() == 2
            assert run("verify_ledger", END).code == 0
            both = ("csv", "parquet")
            for name, options in (
                ("whole", {"format": both, "zip": True}),
                ("cohort", {"cohort": 1}),
                ("day", {"day": SUNDAY + WEEK}),
            ):
                made = run("export_dataset", END, out=folder / name, **options)
                assert made.code == 0, made.complaint
        transaction.set_rollback(True)
    return folder


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Gives a copy of one of the archives that a test may bend."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(exported / name, tmp_path / name))

    return copied
