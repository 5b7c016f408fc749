"""Maintenance: no model is asked until it ends. A conversation that has begun is finished."""

from datetime import datetime

from django.db import transaction

from agents.models import Maintenance
from markets.services.cache_versions import Scope, lock_scope


def begin_maintenance(reason: str, *, at: datetime) -> bool:
    """Begins maintenance; False where it is under way."""
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)  # two that begin at once: one sees the other
        if Maintenance.objects.current():
            return False
        Maintenance.objects.create(began_at=at, reason=reason)
    return True


def end_maintenance(*, at: datetime) -> bool:
    """Ends maintenance; False where none is under way."""
    return bool(Maintenance.objects.filter(is_open=True).update(is_open=False, ended_at=at))


def maintenance_line() -> str:
    """Why no model is asked now; empty where models are asked."""
    current = Maintenance.objects.current()
    return f"{current}; no model is asked" if current else ""
