"""The spend cap, pauses and maintenance that operators have set, read anew by each run and before each request."""

from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Q

from agents.models import Family, Maintenance, RunSetting
from markets.services.cache_versions import Scope, lock_scope


def spend_limit(protocol: str, default: Decimal) -> Decimal:
    """The most that a protocol may cost in a week: what an operator set, else the default."""
    row = RunSetting.objects.filter(protocol=protocol, family=None, condition="").first()
    return default if row is None or row.spend_limit_usd is None else row.spend_limit_usd


def is_paused(protocol: str, family_id: int) -> bool:
    """Whether the runs of a protocol leave this family out."""
    covering = Q(family=None) | Q(family=family_id)
    return RunSetting.objects.filter(covering, protocol=protocol, condition="", paused=True).exists()


def paused_conditions() -> set[str]:
    """The conditions that forecast runs leave out."""
    paused = RunSetting.objects.filter(paused=True).exclude(condition="")
    return set(paused.values_list("condition", flat=True))


def paused_families(protocol: str) -> set[int]:
    """The ids of the families that the runs of a protocol leave out."""
    paused = set(
        RunSetting.objects.filter(protocol=protocol, condition="", paused=True).values_list("family_id", flat=True)
    )
    if None in paused:
        return set(Family.objects.values_list("pk", flat=True))
    return {family for family in paused if family is not None}


def set_spend_limit(protocol: str, limit: Decimal | None) -> bool:
    """Sets a protocol's cap, or removes it with None; whether that changed anything."""
    row, _ = RunSetting.objects.get_or_create(protocol=protocol, family=None, condition="")
    return bool(RunSetting.objects.filter(pk=row.pk).exclude(spend_limit_usd=limit).update(spend_limit_usd=limit))


def set_paused(protocol: str, family: Family | None, *, paused: bool) -> bool:
    """Pauses or resumes a protocol, for one family if named; whether that changed anything."""
    row, _ = RunSetting.objects.get_or_create(protocol=protocol, family=family, condition="")
    return bool(RunSetting.objects.filter(pk=row.pk, paused=not paused).update(paused=paused))


def set_condition_paused(condition: str, *, paused: bool) -> bool:
    """Pauses or resumes a condition of the forecasts; whether that changed anything."""
    row, _ = RunSetting.objects.get_or_create(protocol=RunSetting.Protocol.FORECAST, family=None, condition=condition)
    return bool(RunSetting.objects.filter(pk=row.pk, paused=not paused).update(paused=paused))


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
