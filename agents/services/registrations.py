"""Letting somebody else's agent take part, and no more: a token, shown once, kept as a hash."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from agents.lineup import EFFECTIVE_FROM
from agents.models import Family, Registration, Release

PREFIX = "arena_"
"""Lets scanners for leaked secrets know one."""
TOKEN_BYTES = 32
USE_NOTED = timedelta(minutes=1)
"""How exactly a token's last use is known: most that is asked with one stays a read."""
COLOR = "#64748b"
VENDOR = "external"
RESERVED = ("market", "uniform", "ensemble")
"""Forecasters of every board that are nobody's."""


@dataclass(frozen=True, slots=True)
class Registered:
    registration: Registration
    token: str
    """Nowhere on record: whoever does not keep it needs another."""


def agent_register(*, name: str, protocol: str, at: datetime) -> Registered:
    """Leave for the external agent of this name to take part from `at` on, with its token.

    A name that was known, and whose leave was revoked, is the same agent again. Raises ValidationError as
    `check_name` does.
    """
    token = token_new()
    with transaction.atomic():
        slug = check_name(name)
        registration = Registration(
            family=Family.objects.filter(slug=slug).first() or _family(slug, _tidy(name)),
            protocol=protocol,
            token_sha256=fingerprint(token),
            registered_at=at,
        )
        registration.full_clean()
        registration.save()
    return Registered(registration, token)


def check_name(name: str) -> str:
    """The slug of an agent that may be registered under this name.

    Raises ValidationError for a name that can not be one, that a model has, or whose leave is live.
    """
    slug = re.sub(r"[^a-z0-9.]+", "-", name.casefold()).strip("-.")
    if not slug:
        raise ValidationError({"name": f"{name!r} holds no letter or digit"})
    if slug in RESERVED or Family.objects.filter(slug=slug, external=False).exists():
        raise ValidationError({"name": f"{slug} is the name of another forecaster"})
    if Registration.objects.filter(family__slug=slug, revoked_at=None).exists():
        raise ValidationError({"name": f"{slug} is registered already: revoke that first"})
    return slug


def _tidy(name: str) -> str:
    return " ".join(name.split())


def _family(slug: str, name: str) -> Family:
    family = Family(slug=slug, display_name=name, provider="External", color=COLOR, active=False, external=True)
    family.full_clean()
    family.save()
    Release.objects.create(
        family=family,
        model_id=f"{VENDOR}/{slug}",
        display_name=name,
        price_prompt=Decimal(0),
        price_completion=Decimal(0),
        effective_from=EFFECTIVE_FROM,
    )
    return family


def registration_revoke(registration: Registration, *, at: datetime) -> bool:
    """Ends a registration; True if it was live. Its token opens nothing from now on, what it did stays."""
    return bool(Registration.objects.filter(pk=registration.pk, revoked_at=None).update(revoked_at=at))


def registration_of(token: str, *, now: datetime) -> Registration | None:
    """The live registration that a token belongs to, its use noted; None for any other text."""
    live = Registration.objects.filter(token_sha256=fingerprint(token), revoked_at=None)
    registration = live.select_related("family").first()
    if registration is not None:
        note_use(registration, now=now)
    return registration


def token_new() -> str:
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def note_use(row: Any, *, now: datetime) -> None:
    """Dates the last use of a token's row, which the row may be up to a minute behind."""
    last = row.last_used_at
    if last is None or not last <= now < last + USE_NOTED:
        type(row).objects.filter(pk=row.pk).update(last_used_at=now)


def fingerprint(token: str) -> str:
    """What is kept of a token. It holds 256 random bits, so that nothing slower than a plain hash is called for."""
    return hashlib.sha256(token.encode()).hexdigest()
