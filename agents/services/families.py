"""Writes of families, which renew the version of the competition index with the change."""

from agents.models import Family
from markets.services.cache_versions import Scope, renewing


def save_family(family: Family) -> None:
    """Stores a new or a changed family."""
    with renewing(Scope.COMPETITION):
        family.save()


def delete_family(family: Family) -> None:
    """Deletes a family; its foreign keys keep one that took part in anything."""
    with renewing(Scope.COMPETITION):
        family.delete()
