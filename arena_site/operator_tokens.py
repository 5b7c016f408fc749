"""Operators' tokens for the API: made and shown once, kept as a hash, revoked; and whether one opens a door."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from agents.services.registrations import fingerprint, note_use, token_new
from arena_site.models import OperatorToken

PERMISSIONS = {
    OperatorToken.Scope.EXPORTS: "arena_site.run_jobs",
    OperatorToken.Scope.JOBS: "arena_site.run_jobs",
}
"""What the owner must be permitted, whenever the token is used."""


class Refused(Exception):
    """A token that was good once; the message says why it is no more."""


@dataclass(frozen=True, slots=True)
class Made:
    row: OperatorToken
    token: str
    """Nowhere on record: whoever does not keep it needs another."""


def token_make(*, owner: User, name: str, scope: str, at: datetime, expires_at: datetime | None = None) -> Made:
    """A token in the owner's name.

    Raises ValidationError for a name whose token is not revoked, and for an owner who may not do what it would open.
    """
    if not owner.has_perm(PERMISSIONS[OperatorToken.Scope(scope)]):
        raise ValidationError(f"{owner} is not permitted to {OperatorToken.Scope(scope).label}")
    if (known := in_force(name)) is not None:
        raise ValidationError(f"{known} has this name: revoke it first")
    token = token_new()
    row = OperatorToken(
        owner=owner, name=name, scope=scope, token_sha256=fingerprint(token), made_at=at, expires_at=expires_at
    )
    with transaction.atomic():
        row.full_clean()
        row.save()
    return Made(row, token)


def in_force(name: str) -> OperatorToken | None:
    """The token of a name that has not been revoked; it may have expired."""
    return OperatorToken.objects.filter(name=name, revoked_at=None).select_related("owner").first()


def token_revoke(row: OperatorToken, *, at: datetime) -> bool:
    """Ends a token; True if it was not revoked before."""
    return bool(OperatorToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=at))


def operator_token(token: str, *, now: datetime) -> OperatorToken | None:
    """The row of a token, its use noted; None for a text that is none. Raises Refused for one that opens nothing."""
    row = OperatorToken.objects.filter(token_sha256=fingerprint(token)).select_related("owner").first()
    if row is None:
        return None
    if (state := row.state(now)) != OperatorToken.State.LIVE:
        raise Refused(f"the token is {state}")
    if not row.owner.is_active:
        raise Refused("the account of the token is not active")
    note_use(row, now=now)
    return row
