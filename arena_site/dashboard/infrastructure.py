"""The dashboard's infrastructure: queue, workers, and the disk with its forecast."""

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path

from django.conf import settings
from django.db import connection
from django_q.models import Failure, OrmQ, Task

from agents.models import SigningKey
from agents.services.signing_keys import key_problem
from arena_site.dashboard.action import list_path
from arena_site.models import Backup, Worker
from arena_site.operations import operational_metrics
from arena_site.operations.queue_messages import queue_state
from arena_site.operations.watched_findings import is_backup_old
from foundation.models import Notice
from foundation.version import VERSION

WORKERS_SHOWN = 12
DAY = timedelta(days=1)
FEW_DAYS = 30
"""The forecast warns when the disk is full within so many days."""
MANY_DAYS = 3_650
"""Beyond so many days the number means no more than that the disk lasts."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of the database, or of this machine where the database is a server's, and its forecast."""

    database_bytes: int
    total: int
    free: int
    bytes_per_day: float

    @property
    def used_fraction(self) -> float:
        return 1 - self.free / self.total

    @property
    def days_left(self) -> int | None:
        """The days until it is full at the last week's growth; None without growth."""
        return int(self.free / self.bytes_per_day) if self.bytes_per_day >= 1 else None

    @property
    def lasts(self) -> bool:
        return self.days_left is not None and self.days_left > MANY_DAYS

    @property
    def is_short(self) -> bool:
        return self.days_left is not None and self.days_left < FEW_DAYS


@dataclass(frozen=True, slots=True)
class TableSize:
    """A large table's estimated rows, and those added within a week."""

    name: str
    rows: int
    rows_added: int | None
    path: str


class Infrastructure:
    """Queue, workers, notices, tables and disk, at instant `at` of the arena and `now` of the real clock."""

    def __init__(self, at: datetime, now: datetime) -> None:
        self.version = VERSION
        self.workers = list(Worker.objects.all()[:WORKERS_SHOWN])
        self.has_live_worker = any(worker.is_alive(now) for worker in self.workers)
        self.queue = queue_state(now)
        self.queued_path = list_path(OrmQ, preset="waiting")
        self.running_path = list_path(OrmQ, preset="started")
        self.jobs_failed = Failure.objects.filter(stopped__gte=now - DAY).count()
        self.failed_path = list_path(Failure, stopped__gte=(now - DAY).isoformat())
        self.failing = _failing_functions(now)
        self.backup = Backup.objects.first()
        self.backup_is_old = self.backup is not None and is_backup_old(self.backup.taken_at, now)
        self.backups_path = list_path(Backup)
        self.signing_key = SigningKey.objects.current()
        self.signing_key_problem = key_problem(self.signing_key, now) if self.signing_key else ""
        self.unsent_notices = Notice.objects.filter(sent_at=None, tries__gt=0).count()
        self.unsent_path = list_path(Notice, sent_at__isnull=1, tries__gt=0)
        added = operational_metrics.rows_added(at=at, now=now)
        rows = dict(operational_metrics.table_rows())
        self.tables = []
        for model in operational_metrics.LARGE_TABLES:
            name = model._meta.db_table
            if name in rows:
                self.tables.append(TableSize(name, rows[name], added.get(name), list_path(model)))
        self.disk = _disk(self.tables)


def _failing_functions(now: datetime) -> dict[str, Task]:
    """The last task of a day of each function whose last task failed."""
    last: dict[str, Task] = {}
    for task in Task.objects.filter(stopped__gte=now - DAY).only("func", "success", "stopped").order_by("stopped"):
        last[task.func] = task
    return {function: task for function, task in last.items() if not task.success}


def _disk(tables: list[TableSize]) -> Disk:
    """The growth is estimated: rows added within a week, each as large as a row of the large tables is on average."""
    size, usage = operational_metrics.database_bytes(), shutil.disk_usage(_database_folder())
    rows, added = sum(map(attrgetter("rows"), tables)), sum(filter(None, map(attrgetter("rows_added"), tables)))
    growth = size / rows * added / operational_metrics.GROWTH_PERIOD.days if rows else 0.0
    return Disk(size, usage.total, usage.free, growth)


def _database_folder() -> Path:
    folder = Path(str(connection.settings_dict["NAME"])).parent
    return folder if connection.vendor == "sqlite" and folder.is_dir() else settings.BASE_DIR
