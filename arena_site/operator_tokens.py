"""Operators' API tokens: creation, revocation and authentication."""

from datetime import datetime

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from agents.services.registrations import generate_token, hash_token, record_token_use
from arena_site.models import OperatorToken

PERMISSION = "arena_site.run_jobs"
"""The permission that a token's owner needs whenever it is used, whatever its scope."""


class InactiveToken(Exception):
    """A token that is expired, revoked or whose account is not active; the message says which."""


def issue_operator_token(
    *, owner: User, name: str, scope: str, at: datetime, expires_at: datetime | None = None
) -> tuple[OperatorToken, str]:
    """A new token in the owner's name: its row, and its text, which is not stored and can not be shown again.

    Raises ValidationError where an unrevoked token has the name, or the owner lacks the scope's permission.
    """
    if not owner.has_perm(PERMISSION):
        raise ValidationError(f"{owner} is not permitted to {OperatorToken.Scope(scope).label}")
    if (known := active_operator_token(name)) is not None:
        raise ValidationError(f"{known} has this name: revoke that token first")
    token = generate_token()
    row = OperatorToken(
        owner=owner, name=name, scope=scope, token_sha256=hash_token(token), created_at=at, expires_at=expires_at
    )
    with transaction.atomic():
        row.full_clean()
        row.save()
    return row, token


def active_operator_token(name: str) -> OperatorToken | None:
    """The unrevoked token of a name; it may have expired."""
    return OperatorToken.objects.filter(name=name, revoked_at=None).select_related("owner").first()


def revoke_operator_token(row: OperatorToken, *, at: datetime) -> bool:
    """Revokes a token; False if it was revoked before."""
    return bool(OperatorToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=at))


def authenticate_operator_token(token: str, *, now: datetime) -> OperatorToken | None:
    """The row of a token, with its use recorded; None if it is unknown. Raises InactiveToken."""
    row = OperatorToken.objects.filter(token_sha256=hash_token(token)).select_related("owner").first()
    if row is None:
        return None
    if (state := row.state(now)) != OperatorToken.State.ACTIVE:
        raise InactiveToken(f"the token is {state}")
    if not row.owner.is_active:
        raise InactiveToken("the account of the token is not active")
    record_token_use(row, now=now)
    return row
